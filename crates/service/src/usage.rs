//! What a process has done that happens too often for events: how many bytes its clients have sent and got, and how often its caches had
//! what was looked for.
//!
//! It belongs to the process, like the [budget](crate::budget). Counting is one addition, and what is counted by different threads is
//! mostly on cache lines of its own.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A number that only grows.
#[derive(Debug)]
#[repr(align(64))]
struct Tally(AtomicU64);

impl Tally {
    const fn new() -> Tally {
        Tally(AtomicU64::new(0))
    }

    fn add(&self, more: usize) {
        self.0.fetch_add(more as u64, Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// Something that is kept because finding it again takes long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cache {
    /// The tools of servers, as calls to them need them.
    ToolLists,
    /// Credentials of callers that were verified lately.
    Credentials,
    /// Documents from the web, such as the keys of issuers.
    Documents,
}

static HITS: [Tally; Cache::ALL.len()] = [const { Tally::new() }; Cache::ALL.len()];
static MISSES: [Tally; Cache::ALL.len()] = [const { Tally::new() }; Cache::ALL.len()];

impl Cache {
    /// All of them.
    pub const ALL: [Cache; 3] = [Cache::ToolLists, Cache::Credentials, Cache::Documents];

    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Cache::ToolLists => "tool_lists",
            Cache::Credentials => "credentials",
            Cache::Documents => "documents",
        }
    }

    /// Somebody has looked for something, and it was there or not.
    pub fn looked_up(self, is_there: bool) {
        let counted = if is_there { &HITS } else { &MISSES };
        counted[self as usize].add(1);
    }

    /// How often it had what was looked for.
    pub fn hits(self) -> u64 {
        HITS[self as usize].get()
    }

    /// How often it had not.
    pub fn misses(self) -> u64 {
        MISSES[self as usize].get()
    }
}

/// What carries the messages of clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum NetworkTransport {
    /// HTTP.
    Tcp,
    /// Standard input and output.
    Pipe,
}

static RECEIVED: [Tally; NetworkTransport::ALL.len()] = [const { Tally::new() }; NetworkTransport::ALL.len()];
static SENT: [Tally; NetworkTransport::ALL.len()] = [const { Tally::new() }; NetworkTransport::ALL.len()];

impl NetworkTransport {
    /// All of them.
    pub const ALL: [NetworkTransport; 2] = [NetworkTransport::Tcp, NetworkTransport::Pipe];

    /// As OpenTelemetry names it.
    pub const fn as_str(self) -> &'static str {
        match self {
            NetworkTransport::Tcp => "tcp",
            NetworkTransport::Pipe => "pipe",
        }
    }

    /// A message of so many bytes has come from a client: its JSON, without headers, framing and encryption.
    pub fn has_received(self, bytes: usize) {
        RECEIVED[self as usize].add(bytes);
    }

    /// The same, on its way to a client.
    pub fn has_sent(self, bytes: usize) {
        SENT[self as usize].add(bytes);
    }

    /// How many bytes have come.
    pub fn received(self) -> u64 {
        RECEIVED[self as usize].get()
    }

    /// How many bytes have gone out.
    pub fn sent(self) -> u64 {
        SENT[self as usize].get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_counted_for_itself() {
        // Other tests of this process may count, too.
        let (hits, misses) = (Cache::Documents.hits(), Cache::Documents.misses());
        Cache::Documents.looked_up(true);
        Cache::Documents.looked_up(true);
        Cache::Documents.looked_up(false);
        assert_eq!((Cache::Documents.hits() - hits, Cache::Documents.misses() - misses), (2, 1));
        let (received, sent) = (NetworkTransport::Pipe.received(), NetworkTransport::Pipe.sent());
        NetworkTransport::Pipe.has_received(7);
        NetworkTransport::Pipe.has_sent(9);
        let (received, sent) =
            (NetworkTransport::Pipe.received() - received, NetworkTransport::Pipe.sent() - sent);
        assert_eq!((received, sent), (7, 9));
    }
}
