//! Whether the server is there, and letting it rest.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tidegate_protocol::seal::Sealer;
use tidegate_protocol::{Error, Method, Params, Symbol};
use tidegate_service::layers::BreakerState;
use tidegate_service::{Call, CallerId, Door, Reply};

use super::{Client, Server};
use crate::app_error::AppError;
use crate::time_budget::TimeBudget;

/// What a client has open towards its server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct InUse {
    /// Sessions with a legacy server.
    pub sessions: usize,
    /// Processes that were started for it, those included that are about to end.
    pub processes: usize,
    /// Calls that wait for their callers to answer a question of a legacy server.
    pub parked_calls: usize,
    /// Streams on which a modern server tells what changes, and sessions in which a legacy one does.
    pub subscriptions: usize,
}

impl Client {
    /// Asks the server whether it is there, now, and waits at most this long: `ping` for a legacy server,
    /// `server/discover` for a modern one. It connects if need be, past the breaker and the retries, but not past the pauses
    /// between the starts of a program that cannot live: in one that is longer than a second it fails at once.
    ///
    /// A server that answers is there again: what the breaker is open for ends if the server could not be reached. A breaker
    /// that failing calls opened is left to trial calls. A server that does not answer is none the worse for it.
    pub async fn probe(&self, within: Duration) -> Result<(), AppError> {
        let answered = match &self.0.server {
            Server::Remote { upstream, .. } => {
                let budget = TimeBudget::new(Instant::now(), within, false, None);
                let call = self.own_call(Method::Ping, Params::empty());
                upstream.probe(&call, budget).await
            }
            Server::Local { bare, .. } => {
                let call = self.own_call(Method::Discover, Params::empty());
                let reply: Result<Result<Reply, Infallible>, _> =
                    tokio::time::timeout(within, bare.answer(call)).await;
                match reply {
                    Ok(Ok(Reply::Error(error))) => Err(error),
                    Ok(Ok(_)) => Ok(()),
                    Err(_) => {
                        let what = format!("The server did not answer within {:.1} s", within.as_secs_f32());
                        Err(Error::new(Symbol::Timeout, what))
                    }
                }
            }
        };
        match answered {
            Ok(()) => {
                self.0.circuit.report_success();
                Ok(())
            }
            Err(error) => Err(self.app_error(&error, &Method::Ping)),
        }
    }

    /// Starts the server's program at the next call or probe, whatever pause its failures have earned it: somebody has set
    /// something right.
    pub fn forget_failures(&self) {
        if let Server::Remote { upstream, .. } = &self.0.server {
            upstream.forget_failures();
        }
    }

    /// Has a service in this process seal with other keys from now on: see [`ClientBuilder::sealer`](super::ClientBuilder::sealer).
    /// What is sealed for other servers names something in this process that ends with it, and keeps its key.
    pub fn reseal(&self, with: Sealer) {
        if let Server::Local { sealer, .. } = &self.0.server {
            sealer.store(Some(Arc::new(with)));
        }
    }

    /// Ends sessions, connections and processes in an orderly way, without closing the client: the next call starts the
    /// server again.
    ///
    /// Returns whether the server is at rest. It is not, and nothing was ended, while a call is in flight or waits for
    /// answers, while a task lives, and while somebody has subscribed to something.
    pub async fn rest(&self) -> bool {
        match &self.0.server {
            Server::Remote { upstream, .. } => upstream.rest().await,
            // Nothing of it is ours to end.
            Server::Local { .. } => true,
        }
    }

    /// In whose name the client makes its own calls. Whoever asks the server for itself through the door does so in the
    /// same name, and so in the same session.
    pub fn caller(&self) -> CallerId {
        self.0.caller
    }

    /// Whether a legacy server remembers something of somebody who may come back: a client that is still connected, or one
    /// that has called within the time for which sessions are kept ([`SessionSettings::idle`](crate::SessionSettings)). Whoever
    /// lets it [rest](Client::rest) makes it forget.
    pub fn keeps_state(&self) -> bool {
        match &self.0.server {
            Server::Remote { upstream, .. } => upstream.keeps_state(),
            Server::Local { .. } => false,
        }
    }

    /// Passes a notification of somebody else on. It says nothing about the server, so it goes past the breaker, but a
    /// server that is left alone is left alone by this too.
    pub(super) async fn pass_on(&self, call: Call) {
        if self.0.circuit.state() == BreakerState::Open {
            return;
        }
        let told = match &self.0.server {
            Server::Remote { upstream, .. } => upstream.notify(&call).await,
            Server::Local { bare, .. } => {
                let Ok(_) = bare.answer(call).await;
                Ok(())
            }
        };
        if let Err(error) = told {
            tracing::debug!(server = self.0.circuit.name(), %error, "a notification was lost");
        }
    }

    /// How many calls to the server are under way, probes included. Zero for a service in this process, which nobody
    /// counts.
    pub fn in_flight(&self) -> usize {
        match &self.0.server {
            Server::Remote { upstream, .. } => upstream.in_flight(),
            Server::Local { .. } => 0,
        }
    }

    /// What the client has open towards the server, now. Nothing for a service in this process.
    pub fn in_use(&self) -> InUse {
        match &self.0.server {
            Server::Remote { upstream, .. } => upstream.in_use(),
            Server::Local { .. } => InUse::default(),
        }
    }

    /// Whether there is a process or a session of the server. A modern server over HTTP has neither, ever.
    pub fn is_running(&self) -> bool {
        match &self.0.server {
            Server::Remote { upstream, .. } => upstream.is_running(),
            Server::Local { .. } => false,
        }
    }
}
