//! [`ToolError`]: what a handler returns when it fails.

use std::borrow::Cow;

use tidegate_protocol::{Error, Json, Symbol};

/// Why a handler failed.
///
/// In a tool this becomes a result with `isError: true` that the model can read; in a prompt or a resource reader it
/// becomes a JSON-RPC error. The message goes to the caller, so it says what is wrong and what to do about it, and
/// nothing about the inside of the server; [`ToolError::from_error`] is for errors whose text is not fit to be told.
///
/// ```
/// use tidegate_server::ToolError;
///
/// let error: ToolError = "No such city: Atlantis".into();
/// assert_eq!(error.message(), "No such city: Atlantis");
/// let error = ToolError::coded("NODE_NOT_FOUND", "No such node", Some(serde_json::json!({"id": 7})));
/// assert_eq!(error.message(), r#"NODE_NOT_FOUND: No such node ({"id":7})"#);
/// ```
#[derive(Debug, Clone)]
pub struct ToolError {
    error: Error,
    /// Whether the call fails as a JSON-RPC request rather than as a tool.
    protocol: bool,
}

impl ToolError {
    /// A failure of a kind. Kinds that are not a tool's own business (see [`Symbol::in_tool`]) become JSON-RPC errors.
    pub fn new(symbol: Symbol, message: impl Into<Cow<'static, str>>) -> ToolError {
        ToolError::from(Error::new(symbol, message))
    }

    /// A failure with a sentence for the caller.
    pub fn message_only(message: impl Into<Cow<'static, str>>) -> ToolError {
        ToolError::new(Symbol::ToolExecution, message)
    }

    /// A failure under a code of the server's own, told as `CODE: message (details)`.
    pub fn coded(code: &str, message: &str, details: Option<serde_json::Value>) -> ToolError {
        let sentence = match &details {
            Some(details) => format!("{code}: {message} ({details})"),
            None => format!("{code}: {message}"),
        };
        let data = serde_json::json!({"code": code, "details": details});
        ToolError::message_only(sentence).data(Json::from(data))
    }

    /// A failure whose details belong in the log, under the call's correlation id, and not in the answer.
    pub fn from_error(error: impl std::error::Error) -> ToolError {
        let mut causes = String::new();
        let mut cause = error.source();
        while let Some(error) = cause {
            causes.push_str(": ");
            causes.push_str(&error.to_string());
            cause = error.source();
        }
        tracing::error!(error = %format_args!("{error}{causes}"), "a handler failed");
        ToolError::message_only("Operation failed")
    }

    /// A JSON-RPC error, also from a tool: for calls that should not have been made at all.
    pub fn protocol(error: Error) -> ToolError {
        ToolError { error, protocol: true }
    }

    /// The same failure with data for machines.
    pub fn data(mut self, data: Json) -> ToolError {
        self.error = self.error.with_data(data);
        self
    }

    /// The sentence for the caller.
    pub fn message(&self) -> &str {
        self.error.message()
    }

    /// The kind of failure.
    pub fn symbol(&self) -> Symbol {
        self.error.symbol()
    }

    /// Whether the call fails as a JSON-RPC request rather than as a tool.
    pub(crate) fn is_protocol(&self) -> bool {
        self.protocol
    }

    pub(crate) fn error(&self) -> &Error {
        &self.error
    }

    pub(crate) fn into_error(self) -> Error {
        self.error
    }
}

impl From<Error> for ToolError {
    fn from(error: Error) -> ToolError {
        let protocol = !error.symbol().in_tool();
        ToolError { error, protocol }
    }
}

impl From<&str> for ToolError {
    fn from(message: &str) -> ToolError {
        ToolError::message_only(message.to_owned())
    }
}

impl From<String> for ToolError {
    fn from(message: String) -> ToolError {
        ToolError::message_only(message)
    }
}

impl std::fmt::Display for ToolError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.message())
    }
}

impl std::error::Error for ToolError {}
