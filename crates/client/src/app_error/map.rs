//! What error numbers mean, per profile.
//!
//! The same number means different things to different servers, so a map belongs to a server and is never global. All
//! maps lead to a [`Row`]: a code of the catalogue, the symbol, and where they differ from the catalogue the words.

use tidegate_protocol::{Json, Method, Object, Profile, Symbol};

use super::ErrorProfile;

/// What one error is to an application. What is not said is as the catalogue has it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    pub(super) code: &'static str,
    pub(super) symbol: Symbol,
    pub(super) user: Option<&'static str>,
    pub(super) action: Option<&'static str>,
    pub(super) retryable: Option<bool>,
}

const fn row(code: &'static str, symbol: Symbol) -> Row {
    Row { code, symbol, user: None, action: None, retryable: None }
}

impl Row {
    const fn user(mut self, text: &'static str) -> Row {
        self.user = Some(text);
        self
    }

    const fn action(mut self, text: &'static str) -> Row {
        self.action = Some(text);
        self
    }

    const fn retryable(mut self, yes: bool) -> Row {
        self.retryable = Some(yes);
        self
    }
}

/// A number that nothing is known about.
pub(super) const UNKNOWN: Row = row("E201", Symbol::Internal)
    .user("An unexpected error occurred")
    .action("Try again later")
    .retryable(true);

/// An error as it came: its number and what helps to tell what it is.
#[derive(Clone, Copy)]
pub(super) struct Wire<'a> {
    pub(super) code: i64,
    pub(super) message: &'a str,
    pub(super) data: Option<&'a Json>,
    pub(super) method: Option<&'a Method>,
}

impl ErrorProfile {
    /// What a number means, if it is one that only such servers have.
    pub(crate) fn symbol_of(self, code: i64, data: Option<&Json>) -> Option<Symbol> {
        let symbol = match self {
            // -32800 to -32802, which others send too.
            ErrorProfile::DevFlow if matches!(code, -32802..=-32800) => Symbol::from_foreign_code(code),
            profile => Profile::from(profile).symbol_of(code),
        }?;
        Some(data.and_then(named_symbol).unwrap_or(symbol))
    }
}

/// What a number means under a profile; `None` if the profile does not know it.
pub(super) fn by_code(profile: ErrorProfile, wire: Wire<'_>) -> Option<Row> {
    if profile == ErrorProfile::Docling {
        let symbol = profile.symbol_of(wire.code, None).or_else(|| Symbol::from_code(wire.code))?;
        return DOCLING.iter().find(|row| row.symbol == symbol).copied();
    }
    let named = wire.data.and_then(named_symbol);
    match named.or_else(|| profile.symbol_of(wire.code, None)) {
        Some(symbol) => Some(by_symbol(profile, symbol, wire.method, false)),
        None => standard(profile, wire),
    }
}

/// What the Docling client's own table says of its numbers, word for word.
#[rustfmt::skip] // a table
const DOCLING: &[Row] = &[
    docling("E203", Symbol::ParseError, "Invalid request format", false),
    docling("E203", Symbol::InvalidRequest, "Invalid request format", false),
    docling("E204", Symbol::MethodNotFound, "Requested tool not available", false),
    docling("E203", Symbol::InvalidParams, "Invalid parameters", false),
    docling("E201", Symbol::Internal, "Processing service error", true),
    docling("E201", Symbol::Unavailable, "Processing service unavailable", true),
    docling("E202", Symbol::Timeout, "Request timeout", true),
    docling("E302", Symbol::ConversionFailed, "Document conversion failed", true),
    docling("E303", Symbol::ExportFailed, "Export generation failed", true),
];

const fn docling(code: &'static str, symbol: Symbol, user: &'static str, retryable: bool) -> Row {
    let action = if retryable { "Try again" } else { "Contact support" };
    row(code, symbol).user(user).action(action).retryable(retryable)
}

/// The numbers as the specification and the SDKs use them.
fn standard(profile: ErrorProfile, wire: Wire<'_>) -> Option<Row> {
    let symbol = match Symbol::from_code(wire.code).or_else(|| Symbol::from_foreign_code(wire.code))? {
        Symbol::InvalidParams => missing(wire).unwrap_or(Symbol::InvalidParams),
        // To the TypeScript SDK -32000 is a connection that was closed; FastMCP says so of a tool that timed out.
        Symbol::Unavailable if wire.code == -32000 && says_timeout(wire.message) => Symbol::Timeout,
        Symbol::MissingCapability => {
            let user = "This client lacks a capability that the server needs";
            return Some(row("E205", Symbol::MissingCapability).user(user));
        }
        symbol => symbol,
    };
    Some(by_symbol(profile, symbol, wire.method, false))
}

/// What a symbol means under a profile. `unexecuted`: the call surely did not reach the tool.
pub(super) fn by_symbol(
    profile: ErrorProfile,
    symbol: Symbol,
    method: Option<&Method>,
    unexecuted: bool,
) -> Row {
    let tool = method == Some(&Method::ToolsCall);
    if profile == ErrorProfile::Docling {
        // Documents are large and conversions slow: advice about the file helps more than "Request timeout".
        if symbol == Symbol::Timeout && tool && !unexecuted {
            return row("E301", symbol);
        }
        if let Some(row) = DOCLING.iter().find(|row| row.symbol == symbol) {
            return *row;
        }
    }
    match symbol {
        Symbol::ParseError
        | Symbol::InvalidRequest
        | Symbol::NotInitialized
        | Symbol::DuplicateId
        | Symbol::MissingMeta
        | Symbol::HeaderMismatch => row("E203", symbol).user("Invalid request format"),
        Symbol::MethodNotFound if tool => row("E204", Symbol::ToolNotFound),
        Symbol::MethodNotFound => row("E203", symbol).user("Method not supported by the server"),
        Symbol::InvalidParams => row("E203", symbol),
        Symbol::Validation => row("E203", symbol).action("Check the input and try again"),
        Symbol::InvalidCursor => {
            row("E203", symbol).user("The list has changed meanwhile").action("Start the list again")
        }
        Symbol::UnsupportedVersion => row("E203", symbol)
            .user("Protocol version not supported by the server")
            .action("Update the client or the server"),
        Symbol::MissingCapability | Symbol::ServerCapabilityMissing => row("E205", symbol),
        // The catalogue has one code for what the server does not have. It began with tools.
        Symbol::ToolNotFound => row("E204", symbol),
        Symbol::PromptNotFound => gone(symbol, "Requested prompt not available"),
        Symbol::ResourceNotFound => gone(symbol, "Requested resource not available"),
        Symbol::TaskNotFound => gone(symbol, "Requested task not available"),
        Symbol::TenantNotFound => gone(symbol, "Requested tenant not available"),
        Symbol::AgentNotFound => gone(symbol, "Requested agent not available"),
        Symbol::SessionNotFound => row("E501", symbol),
        Symbol::StateRefused => row("E502", symbol),
        Symbol::Unauthorized => row("E503", symbol),
        Symbol::Forbidden => {
            row("E503", symbol).user("Not allowed here").action("Ask whoever runs the server for permission")
        }
        Symbol::UrlElicitationRequired => row("E503", symbol)
            .user("A web page must be visited first")
            .action("Open the page that the server names, then try again"),
        Symbol::RateLimited => row("E601", symbol),
        Symbol::Overloaded => row("E601", symbol),
        Symbol::BudgetExceeded => row("E601", symbol)
            .user("The budget for this task is used up")
            .action("Use what there is, or start anew later")
            .retryable(false),
        Symbol::Unavailable => row("E201", symbol),
        Symbol::CircuitOpen => row("E201", symbol).user("Service temporarily unavailable (circuit open)"),
        // For a person trying again is good advice. Programs decide by more than that: see `RetryLayer`.
        Symbol::Internal => row("E201", symbol).user("Processing service error").action("Try again"),
        Symbol::LoopDetected => {
            row("E201", symbol).user("The request ran in a loop").action("Contact support").retryable(false)
        }
        Symbol::Timeout => row("E202", symbol),
        Symbol::Cancelled => row("E206", symbol),
        Symbol::ConversionFailed => row("E302", symbol),
        Symbol::ExportFailed => row("E303", symbol),
        Symbol::TooLarge => row("E305", symbol),
        Symbol::ToolExecution => row("E306", symbol),
        _ => Row { symbol, ..UNKNOWN },
    }
}

const fn gone(symbol: Symbol, user: &'static str) -> Row {
    row("E204", symbol).user(user).action("Check the name or address")
}

/// What -32602 complains about, if it is something that does not exist: servers say so in `data` or in words.
pub(super) fn missing(wire: Wire<'_>) -> Option<Symbol> {
    let (symbol, kind) = match wire.method {
        None | Some(Method::ToolsCall) => (Symbol::ToolNotFound, "tool"),
        Some(Method::PromptsGet) => (Symbol::PromptNotFound, "prompt"),
        Some(Method::ResourcesRead) => (Symbol::ResourceNotFound, "resource"),
        Some(_) => return None,
    };
    // 2026-07-28 server/resources: -32602 with the address in the data.
    let has_uri = || wire.data.and_then(Object::of).is_some_and(|data| data.has("uri"));
    let found = says_missing(wire.message, kind) || symbol == Symbol::ResourceNotFound && has_uri();
    found.then_some(symbol)
}

/// "Unknown tool: x", "tool not found", "Tool x not found", with or without the TypeScript SDK's "MCP error -32602: ".
fn says_missing(message: &str, kind: &str) -> bool {
    let message = match message.strip_prefix("MCP error ").and_then(|rest| rest.split_once(": ")) {
        Some((_, rest)) => rest,
        None => message,
    };
    let words = message.split_whitespace().take(4);
    let words: Vec<_> = words.map(|word| word.trim_matches([':', '.', ',']).to_ascii_lowercase()).collect();
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["unknown", what, ..] | [what, "not", "found", ..] | [what, _, "not", "found"] => what == kind,
        _ => false,
    }
}

fn says_timeout(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    message.contains("timed out") || message.contains("timeout")
}

/// The symbol that the data names, as our own servers do.
fn named_symbol(data: &Json) -> Option<Symbol> {
    let data = Object::of(data)?;
    let name = data.str("symbol")?;
    Symbol::from_name(&name)
}
