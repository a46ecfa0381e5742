//! The one catalogue of errors.
//!
//! Every failure has one [`Symbol`]; from it follow the JSON-RPC code of each era, the HTTP status, whether a retry
//! can help, and who is to blame. Protocol failures go out as JSON-RPC errors with the codes that the specification
//! defines; what goes wrong inside a tool goes out as a result with `isError: true` (see [`Symbol::in_tool`]).
//!
//! The table of symbols is in `symbol`, the numbers of old clients and certain servers are in `profile`, and what goes on the
//! wire is decided in `write`.

mod profile;
mod symbol;
mod write;

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use crate::capabilities::{Capability, ClientCapabilities};
use crate::json::{Edit, Json, Limits, Object, ObjectWriter};
use crate::revision::Revision;

pub use profile::Profile;
pub use symbol::{Blame, Symbol};

/// A failure: its symbol, one sentence for people, and optional data for machines.
#[derive(Clone)]
pub struct Error(Box<ErrorImpl>);

#[derive(Clone)]
struct ErrorImpl {
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
        Error(Box::new(ErrorImpl {
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
}
