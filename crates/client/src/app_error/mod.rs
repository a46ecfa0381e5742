//! [`AppError`]: what went wrong, in the words and codes that an application shows to its user.
//!
//! Errors come as JSON-RPC numbers from a server, or as [`Error`]s when something failed on our side of the wire. The
//! same number means different things to different servers, so each server has an [`ErrorProfile`]. All lead to the
//! codes of the [`CATALOGUE`]:
//!
#![doc = include_str!("catalogue.md")]

mod catalogue;
mod map;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

pub use catalogue::{CATALOGUE, CatalogueEntry, catalogue_entry};
use map::{Row, Wire};
use serde::{Deserialize, Serialize, Serializer};
use tidegate_protocol::{Error, Json, Method, Profile, Revision, Symbol};
use tidegate_service::secrets::mask;

/// Whose numbers a server sends. Belongs to a server, never to all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ErrorProfile {
    /// The numbers of the specification, and of the SDKs where it is silent.
    #[default]
    Standard,
    /// -32000 to -32006 are those of the GBIF server.
    Gbif,
    /// -32000 to -32003 are those of the Percolate server.
    Percolate,
    /// Exactly the table of the Docling client, and nothing else.
    Docling,
    /// Like the standard, which knows DevFlow's -32800 to -32802.
    DevFlow,
}

impl From<ErrorProfile> for Profile {
    /// The same numbering for a server of this process.
    fn from(profile: ErrorProfile) -> Profile {
        match profile {
            ErrorProfile::Standard | ErrorProfile::DevFlow => Profile::Strict,
            ErrorProfile::Gbif => Profile::Gbif,
            ErrorProfile::Percolate => Profile::Percolate,
            ErrorProfile::Docling => Profile::Docling,
        }
    }
}

/// An error as an application shows it.
///
/// ```
/// use tidegate_client::{ErrorProfile, map_mcp_error};
///
/// let error = map_mcp_error(-32001, "no answer in 60 s", None, None, ErrorProfile::Docling);
/// assert_eq!(error.to_string(), "E202: Request timeout (no answer in 60 s)");
/// assert!(error.retryable);
/// // The same number from another server.
/// let error = map_mcp_error(-32001, "no agent x", None, None, ErrorProfile::Percolate);
/// assert_eq!(error.to_string(), "E204: Requested agent not available (no agent x)");
/// ```
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AppError {
    /// The code in the [`CATALOGUE`].
    pub code: &'static str,
    /// What the server said, or we.
    pub message: String,
    /// What to tell the user.
    pub user_message: Cow<'static, str>,
    /// What the user can do.
    pub suggested_action: &'static str,
    /// Whether trying again can help. Advice for a person: whether a program may make the call again by itself also
    /// depends on whether it may have been executed (see `RetryLayer`).
    pub retryable: bool,
    /// The JSON-RPC number, if there was one.
    #[serde(rename = "originalMCPCode", skip_serializing_if = "Option::is_none")]
    pub original_code: Option<i64>,
    /// What it is to the rest of Tidegate.
    #[serde(serialize_with = "symbol_name")]
    pub symbol: Symbol,
    /// What the server added for machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Json>,
    /// What may be told to others than whoever runs this process: without paths, addresses and what programs wrote.
    #[serde(skip)]
    pub public_message: String,
    /// After which time the server wants to be asked again, if it said so.
    #[serde(skip)]
    pub retry_after: Option<Duration>,
}

/// What a JSON-RPC error object means under a profile. Numbers that nobody knows become E201.
pub fn map_mcp_error(
    code: i64,
    message: &str,
    data: Option<&Json>,
    method: Option<&Method>,
    profile: ErrorProfile,
) -> AppError {
    let row = map::by_code(profile, Wire { code, message, data, method }).unwrap_or(map::UNKNOWN);
    AppError { original_code: Some(code), data: data.cloned(), ..AppError::of(row, message) }
}

impl AppError {
    /// What a failed call of `method` means to the user. `revision` is what the server speaks.
    ///
    /// ```
    /// use tidegate_client::{AppError, ErrorProfile};
    /// use tidegate_protocol::{Error, Method, Revision, Symbol};
    ///
    /// let error = Error::new(Symbol::Unauthorized, "https://example.com/mcp answered 401");
    /// let error = AppError::from_error(&error, &Method::ToolsList, ErrorProfile::Standard, Revision::INTERNAL);
    /// assert_eq!((error.code, error.suggested_action), ("E503", "Run tidegate login URL"));
    /// ```
    pub fn from_error(error: &Error, method: &Method, profile: ErrorProfile, revision: Revision) -> AppError {
        let (symbol, message) = (error.symbol(), error.detail());
        let code = error.original_code().unwrap_or_else(|| symbol.code(revision));
        let wire = Wire { code: code.into(), message, data: error.data(), method: Some(method) };
        let by_symbol = || map::by_symbol(profile, symbol, Some(method), error.is_unexecuted());
        // A number of the server's own is not how things fail here, whatever it means.
        let local = is_local(symbol) && !error.has_code_in_data();
        // A number of its own is what the server sent, and only the profile knows what it means.
        let foreign = code != symbol.code(revision);
        let row = match symbol {
            _ if foreign && !local => map::by_code(profile, wire).unwrap_or_else(|| match symbol {
                Symbol::Internal => map::UNKNOWN,
                _ => by_symbol(),
            }),
            Symbol::InvalidParams if profile != ErrorProfile::Docling => match map::missing(wire) {
                Some(missing) => map::by_symbol(profile, missing, Some(method), false),
                None => by_symbol(),
            },
            _ => by_symbol(),
        };
        let told = AppError::of(row, message);
        AppError {
            user_message: match symbol {
                // The sentence says it all, and applications look for it.
                Symbol::ServerCapabilityMissing => error.message().to_owned().into(),
                _ => told.user_message.clone(),
            },
            original_code: (foreign || !local).then_some(code.into()),
            data: error.data().cloned(),
            retry_after: error.retry_after(),
            public_message: error.message().to_owned(),
            ..told
        }
    }

    /// A server that lacks a capability without which it is of no use here, for example `tools`.
    ///
    /// ```
    /// let error = tidegate_client::AppError::missing_server_capability("tools");
    /// assert_eq!(error.to_string(), "E205: MCP server does not support tools capability");
    /// ```
    pub fn missing_server_capability(capability: &str) -> AppError {
        let error = crate::require::lacks(capability);
        AppError::from_error(&error, &Method::Initialize, ErrorProfile::Standard, Revision::INTERNAL)
    }

    fn of(row: Row, message: &str) -> AppError {
        let entry = catalogue_entry(row.code);
        AppError {
            code: row.code,
            message: mask(message).into_owned(),
            user_message: row.user.or(entry.map(|e| e.user_message)).unwrap_or_default().into(),
            suggested_action: row.action.or(entry.map(|e| e.suggested_action)).unwrap_or_default(),
            retryable: row.retryable.or(entry.map(|e| e.retryable)).unwrap_or_default(),
            original_code: None,
            symbol: row.symbol,
            data: None,
            public_message: message.to_owned(),
            retry_after: None,
        }
    }
}

/// Whether this is how things fail on our side of the wire, without an answer of the server to map.
fn is_local(symbol: Symbol) -> bool {
    matches!(
        symbol,
        Symbol::Timeout
            | Symbol::Unavailable
            | Symbol::CircuitOpen
            | Symbol::RateLimited
            | Symbol::BudgetExceeded
            | Symbol::Overloaded
            | Symbol::Unauthorized
            | Symbol::Cancelled
            | Symbol::TooLarge
            | Symbol::LoopDetected
            | Symbol::ServerCapabilityMissing
    )
}

impl fmt::Display for AppError {
    /// One line: `E202: Request timeout (no answer in 60 s)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.user_message)?;
        if self.message.is_empty() || self.message == self.user_message {
            return Ok(());
        }
        f.write_str(" (")?;
        for (i, word) in self.message.split_whitespace().enumerate() {
            if i > 0 {
                f.write_str(" ")?;
            }
            f.write_str(word)?;
        }
        f.write_str(")")
    }
}

impl std::error::Error for AppError {}

fn symbol_name<S: Serializer>(symbol: &Symbol, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(symbol.as_str())
}
