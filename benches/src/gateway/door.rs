//! [`Door`]: where a gateway is reached, and under which name the echo is there.

use std::net::SocketAddr;
use std::process::Child;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::case::Era;
use crate::credentials::Credentials;
use crate::load::response;
use crate::load::session::Blocking;
use crate::request::{Ask, Request};

#[derive(Clone)]
pub(crate) struct Door {
    pub(crate) addr: SocketAddr,
    pub(crate) path: &'static str,
    pub(crate) tool: &'static str,
    /// What it has to be shown.
    pub(crate) credentials: Option<Arc<Credentials>>,
}

impl Door {
    /// The floor's own, which asks nobody who they are.
    pub(crate) fn open(addr: SocketAddr, path: &'static str) -> Self {
        Self { addr, path, tool: "echo", credentials: None }
    }

    /// Asks again and again until the right answer comes, because a gateway may listen before its servers are there.
    /// Returns the length of that answer.
    pub(crate) fn first_answer(
        &self,
        era: Era,
        ask: &Ask,
        mut child: Option<&mut Child>,
        patience: Duration,
    ) -> Result<usize> {
        let deadline = Instant::now() + patience;
        loop {
            let error = match self.once(era, ask) {
                Ok(length) => return Ok(length),
                Err(error) => error,
            };
            if let Some(child) = &mut child
                && let Some(status) = child.try_wait()?
            {
                anyhow::bail!("it ended by itself: {status}");
            }
            if Instant::now() > deadline {
                return Err(error).with_context(|| format!("no good answer within {patience:?}"));
            }
            // Short, because start-up is timed by this too.
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn once(&self, era: Era, ask: &Ask) -> Result<usize> {
        let mut connection = Blocking::connect(self.addr)?;
        let mut request = match era {
            Era::Modern => Request::modern_http(self.addr, ask),
            Era::Legacy => {
                let session = connection.open_session(ask.path)?;
                Request::legacy_http(self.addr, &session, ask)
            }
        };
        let response = connection.exchange(request.numbered(0))?;
        let body = response.body();
        let status = response.status();
        anyhow::ensure!(
            status == 200,
            "status {status}: {}",
            String::from_utf8_lossy(&body[..body.len().min(300)])
        );
        let answer = response::answer(&body);
        ask.check(answer, 0)?;
        Ok(answer.len())
    }
}
