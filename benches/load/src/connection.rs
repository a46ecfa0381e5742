//! [`Connection`]: one client that calls again and again.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::exchange::{Wire, request};
use crate::tally::{Outcome, Tally};

/// What all clients do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// They call at their pace.
    Steady,
    /// Those that are not slow call at once, and no more after that.
    Burst,
}

/// How a client calls.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Pace {
    /// Once in this time.
    Every(Duration),
    /// Byte by byte, so that a request takes this long.
    Slow(Duration),
}

/// One client.
pub(crate) struct Connection {
    wire: Wire,
    address: SocketAddr,
    number: usize,
    pace: Pace,
    tally: Arc<Tally>,
    phase: watch::Receiver<Phase>,
}

/// Why a client is done.
struct Done;

impl Connection {
    pub(crate) async fn open(
        address: SocketAddr,
        number: usize,
        pace: Pace,
        tally: Arc<Tally>,
        phase: watch::Receiver<Phase>,
    ) -> io::Result<Connection> {
        Ok(Connection { wire: Wire::connect(address).await?, address, number, pace, tally, phase })
    }

    /// Calls until the end.
    pub(crate) async fn run(mut self) {
        let Err(Done) = match self.pace {
            Pace::Every(period) => self.call_every(period).await,
            Pace::Slow(within) => self.call_slowly(within).await,
        };
    }

    async fn call_every(&mut self, period: Duration) -> Result<std::convert::Infallible, Done> {
        // Not all at the same time.
        let mut next = tokio::time::Instant::now() + period.mul_f64(fastrand::f64());
        loop {
            let is_steady = *self.phase.borrow_and_update() == Phase::Steady;
            if is_steady {
                tokio::select! {
                    () = tokio::time::sleep_until(next) => {}
                    _ = self.phase.changed() => continue,
                    _ = self.wire.ends() => {
                        self.tally.ended_idle();
                        return Err(Done);
                    }
                }
                next += period;
            }
            // Some of the last calls take a while: they are what is running at the end.
            let (tool, arguments) = match !is_steady && self.number.is_multiple_of(20) {
                true => ("demo_count", "{\"to\":1}".to_owned()),
                false => ("demo_echo", format!("{{\"message\":{:?}}}", "x".repeat(16 + self.number % 512))),
            };
            self.call(tool, &arguments, None).await?;
            if !is_steady {
                return Err(Done);
            }
        }
    }

    async fn call_slowly(&mut self, within: Duration) -> Result<std::convert::Infallible, Done> {
        loop {
            tokio::time::sleep(within.mul_f64(fastrand::f64() / 4.0)).await;
            self.call("demo_echo", "{\"message\":\"slowly\"}", Some(within)).await?;
            if *self.phase.borrow() == Phase::Burst {
                return Err(Done);
            }
        }
    }

    /// Makes a call and counts what came of it.
    async fn call(&mut self, tool: &str, arguments: &str, slowly: Option<Duration>) -> Result<(), Done> {
        let request = request(self.address, self.number as u64, tool, arguments);
        let began = Instant::now();
        let is_sent = self.wire.send(&request, slowly).await;
        let sent = Instant::now();
        if let Err(error) = is_sent {
            // What was not sent was not asked.
            self.tally.unsent(began, &error);
            return Err(Done);
        }
        self.tally.sent();
        let answer = self.wire.answer(slowly.map(|_| Duration::from_millis(20))).await;
        let took = slowly.is_none().then(|| sent.elapsed());
        let (outcome, is_last) = match answer {
            Ok(Some(answer)) => (Outcome::of(&answer), answer.is_last),
            Ok(None) => (Outcome::Closed("the connection was closed".to_owned()), true),
            Err(error) => (Outcome::Closed(error.to_string()), true),
        };
        self.tally.count(sent, took, outcome);
        if is_last { Err(Done) } else { Ok(()) }
    }
}
