//! [`Symbol`]: what went wrong, and the one table of what follows from it.

use crate::revision::Revision;

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

/// What follows from a symbol, whoever has the failure.
struct Row {
    symbol: Symbol,
    name: &'static str,
    code: i32,
    http_status: u16,
    blame: Blame,
    retryable: bool,
    in_tool: bool,
}

/// Makes the enum and its table from one list.
macro_rules! symbols {
    (@ yes) => { true };
    (@ no) => { false };
    ($($(#[$doc:meta])* $symbol:ident, $name:literal, $code:literal, $status:literal, $blame:ident, $again:ident, $tool:ident;)+) => {
        /// What went wrong.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Symbol {
            $($(#[$doc])* $symbol,)+
        }

        /// A row for each symbol, in their order.
        const ROWS: &[Row] = &[$(Row {
            symbol: Symbol::$symbol,
            name: $name,
            code: $code,
            http_status: $status,
            blame: Blame::$blame,
            retryable: symbols!(@ $again),
            in_tool: symbols!(@ $tool),
        },)+];
    };
}

// The symbol, its name in logs and in `data.symbol`, the JSON-RPC code of today, the HTTP status, who is to blame, whether
// making the call again can help, and whether it is a result of a tool that the model can read. Of several symbols with one
// code, the first is what the code means when a server sends it without saying more.
symbols! {
    /// The text is not JSON.
    ParseError,             "PARSE_ERROR",                -32700, 400, Caller,    no,  no;
    /// The message is not a request.
    InvalidRequest,         "INVALID_REQUEST",            -32600, 400, Caller,    no,  no;
    /// A request before the handshake.
    NotInitialized,         "NOT_INITIALIZED",            -32600, 400, Caller,    no,  no;
    /// A request id that is still in flight.
    DuplicateId,            "DUPLICATE_ID",               -32600, 200, Caller,    no,  no;
    /// No such method.
    MethodNotFound,         "METHOD_NOT_FOUND",           -32601, 404, Caller,    no,  no;
    /// The method's own parameters are wrong.
    InvalidParams,          "INVALID_PARAMS",             -32602, 200, Caller,    no,  no;
    /// A modern request without the `_meta` fields it must have.
    MissingMeta,            "MISSING_META",               -32602, 400, Caller,    no,  no;
    /// A cursor that this server did not hand out, or that has expired.
    InvalidCursor,          "INVALID_CURSOR",             -32602, 200, Caller,    no,  no;
    /// A request state that was tampered with, has expired, or belongs to another request or caller.
    StateRefused,           "STATE_REFUSED",              -32602, 200, Caller,    no,  no;
    /// Something broke inside.
    Internal,               "INTERNAL_ERROR",             -32603, 200, Us,       yes,  no;
    /// Headers and body disagree.
    HeaderMismatch,         "HEADER_MISMATCH",            -32020, 400, Caller,    no,  no;
    /// The client lacks a capability that the request needs.
    MissingCapability,      "MISSING_CAPABILITY",         -32021, 400, Caller,    no,  no;
    /// The protocol version is not supported.
    UnsupportedVersion,     "UNSUPPORTED_VERSION",        -32022, 400, Caller,    no,  no;
    /// No such tool.
    ToolNotFound,           "TOOL_NOT_FOUND",             -32602, 200, Caller,    no,  no;
    /// No such prompt.
    PromptNotFound,         "PROMPT_NOT_FOUND",           -32602, 200, Caller,    no,  no;
    /// No such resource.
    ResourceNotFound,       "RESOURCE_NOT_FOUND",         -32602, 200, Caller,    no,  no;
    /// No such task.
    TaskNotFound,           "TASK_NOT_FOUND",             -32602, 200, Caller,    no,  no;
    /// No such session.
    SessionNotFound,        "SESSION_NOT_FOUND",          -32600, 404, Caller,    no,  no;
    /// The tool failed.
    ToolExecution,          "TOOL_EXECUTION_ERROR",       -32603, 200, Upstream,  no, yes;
    /// The tool's arguments are wrong.
    Validation,             "VALIDATION_ERROR",           -32602, 200, Caller,    no, yes;
    /// The server behind wants to know who is asking.
    Unauthorized,           "UNAUTHORIZED",               -32603, 200, Caller,    no, yes;
    /// The caller's token is good, but not for this: it lacks a scope.
    InsufficientScope,      "INSUFFICIENT_SCOPE",         -32603, 403, Caller,    no,  no;
    /// The caller may not do this here.
    Forbidden,              "FORBIDDEN",                  -32603, 200, Caller,    no, yes;
    /// Too many requests.
    RateLimited,            "RATE_LIMIT_ERROR",           -32603, 429, Caller,   yes, yes;
    /// The run that the call belongs to has used up its budget, or goes round in circles.
    BudgetExceeded,         "BUDGET_EXCEEDED",            -32603, 200, Caller,    no, yes;
    /// This process holds as much as it may.
    Overloaded,             "OVERLOADED",                 -32603, 503, Us,       yes, yes;
    /// What is behind this cannot be reached.
    Unavailable,            "SERVICE_UNAVAILABLE",        -32603, 200, Upstream, yes, yes;
    /// The circuit breaker is open.
    CircuitOpen,            "CIRCUIT_BREAKER_OPEN",       -32603, 200, Upstream, yes, yes;
    /// Too slow.
    Timeout,                "TIMEOUT_ERROR",              -32603, 200, Upstream, yes, yes;
    /// Cancelled by the caller. Never on the wire: a cancelled request gets no response.
    Cancelled,              "CANCELLED",                  -32603, 200, Caller,    no,  no;
    /// Too large.
    TooLarge,               "TOO_LARGE",                  -32600, 413, Caller,    no, yes;
    /// The call went through too many gateways.
    LoopDetected,           "LOOP_DETECTED",              -32603, 200, Us,        no,  no;
    /// A URL must be visited first (2025-11-25 only).
    UrlElicitationRequired, "URL_ELICITATION_REQUIRED",   -32603, 200, Caller,    no,  no;
    /// No such tenant.
    TenantNotFound,         "TENANT_NOT_FOUND",           -32602, 200, Caller,    no, yes;
    /// No such agent.
    AgentNotFound,          "AGENT_NOT_FOUND",            -32602, 200, Caller,    no, yes;
    /// A document could not be converted.
    ConversionFailed,       "CONVERSION_FAILED",          -32603, 200, Upstream,  no, yes;
    /// A document could not be exported.
    ExportFailed,           "EXPORT_FAILED",              -32603, 200, Upstream,  no, yes;
    /// The server behind lacks a capability without which it is of no use here.
    ServerCapabilityMissing,"SERVER_CAPABILITY_MISSING",  -32603, 200, Upstream,  no, yes;
}

/// What others call a failure by a number that no revision of today has, or that was never in one: the TypeScript SDK (-32000
/// for a connection that was closed, -32001 for a timeout), revisions up to 2025-11-25 (-32002, -32042), LSP (-32800) and
/// servers that went on counting from there.
const FOREIGN_CODES: &[(i64, Symbol)] = &[
    (-32000, Symbol::Unavailable),
    (-32001, Symbol::Timeout),
    (-32002, Symbol::ResourceNotFound),
    (-32042, Symbol::UrlElicitationRequired),
    (-32800, Symbol::Cancelled),
    (-32801, Symbol::TooLarge),
    (-32802, Symbol::Unavailable),
];

impl Symbol {
    const fn row(self) -> &'static Row {
        &ROWS[self as usize]
    }

    /// Every symbol.
    pub fn all() -> impl Iterator<Item = Symbol> {
        ROWS.iter().map(|row| row.symbol)
    }

    /// The name by which logs and `data.symbol` call it.
    pub const fn as_str(self) -> &'static str {
        self.row().name
    }

    /// The symbol with this name.
    ///
    /// ```
    /// use tidegate_protocol::Symbol;
    ///
    /// assert_eq!(Symbol::from_name("TOOL_NOT_FOUND"), Some(Symbol::ToolNotFound));
    /// ```
    pub fn from_name(name: &str) -> Option<Symbol> {
        ROWS.iter().find(|row| row.name == name).map(|row| row.symbol)
    }

    /// What a JSON-RPC code of the specification means, as far as that can be told from the code alone.
    ///
    /// ```
    /// use tidegate_protocol::Symbol;
    ///
    /// assert_eq!(Symbol::from_code(-32602), Some(Symbol::InvalidParams));
    /// assert_eq!(Symbol::from_code(-32001), None);
    /// ```
    pub fn from_code(code: i64) -> Option<Symbol> {
        ROWS.iter().find(|row| i64::from(row.code) == code).map(|row| row.symbol)
    }

    /// What a code means that the specification of today does not have, where SDKs, older revisions or other protocols agree on
    /// it.
    pub fn from_foreign_code(code: i64) -> Option<Symbol> {
        FOREIGN_CODES.iter().find(|(known, _)| *known == code).map(|(_, symbol)| *symbol)
    }

    /// The JSON-RPC code towards a peer of `revision`.
    pub const fn code(self, revision: Revision) -> i32 {
        match self {
            // 2026-07-28 changelog: -32002 became -32602.
            Symbol::ResourceNotFound if !revision.is_modern() => -32002,
            // 2025-11-25 client/elicitation; no other revision may emit it.
            Symbol::UrlElicitationRequired if matches!(revision, Revision::V2025_11_25) => -32042,
            _ => self.row().code,
        }
    }

    /// The HTTP status of a response that is this error and nothing else.
    pub const fn http_status(self, revision: Revision) -> u16 {
        match self {
            // 2026-07-28 streamable-http: an unknown method is 404 with a JSON-RPC body.
            Symbol::MethodNotFound if !revision.is_modern() => 200,
            // To clients of older revisions, 429 is no answer to their request but a broken transport.
            Symbol::RateLimited if !revision.is_modern() => 200,
            _ => self.row().http_status,
        }
    }

    /// Whether the same call may succeed when made again.
    pub const fn retryable(self) -> bool {
        self.row().retryable
    }

    /// Who is to blame.
    pub const fn blame(self) -> Blame {
        self.row().blame
    }

    /// Whether the failure of a `tools/call` with this symbol is a result with `isError: true`, so that the model
    /// can read it, rather than a JSON-RPC error.
    pub const fn in_tool(self) -> bool {
        self.row().in_tool
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_symbol_has_its_row_and_its_name() {
        for (at, row) in ROWS.iter().enumerate() {
            assert_eq!(row.symbol as usize, at);
            assert_eq!(Symbol::from_name(row.name), Some(row.symbol), "{}", row.name);
        }
    }

    #[test]
    fn codes_are_read_as_the_specification_has_them() {
        for (code, symbol) in [
            (-32700, Some(Symbol::ParseError)),
            (-32600, Some(Symbol::InvalidRequest)),
            (-32601, Some(Symbol::MethodNotFound)),
            (-32602, Some(Symbol::InvalidParams)),
            (-32603, Some(Symbol::Internal)),
            (-32020, Some(Symbol::HeaderMismatch)),
            (-32021, Some(Symbol::MissingCapability)),
            (-32022, Some(Symbol::UnsupportedVersion)),
            (-32002, None),
            (-31999, None),
        ] {
            assert_eq!(Symbol::from_code(code), symbol, "{code}");
        }
        for (code, symbol) in FOREIGN_CODES {
            assert_eq!(Symbol::from_code(*code), None, "{code} has one meaning");
            assert_eq!(Symbol::from_foreign_code(*code), Some(*symbol), "{code}");
        }
    }
}
