//! Who may do what: `[policy]`.

use schemars::JsonSchema;
use serde::Deserialize;

/// Who may do what. Without rules everybody may do everything.
#[derive(Deserialize, JsonSchema, Default)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Policy {
    /// What is decided where no rule matches: "allow" or "deny". Default "deny" if there are rules.
    pub(crate) default: Option<DefaultEffect>,
    /// "enforce", or "shadow" to decide and record everything without refusing anything. Default "enforce".
    pub(crate) mode: Option<PolicyMode>,
    /// The rules. The first one that matches decides.
    pub(crate) rules: Vec<Rule>,
}

/// A rule of a policy: what some callers may do, or may not. Every field that is there must fit.
#[derive(Deserialize, JsonSchema, Default)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Rule {
    /// What decisions, records and explanations call it. Default: its line.
    pub(crate) name: Option<String>,
    /// What may be done: patterns such as "github_get_*" for names of tools as clients see them; "prompt:NAME",
    /// "resource:URI", "method:NAME" and "page:PATH" for the rest; "*" alone for everything.
    pub(crate) allow: Vec<String>,
    /// What may not be done: patterns as in allow.
    pub(crate) deny: Vec<String>,
    /// For callers with one of these roles. Default everybody.
    pub(crate) roles: Option<Vec<String>>,
    /// For callers of one of these tenants. Default all.
    pub(crate) tenants: Option<Vec<String>>,
    /// For these callers: subjects of tokens, names of API keys. Default everybody.
    pub(crate) subjects: Option<Vec<String>>,
    /// For callers whom one of these issuers vouches for. Default all.
    pub(crate) issuers: Option<Vec<String>>,
    /// For callers with one of these OAuth clients. Default all.
    pub(crate) clients: Option<Vec<String>>,
    /// At these endpoints, by name; "default" for the one at path. Default all.
    pub(crate) endpoints: Option<Vec<String>>,
    /// For what these servers offer: patterns such as "git*". Default all.
    pub(crate) servers: Option<Vec<String>>,
    /// Only if this holds: an expression in CEL over args, tool (or prompt, resource, method, page), server, principal
    /// (issuer, subject, tenant), claims (roles, scopes, client, actors) and endpoint. Default always.
    pub(crate) when: Option<String>,
}

/// What is decided where no rule matches.
#[derive(Deserialize, JsonSchema, Clone, Copy)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum DefaultEffect {
    Allow,
    Deny,
}

/// Whether decisions count.
#[derive(Deserialize, JsonSchema, Clone, Copy)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PolicyMode {
    Enforce,
    Shadow,
}
