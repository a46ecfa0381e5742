//! Pins: definitions of tools as they were approved. A tool that has changed since is withheld until somebody has looked
//! at it, because a description is something that models obey.

mod canonical;
mod diff;
mod lock;
mod pin;
mod store;
mod watch;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use bytestring::ByteString;
use tidegate_client::AppError;
use tidegate_config::{PinMode, ServerSettings, ToolSettings};
use tidegate_protocol::json::ObjectWriter;
use tidegate_protocol::{Error, Json, Method, Revision, Symbol};
use tokio_util::sync::DropGuard;

use crate::catalog::{Catalog, Entry};
use crate::kind::Kind;
pub use lock::{Lock, LockError};
pub use pin::Pin;
use watch::Stamp;
pub(crate) use watch::watch;

/// Definitions of tools as they were approved, and what to do with others.
#[derive(Debug, Default)]
pub(crate) struct Pins {
    mode: PinMode,
    file: PathBuf,
    lock: Lock,
    /// Which state of the file `lock` is.
    stamp: Option<Stamp>,
    /// What live servers list now, by server and name, so that unchanged definitions are not read again and again.
    known: HashMap<String, HashMap<ByteString, (Json, Arc<Pin>)>>,
    /// What was learned and is not in the file yet, as far as is known.
    unsaved: Vec<Unsaved>,
    /// Ends the task that watches the file.
    watching: Option<DropGuard>,
}

/// Server, tool and what was learned of it.
type Unsaved = (String, String, Arc<Pin>);

/// What was seen for the first time and is to be kept.
#[must_use = "what was learned must be saved"]
pub(crate) struct Learned {
    file: PathBuf,
    pins: Vec<Unsaved>,
}

impl Pins {
    /// Reads the lock file, where pins are wanted. One that cannot be read is an error: guessing would approve
    /// everything.
    pub(crate) fn load(tools: &ToolSettings) -> Result<Pins, AppError> {
        let mut pins = Pins { mode: tools.pin, file: tools.lock_file.clone(), ..Pins::default() };
        if pins.mode != PinMode::Off {
            pins.stamp = Stamp::of(&pins.file);
            pins.lock = Lock::load(&pins.file).map_err(|error| unusable(&error))?;
        }
        Ok(pins)
    }

    /// These pins, after those that were in force until now.
    pub(crate) fn following(mut self, before: &Pins) -> Pins {
        if self.mode != PinMode::Off && self.mode == before.mode && self.file == before.file {
            self.unsaved = before.unsaved.clone();
            let lock = std::mem::take(&mut self.lock);
            self.take(lock);
        }
        self
    }

    /// Takes what the file says, and what is about to be written to it: else a tool that has just been pinned could be
    /// pinned again, as something else.
    pub(crate) fn take(&mut self, lock: Lock) {
        self.lock = lock;
        self.unsaved.retain(|(server, tool, _)| self.lock.get(server, tool).is_none());
        for (server, tool, pin) in &self.unsaved {
            self.lock.set(server, tool, (**pin).clone());
        }
    }

    /// Whether a tool is withheld because nobody has ever approved it.
    pub(crate) fn is_unapproved(&self, server: &str, tool: &str) -> bool {
        self.mode == PinMode::Locked && self.lock.get(server, tool).is_none()
    }

    /// Why a tool must not be called.
    pub(crate) fn withheld(&self, server: &str, entry: &Entry) -> Option<Error> {
        if self.mode == PinMode::Off {
            return None;
        }
        let known = self.known.get(server).and_then(|tools| tools.get(&entry.key));
        let now = match known.filter(|(definition, _)| *definition == entry.definition) {
            Some((_, pin)) => pin.clone(),
            None => Arc::new(Pin::of(&entry.definition)),
        };
        match self.lock.get(server, &entry.key) {
            Some(pin) if pin.digest() == now.digest() => None,
            Some(pin) => Some(changed(server, &entry.key, pin, &now)),
            None if self.mode == PinMode::Locked => Some(unapproved(server, &entry.key, &now)),
            // It is pinned as soon as the server itself has said that it has it.
            None => None,
        }
    }

    /// Tools that a server lists now. Those that are seen for the first time are pinned as they are, if that is wanted.
    pub(crate) fn learn(&mut self, server: &ServerSettings, catalog: &Catalog) -> Learned {
        let mut learned = Learned { file: self.file.clone(), pins: Vec::new() };
        // What was kept from an earlier run is not what the server says.
        let part = catalog.part(Kind::Tools).filter(|part| part.read.is_some());
        let (false, Some(part)) = (self.mode == PinMode::Off, part) else { return learned };
        let before = self.known.remove(&server.name).unwrap_or_default();
        let mut known: HashMap<ByteString, (Json, Arc<Pin>)> = HashMap::new();
        for entry in part.entries.iter().filter(|entry| server.offers(&entry.key)) {
            if known.contains_key(&entry.key) {
                continue;
            }
            let same = before.get(&entry.key).filter(|(definition, _)| *definition == entry.definition);
            let pin = same.map_or_else(|| Arc::new(Pin::of(&entry.definition)), |(_, pin)| pin.clone());
            if self.mode == PinMode::FirstUse && self.lock.get(&server.name, &entry.key).is_none() {
                self.lock.set(&server.name, &entry.key, (*pin).clone());
                learned.pins.push((server.name.clone(), entry.key.to_string(), pin.clone()));
            }
            known.insert(entry.key.clone(), (entry.definition.clone(), pin));
        }
        self.known.insert(server.name.clone(), known);
        self.unsaved.extend(learned.pins.iter().cloned());
        learned
    }
}

impl Learned {
    /// Writes it to the lock file, in a task of its own. What others have written there in the meantime stays.
    pub(crate) fn save(self) {
        if self.pins.is_empty() {
            return;
        }
        tokio::task::spawn_blocking(move || {
            let saved = Lock::update(&self.file, |lock| {
                for (server, tool, pin) in &self.pins {
                    if lock.get(server, tool).is_none() {
                        lock.set(server, tool, (**pin).clone());
                    }
                }
            });
            if let Err(error) = saved {
                tracing::error!(%error, "cannot pin newly seen tools");
            }
        });
    }
}

/// A tool whose definition is not the approved one. What it says now is for whoever runs `tidegate pin`: models would obey
/// it here as well.
fn changed(server: &str, tool: &str, approved: &Pin, now: &Pin) -> Error {
    let members = diff::changed(approved, now);
    let (whose, place) = shown(server, tool);
    let sentence = format!(
        "{whose} is withheld: its definition has changed since it was approved ({}). \
         To review the change and approve it, run: tidegate pin {place}",
        members.join(", ")
    );
    let mut data = about("changed", server, tool, now);
    data.str("approved", approved.digest()).value("members", &members);
    Error::new(Symbol::ToolExecution, sentence).with_data(data.finish()).unexecuted()
}

/// A tool that nobody has approved.
fn unapproved(server: &str, tool: &str, now: &Pin) -> Error {
    let (whose, place) = shown(server, tool);
    let sentence = format!(
        "{whose} is withheld: it is not approved yet. To review and approve it, run: tidegate pin {place}"
    );
    Error::new(Symbol::ToolExecution, sentence)
        .with_data(about("unapproved", server, tool, now).finish())
        .unexecuted()
}

/// How a tool is spoken of, and what is given to `tidegate pin`. The server chose the name, so one that could say something
/// of its own is not repeated.
fn shown(server: &str, tool: &str) -> (String, String) {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    if !tool.is_empty() && tool.len() <= 128 && tool.chars().all(plain) {
        return (format!("The tool {tool:?} of the server {server:?}"), format!("{server}/{tool}"));
    }
    (format!("The tool of the server {server:?}"), server.to_owned())
}

/// The same for programs.
fn about(why: &str, server: &str, tool: &str, now: &Pin) -> ObjectWriter {
    let mut data = ObjectWriter::new();
    data.str("withheld", why).str("server", server).str("tool", tool).str("now", now.digest());
    data
}

fn unusable(error: &LockError) -> AppError {
    let error = Error::new(Symbol::InvalidParams, format!("The lock file cannot be used: {error}"));
    AppError::from_error(&error, &Method::Initialize, Default::default(), Revision::INTERNAL)
}
