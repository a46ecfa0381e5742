//! [`CATALOGUE`]: every error that an application may have to show, with what to tell its user.

/// One error code and what it means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CatalogueEntry {
    /// `E` and three digits; the first digit is the subject.
    pub code: &'static str,
    /// What it is, for developers.
    pub title: &'static str,
    /// What to tell the user.
    pub user_message: &'static str,
    /// What the user can do.
    pub suggested_action: &'static str,
    /// Whether trying again can help.
    pub retryable: bool,
}

/// The entry of a code.
///
/// ```
/// let entry = tidegate_client::catalogue_entry("E104").unwrap();
/// assert_eq!(entry.title, "URL blocked");
/// ```
pub fn catalogue_entry(code: &str) -> Option<&'static CatalogueEntry> {
    CATALOGUE.iter().find(|entry| entry.code == code)
}

const fn entry(
    code: &'static str,
    title: &'static str,
    user_message: &'static str,
    suggested_action: &'static str,
    retryable: bool,
) -> CatalogueEntry {
    CatalogueEntry { code, title, user_message, suggested_action, retryable }
}

/// Retrying can help, or not.
const YES: bool = true;
const NO: bool = false;

/// All codes: E0xx files, E1xx addresses, E2xx MCP, E3xx processing, E4xx databases, E5xx sessions, E6xx rate limits.
///
#[doc = include_str!("catalogue.md")]
#[rustfmt::skip] // a table
pub const CATALOGUE: &[CatalogueEntry] = &[
    entry("E001", "File too large", "The file is too large", "Try a smaller file", NO),
    entry("E002", "Unsupported file type", "This type of file is not supported", "Try a different format", NO),
    entry("E003", "File read error", "The file could not be read", "Try again", YES),
    entry("E004", "File corrupted", "The file is damaged", "Try a different file", NO),
    entry("E005", "Storage unavailable", "The file could not be stored", "Try again later", YES),
    entry("E101", "Invalid URL format", "This is not a valid address", "Check the address", NO),
    entry("E102", "URL unreachable", "The address cannot be reached", "Check the address or try later", YES),
    entry("E103", "URL timeout", "The address did not answer in time", "Try again", YES),
    entry("E104", "URL blocked", "This address is not allowed", "Try a different address", NO),
    entry("E201", "Server unavailable", "Processing service unavailable", "Try again later", YES),
    entry("E202", "Request timeout", "Request timeout", "Try again", YES),
    entry("E203", "Invalid request", "Invalid parameters", "Contact support", NO),
    entry("E204", "Tool not found", "Requested tool not available", "Contact support", NO),
    entry("E205", "Missing capability", "A required capability is missing", "Contact support", NO),
    entry("E206", "Request cancelled", "Processing cancelled", "You can start again", NO),
    entry("E301", "Processing timeout", "Processing took too long", "Try a smaller file", YES),
    entry("E302", "Conversion failed", "Document conversion failed", "Try a different file", YES),
    entry("E303", "Export failed", "Export generation failed", "Try the export again", YES),
    entry("E304", "Partial failure", "Some results could not be produced", "Use the available results or try again", YES),
    entry("E305", "Result too large", "The result is too large", "Ask for less at once", NO),
    entry("E306", "Tool failed", "The tool could not do this", "Check the input and try again", NO),
    entry("E401", "Database connection error", "The database cannot be reached", "Try again", YES),
    entry("E402", "Database query timeout", "The database did not answer in time", "Try again", YES),
    entry("E403", "Database write failed", "The data could not be saved", "Try again", YES),
    entry("E501", "Session expired", "Your session has expired", "Connect again", NO),
    entry("E502", "Invalid session", "Your session is not valid", "Start again", NO),
    entry("E503", "Authorization required", "The server requires authorization", "Run tidegate login URL", NO),
    entry("E601", "Rate limit exceeded", "Too many requests", "Wait a moment and try again", YES),
];
