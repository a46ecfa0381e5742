//! [`Group`]: which calls limits are for, and [`Limits`]: these, in the order in which they are asked.

use std::hash::{Hash, Hasher};

use siphasher::sip::SipHasher13;
use tidegate_config::{Concurrency, LimitRule, LimitScopes, LimitSet, Patterns, Rate};
use tidegate_service::fair_queue::Priority;
use tidegate_service::{Call, Claims};

use crate::Target;
use crate::scope::Scope;

/// The endpoint that has no name.
const DEFAULT: &str = "default";

/// Calls that the same limits are for.
#[derive(Debug)]
pub(crate) struct Group {
    /// `None` for all calls.
    selector: Option<Selector>,
    pub(crate) priority: Option<Priority>,
}

/// A limit of one kind.
#[derive(Debug)]
pub(crate) struct Limit<T> {
    /// Which group it is for, by its index.
    pub(crate) group: usize,
    /// Whether that is of a rule.
    pub(crate) is_rule: bool,
    pub(crate) scope: Scope,
    /// Under which number it is counted.
    pub(crate) number: u64,
    pub(crate) quota: T,
}

/// How large something may be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes {
    pub(crate) request: Option<usize>,
    pub(crate) response: Option<usize>,
}

/// All limits by their kind: narrow before wide.
#[derive(Debug, Default)]
pub(crate) struct Limits {
    pub(crate) sizes: Vec<Limit<Sizes>>,
    pub(crate) rates: Vec<Limit<Rate>>,
    pub(crate) places: Vec<Limit<Concurrency>>,
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
    /// All calls.
    pub(crate) const ALL: Group = Group { selector: None, priority: None };

    /// Those of a rule.
    pub(crate) fn of_rule(rule: &LimitRule) -> Group {
        let selector = Selector {
            tools: rule.tools.clone(),
            servers: rule.servers.clone(),
            endpoints: rule.endpoints.clone(),
            roles: rule.roles.clone(),
            tenants: rule.tenants.clone(),
        };
        Group { selector: Some(selector), priority: rule.priority }
    }

    /// What tells it from other groups; `nth` from those that select the same.
    pub(crate) fn identity(&self, nth: usize) -> String {
        match &self.selector {
            None => "all".to_owned(),
            Some(selector) => format!("{nth} {selector:?}"),
        }
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

impl Limits {
    /// Adds those of a group, narrow ones first: whoever is refused as a user has not used up anything of the tenant's.
    pub(crate) fn add(&mut self, scopes: &LimitScopes, group: usize, is_rule: bool, of: &str) {
        let LimitScopes { tenant, user, tool, server, endpoint } = scopes;
        let in_order = [
            (Scope::User, user),
            (Scope::Tenant, tenant),
            (Scope::Endpoint, endpoint),
            (Scope::Tool, tool),
            (Scope::Server, server),
        ];
        for (scope, set) in in_order {
            let Some(LimitSet { rate, concurrency, request, response }) = *set else { continue };
            if request.is_some() || response.is_some() {
                let quota = Sizes { request, response };
                self.sizes.push(Limit { group, is_rule, scope, number: 0, quota });
            }
            if let Some(quota) = rate {
                let number = number(of, scope, &("rate", quota));
                self.rates.push(Limit { group, is_rule, scope, number, quota });
            }
            if let Some(quota) = concurrency {
                let number = number(of, scope, &("concurrency", quota));
                self.places.push(Limit { group, is_rule, scope, number, quota });
            }
        }
    }
}

/// The number of a limit: the same as long as it says the same, also after other limits were added or removed.
fn number(of: &str, scope: Scope, quota: &impl Hash) -> u64 {
    let mut hasher = SipHasher13::new();
    (of, scope, quota).hash(&mut hasher);
    hasher.finish()
}
