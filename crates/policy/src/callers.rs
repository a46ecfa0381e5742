//! Which rules are for whom: [`Callers`] finds that out, a [`Caller`] is what comes of it.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use foldhash::fast::RandomState;
use tidegate_service::{Claims, ContextParts, Principal};

use crate::rule::RuleSpec;
use crate::rule_set::RuleSet;

/// What the endpoint is called that has no name.
const DEFAULT_ENDPOINT: &str = "default";

/// Somebody who calls, and the rules that are for them.
#[derive(Debug, Clone)]
pub struct Caller<'a> {
    pub(crate) context: &'a ContextParts,
    pub(crate) rules: RuleSet,
    /// Whether nobody knows who it is, though everybody should be known.
    pub(crate) is_unknown: bool,
}

impl Caller<'_> {
    /// Whether nobody knows who it is, though everybody should be known.
    pub fn is_unknown(&self) -> bool {
        self.is_unknown
    }
}

/// By what a view is found: callers for whom this is equal see the same.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ViewRules {
    pub(crate) rules: RuleSet,
    pub(crate) is_unknown: bool,
    /// Who it is, if a rule compares them with what is called.
    pub(crate) caller: Option<Arc<CallerFacts>>,
}

/// What rules can know of a caller.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct CallerFacts {
    principal: Principal,
    claims: Claims,
    endpoint: Option<Arc<str>>,
}

impl CallerFacts {
    pub(crate) fn of(context: &ContextParts) -> CallerFacts {
        let claims = context.claims.as_deref().cloned().unwrap_or_default();
        CallerFacts {
            principal: context.principal.clone(),
            // No rule asks when it ends.
            claims: Claims { expires_ms: None, ..claims },
            endpoint: context.endpoint.clone(),
        }
    }
}

/// The rules of a policy by what they want callers to be.
#[derive(Debug)]
pub(crate) struct Callers {
    count: usize,
    /// Every rule.
    all: RuleSet,
    roles: Wanted,
    tenants: Wanted,
    subjects: Wanted,
    issuers: Wanted,
    clients: Wanted,
    endpoints: Wanted,
}

/// The rules that want one of some texts.
#[derive(Debug)]
struct Wanted {
    /// Those that do not care.
    any: RuleSet,
    by_text: HashMap<String, RuleSet, RandomState>,
}

impl Wanted {
    fn new<'a>(count: usize, lists: impl Iterator<Item = Option<&'a Vec<String>>>) -> Wanted {
        let mut wanted = Wanted { any: RuleSet::none(count), by_text: HashMap::default() };
        for (rule, list) in lists.enumerate() {
            match list {
                None => wanted.any.insert(rule),
                Some(list) => {
                    for text in list {
                        let rules = wanted.by_text.entry(text.clone());
                        rules.or_insert_with(|| RuleSet::none(count)).insert(rule);
                    }
                }
            }
        }
        wanted
    }

    /// Leaves only the rules that are for somebody with one of these texts.
    fn narrow<'t>(&self, rules: &mut RuleSet, texts: impl Iterator<Item = &'t str>) {
        // Most rules do not ask for most of what there is.
        if self.by_text.is_empty() {
            return;
        }
        let mut fitting = self.any.clone();
        for text in texts {
            if let Some(more) = self.by_text.get(text) {
                fitting.add(more);
            }
        }
        rules.keep(&fitting);
    }
}

impl Callers {
    pub(crate) fn new(rules: &[RuleSpec]) -> Callers {
        let count = rules.len();
        let wanted = |of: fn(&RuleSpec) -> Option<&Vec<String>>| Wanted::new(count, rules.iter().map(of));
        let mut all = RuleSet::none(count);
        (0..count).for_each(|rule| all.insert(rule));
        Callers {
            count,
            all,
            roles: wanted(|rule| rule.roles.as_ref()),
            tenants: wanted(|rule| rule.tenants.as_ref()),
            subjects: wanted(|rule| rule.subjects.as_ref()),
            issuers: wanted(|rule| rule.issuers.as_ref()),
            clients: wanted(|rule| rule.clients.as_ref()),
            endpoints: wanted(|rule| rule.endpoints.as_ref()),
        }
    }

    /// The rules that are for a caller, as far as their lists say.
    pub(crate) fn rules(&self, context: &ContextParts) -> RuleSet {
        let mut rules = self.all.clone();
        let claims = context.claims.as_deref();
        let Principal { issuer, subject, tenant } = &context.principal;
        let endpoint = context.endpoint.as_deref().unwrap_or(DEFAULT_ENDPOINT);
        let roles = claims.map(|claims| &claims.roles[..]).unwrap_or_default();
        self.roles.narrow(&mut rules, roles.iter().map(|role| &**role));
        self.tenants.narrow(&mut rules, tenant.as_deref().into_iter());
        self.subjects.narrow(&mut rules, subject.as_deref().into_iter());
        self.issuers.narrow(&mut rules, issuer.as_deref().into_iter());
        self.clients.narrow(&mut rules, claims.and_then(|claims| claims.client.as_deref()).into_iter());
        self.endpoints.narrow(&mut rules, std::iter::once(endpoint));
        rules
    }

    /// None of the rules.
    pub(crate) fn none(&self) -> RuleSet {
        RuleSet::none(self.count)
    }
}
