//! [`Journal`]: what happened to a call on its way, kept with the call itself until it ends, for whoever tells its story then.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tidegate_protocol::Json;

use crate::events::Outcome;

/// How many entries a call has at most: the first ones.
const MOST: usize = 32;

/// What happened to a call, in order. Clones are the same journal. There is one only while a recorder
/// [keeps journals](crate::events::Recorder::keeps_journals).
#[derive(Debug, Clone)]
pub struct Journal(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    began: Instant,
    notes: Mutex<Notes>,
}

/// What a [`Journal`] says.
#[derive(Debug, Clone, Default)]
pub struct Notes {
    /// What happened.
    pub entries: Vec<Entry>,
    /// How often something happened that is not among them, because there was too much.
    pub left_out: usize,
}

/// Something that happened.
#[derive(Debug, Clone)]
pub struct Entry {
    /// How long after the call came.
    pub after: Duration,
    /// What.
    pub what: What,
}

/// What can happen to a call.
#[derive(Debug, Clone)]
pub enum What {
    /// It has waited.
    Waited {
        /// For what.
        stage: Stage,
        /// How long.
        took: Duration,
        /// Whether it went on; else it was given up while it waited.
        is_over: bool,
    },
    /// A policy has decided about it.
    Decided,
    /// A server was asked.
    Asked(Attempt),
    /// Anything else, with what is known about it: a JSON object.
    Remark(&'static str, Json),
}

/// What a call can wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// A place among all calls (`max_calls`).
    Admission,
    /// A place of a limit.
    Limit,
    /// The connection to its server, or a session with it.
    Connection,
    /// Its turn in a session in which only one call at a time can be asked something.
    Turn,
    /// The pause before another attempt.
    Pause,
}

impl Stage {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Stage::Admission => "queue",
            Stage::Limit => "limit",
            Stage::Connection => "connection",
            Stage::Turn => "turn",
            Stage::Pause => "pause",
        }
    }
}

/// One attempt at a server.
#[derive(Debug, Clone)]
pub struct Attempt {
    /// The server.
    pub server: Arc<str>,
    /// How it is reached.
    pub transport: &'static str,
    /// How long it took.
    pub took: Duration,
    /// How it ended.
    pub outcome: Outcome,
    /// What failed.
    pub error: Option<Cow<'static, str>>,
    /// The code of the error.
    pub code: Option<i64>,
    /// What the error says, and what only the operator is told of it.
    pub message: Option<Box<str>>,
    /// How large the result was.
    pub bytes: Option<usize>,
}

impl Journal {
    /// The one of a call that came then.
    pub(crate) fn new(began: Instant) -> Journal {
        Journal(Arc::new(Inner { began, notes: Mutex::default() }))
    }

    /// Notes something that has happened now.
    pub fn note(&self, what: What) {
        self.note_at(Instant::now(), what);
    }

    /// Notes something that has happened then.
    pub fn note_at(&self, when: Instant, what: What) {
        let after = when.saturating_duration_since(self.0.began);
        let mut notes = self.lock();
        match notes.entries.len() {
            // Most calls ask one server, and nothing else happens.
            0 => notes.entries.reserve_exact(1),
            MOST.. => {
                notes.left_out += 1;
                return;
            }
            _ => {}
        }
        notes.entries.push(Entry { after, what });
    }

    /// What was noted. Whoever takes it is the last who wants it.
    pub fn take(&self) -> Notes {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Notes> {
        self.0.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
