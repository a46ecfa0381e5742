//! [`Reply`]: what a service answers.

use bytestring::ByteString;
use tidegate_protocol::json::{ObjectWriter, write_str};
use tidegate_protocol::{Error, Json, Method, Revision};

use crate::outbox::Outbox;

/// The answer to a call.
///
/// To a modern caller, `Complete` and `Task` hold the result object in its final form, `resultType` and cache hints
/// included. To a legacy caller they may hold anything up to that; the edge lowers it.
#[derive(Debug)]
pub enum Reply {
    /// Done: the result object.
    Complete(Json),
    /// The caller must answer questions and call again.
    InputRequired(InputRequired),
    /// The work goes on as a task: the task object in the form of SEP-2663.
    Task(Json),
    /// A stream of change notifications, open until one side ends it.
    Subscription(Subscription),
    /// It failed.
    Error(Error),
}

/// Questions to the client, and the state it must bring back with the answers.
#[derive(Debug, Clone)]
pub struct InputRequired {
    /// The questions.
    pub questions: Vec<Question>,
    /// Opaque to the client.
    pub state: Option<ByteString>,
    /// The whole result as a modern server wrote it, where it comes from one: what nobody here knows goes on with it.
    pub original: Option<Json>,
}

/// One question to the client.
#[derive(Debug, Clone)]
pub struct Question {
    /// The key under which the answer comes back.
    pub key: ByteString,
    /// `elicitation/create`, `sampling/createMessage` or `roots/list`.
    pub method: Method,
    /// Its parameters.
    pub params: Json,
}

/// An open subscription.
#[derive(Debug)]
pub struct Subscription {
    /// The part of the wanted filter that is honoured.
    pub acknowledged: Json,
    /// What happens. When it is closed, the subscription has ended gracefully.
    pub events: Outbox,
}

impl Reply {
    /// The reply to a method that nobody here knows.
    pub fn method_not_found(method: &Method) -> Reply {
        Reply::Error(Error::method_not_found(method.as_str()))
    }
}

impl InputRequired {
    /// The result object for a modern client (2026-07-28 basic/patterns/mrtr).
    pub fn to_json(&self) -> Json {
        if let Some(original) = &self.original {
            return original.clone();
        }
        let mut w = ObjectWriter::with_capacity(256);
        w.str("resultType", "input_required");
        if !self.questions.is_empty() {
            w.with("inputRequests", |out| Question::write_map(&self.questions, out));
        }
        if let Some(state) = &self.state {
            w.str("requestState", state);
        }
        w.finish()
    }
}

impl Question {
    /// Appends `{key: {method, params}, …}`.
    pub fn write_map(questions: &[Question], out: &mut Vec<u8>) {
        out.push(b'{');
        for (i, q) in questions.iter().enumerate() {
            if i > 0 {
                out.push(b',');
            }
            write_str(out, &q.key);
            out.extend_from_slice(b":{\"method\":");
            write_str(out, q.method.as_str());
            out.extend_from_slice(b",\"params\":");
            out.extend_from_slice(q.params.as_str().as_bytes());
            out.push(b'}');
        }
        out.push(b'}');
    }
}

impl From<Error> for Reply {
    fn from(error: Error) -> Reply {
        Reply::Error(error)
    }
}

impl Reply {
    /// A complete result from the text between its braces, framed as `revision` wants it.
    pub fn complete(revision: Revision, members: &str) -> Reply {
        let modern = revision.is_modern();
        let mut out = String::with_capacity(members.len() + 32);
        out.push('{');
        if modern {
            out.push_str("\"resultType\":\"complete\"");
            if !members.is_empty() {
                out.push(',');
            }
        }
        out.push_str(members);
        out.push('}');
        Reply::Complete(Json::trusted(out))
    }
}
