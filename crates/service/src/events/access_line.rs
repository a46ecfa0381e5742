//! [`AccessLine`]: what the line about a call says.

use std::borrow::Cow;

use tidegate_protocol::{Json, Method};

use super::CallEnded;

/// What the line about a call says, besides which call it is.
#[derive(Debug)]
#[non_exhaustive]
pub struct AccessLine<'a> {
    /// What it is about: `MCP tool called`.
    pub message: &'static str,
    /// The server that the call was sent to.
    pub server: Option<&'a str>,
    /// How it ended.
    pub outcome: &'static str,
    /// What failed.
    pub error: Option<Cow<'static, str>>,
    /// The rule that refused it, in quotes if it is more than a word.
    pub refused_by: Option<Cow<'a, str>>,
    /// The rule that would have refused it.
    pub would_be_refused_by: Option<Cow<'a, str>>,
    /// The limit that refused it.
    pub limit: Option<Json>,
    /// How long it took, in microseconds.
    pub duration_us: u64,
    /// The endpoint; `None` for the default one.
    pub endpoint: Option<&'a str>,
    /// Whose caller it is.
    pub tenant: Option<&'a str>,
    /// Who says so.
    pub issuer: Option<&'a str>,
    /// Who called.
    pub subject: Option<&'a str>,
    /// What the client calls itself, in quotes if it could be taken for further fields of the line.
    pub client: Option<Cow<'a, str>>,
    /// The trace in which it is recorded, if it is.
    pub trace_id: Option<String>,
}

impl<'a> AccessLine<'a> {
    /// The line about a call.
    pub fn of(call: &'a CallEnded<'_>) -> AccessLine<'a> {
        let decision = call.decision().filter(|decision| !decision.is_allowed);
        let rule = |is_enforced: bool| {
            let by = decision.filter(|decision| decision.is_enforced == is_enforced);
            by.map(|decision| one_word(&decision.rule))
        };
        AccessLine {
            message: if *call.method == Method::ToolsCall { "MCP tool called" } else { "MCP request" },
            server: call.server,
            outcome: call.outcome.as_str(),
            error: call.error(),
            refused_by: rule(true),
            would_be_refused_by: rule(false),
            limit: call.limit(),
            duration_us: u64::try_from(call.duration.as_micros()).unwrap_or(u64::MAX),
            endpoint: call.endpoint,
            tenant: call.principal.tenant.as_deref(),
            issuer: call.principal.issuer.as_deref(),
            subject: call.principal.subject.as_deref(),
            client: call.client().map(unmistakable),
            trace_id: call.trace.filter(|trace| trace.is_sampled).map(|trace| trace.trace_id()),
        }
    }
}

fn unmistakable(client: Cow<'_, str>) -> Cow<'_, str> {
    match client.contains('=') {
        true => format!("{client:?}").into(),
        false => client,
    }
}

fn one_word(rule: &str) -> Cow<'_, str> {
    match rule.contains(|c: char| c.is_whitespace() || c == '=') {
        true => format!("{rule:?}").into(),
        false => rule.into(),
    }
}
