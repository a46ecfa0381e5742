//! Blocking exchanges for what happens once: checking a server before it is measured, and legacy handshakes.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use anyhow::{Context, Result};

use super::STALLED;
use super::response::Framing;
use crate::request;

/// A keep-alive connection on which one request is answered at a time.
pub(crate) struct Blocking {
    stream: TcpStream,
    addr: SocketAddr,
}

/// A complete response.
pub(crate) struct Response {
    framing: Framing,
    bytes: Vec<u8>,
}

impl Response {
    pub(crate) fn status(&self) -> u16 {
        self.framing.status()
    }

    pub(crate) fn body(&self) -> Vec<u8> {
        self.framing.body(&self.bytes).into_owned()
    }
}

impl Blocking {
    pub(crate) fn connect(addr: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(addr).with_context(|| format!("connecting to {addr}"))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(STALLED))?;
        Ok(Self { stream, addr })
    }

    pub(crate) fn exchange(&mut self, request: &[u8]) -> Result<Response> {
        self.stream.write_all(request)?;
        let (mut framing, mut bytes) = (Framing::default(), Vec::new());
        let mut piece = [0; 16 * 1024];
        loop {
            let read = self.stream.read(&mut piece).context("waiting for a response")?;
            anyhow::ensure!(read > 0, "the server closed the connection");
            bytes.extend_from_slice(&piece[..read]);
            if framing.is_complete(&bytes)? {
                return Ok(Response { framing, bytes });
            }
        }
    }

    /// 2025-11-25 basic/lifecycle: `initialize`, then `notifications/initialized`; returns the session id.
    ///
    /// The floor knows no sessions and hands out none; a placeholder keeps its requests as long as the others'.
    pub(crate) fn open_session(&mut self, path: &str) -> Result<String> {
        let response = self.exchange(&request::initialize(self.addr, path))?;
        anyhow::ensure!(response.status() == 200, "initialize was answered with {}", response.status());
        let session = response.framing.header(&response.bytes, "mcp-session-id");
        let session = session.unwrap_or_else(|| "00000000-0000-4000-8000-000000000000".into());
        let accepted = self.exchange(&request::initialized(self.addr, path, &session))?;
        anyhow::ensure!(
            accepted.status() == 202,
            "notifications/initialized was answered with {}",
            accepted.status()
        );
        Ok(session)
    }

    pub(crate) fn into_stream(self) -> Result<TcpStream> {
        self.stream.set_nonblocking(true)?;
        Ok(self.stream)
    }
}
