//! Asking the client in the middle of a call, without the protocol's ever being in the middle of one.
//!
//! A handler awaits [`Cx::elicit`], [`Cx::sample`] or [`Cx::roots`]. If the answer is at hand the future is ready; if
//! not, it notes the question and stays pending. The runner polls the handler, sees that it waits and has asked, drops
//! it, and replies with all questions and a sealed state that holds every answer so far. The client calls again with
//! the new answers, the handler runs from the start, and this time those futures are ready: no memory is kept on the
//! server, and any replica can take the retry. Questions awaited together (`tokio::join!`) go out together.
//!
//! The one rule that this brings: **ask before you act.** What stands before a question runs again in each round.
//! What has to be done before asking, and only once, goes into [`Cx::run_once`].
//!
//! In a task nothing is replayed: the question becomes part of the task's state and the handler simply waits.

mod elicit;
mod form;
mod replay;
mod roots;
mod run_once;
mod sample;
mod state;

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytestring::ByteString;
use serde_json::Value;
use tidegate_protocol::seal::digest;
use tidegate_protocol::{Capability, Error, Json, Method};
use tidegate_service::Question;

pub use elicit::{Elicit, Elicited};
pub(crate) use replay::{Replay, read_responses};
pub use roots::Root;
pub use sample::{Sample, Sampled};
pub(crate) use state::Overflow;

use crate::cx::Cx;
use crate::tool::problem::shorten;
use crate::tool::schema::Compiled;
use crate::tool::sentence;

/// What kind of question, and what its answer is checked against.
#[derive(Debug, Clone)]
pub(crate) enum Kind {
    Form(Value),
    Url,
    /// `checked` says whether an answer that is none ends the call, or is handed to the handler.
    Sample {
        tools: bool,
        checked: bool,
    },
    Roots,
}

/// One question, as it goes to the client.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) kind: Kind,
    pub(crate) params: Json,
}

impl Asked {
    pub(crate) fn method(&self) -> Method {
        match self.kind {
            Kind::Form(_) | Kind::Url => Method::ElicitCreate,
            Kind::Sample { .. } => Method::SamplingCreate,
            Kind::Roots => Method::RootsList,
        }
    }

    /// What the client must be able to do.
    pub(crate) fn capability(&self) -> Capability {
        match self.kind {
            Kind::Form(_) => Capability::ElicitForm,
            Kind::Url => Capability::ElicitUrl,
            Kind::Sample { tools: false, .. } => Capability::Sampling,
            Kind::Sample { tools: true, .. } => Capability::SamplingTools,
            Kind::Roots => Capability::Roots,
        }
    }

    /// How keys are called that the author did not choose.
    fn prefix(&self) -> &'static str {
        match self.kind {
            Kind::Form(_) | Kind::Url => "elicitation",
            Kind::Sample { .. } => "sampling",
            Kind::Roots => "roots",
        }
    }

    /// Tells this question from any other, so that an answer is never taken for one that was not asked.
    pub(crate) fn digest(&self) -> String {
        crate::text::hex(&digest([self.method().as_str(), self.params.canonical().as_str()])[..16])
    }

    pub(crate) fn question(&self, key: &str) -> Question {
        Question { key: ByteString::from(key), method: self.method(), params: self.params.clone() }
    }

    /// Checks the shape of an answer (2026-07-28 basic/patterns/mrtr, Error Handling).
    pub(crate) fn check(&self, key: &str, answer: &Value) -> Result<(), Error> {
        let problem = match &self.kind {
            Kind::Form(schema) => check_elicited(answer, Some(schema)),
            Kind::Url => check_elicited(answer, None),
            Kind::Sample { checked: false, .. } => Ok(()),
            Kind::Sample { .. } => sample::check(answer),
            Kind::Roots => roots::check(answer),
        };
        problem.map_err(|problem| {
            Error::invalid_params(format_args!("the answer {:?} {problem}", shorten(key.to_owned())))
        })
    }
}

fn check_elicited(answer: &Value, schema: Option<&Value>) -> Result<(), String> {
    match answer.get("action").and_then(Value::as_str) {
        Some("accept") => {}
        Some("decline" | "cancel") => return Ok(()),
        _ => return Err("must have an \"action\" that is \"accept\", \"decline\" or \"cancel\"".into()),
    }
    let Some(schema) = schema else { return Ok(()) };
    let content = answer.get("content").filter(|content| content.is_object());
    let content = content.ok_or("is accepted, but its \"content\" is no object")?;
    let form = Compiled::new(schema)?;
    if !form.is_short(content) {
        return Err("has more in it than a form asks for".into());
    }
    let problems = form.problems(content);
    if problems.is_empty() { Ok(()) } else { Err(format!("does not fit the form: {}", sentence(&problems))) }
}

/// A question on its way. Await it for the answer.
#[must_use = "nothing is asked until this is awaited"]
pub struct Ask<T> {
    cx: Cx,
    key: Option<String>,
    asked: Result<Asked, String>,
    decode: fn(Value) -> Result<T, String>,
    /// The key in use, once the question was put.
    put: Option<String>,
}

impl<T> Ask<T> {
    pub(crate) fn new(
        cx: &Cx,
        key: Option<String>,
        asked: Result<Asked, String>,
        decode: fn(Value) -> Result<T, String>,
    ) -> Ask<T> {
        Ask { cx: cx.clone(), key, asked, decode, put: None }
    }

    /// The key under which the answer comes back. Questions without one are numbered in the order in which they are
    /// asked; give keys where that order may vary between rounds.
    pub fn key(mut self, key: impl Into<String>) -> Ask<T> {
        self.key = Some(key.into());
        self
    }

    /// Ends the call: the handler never sees this, it just is not polled again.
    fn fail(&self, error: Error) -> Poll<T> {
        self.cx.replay().get_or_insert_default().fail(error);
        self.cx.runner().wake();
        Poll::Pending
    }
}

impl<T> Future for Ask<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, poll: &mut Context<'_>) -> Poll<T> {
        let this = self.get_mut();
        let asked = match &this.asked {
            Ok(asked) => asked,
            Err(problem) => {
                tracing::error!(problem, "a handler asked an invalid question");
                return this.fail(Error::internal());
            }
        };
        if !this.cx.call().method.may_ask() {
            // 2026-07-28 basic/patterns/mrtr, Supported Requests.
            tracing::error!(
                method = this.cx.call().method.as_str(),
                "a handler asked where nothing may be asked"
            );
            return this.fail(Error::internal());
        }
        let answer = if let Some(task) = this.cx.task() {
            let key = match &mut this.put {
                Some(key) => key,
                None if !this.cx.can(asked.capability()) => {
                    return this.fail(Error::missing_capabilities(&[asked.capability()]));
                }
                put => put.insert(task.ask(this.key.as_deref(), asked)),
            };
            match task.poll_answer(key, poll) {
                Poll::Ready(answer) => answer,
                Poll::Pending => return Poll::Pending,
            }
        } else {
            let mut replay = this.cx.replay();
            let replay = replay.get_or_insert_default();
            let key = this.put.get_or_insert_with(|| replay.key(this.key.as_deref(), asked));
            match replay.ask(key, asked, this.cx.can(asked.capability())) {
                Some(answer) => answer,
                None => {
                    this.cx.runner().wake();
                    return Poll::Pending;
                }
            }
        };
        match (this.decode)(answer) {
            Ok(value) => Poll::Ready(value),
            Err(problem) => {
                let key = this.put.as_deref().unwrap_or_default();
                this.fail(Error::invalid_params(format_args!("the answer {key:?} {}", shorten(problem))))
            }
        }
    }
}

impl<T> std::fmt::Debug for Ask<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ask").field("key", &self.key).field("asked", &self.asked).finish_non_exhaustive()
    }
}
