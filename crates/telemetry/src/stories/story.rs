//! [`Story`]: what is remembered of a call.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use tidegate_protocol::json::ObjectWriter;
use tidegate_protocol::{Json, Method, Revision};
use tidegate_service::events::{CallEnded, Outcome, RequestFailed};
use tidegate_service::journal::{Attempt, Entry, Notes, What};
use tidegate_service::secrets::mask;
use tidegate_service::{CorrelationId, Decision, Principal, epoch_ms};

use super::bodies::Body;

/// How much of a text is kept, in characters.
const LONGEST: usize = 1024;
/// How much a client may say about itself for all of it to be kept, in bytes.
const LONGEST_CLIENT: usize = 256;
/// How many kinds of questions are named.
const MOST_QUESTIONS: usize = 8;

/// What is remembered of a call. It becomes text only when somebody asks: few are asked about.
pub(super) struct Story {
    pub(super) id: CorrelationId,
    pub(super) trace: Option<String>,
    pub(super) ended_ms: u64,
    pub(super) method: Method,
    pub(super) name: Option<Box<str>>,
    pub(super) endpoint: Option<Box<str>>,
    pub(super) principal: Principal,
    /// What the client says about itself: a JSON object. Its name is looked for when somebody asks.
    pub(super) client_info: Option<Box<str>>,
    pub(super) revision: Revision,
    pub(super) decision: Option<Arc<Decision>>,
    pub(super) server: Option<Arc<str>>,
    pub(super) server_revision: Option<Revision>,
    pub(super) outcome: Outcome,
    pub(super) error: Option<Cow<'static, str>>,
    pub(super) message: Option<Box<str>>,
    pub(super) limit: Option<Json>,
    pub(super) bytes: Option<usize>,
    pub(super) duration: Duration,
    /// What the caller is asked: the methods of the questions.
    pub(super) asks: Vec<Method>,
    /// How many answers the caller has brought.
    pub(super) answers: Option<usize>,
    /// The round before this one, whose questions these answers are for.
    pub(super) continues: Option<Round>,
    pub(super) notes: Notes,
    pub(super) arguments: Option<Body>,
    pub(super) result: Option<Body>,
}

/// A call that has asked something.
#[derive(Debug, Clone, Copy)]
pub(super) struct Round {
    pub(super) number: u64,
    pub(super) id: CorrelationId,
    pub(super) ended_ms: u64,
}

impl Story {
    /// The story of a call that has ended, with so many bytes of its arguments and of its result.
    pub(super) fn of(call: &CallEnded<'_>, bodies: Option<usize>) -> Story {
        let notes = call.journal().map(|journal| journal.take()).unwrap_or_default();
        let asks = call.asks().map(|asks| {
            asks.questions.iter().take(MOST_QUESTIONS).map(|question| question.method.clone()).collect()
        });
        let is_answered = call.method.may_ask() && call.params.has("inputResponses");
        let answers = is_answered.then(|| call.params.object().object("inputResponses")).flatten();
        // In the gateway's own words, unless the server has answered with this. A copy, so that nothing larger is kept for it.
        let is_of_server =
            attempts(&notes).last().is_some_and(|last| last.outcome.is_success() == Some(false));
        let has_failed = call.outcome.is_success() == Some(false);
        let limit = if is_of_server || !has_failed { None } else { call.limit() };
        Story {
            id: call.correlation,
            trace: call.trace.map(|trace| trace.trace_id()),
            ended_ms: epoch_ms(),
            method: call.method.clone(),
            name: call.name().map(cut),
            endpoint: call.endpoint.map(cut),
            principal: call.principal.clone(),
            client_info: call.client_info().and_then(client_info),
            revision: call.revision,
            decision: call.decision().cloned(),
            server: call.shared_server().cloned(),
            server_revision: call.server_revision(),
            outcome: call.outcome,
            error: if has_failed { call.error().map(bounded) } else { None },
            message: match call.outcome {
                Outcome::ToolError if !is_of_server => call.failure_message().as_deref().map(cut),
                _ => call.message().map(cut),
            },
            limit: limit
                .filter(|limit| limit.len() <= LONGEST)
                .map(|limit| Json::trusted(limit.as_str().to_owned())),
            bytes: call.result_bytes(),
            duration: call.duration,
            asks: asks.unwrap_or_default(),
            answers: answers.map(|answers| answers.len()),
            continues: None,
            notes,
            arguments: bodies.and_then(|most| Body::of(call.params.get("arguments")?, most)),
            result: bodies.and_then(|most| Body::of(call.result()?.as_str(), most)),
        }
    }

    /// The story of a request that failed after the calls had ended that were made of it.
    pub(super) fn of_request(request: &RequestFailed<'_>) -> Story {
        let symbol = request.error.symbol();
        Story {
            id: request.correlation,
            trace: None,
            ended_ms: epoch_ms(),
            method: request.method.clone(),
            name: request.name.map(cut),
            endpoint: request.endpoint.map(cut),
            principal: request.principal.clone(),
            client_info: None,
            revision: request.revision,
            decision: None,
            server: None,
            server_revision: None,
            outcome: Outcome::Failed(symbol),
            error: Some(symbol.as_str().into()),
            message: Some(cut(request.error.detail())),
            limit: None,
            bytes: None,
            duration: request.took,
            asks: Vec::new(),
            answers: None,
            continues: None,
            notes: Notes::default(),
            arguments: None,
            result: None,
        }
    }

    /// What the client calls itself.
    pub(super) fn client(&self) -> Option<String> {
        let said = Json::trusted(self.client_info.as_deref()?.to_owned());
        Some(said.member_str("name")?.into_owned())
    }

    pub(super) fn tool(&self) -> Option<&str> {
        self.name.as_deref().filter(|_| self.method == Method::ToolsCall)
    }

    pub(super) fn has_failed(&self) -> bool {
        self.outcome.is_success() == Some(false)
    }

    /// The attempts at servers, in order.
    pub(super) fn attempts(&self) -> impl Iterator<Item = &Attempt> {
        attempts(&self.notes)
    }

    /// How many bytes it takes besides itself, those of the principal included as if nobody else had it.
    pub(super) fn texts_size(&self) -> usize {
        let Story { name, endpoint, client_info, message, .. } = self;
        let texts = [name, endpoint, client_info, message].into_iter().flatten().map(|text| text.len());
        let Principal { issuer, subject, tenant } = &self.principal;
        let of_principal = [issuer, subject, tenant].into_iter().flatten().map(|text| text.len());
        let entries = self.notes.entries.iter().map(|entry| match &entry.what {
            What::Asked(attempt) => attempt.message.as_ref().map_or(0, |message| message.len()),
            What::Remark(_, json) => json.len(),
            What::Waited { .. } | What::Decided => 0,
        });
        let rest = [
            size_of::<Entry>() * self.notes.entries.capacity(),
            self.method.as_str().len(),
            self.limit.as_ref().map_or(0, Json::len),
            self.trace.as_ref().map_or(0, String::len),
            self.asks.iter().map(|method| method.as_str().len() + size_of::<Method>()).sum(),
            self.arguments.as_ref().map_or(0, Body::size),
            self.result.as_ref().map_or(0, Body::size),
        ];
        texts.chain(of_principal).chain(entries).chain(rest).sum()
    }
}

fn attempts(notes: &Notes) -> impl Iterator<Item = &Attempt> {
    notes.entries.iter().filter_map(|entry| match &entry.what {
        What::Asked(attempt) => Some(attempt),
        _ => None,
    })
}

/// A copy of what a client says about itself, or only of its name, if that is long.
fn client_info(said: &Json) -> Option<Box<str>> {
    if said.len() <= LONGEST_CLIENT {
        return Some(said.as_str().into());
    }
    let mut name = ObjectWriter::new();
    name.str("name", &cut(&said.member_str("name")?));
    Some(name.finish().as_str().into())
}

fn bounded(error: Cow<'static, str>) -> Cow<'static, str> {
    match error {
        Cow::Borrowed(known) => Cow::Borrowed(known),
        Cow::Owned(foreign) => Cow::Owned(cut(&foreign).into()),
    }
}

/// A text of others: nobody reads on forever. A secret must not be cut before it is masked: nobody would know its beginning.
pub(super) fn cut(text: &str) -> Box<str> {
    if text.len() <= LONGEST {
        return text.into();
    }
    let masked = mask(text);
    match masked.char_indices().nth(LONGEST) {
        Some((end, _)) => masked[..end].into(),
        None => masked.into(),
    }
}
