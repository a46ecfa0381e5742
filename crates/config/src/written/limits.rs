//! How much callers may do: `[limits]`.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Size, Switch, Time};

/// How much callers may do. The section alone limits each tenant to 100 calls a minute and 10 at once.
#[derive(Deserialize, JsonSchema, Default)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Limits {
    /// Limits of each tenant, all its users together; false for none. A caller without a tenant is one by itself. Default
    /// { rate = "100/m", concurrent = 10 }.
    pub(crate) tenant: Option<Switch<Limit>>,
    /// Limits of each user. Default none.
    pub(crate) user: Option<Limit>,
    /// Limits of each tool, all callers together. Default none.
    pub(crate) tool: Option<Limit>,
    /// Limits of each server, all callers together. Default none.
    pub(crate) server: Option<Limit>,
    /// Limits of each endpoint, all callers together. Default none.
    pub(crate) endpoint: Option<Limit>,
    /// Further limits, or a priority, for some calls. Every rule that matches a call counts.
    pub(crate) rules: Vec<LimitRule>,
    /// How much one run may do: the calls of one user with one trace, session or connection.
    pub(crate) run: Option<Run>,
}

/// How much there may be of something.
#[derive(Deserialize, JsonSchema, Default)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Limit {
    /// How many calls in which time: "5/s", "100/m", "1000/h" or "5000/d". That many may come at once; then they are let
    /// in evenly. Default: no limit.
    pub(crate) rate: Option<String>,
    /// How many calls may run at once. Default: no limit.
    pub(crate) concurrent: Option<usize>,
    /// How many more may wait for their turn; 0 to refuse them at once. Default 100.
    pub(crate) queue: Option<usize>,
    /// How long they may wait. Default "60s".
    pub(crate) wait: Option<Time>,
    /// The largest parameters of a call: bytes, or a string such as "1MiB". Default: no limit but max_message.
    pub(crate) request: Option<Size>,
    /// The largest result of a call: bytes, or a string such as "4MiB". Default: no limit but max_result.
    pub(crate) response: Option<Size>,
}

/// Limits or a priority for some calls: those that match each of its patterns.
#[derive(Deserialize, JsonSchema, Default)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct LimitRule {
    /// Tools: patterns such as "github_create_*" for names as clients see them. Default: every call.
    pub(crate) tools: Option<Vec<String>>,
    /// Servers by name: patterns. Default: every call.
    pub(crate) servers: Option<Vec<String>>,
    /// Endpoints by name: patterns; "default" is the default endpoint. Default all.
    pub(crate) endpoints: Option<Vec<String>>,
    /// Roles of which the caller has at least one: patterns. Default: every caller.
    pub(crate) roles: Option<Vec<String>>,
    /// Tenants: patterns. Default: every caller.
    pub(crate) tenants: Option<Vec<String>>,
    /// Limits of each tenant for these calls together.
    pub(crate) tenant: Option<Limit>,
    /// Limits of each user for these calls together.
    pub(crate) user: Option<Limit>,
    /// Limits of each of these tools.
    pub(crate) tool: Option<Limit>,
    /// Limits of each of these servers.
    pub(crate) server: Option<Limit>,
    /// Limits of each endpoint for these calls together.
    pub(crate) endpoint: Option<Limit>,
    /// Who is let in first where calls wait: "high", "normal" or "low". The first rule that says so counts. Default
    /// "normal".
    pub(crate) priority: Option<Priority>,
}

/// Who is let in first.
#[derive(Deserialize, JsonSchema, Clone, Copy)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Priority {
    High,
    Normal,
    Low,
}

/// How much one run may do. A run is what one user does with one trace (traceparent), or else over one session or connection.
#[derive(Deserialize, JsonSchema, Default)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Run {
    /// How long a run counts; the first call after that begins anew. Default "10m".
    pub(crate) window: Option<Time>,
    /// How many calls. Default: no limit.
    pub(crate) calls: Option<u64>,
    /// How often the same tool may be called with the same arguments. Default 5.
    pub(crate) repeats: Option<u32>,
    /// How many bytes of arguments and results together, such as "50MiB". Default: no limit.
    pub(crate) bytes: Option<Size>,
    /// How much time may be spent in calls, such as "5m". Default: no limit.
    pub(crate) time: Option<Time>,
    /// Tools that may be called with the same arguments again and again, such as those that ask how something is going:
    /// patterns for names as clients see them. Default none.
    pub(crate) except: Vec<String>,
}
