//! [`Replay`]: the questions and answers of one call over its rounds. No I/O and no clock in here.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tidegate_protocol::{Capability, Error, Symbol};
use tidegate_service::{Call, InputRequired, Question, Reply};

use super::{Asked, state};
use crate::cx::Cx;
use crate::server::Core;
use crate::tool::args;

/// What is known of a call's interaction.
#[derive(Default)]
pub(crate) struct Replay {
    /// What came back sealed, plus what this round added.
    memory: Memory,
    /// Answers that this round brought and nobody has asked for yet.
    fresh: HashMap<String, Value>,
    /// Questions of this round without an answer.
    questions: Vec<Question>,
    /// What the client would have to be able to do.
    missing: Vec<Capability>,
    /// What ends the call.
    failure: Option<Error>,
    /// How many [`Cx::run_once`]s are at work.
    pub(super) keeping: usize,
    /// How many questions were numbered.
    numbered: usize,
}

/// What travels in the sealed state.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Memory {
    #[serde(rename = "n")]
    round: u32,
    /// Digests of all questions, by key.
    #[serde(rename = "q", default, skip_serializing_if = "BTreeMap::is_empty")]
    asked: BTreeMap<String, String>,
    #[serde(rename = "a", default, skip_serializing_if = "BTreeMap::is_empty")]
    answers: BTreeMap<String, Value>,
    #[serde(rename = "k", default, skip_serializing_if = "BTreeMap::is_empty")]
    kept: BTreeMap<String, Value>,
    /// The last progress that was told.
    #[serde(rename = "p", default, skip_serializing_if = "Option::is_none")]
    progress: Option<f64>,
}

impl Replay {
    /// What a call brings with it; `None` for the first round of a call that brings nothing, as most are.
    pub(crate) fn resume(core: &Core, call: &Call) -> Result<Option<Box<Replay>>, Error> {
        let (state, responses) = (call.params.get("requestState"), call.params.get("inputResponses"));
        if !call.method.may_ask() || (state.is_none() && responses.is_none()) {
            return Ok(None);
        }
        let mut replay = Box::<Replay>::default();
        if state.is_some() {
            let sealed = call.params.str("requestState");
            let sealed = sealed.ok_or_else(|| Error::invalid_params("\"requestState\" must be a string"))?;
            replay.memory = state::open(core, call, &sealed)?;
        }
        if let Some(responses) = responses {
            replay.fresh = read_responses(responses)?;
        }
        Ok(Some(replay))
    }

    /// The key of a question: the author's, or a number.
    pub(super) fn key(&mut self, given: Option<&str>, asked: &Asked) -> String {
        match given {
            Some(key) => key.to_owned(),
            None => {
                self.numbered += 1;
                format!("{}-{}", asked.prefix(), self.numbered)
            }
        }
    }

    /// The answer to a question, if it is at hand; else the question is noted.
    pub(super) fn ask(&mut self, key: &str, asked: &Asked, able: bool) -> Option<Value> {
        if self.failure.is_some() {
            return None;
        }
        let digest = asked.digest();
        match self.memory.asked.get(key) {
            Some(known) if *known != digest => {
                tracing::error!(
                    key,
                    "a handler asked something else under a key it has used: questions must be the same in each round. \
                     Give each question a key of its own, and keep what they depend on with cx.run_once"
                );
                self.failure = Some(Error::internal());
                return None;
            }
            _ => {}
        }
        if let Some(answer) = self.memory.answers.get(key) {
            return Some(answer.clone());
        }
        if let Some(answer) = self.fresh.remove(key) {
            if let Err(error) = asked.check(key, &answer) {
                self.failure = Some(error);
                return None;
            }
            self.memory.asked.insert(key.to_owned(), digest);
            self.memory.answers.insert(key.to_owned(), answer.clone());
            return Some(answer);
        }
        if !able {
            let capability = asked.capability();
            if !self.missing.contains(&capability) {
                self.missing.push(capability);
            }
            return None;
        }
        if !self.questions.iter().any(|question| *question.key == *key) {
            self.memory.asked.insert(key.to_owned(), digest);
            self.questions.push(asked.question(key));
        }
        None
    }

    /// Ends the call with this error.
    pub(crate) fn fail(&mut self, error: Error) {
        self.failure.get_or_insert(error);
    }

    /// The error that ends the call, if one does.
    pub(crate) fn failure(&mut self) -> Option<Error> {
        self.failure.take()
    }

    /// The last progress that was told in an earlier round.
    pub(crate) fn progress(&self) -> Option<f64> {
        self.memory.progress
    }

    pub(super) fn kept(&self, key: &str) -> Option<&Value> {
        self.memory.kept.get(key)
    }

    pub(super) fn keep(&mut self, key: &str, value: Value) {
        self.memory.kept.insert(key.to_owned(), value);
    }

    /// What to answer now that the handler waits: nothing if it does not wait for the client.
    pub(crate) fn stop(&mut self, cx: &Cx) -> Option<Reply> {
        if let Some(error) = self.failure.take() {
            return Some(Reply::Error(error));
        }
        if self.keeping > 0 {
            return None;
        }
        if !self.missing.is_empty() {
            return Some(Reply::Error(Error::missing_capabilities(&self.missing)));
        }
        if self.questions.is_empty() {
            return None;
        }
        self.memory.round += 1;
        self.memory.progress = cx.told();
        let limit = cx.core().settings.max_rounds;
        if self.memory.round > limit {
            let message = format!("The call asked for input more than {limit} times and was stopped");
            return Some(Reply::Error(Error::new(Symbol::Internal, message)));
        }
        Some(match state::seal(cx.core(), cx.call(), &self.memory) {
            Ok(state) => Reply::InputRequired(InputRequired {
                questions: std::mem::take(&mut self.questions),
                state: Some(state.into()),
                original: None,
            }),
            Err(error) => Reply::Error(error),
        })
    }
}

/// Answers by key. Which of them anybody wants turns out when they are asked for; the rest is ignored.
pub(crate) fn read_responses(text: &str) -> Result<HashMap<String, Value>, Error> {
    match args::parse(text) {
        Ok(Value::Object(responses)) => Ok(responses.into_iter().collect()),
        Ok(_) => Err(Error::invalid_params("\"inputResponses\" must be an object")),
        Err(fault) => Err(Error::invalid_params(format_args!("\"inputResponses\": {fault}"))),
    }
}
