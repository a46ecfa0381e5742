//! [`Group`]: limits that are for the same calls, in the order in which they are asked.

use std::hash::{Hash, Hasher};

use siphasher::sip::SipHasher13;
use tidegate_config::{Concurrency, LimitRule, LimitScopes, LimitSet, Patterns, Rate};
use tidegate_service::fair_queue::Priority;
use tidegate_service::{Call, Claims};

use crate::Target;
use crate::scope::Scope;

/// The endpoint that has no name.
const DEFAULT: &str = "default";

/// Limits that are for the same calls.
#[derive(Debug)]
pub(crate) struct Group {
    /// `None` for all calls.
    selector: Option<Selector>,
    pub(crate) limits: Vec<Limit>,
    pub(crate) priority: Option<Priority>,
}

/// A limit, and under which numbers it is counted.
#[derive(Debug)]
pub(crate) struct Limit {
    pub(crate) scope: Scope,
    pub(crate) rate: Option<(u64, Rate)>,
    pub(crate) concurrency: Option<(u64, Concurrency)>,
    pub(crate) request: Option<usize>,
    pub(crate) response: Option<usize>,
}

/// Which calls a rule is for: those that match each of its patterns.
#[derive(Debug)]
struct Selector {
    tools: Option<Patterns>,
    servers: Option<Patterns>,
    endpoints: Option<Patterns>,
    roles: Option<Patterns>,
    tenants: Option<Patterns>,
}

impl Group {
    /// What is for all calls.
    pub(crate) fn of_all(scopes: &LimitScopes) -> Group {
        Group { selector: None, limits: limits(scopes, "all"), priority: None }
    }

    /// A rule. `nth` tells it from others that select the same.
    pub(crate) fn of_rule(rule: &LimitRule, nth: usize) -> Group {
        let selector = Selector {
            tools: rule.tools.clone(),
            servers: rule.servers.clone(),
            endpoints: rule.endpoints.clone(),
            roles: rule.roles.clone(),
            tenants: rule.tenants.clone(),
        };
        let limits = limits(&rule.scopes, &format!("{nth} {selector:?}"));
        Group { selector: Some(selector), limits, priority: rule.priority }
    }

    pub(crate) fn is_rule(&self) -> bool {
        self.selector.is_some()
    }

    /// Whether it is for a call.
    pub(crate) fn selects(&self, call: &Call, target: Target<'_>) -> bool {
        self.selector.as_ref().is_none_or(|selector| selector.selects(call, target))
    }
}

impl Selector {
    fn selects(&self, call: &Call, target: Target<'_>) -> bool {
        let is = |patterns: &Option<Patterns>, name: Option<&str>| {
            patterns.as_ref().is_none_or(|patterns| name.is_some_and(|name| patterns.matches(name)))
        };
        let context = &call.context;
        is(&self.tools, target.tool)
            && is(&self.servers, target.server)
            && is(&self.endpoints, Some(context.endpoint.as_deref().unwrap_or(DEFAULT)))
            && is(&self.tenants, context.principal.tenant.as_deref())
            && self.roles.as_ref().is_none_or(|roles| has_role(context.claims.as_deref(), roles))
    }
}

fn has_role(claims: Option<&Claims>, roles: &Patterns) -> bool {
    claims.is_some_and(|claims| claims.roles.iter().any(|role| roles.matches(role)))
}

/// The limits, narrow ones first: whoever is refused as a user has not used up anything of the tenant's.
fn limits(scopes: &LimitScopes, of: &str) -> Vec<Limit> {
    let LimitScopes { tenant, user, tool, server, endpoint } = scopes;
    let in_order = [
        (Scope::User, user),
        (Scope::Tenant, tenant),
        (Scope::Endpoint, endpoint),
        (Scope::Tool, tool),
        (Scope::Server, server),
    ];
    let meant = |(scope, set): (Scope, &Option<LimitSet>)| {
        let LimitSet { rate, concurrency, request, response } = (*set)?;
        Some(Limit {
            scope,
            rate: rate.map(|rate| (number(of, scope, &("rate", rate)), rate)),
            concurrency: concurrency.map(|limit| (number(of, scope, &("concurrency", limit)), limit)),
            request,
            response,
        })
    };
    in_order.into_iter().filter_map(meant).collect()
}

/// The number of a limit: the same as long as it says the same, also after other limits were added or removed.
fn number(of: &str, scope: Scope, quota: &impl Hash) -> u64 {
    let mut hasher = SipHasher13::new();
    (of, scope, quota).hash(&mut hasher);
    hasher.finish()
}
