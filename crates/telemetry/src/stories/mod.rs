//! [`Stories`]: what happened to each of the latest calls, for whoever asks about one.
//!
//! While a call runs, what happens to it is noted in its own [journal](tidegate_service::Journal); when it ends, that and its record become a
//! `story`, which is put on the `shelf` and, if the configuration names one, into a `file`. It becomes text (`told`) when somebody asks.

mod bodies;
mod file;
mod row;
mod shelf;
mod story;
#[cfg(test)]
mod tests;
mod told;

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tidegate_protocol::json::ObjectWriter;
use tidegate_protocol::{Json, Revision};
use tidegate_service::Current;
use tidegate_service::events::{
    CallEnded, Event, Kind, Recorder, RequestFailed, ServerCallEnded, ServerPlace,
};
use tidegate_service::journal::{Attempt, What};
use tidegate_service::secrets::mask;

use file::StoryFile;
use shelf::{Content, Kept, Shelf};
use story::{Round, Story, cut};

/// The stories of the latest calls, as long as they have room. Arguments and results are no part of them, unless somebody wants that.
pub struct Stories {
    shelf: Mutex<Shelf>,
    /// How many bytes of arguments and results are kept.
    bodies: Option<usize>,
    file: Mutex<Option<StoryFile>>,
    /// Tells states of questions apart, without keeping them.
    states: RandomState,
}

/// Which stories are wanted.
#[derive(Debug, Clone, Default)]
pub struct Wanted<'a> {
    /// Those with this id, which calls of one trace share, or the one with this number.
    pub id: Option<&'a str>,
    /// Only calls that failed.
    pub failed: bool,
    /// Only calls of this tool.
    pub tool: Option<&'a str>,
}

impl Wanted<'_> {
    fn has(&self, kept: &Kept) -> bool {
        // A trace that is all digits is longer than any number.
        let is_number = |id: &str| id.len() < 20 && id.parse() == Ok(kept.number);
        let is_it = |id: &str| kept.id() == id || is_number(id);
        self.id.is_none_or(is_it)
            && (!self.failed || kept.has_failed())
            && self.tool.is_none_or(|tool| kept.tool() == Some(tool))
    }
}

/// Stories that were found: JSON objects, the latest first.
#[derive(Debug, Default)]
pub struct Found {
    /// As many of them as were wanted.
    pub stories: Vec<Json>,
    /// How many more there are.
    pub more: usize,
}

impl Stories {
    /// Keeps stories in so many bytes.
    pub fn new(room: usize) -> Stories {
        let shelf = Mutex::new(Shelf::new(room));
        Stories { shelf, bodies: None, file: Mutex::default(), states: RandomState::new() }
    }

    /// The same with so many bytes of the arguments and of the result of each call. What looks like a secret is masked.
    #[must_use]
    pub fn with_bodies(mut self, most: Option<usize>) -> Stories {
        self.bodies = most;
        self
    }

    /// The same in a file, too, whose stories are known from now on. A file that cannot be read is no reason not to write it: why is
    /// returned.
    #[must_use]
    pub fn with_file(mut self, path: PathBuf, room: usize) -> (Stories, Option<io::Error>) {
        let mut shelf = Shelf::new(room);
        let read = read_into(&mut shelf, &path, room);
        self.shelf = Mutex::new(shelf);
        match StoryFile::open(path, room) {
            Ok(file) => {
                self.file = Mutex::new(Some(file));
                (self, read.err())
            }
            Err(error) => (self, Some(error)),
        }
    }

    /// What a file knows that nobody writes at the moment. It is not changed.
    pub fn read(path: &Path, room: usize) -> io::Result<Stories> {
        let mut shelf = Shelf::new(room);
        read_into(&mut shelf, path, room)?;
        Ok(Stories { shelf: Mutex::new(shelf), ..Stories::new(room) })
    }

    /// At most so many of those that are wanted, the latest first.
    pub fn find(&self, wanted: &Wanted<'_>, most: usize) -> Found {
        let mut more = 0;
        let mut found = Vec::new();
        // Calls that end wait for the lock: texts are written without it.
        for kept in self.lock().stories.latest_first().filter(|kept| wanted.has(kept)) {
            match found.len() < most {
                true => found.push(kept.clone()),
                false => more += 1,
            }
        }
        Found { stories: found.iter().map(|kept| kept.told()).collect(), more }
    }

    /// Waits until everything is in the file.
    pub fn close(&self) {
        // Not under the lock: a call that ends now does not wait for a disk.
        let file = self.file().take();
        drop(file);
    }

    fn file(&self) -> MutexGuard<'_, Option<StoryFile>> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, Shelf> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ended(&self, call: &CallEnded<'_>) {
        let mut story = Story::of(call, self.bodies);
        // Whoever answers questions brings back what was given out with them: that is how rounds of one call are known.
        let answered = call.params.str("requestState").filter(|_| story.answers.is_some());
        let answered = answered.map(|state| self.states.hash_one(&*state));
        let asks = call.asks().and_then(|asks| asks.state.as_deref());
        let asks = asks.map(|state| self.states.hash_one(state));
        let (id, ended_ms) = (story.id, story.ended_ms);
        let mut shelf = self.lock();
        story.continues = answered.and_then(|state| shelf.round_of(state));
        let kept = shelf.put(Content::Own(story));
        if let Some(state) = asks {
            shelf.asked(state, Round { number: kept.number, id, ended_ms });
        }
        drop(shelf);
        self.write(&kept);
    }

    /// A request failed after its calls had ended: the last of them has asked something, and this is what came of it.
    fn request_failed(&self, request: &RequestFailed<'_>) {
        let mut story = Story::of_request(request);
        let mut shelf = self.lock();
        story.continues = shelf.last_round(&story.id);
        let kept = shelf.put(Content::Own(story));
        drop(shelf);
        self.write(&kept);
    }

    fn write(&self, kept: &Arc<Kept>) {
        if let Some(file) = &*self.file() {
            file.write(kept);
        }
    }
}

fn read_into(shelf: &mut Shelf, path: &Path, room: usize) -> io::Result<()> {
    file::lines(path, room, |line| {
        if let Some((number, content)) = shelf::read(line) {
            shelf.put_back(number, content);
        }
    })
}

/// Notes something in the journal of the current call.
fn note(what: impl FnOnce() -> What) {
    Current::look(|call| call.journal().map(|journal| journal.note(what())));
}

/// The same for something that has details.
fn remark(what: &'static str, write: impl FnOnce(&mut ObjectWriter)) {
    note(|| {
        let mut details = ObjectWriter::new();
        write(&mut details);
        What::Remark(what, details.finish())
    });
}

/// Whose numbers errors have here.
const REVISION: Revision = Revision::LATEST_MODERN;

/// Notes that a server was asked.
fn note_attempt(call: &ServerCallEnded<'_>) {
    Current::look(|current| {
        current.journal().map(|journal| journal.note_at(call.ended, What::Asked(attempt(call))))
    });
}

fn attempt(call: &ServerCallEnded<'_>) -> Attempt {
    let error = call.reply_error();
    // What only the operator is told says it all; what the caller is told may be less.
    let message = error.map(|error| if error.has_detail() { error.detail() } else { error.message() });
    Attempt {
        server: call.server.clone(),
        transport: match call.place {
            ServerPlace::Here => "in this process",
            ServerPlace::Pipe => "pipe",
            ServerPlace::Http { .. } => "http",
        },
        took: call.duration,
        outcome: call.outcome,
        error: call.error(),
        // The number of what this process has found out itself is that of its symbol.
        code: error
            .map(|error| (error.code(REVISION), error.symbol().code(REVISION)))
            .filter(|(code, own)| code != own)
            .map(|(code, _)| code.into()),
        message: message.map(cut),
        bytes: call.result_bytes(),
    }
}

impl Recorder for Stories {
    fn wants(&self, kind: Kind) -> bool {
        matches!(
            kind,
            Kind::CallEnded
                | Kind::CallFailed
                | Kind::RequestFailed
                | Kind::CallTimedOut
                | Kind::CallRetried
                | Kind::CallWaited
                | Kind::OfferHidden
                | Kind::ServerCallEnded
                | Kind::ResultTooLarge
                | Kind::HandlerPanicked
                | Kind::ToolFailed
                | Kind::HandlerFailed
                | Kind::CircuitChanged
                | Kind::SessionExpired
                | Kind::EraChanged
        )
    }

    fn keeps_journals(&self) -> bool {
        true
    }

    fn record(&self, event: &Event<'_>) {
        match event {
            Event::CallEnded(call) => self.ended(call),
            Event::RequestFailed(it) => self.request_failed(it),
            Event::ServerCallEnded(it) => note_attempt(it),
            Event::CallWaited(it) => {
                note(|| What::Waited { stage: it.stage, took: it.took, is_over: it.is_over })
            }
            Event::OfferHidden(it) => remark("is hidden", |out| {
                out.str("server", it.server).str("why", it.why);
            }),
            Event::CallFailed(it) => remark("failed", |out| {
                out.str("error", it.symbol.as_str()).str("why", &mask(&cut(it.detail)));
            }),
            Event::CallTimedOut(it) => {
                remark("timed out", |out| _ = out.str("why", &mask(&cut(&it.error.to_string()))))
            }
            Event::CallRetried(it) => remark("is made again", |out| {
                out.value("attempt", &it.attempt).value("delayMs", &(it.delay.as_millis() as u64));
                out.str("why", &mask(&cut(it.reason)));
            }),
            Event::ResultTooLarge(it) => remark("result is too large", |out| {
                out.value("bytes", &it.size).value("limit", &it.limit);
            }),
            Event::HandlerPanicked(it) => {
                remark("panicked", |out| _ = out.str("why", &mask(&cut(it.message))))
            }
            Event::ToolFailed(it) => remark("tool failed", |out| _ = out.str("why", &mask(&cut(it.error)))),
            Event::HandlerFailed(it) => remark("failed", |out| _ = out.str("why", &mask(&cut(it.error)))),
            Event::CircuitChanged(it) => remark("circuit breaker", |out| {
                out.str("server", it.breaker).str("state", it.to.as_str()).str("why", &mask(&cut(it.why)));
            }),
            Event::SessionExpired(it) => {
                remark("session expired, another is opened", |out| _ = out.str("server", it.server))
            }
            Event::EraChanged(it) => remark("era is detected again", |out| {
                out.str("server", it.server).str("why", &mask(&cut(it.error.message())));
            }),
            _ => {}
        }
    }
}
