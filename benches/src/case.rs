//! What is measured: a transport, how many requests are in flight, and how large the message is.

use std::fmt;

/// One line of comparison between the servers, or between the clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Case {
    pub(crate) transport: Transport,
    /// Connections over HTTP with one request in flight on each, requests in flight over stdio and of clients.
    pub(crate) concurrency: usize,
    pub(crate) payload: Payload,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    /// 2026-07-28: no session, everything in `_meta` and headers.
    ModernHttp,
    /// 2025-11-25: a session per connection.
    LegacyHttp,
    /// 2026-07-28 over pipes.
    Stdio,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Payload {
    Small,
    Large,
}

impl Case {
    pub(crate) fn all() -> Vec<Self> {
        let mut cases = Vec::new();
        for transport in [Transport::ModernHttp, Transport::LegacyHttp, Transport::Stdio] {
            for payload in [Payload::Small, Payload::Large] {
                for &concurrency in transport.concurrencies() {
                    cases.push(Self { transport, concurrency, payload });
                }
            }
        }
        cases
    }

    /// The cases in which clients are compared: 2026-07-28, which all of them speak, with small messages.
    pub(crate) fn of_clients() -> Vec<Self> {
        let mut cases = Vec::new();
        for transport in [Transport::Stdio, Transport::ModernHttp] {
            for concurrency in [1, 64] {
                cases.push(Self { transport, concurrency, payload: Payload::Small });
            }
        }
        cases
    }
}

impl Transport {
    fn concurrencies(self) -> &'static [usize] {
        match self {
            Self::ModernHttp | Self::LegacyHttp => &[16, 64],
            Self::Stdio => &[1, 64],
        }
    }
}

impl Payload {
    /// Plain ASCII words without anything to escape, so that every server copies and none has to rewrite.
    pub(crate) fn message(self) -> String {
        let length = match self {
            Self::Small => 32,
            Self::Large => 64 * 1024,
        };
        "the quick brown fox jumps over a lazy dog and ".chars().cycle().take(length).collect()
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let transport = match self.transport {
            Transport::ModernHttp => "modern-http",
            Transport::LegacyHttp => "legacy-http",
            Transport::Stdio => "stdio",
        };
        write!(f, "{transport} x{} {}", self.concurrency, self.payload)
    }
}

impl fmt::Display for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Small => "32B",
            Self::Large => "64KB",
        })
    }
}
