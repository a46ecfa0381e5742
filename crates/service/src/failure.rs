//! How a failed call is answered: a JSON-RPC error, or for a tool a result that the model can read.

use std::borrow::Cow;

use bytestring::ByteString;
use tidegate_protocol::json::{ObjectWriter, write_str};
use tidegate_protocol::result_id::CORRELATION;
use tidegate_protocol::{Error, Json, Method, Profile, Revision, Symbol, meta};

use crate::call::Call;
use crate::correlation::CorrelationId;
use crate::events::{self, CallFailed, Event};
use crate::reply::Reply;
use crate::secrets::mask;
use crate::time::{epoch_ms, rfc3339_ms};

/// What must be remembered of a call to answer it when it fails.
#[derive(Debug, Clone)]
pub struct Tag {
    /// The tool, when the call is a `tools/call`.
    pub tool: Option<ByteString>,
    /// The caller's revision.
    pub revision: Revision,
    /// The call's correlation id.
    pub correlation: CorrelationId,
    /// Whose numbers the caller looks for in errors.
    pub profile: Profile,
}

impl Tag {
    /// The tag of a call.
    pub fn of(call: &Call) -> Tag {
        let context = &call.context;
        let tool = match call.method {
            Method::ToolsCall => call.params.text("name"),
            _ => None,
        };
        Tag { tool, revision: context.revision, correlation: context.correlation, profile: context.errors }
    }

    /// The answer to the call that failed with `error`.
    pub fn failed(&self, error: Error) -> Reply {
        let error = told(error);
        match &self.tool {
            // Whether the tool has an output schema is not known here, so there is no structured content.
            Some(tool) if error.in_tool() => Reply::Complete(tool_failure(&error, tool, self, false)),
            Some(tool) if self.is_unknown_tool(&error) => {
                Reply::Complete(tool_failure(&error, tool, self, true))
            }
            _ => Reply::Error(self.identified(error.in_profile(self.profile, self.revision))),
        }
    }

    /// The same error with the id of the call among its data, under which the log has more about it. Data that is not an
    /// object has no place for it.
    fn identified(&self, error: Error) -> Error {
        error.with_data_member(CORRELATION, &Json::string(self.correlation.as_str()))
    }

    /// Whether this is a tool that does not exist, which clients of the GBIF server know as a result like any other
    /// failure of a tool.
    fn is_unknown_tool(&self, error: &Error) -> bool {
        self.profile == Profile::Gbif && !error.is_protocol() && error.symbol() == Symbol::ToolNotFound
    }
}

/// What the caller is told of a failure. The rest is for whoever runs this process, and goes to the log, where it is found
/// by the correlation id.
fn told(error: Error) -> Error {
    let error = match error.has_detail() {
        true => {
            let failed = CallFailed { symbol: error.symbol(), detail: error.detail() };
            events::emit(&Event::CallFailed(failed));
            error.without_detail()
        }
        false => error,
    };
    error.reworded(|text| match mask(text) {
        Cow::Owned(masked) => Some(masked),
        Cow::Borrowed(_) => None,
    })
}

/// The result of a tool that failed: one sentence for the model, and the machine form in `_meta`. With `structured`
/// the machine form is the structured content too, which is only right for tools without an output schema.
pub fn tool_failure(error: &Error, tool: &str, tag: &Tag, structured: bool) -> Json {
    let symbol = error.symbol();
    let mut machine = ObjectWriter::with_capacity(256);
    machine
        .raw("error", "true")
        .value("code", &symbol.code_in(tag.profile, tag.revision))
        .str("symbol", symbol.as_str())
        .str("message", error.message())
        .str("tool", tool);
    if let Some(data) = error.data() {
        machine.json("data", data);
    }
    machine
        .str("timestamp", &rfc3339_ms(epoch_ms()))
        .str(CORRELATION, tag.correlation.as_str())
        .value("retryable", &symbol.retryable());
    let machine = machine.finish();

    let mut w = ObjectWriter::with_capacity(512);
    if tag.revision.is_modern() {
        w.str("resultType", "complete");
    }
    w.with("content", |out| {
        out.extend_from_slice(b"[{\"type\":\"text\",\"text\":");
        write_str(out, error.message());
        out.extend_from_slice(b"}]");
    });
    if structured {
        w.json("structuredContent", &machine);
    }
    w.raw("isError", "true").with("_meta", |out| {
        out.push(b'{');
        write_str(out, meta::ERROR);
        out.push(b':');
        out.extend_from_slice(machine.as_str().as_bytes());
        out.push(b'}');
    });
    w.finish()
}
