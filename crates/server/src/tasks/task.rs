//! [`Task`]: one task's state, and the only ways in which it changes.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytestring::ByteString;
use serde_json::Value;
use tidegate_protocol::json::ObjectWriter;
use tidegate_protocol::{Error, Json};
use tidegate_service::{ContextParts, Notice, Principal, Question, epoch_ms, rfc3339_ms};
use tokio_util::sync::CancellationToken;

use crate::hub::Hub;
use crate::interact::Asked;
use crate::text::hex;
use tidegate_service::random;

/// One task.
pub(crate) struct Task {
    id: ByteString,
    pub(super) owner: Principal,
    /// The endpoint at which it was made. At others it is not there.
    endpoint: Option<Arc<str>>,
    created_ms: u64,
    ttl: Duration,
    poll_interval: Duration,
    /// Fires when the task was cancelled.
    pub(crate) cancel: CancellationToken,
    hub: Arc<Hub>,
    /// How many bytes the results of all tasks hold.
    held: Arc<AtomicUsize>,
    state: Mutex<State>,
}

impl Drop for Task {
    fn drop(&mut self) {
        if let Some(Outcome::Completed(result)) = &self.state().outcome {
            self.held.fetch_sub(result.len(), Ordering::Relaxed);
        }
    }
}

/// How a task ended. What has ended stays as it is.
pub(super) enum Outcome {
    /// With a result, which may be a tool's failure.
    Completed(Json),
    /// With a JSON-RPC error.
    Failed(Json),
    /// By the client's wish.
    Cancelled,
}

struct State {
    outcome: Option<Outcome>,
    message: Option<String>,
    updated_ms: u64,
    /// Questions without an answer.
    open: Vec<Open>,
    /// Answers that the handler has not picked up yet.
    answers: HashMap<String, Value>,
    /// Every key ever used: none is used twice (SEP-2663, Task Update Requests).
    keys: HashSet<String>,
}

struct Open {
    key: String,
    asked: Asked,
    waker: Option<Waker>,
}

impl Task {
    pub(super) fn new(
        caller: &ContextParts,
        now: u64,
        ttl: Duration,
        poll_interval: Duration,
        hub: Arc<Hub>,
        held: Arc<AtomicUsize>,
    ) -> Task {
        Task {
            // SEP-2663, Security Implications: the id may be all that protects a task.
            id: hex(&random::<16>()).into(),
            owner: caller.principal.clone(),
            endpoint: caller.endpoint.clone(),
            created_ms: now,
            ttl,
            poll_interval,
            cancel: CancellationToken::new(),
            hub,
            held,
            state: Mutex::new(State {
                outcome: None,
                message: None,
                updated_ms: now,
                open: Vec::new(),
                answers: HashMap::new(),
                keys: HashSet::new(),
            }),
        }
    }

    /// Whether it is the task of whoever makes a call.
    pub(super) fn is_of(&self, caller: &ContextParts) -> bool {
        self.owner == caller.principal && self.endpoint == caller.endpoint
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(super) fn is_expired(&self, now: u64) -> bool {
        now > self.created_ms + self.ttl.as_millis() as u64
    }

    /// How long the task still has.
    pub(super) fn ends_in(&self) -> Duration {
        let end = self.created_ms + self.ttl.as_millis() as u64;
        Duration::from_millis(end.saturating_sub(epoch_ms()))
    }

    /// Whether it waits for the client.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.state().open.is_empty()
    }

    /// Says what is going on.
    pub(crate) fn set_message(&self, message: &str) {
        self.change(|state| state.message = Some(message.to_owned()));
    }

    /// Puts a question to the client and returns its key.
    pub(crate) fn ask(&self, key: Option<&str>, asked: &Asked) -> String {
        let mut chosen = String::new();
        self.change(|state| {
            let base = key.map_or_else(|| format!("input-{}", state.keys.len() + 1), str::to_owned);
            chosen.clone_from(&base);
            let mut n = 1;
            while !state.keys.insert(chosen.clone()) {
                n += 1;
                chosen = format!("{base}-{n}");
            }
            state.open.push(Open { key: chosen.clone(), asked: asked.clone(), waker: None });
        });
        chosen
    }

    /// The answer to a question, once.
    pub(crate) fn poll_answer(&self, key: &str, poll: &mut Context<'_>) -> Poll<Value> {
        let mut state = self.state();
        if let Some(answer) = state.answers.remove(key) {
            return Poll::Ready(answer);
        }
        if let Some(open) = state.open.iter_mut().find(|open| open.key == key) {
            open.waker = Some(poll.waker().clone());
        }
        Poll::Pending
    }

    /// Takes answers. Those to questions that are not open are ignored; if one does not fit, none is taken.
    pub(super) fn answer(&self, mut responses: HashMap<String, Value>) -> Result<(), Error> {
        {
            let state = self.state();
            for open in &state.open {
                if let Some(answer) = responses.get(&open.key) {
                    open.asked.check(&open.key, answer)?;
                }
            }
        }
        let mut woken = Vec::new();
        self.change(|state| {
            state.open.retain_mut(|open| match responses.remove(&open.key) {
                Some(answer) => {
                    state.answers.insert(std::mem::take(&mut open.key), answer);
                    woken.extend(open.waker.take());
                    false
                }
                None => true,
            });
        });
        woken.into_iter().for_each(Waker::wake);
        Ok(())
    }

    /// Ends the task, if it has not ended; returns whether it had not.
    pub(super) fn end(&self, outcome: Outcome) -> bool {
        let mut outcome = Some(outcome);
        self.change(|state| {
            state.open.clear();
            state.answers.clear();
            if let Some(Outcome::Completed(result)) = &outcome {
                self.held.fetch_add(result.len(), Ordering::Relaxed);
            }
            state.outcome = outcome.take();
        });
        outcome.is_none()
    }

    /// Changes the state and tells those who listen. A task that has ended changes no more.
    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state();
        if state.outcome.is_some() {
            return;
        }
        change(&mut state);
        state.updated_ms = epoch_ms();
        if !self.hub.follows(&self.id) {
            return;
        }
        let mut w = ObjectWriter::with_capacity(256);
        self.write_state(&state, &mut w, true);
        // Still under the lock, so that nobody hears of changes in another order than they happened.
        self.hub.tell(&Notice::Task { id: self.id.clone(), task: w.finish() });
    }

    /// Writes the members of the task; with `detailed`, those of its status too.
    pub(super) fn write(&self, w: &mut ObjectWriter, detailed: bool) {
        self.write_state(&self.state(), w, detailed);
    }

    fn write_state(&self, state: &State, w: &mut ObjectWriter, detailed: bool) {
        let status = match &state.outcome {
            None if state.open.is_empty() => "working",
            None => "input_required",
            Some(Outcome::Completed(_)) => "completed",
            Some(Outcome::Failed(_)) => "failed",
            Some(Outcome::Cancelled) => "cancelled",
        };
        w.str("taskId", &self.id).str("status", status);
        if let Some(message) = &state.message {
            w.str("statusMessage", message);
        }
        w.str("createdAt", &rfc3339_ms(self.created_ms))
            .str("lastUpdatedAt", &rfc3339_ms(state.updated_ms))
            .value("ttlMs", &(self.ttl.as_millis() as u64))
            .value("pollIntervalMs", &(self.poll_interval.as_millis() as u64));
        if !detailed {
            return;
        }
        match &state.outcome {
            Some(Outcome::Completed(result)) => _ = w.json("result", result),
            Some(Outcome::Failed(error)) => _ = w.json("error", error),
            None if !state.open.is_empty() => {
                let questions: Vec<Question> =
                    state.open.iter().map(|open| open.asked.question(&open.key)).collect();
                w.with("inputRequests", |out| Question::write_map(&questions, out));
            }
            _ => {}
        }
    }
}
