//! The one catalogue of errors.
//!
//! Every failure has one [`Symbol`]; from it follow the JSON-RPC code of each era, the HTTP status, whether a retry
//! can help, and who is to blame. Protocol failures go out as JSON-RPC errors with the codes that the specification
//! defines; what goes wrong inside a tool goes out as a result with `isError: true` (see [`Symbol::in_tool`]).

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use crate::capabilities::{Capability, ClientCapabilities};
use crate::json::{Edit, Json, Limits, Object, ObjectWriter, write_str};
use crate::revision::{Feature, Revision};

/// Who has to do something about a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Blame {
    /// The caller sent something wrong.
    Caller,
    /// A server or service behind this one failed.
    Upstream,
    /// This process failed.
    Us,
}

/// A table of numbers under which older clients know the failures. See [`Symbol::code_in`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Profile {
    /// Only codes that the specification defines.
    #[default]
    Strict,
    /// The numbers of the GBIF server.
    Gbif,
    /// The numbers of the Percolate server.
    Percolate,
    /// The numbers of the Docling client.
    Docling,
}

/// What went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Symbol {
    /// The text is not JSON.
    ParseError,
    /// The message is not a request.
    InvalidRequest,
    /// A request before the handshake.
    NotInitialized,
    /// A request id that is still in flight.
    DuplicateId,
    /// No such method.
    MethodNotFound,
    /// The method's own parameters are wrong.
    InvalidParams,
    /// A modern request without the `_meta` fields it must have.
    MissingMeta,
    /// A cursor that this server did not hand out, or that has expired.
    InvalidCursor,
    /// A request state that was tampered with, has expired, or belongs to another request or caller.
    StateRefused,
    /// Something broke inside.
    Internal,
    /// Headers and body disagree.
    HeaderMismatch,
    /// The client lacks a capability that the request needs.
    MissingCapability,
    /// The protocol version is not supported.
    UnsupportedVersion,
    /// No such tool.
    ToolNotFound,
    /// No such prompt.
    PromptNotFound,
    /// No such resource.
    ResourceNotFound,
    /// No such task.
    TaskNotFound,
    /// No such session.
    SessionNotFound,
    /// The tool failed.
    ToolExecution,
    /// The tool's arguments are wrong.
    Validation,
    /// The server behind wants to know who is asking.
    Unauthorized,
    /// Too many requests.
    RateLimited,
    /// This process holds as much as it may.
    Overloaded,
    /// What is behind this cannot be reached.
    Unavailable,
    /// The circuit breaker is open.
    CircuitOpen,
    /// Too slow.
    Timeout,
    /// Cancelled by the caller. Never on the wire: a cancelled request gets no response.
    Cancelled,
    /// Too large.
    TooLarge,
    /// The call went through too many gateways.
    LoopDetected,
    /// A URL must be visited first (2025-11-25 only).
    UrlElicitationRequired,
    /// No such tenant.
    TenantNotFound,
    /// No such agent.
    AgentNotFound,
    /// A document could not be converted.
    ConversionFailed,
    /// A document could not be exported.
    ExportFailed,
    /// The server behind lacks a capability without which it is of no use here.
    ServerCapabilityMissing,
}

impl Symbol {
    /// The name by which logs and `data.symbol` call it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Symbol::ParseError => "PARSE_ERROR",
            Symbol::InvalidRequest => "INVALID_REQUEST",
            Symbol::NotInitialized => "NOT_INITIALIZED",
            Symbol::DuplicateId => "DUPLICATE_ID",
            Symbol::MethodNotFound => "METHOD_NOT_FOUND",
            Symbol::InvalidParams => "INVALID_PARAMS",
            Symbol::MissingMeta => "MISSING_META",
            Symbol::InvalidCursor => "INVALID_CURSOR",
            Symbol::StateRefused => "STATE_REFUSED",
            Symbol::Internal => "INTERNAL_ERROR",
            Symbol::HeaderMismatch => "HEADER_MISMATCH",
            Symbol::MissingCapability => "MISSING_CAPABILITY",
            Symbol::UnsupportedVersion => "UNSUPPORTED_VERSION",
            Symbol::ToolNotFound => "TOOL_NOT_FOUND",
            Symbol::PromptNotFound => "PROMPT_NOT_FOUND",
            Symbol::ResourceNotFound => "RESOURCE_NOT_FOUND",
            Symbol::TaskNotFound => "TASK_NOT_FOUND",
            Symbol::SessionNotFound => "SESSION_NOT_FOUND",
            Symbol::ToolExecution => "TOOL_EXECUTION_ERROR",
            Symbol::Validation => "VALIDATION_ERROR",
            Symbol::Unauthorized => "UNAUTHORIZED",
            Symbol::RateLimited => "RATE_LIMIT_ERROR",
            Symbol::Overloaded => "OVERLOADED",
            Symbol::Unavailable => "SERVICE_UNAVAILABLE",
            Symbol::CircuitOpen => "CIRCUIT_BREAKER_OPEN",
            Symbol::Timeout => "TIMEOUT_ERROR",
            Symbol::Cancelled => "CANCELLED",
            Symbol::TooLarge => "TOO_LARGE",
            Symbol::LoopDetected => "LOOP_DETECTED",
            Symbol::UrlElicitationRequired => "URL_ELICITATION_REQUIRED",
            Symbol::TenantNotFound => "TENANT_NOT_FOUND",
            Symbol::AgentNotFound => "AGENT_NOT_FOUND",
            Symbol::ConversionFailed => "CONVERSION_FAILED",
            Symbol::ExportFailed => "EXPORT_FAILED",
            Symbol::ServerCapabilityMissing => "SERVER_CAPABILITY_MISSING",
        }
    }

    /// The JSON-RPC code towards a peer of `revision`.
    pub const fn code(self, revision: Revision) -> i32 {
        match self {
            Symbol::ParseError => -32700,
            Symbol::InvalidRequest | Symbol::NotInitialized | Symbol::DuplicateId | Symbol::TooLarge => {
                -32600
            }
            Symbol::SessionNotFound => -32600,
            Symbol::MethodNotFound => -32601,
            Symbol::InvalidParams
            | Symbol::MissingMeta
            | Symbol::InvalidCursor
            | Symbol::StateRefused
            | Symbol::ToolNotFound
            | Symbol::PromptNotFound
            | Symbol::TaskNotFound
            | Symbol::Validation
            | Symbol::TenantNotFound
            | Symbol::AgentNotFound => -32602,
            // 2026-07-28 changelog: -32002 became -32602.
            Symbol::ResourceNotFound => {
                if revision.is_modern() {
                    -32602
                } else {
                    -32002
                }
            }
            Symbol::HeaderMismatch => -32020,
            Symbol::MissingCapability => -32021,
            Symbol::UnsupportedVersion => -32022,
            // 2025-11-25 client/elicitation; later revisions must not emit it.
            Symbol::UrlElicitationRequired => match revision {
                Revision::V2025_11_25 => -32042,
                _ => -32603,
            },
            Symbol::Internal
            | Symbol::ToolExecution
            | Symbol::Unauthorized
            | Symbol::RateLimited
            | Symbol::Overloaded
            | Symbol::Unavailable
            | Symbol::CircuitOpen
            | Symbol::Timeout
            | Symbol::Cancelled
            | Symbol::LoopDetected
            | Symbol::ConversionFailed
            | Symbol::ExportFailed
            | Symbol::ServerCapabilityMissing => -32603,
        }
    }

    /// The number under which a profile's clients know the failure, carried as `code` of the machine form.
    pub const fn code_in(self, profile: Profile, revision: Revision) -> i32 {
        match (profile, self) {
            (Profile::Gbif, Symbol::ToolNotFound) => -32000,
            (Profile::Gbif, Symbol::ToolExecution) => -32001,
            (Profile::Gbif, Symbol::Validation) => -32002,
            (Profile::Gbif, Symbol::RateLimited) => -32003,
            (Profile::Gbif, Symbol::Unavailable) => -32004,
            (Profile::Gbif, Symbol::CircuitOpen) => -32005,
            (Profile::Gbif, Symbol::Timeout) => -32006,
            (Profile::Percolate, Symbol::TenantNotFound) => -32000,
            (Profile::Percolate, Symbol::AgentNotFound) => -32001,
            (Profile::Percolate, Symbol::RateLimited) => -32002,
            (Profile::Percolate, Symbol::Timeout) => -32003,
            (Profile::Docling, Symbol::Unavailable | Symbol::CircuitOpen) => -32000,
            (Profile::Docling, Symbol::Timeout) => -32001,
            (Profile::Docling, Symbol::ConversionFailed) => -32002,
            (Profile::Docling, Symbol::ExportFailed) => -32003,
            _ => self.code(revision),
        }
    }

    /// The HTTP status of a response that is this error and nothing else.
    pub const fn http_status(self, revision: Revision) -> u16 {
        match self {
            Symbol::ParseError
            | Symbol::InvalidRequest
            | Symbol::NotInitialized
            | Symbol::MissingMeta
            | Symbol::HeaderMismatch
            | Symbol::MissingCapability
            | Symbol::UnsupportedVersion => 400,
            Symbol::SessionNotFound => 404,
            // 2026-07-28 streamable-http: an unknown method is 404 with a JSON-RPC body.
            Symbol::MethodNotFound if revision.is_modern() => 404,
            Symbol::TooLarge => 413,
            Symbol::RateLimited => 429,
            Symbol::Overloaded => 503,
            _ => 200,
        }
    }

    /// Whether the same call may succeed when made again.
    pub const fn retryable(self) -> bool {
        matches!(
            self,
            Symbol::RateLimited
                | Symbol::Overloaded
                | Symbol::Unavailable
                | Symbol::CircuitOpen
                | Symbol::Timeout
                | Symbol::Internal
        )
    }

    /// Who is to blame.
    pub const fn blame(self) -> Blame {
        match self {
            Symbol::Internal | Symbol::LoopDetected | Symbol::Overloaded => Blame::Us,
            Symbol::ToolExecution
            | Symbol::Unavailable
            | Symbol::CircuitOpen
            | Symbol::Timeout
            | Symbol::ConversionFailed
            | Symbol::ExportFailed
            | Symbol::ServerCapabilityMissing => Blame::Upstream,
            _ => Blame::Caller,
        }
    }

    /// Whether the failure of a `tools/call` with this symbol is a result with `isError: true`, so that the model
    /// can read it, rather than a JSON-RPC error.
    pub const fn in_tool(self) -> bool {
        matches!(
            self,
            Symbol::ToolExecution
                | Symbol::Validation
                | Symbol::Unauthorized
                | Symbol::RateLimited
                | Symbol::Overloaded
                | Symbol::Unavailable
                | Symbol::CircuitOpen
                | Symbol::Timeout
                | Symbol::TooLarge
                | Symbol::TenantNotFound
                | Symbol::AgentNotFound
                | Symbol::ConversionFailed
                | Symbol::ExportFailed
                | Symbol::ServerCapabilityMissing
        )
    }
}

/// Whether an error with this code may be sent to a peer of `revision`. 2026-07-28 changelog: -32002 became -32602, and
/// -32042 is gone; neither may be sent, whatever a server behind meant by it.
const fn may_send(code: i32, revision: Revision) -> bool {
    !(revision.is_modern() && matches!(code, -32002 | -32042))
}

/// A failure: its symbol, one sentence for people, and optional data for machines.
#[derive(Clone)]
pub struct Error(Box<Inner>);

#[derive(Clone)]
struct Inner {
    symbol: Symbol,
    /// An upstream's own code, kept when its error is passed on.
    code: Option<i32>,
    /// That code is one of a numbering that callers do not know: it goes into the data.
    code_in_data: bool,
    /// Stays a JSON-RPC error, even from a tool.
    protocol: bool,
    /// What was asked for has surely not been done. Not on the wire.
    unexecuted: bool,
    /// When to come back, if the other side said so. Not on the wire.
    retry_after: Option<Duration>,
    /// Which setting ended it. Not on the wire.
    limit: Option<&'static str>,
    /// The sentence for callers.
    message: Cow<'static, str>,
    /// The sentence for whoever runs this process. Not on the wire.
    detail: Option<Box<str>>,
    data: Option<Json>,
    /// The error object as another server wrote it.
    original: Option<Json>,
}

impl Error {
    /// A failure with a sentence that says what is wrong and what to do.
    pub fn new(symbol: Symbol, message: impl Into<Cow<'static, str>>) -> Error {
        Error(Box::new(Inner {
            symbol,
            code: None,
            code_in_data: false,
            protocol: false,
            unexecuted: false,
            retry_after: None,
            limit: None,
            message: message.into(),
            detail: None,
            data: None,
            original: None,
        }))
    }

    /// The same failure, with another sentence for whoever runs this process. That one may name programs, paths and
    /// addresses, and quote what a server wrote; the message is all that a caller is told.
    ///
    /// ```
    /// use tidegate_protocol::{Error, Revision, Symbol};
    ///
    /// let error = Error::new(Symbol::Unavailable, "The server \"files\" has ended")
    ///     .with_detail("the server process \"files\" exited with status 1; it wrote: no such folder: /srv/secret");
    /// assert_eq!(error.to_string(), error.detail());
    /// assert!(!error.to_json(Revision::LATEST_MODERN).as_str().contains("secret"));
    /// ```
    pub fn with_detail(mut self, sentence: impl Into<String>) -> Error {
        self.0.detail = Some(sentence.into().into_boxed_str());
        self
    }

    /// Whether there is more to tell whoever runs this process than its callers.
    pub fn has_detail(&self) -> bool {
        self.0.detail.is_some()
    }

    /// The same failure as a caller sees it.
    pub fn without_detail(mut self) -> Error {
        self.0.detail = None;
        self
    }

    /// The sentence for whoever runs this process, for logs and the like: [`Error::message`] if there is no other.
    pub fn detail(&self) -> &str {
        self.0.detail.as_deref().unwrap_or(&self.0.message)
    }

    /// The same failure with every sentence rewritten, and that of another server too.
    pub fn reworded(mut self, reword: impl Fn(&str) -> Option<String>) -> Error {
        if let Some(message) = reword(&self.0.message) {
            self.0.message = message.into();
        }
        if let Some(detail) = self.0.detail.as_deref().and_then(&reword) {
            self.0.detail = Some(detail.into_boxed_str());
        }
        for json in [&mut self.0.data, &mut self.0.original].into_iter().flatten() {
            // Whatever replaces part of a string must leave it one.
            if let Some(text) = reword(json.as_str())
                && let Ok(text) = Json::parse(text, &Limits::default())
            {
                *json = text;
            }
        }
        self
    }

    /// Adds a member to the data, whoever wrote the error, in the place of one of that name. Data that is not an object stays as
    /// it is.
    pub fn with_data_member(mut self, name: &str, value: &Json) -> Error {
        let data = match &self.0.data {
            None => Some(Object::empty()),
            Some(data) => Object::of(data),
        };
        let Some(data) = data else { return self };
        let data = data.with(name, value);
        if let Some(original) = &self.0.original {
            let edited = Edit::of(original).and_then(|mut edit| {
                edit.set("data", data.clone());
                edit.finish()
            });
            self.0.original = edited.or_else(|| Some(original.clone()));
        }
        self.0.data = Some(data);
        self
    }

    /// The same failure with data.
    pub fn with_data(mut self, data: Json) -> Error {
        self.0.data = Some(data);
        self
    }

    /// The same failure under a code of its own, for errors that are passed on.
    pub fn with_code(mut self, code: i32) -> Error {
        self.0.code = Some(code);
        self
    }

    /// The same failure, whose own code belongs to the numbering of one server or of old clients: it is sent as
    /// `originalCode` in the data, with the symbol beside it, under the code that the specification has for the symbol.
    ///
    /// ```
    /// use tidegate_protocol::{Error, Revision, Symbol};
    ///
    /// let error = Error::new(Symbol::TenantNotFound, "No such tenant").with_code(-32000).code_in_data();
    /// assert_eq!(
    ///     error.to_json(Revision::LATEST_MODERN).as_str(),
    ///     r#"{"code":-32602,"message":"No such tenant","data":{"originalCode":-32000,"symbol":"TENANT_NOT_FOUND"}}"#
    /// );
    /// ```
    pub fn code_in_data(mut self) -> Error {
        self.0.code_in_data = true;
        self
    }

    /// The same failure for clients that know it by a number of their own ([`Symbol::code_in`]). The number goes into the
    /// data, except that legacy clients of the Percolate server look for it where the code is. An error of another
    /// server stays what it is.
    pub fn in_profile(self, profile: Profile, revision: Revision) -> Error {
        let number = self.0.symbol.code_in(profile, revision);
        if self.0.code.is_some() || number == self.0.symbol.code(revision) {
            return self;
        }
        match profile {
            Profile::Percolate if !revision.is_modern() => self.with_code(number),
            _ => self.with_code(number).code_in_data(),
        }
    }

    /// The same failure, now that it is known what it is.
    pub fn with_symbol(mut self, symbol: Symbol) -> Error {
        self.0.symbol = symbol;
        self
    }

    /// The same failure as another server wrote it: it is passed on with whatever nobody here knows, and only a code
    /// that this caller may not be sent is replaced. To be called last.
    pub fn with_original(mut self, error: Json) -> Error {
        self.0.original = Some(error);
        self
    }

    /// The same failure, meant for the program and not for the model: it stays a JSON-RPC error even when it comes from
    /// a tool.
    pub fn as_protocol(mut self) -> Error {
        self.0.protocol = true;
        self
    }

    /// The same failure of a call that was surely not executed, so that making it again is safe.
    pub fn unexecuted(mut self) -> Error {
        self.0.unexecuted = true;
        self
    }

    /// The same failure, later in a call of which something was executed before: making it again is not safe.
    pub fn begun(mut self) -> Error {
        self.0.unexecuted = false;
        self
    }

    /// Whether it stays a JSON-RPC error, even from a tool.
    pub fn is_protocol(&self) -> bool {
        self.0.protocol
    }

    /// Whether the call was surely not executed. `false` means that nobody knows.
    pub fn is_unexecuted(&self) -> bool {
        self.0.unexecuted
    }

    /// The same failure, with the time after which the other side wants to be asked again.
    pub fn with_retry_after(mut self, after: Duration) -> Error {
        self.0.retry_after = Some(after);
        self
    }

    /// After which time the other side wants to be asked again, if it said so.
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }

    /// The same failure, which this setting brought about: `timeout`, for example.
    pub fn limited_by(mut self, setting: &'static str) -> Error {
        self.0.limit = Some(setting);
        self
    }

    /// Which setting brought it about, if one did.
    pub fn limit(&self) -> Option<&'static str> {
        self.0.limit
    }

    /// The same failure in other words.
    pub fn with_message(mut self, message: impl Into<Cow<'static, str>>) -> Error {
        self.0.message = message.into();
        self
    }

    /// Whether a `tools/call` that fails with this answers with a result that the model can read. See [`Symbol::in_tool`].
    pub fn in_tool(&self) -> bool {
        !self.0.protocol && self.0.symbol.in_tool()
    }

    /// A method that does not exist here.
    pub fn method_not_found(method: &str) -> Error {
        Error::new(Symbol::MethodNotFound, format!("Method not found: {method}"))
    }

    /// Something that broke inside. The details belong in the log, not here.
    pub fn internal() -> Error {
        Error::new(Symbol::Internal, "Internal error")
    }

    /// Wrong parameters of a method.
    pub fn invalid_params(what: impl fmt::Display) -> Error {
        Error::new(Symbol::InvalidParams, format!("Invalid params: {what}"))
    }

    /// The client lacks capabilities that the request needs.
    pub fn missing_capabilities(missing: &[Capability]) -> Error {
        let names: Vec<_> = missing.iter().map(|c| c.name()).collect();
        let mut data = ObjectWriter::new();
        data.json("requiredCapabilities", &ClientCapabilities::required(missing));
        Error::new(
            Symbol::MissingCapability,
            format!("Missing required client capability: {}. Declare it and try again", names.join(", ")),
        )
        .with_data(data.finish())
    }

    /// A protocol version that is not spoken here.
    pub fn unsupported_version(requested: &str, supported: &[Revision]) -> Error {
        let mut data = ObjectWriter::new();
        let names: Vec<_> = supported.iter().map(|r| r.as_str()).collect();
        data.value("supported", &names).str("requested", requested);
        Error::new(
            Symbol::UnsupportedVersion,
            format!("Unsupported protocol version {requested:?}: this server supports {}", names.join(", ")),
        )
        .with_data(data.finish())
    }

    /// A resource that does not exist.
    pub fn resource_not_found(uri: &str) -> Error {
        let mut data = ObjectWriter::new();
        data.str("uri", uri);
        Error::new(Symbol::ResourceNotFound, format!("Resource not found: {uri}")).with_data(data.finish())
    }

    /// What went wrong.
    pub fn symbol(&self) -> Symbol {
        self.0.symbol
    }

    /// The sentence for callers.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The data for machines.
    pub fn data(&self) -> Option<&Json> {
        self.0.data.as_ref()
    }

    /// The JSON-RPC code towards a peer of `revision`.
    pub fn code(&self, revision: Revision) -> i32 {
        match self.0.code {
            Some(code) if !self.hides_code(revision) => code,
            _ => self.0.symbol.code(revision),
        }
    }

    /// The code that another server gave it, whatever callers are told.
    pub fn original_code(&self) -> Option<i32> {
        self.0.code
    }

    /// Whether that code belongs to a numbering of its own: see [`Error::code_in_data`].
    pub fn has_code_in_data(&self) -> bool {
        self.0.code.is_some() && self.0.code_in_data
    }

    /// Whether its own code is not sent to a peer of `revision` as such.
    fn hides_code(&self, revision: Revision) -> bool {
        self.0.code.is_some_and(|code| self.0.code_in_data || !may_send(code, revision))
    }

    /// The data as a peer of `revision` gets it: with the code that could not be sent as such.
    fn data_for(&self, revision: Revision) -> Option<Json> {
        let Some(code) = self.0.code.filter(|_| self.hides_code(revision)) else {
            return self.0.data.clone();
        };
        let (code, symbol) = (Json::trusted(code.to_string()), Json::string(self.0.symbol.as_str()));
        let said = self.0.data.as_ref();
        let mut edit = said.and_then(Edit::of).unwrap_or_else(|| Edit::new(Object::empty()));
        for (name, value) in [("originalCode", code), ("symbol", symbol)] {
            // What the server itself says there stays.
            if !edit.object().has(name) {
                edit.set(name, value);
            }
        }
        if let Some(other) = said.filter(|data| Object::of(data).is_none()) {
            edit.set("data", other.clone());
        }
        edit.finish().or_else(|| self.0.data.clone())
    }

    /// Appends the JSON-RPC error object: `{"code":…,"message":…,"data":…}`.
    pub fn write(&self, out: &mut Vec<u8>, revision: Revision) {
        if let Some(original) = &self.0.original {
            let edited = Edit::of(original).and_then(|mut edit| {
                if self.0.code.is_none() || self.hides_code(revision) {
                    edit.set("code", Json::trusted(self.code(revision).to_string()));
                }
                if self.hides_code(revision)
                    && let Some(data) = self.data_for(revision)
                {
                    edit.set("data", data);
                }
                edit.finish()
            });
            out.extend_from_slice(edited.as_ref().unwrap_or(original).as_str().as_bytes());
            return;
        }
        out.extend_from_slice(b"{\"code\":");
        out.extend_from_slice(self.code(revision).to_string().as_bytes());
        out.extend_from_slice(b",\"message\":");
        write_str(out, self.message());
        if let Some(data) = self.data_for(revision) {
            out.extend_from_slice(b",\"data\":");
            out.extend_from_slice(data.as_str().as_bytes());
        }
        out.push(b'}');
    }

    /// The JSON-RPC error object.
    pub fn to_json(&self, revision: Revision) -> Json {
        let mut out = Vec::with_capacity(96);
        self.write(&mut out, revision);
        Json::from_written(out)
    }

    /// Whether an error response to a peer of `revision` leaves the id out when it could not be read.
    ///
    /// JSON-RPC says `null`; the MCP schema made it optional in 2025-11-25 and never allowed `null`.
    pub fn omits_unknown_id(revision: Option<Revision>) -> bool {
        revision.is_none_or(|r| r.allows(Feature::OptionalErrorId))
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.symbol.as_str(), self.detail())?;
        match &self.0.data {
            Some(data) => write!(f, " {data}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.detail())
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wire_forms_per_era() {
        let e = Error::resource_not_found("x:y");
        assert_eq!(
            e.to_json(Revision::V2025_11_25).as_str(),
            r#"{"code":-32002,"message":"Resource not found: x:y","data":{"uri":"x:y"}}"#
        );
        assert_eq!(e.code(Revision::V2026_07_28), -32602);
        let e = Error::missing_capabilities(&[Capability::Sampling]);
        for revision in Revision::ALL {
            assert_eq!(e.code(revision), -32021);
        }
        assert_eq!(e.data().unwrap().as_str(), r#"{"requiredCapabilities":{"sampling":{}}}"#);
    }

    #[test]
    fn codes_that_are_gone_are_not_sent_to_modern_peers() {
        let passed = |text: &'static str, symbol, code| {
            let original = Json::trusted(text);
            let data = Object::of(&original).unwrap().json("data");
            let error = Error::new(symbol, "m").with_code(code);
            match data {
                Some(data) => error.with_data(data),
                None => error,
            }
            .with_original(original)
        };
        for (text, symbol, code, modern) in [
            (
                r#"{"code":-32002,"x": 1.0,"message":"m"}"#,
                Symbol::Internal,
                -32002,
                r#"{"code":-32603,"x": 1.0,"message":"m","data":{"originalCode":-32002,"symbol":"INTERNAL_ERROR"}}"#,
            ),
            (
                r#"{"code":-32002,"message":"m","data":{"a": 1E+2}}"#,
                Symbol::Validation,
                -32002,
                r#"{"code":-32602,"message":"m","data":{"a": 1E+2,"originalCode":-32002,"symbol":"VALIDATION_ERROR"}}"#,
            ),
            (
                r#"{"code":-32042,"message":"m","data":[1.0]}"#,
                Symbol::UrlElicitationRequired,
                -32042,
                r#"{"code":-32603,"message":"m","data":{"originalCode":-32042,"symbol":"URL_ELICITATION_REQUIRED","data":[1.0]}}"#,
            ),
        ] {
            let error = passed(text, symbol, code);
            assert_eq!(error.to_json(Revision::LATEST_MODERN).as_str(), modern);
            assert_eq!(error.to_json(Revision::LATEST_LEGACY).as_str(), text, "untouched");
            assert_eq!(error.original_code(), Some(code));
        }
        // A number of somebody's own is in the data for everybody; what the server says there stays.
        let text = r#"{"code":-32003,"message":"m","data":{"symbol":"SLOW"}}"#;
        let error = passed(text, Symbol::Timeout, -32003).code_in_data();
        for revision in Revision::ALL {
            assert_eq!(
                error.to_json(revision).as_str(),
                r#"{"code":-32603,"message":"m","data":{"symbol":"SLOW","originalCode":-32003}}"#
            );
        }
    }
}
