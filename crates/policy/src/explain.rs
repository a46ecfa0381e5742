//! [`Explanation`]: why something is decided as it is, rule by rule.

use std::sync::Arc;

use tidegate_protocol::Json;
use tidegate_service::Decision;

use crate::callers::Caller;
use crate::condition::{Facts, Given};
use crate::object::Object;
use crate::policy::{Policy, UNKNOWN};
use crate::rule::RuleSpec;

/// Why something is decided as it is.
#[derive(Debug, Clone)]
pub struct Explanation {
    /// What is decided.
    pub decision: Arc<Decision>,
    /// Whether the caller sees it in lists. What is not seen is unknown when it is named.
    pub is_listed: bool,
    /// The rules up to the one that decides, in their order.
    pub steps: Vec<Step>,
}

/// What one rule says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// What the rule is called.
    pub rule: Arc<str>,
    /// The line of the configuration that has it.
    pub line: Option<usize>,
    /// What it does if it matches: `allow` or `deny`.
    pub effect: &'static str,
    /// Whether it matches.
    pub matches: bool,
    /// Why it does, or does not.
    pub why: String,
}

impl Policy {
    /// Decides, and says why.
    pub fn explain(&self, caller: &Caller<'_>, object: &Object<'_>, arguments: Option<&Json>) -> Explanation {
        let about = self.about(object);
        let decision = self.decide_among(caller, &about, object, arguments).clone();
        let is_listed = self.shows_among(caller, &about, object);
        let mut steps = Vec::new();
        if Arc::ptr_eq(&decision, &UNKNOWN) {
            return Explanation { decision, is_listed, steps };
        }
        let given = Given::new(arguments);
        for (index, rule) in self.rules.iter().enumerate() {
            let spec = &self.spec().rules[index];
            let (matches, why) = match () {
                () if !about.contains(index) => (false, rule.selection.why_not(object)),
                () if !caller.rules.contains(index) => (false, not_for(spec, caller)),
                () => match &rule.condition {
                    None => (true, "it matches".to_owned()),
                    Some(condition) => {
                        let facts = Facts { caller: caller.context, object, arguments: &given };
                        match condition.holds(&facts) {
                            Ok(true) => (true, "its condition holds".to_owned()),
                            Ok(false) => (false, "its condition does not hold".to_owned()),
                            Err(why) => (!rule.allows, format!("its condition cannot be evaluated: {why}")),
                        }
                    }
                },
            };
            let effect = if rule.allows { "allow" } else { "deny" };
            let label = rule.decision.rule.clone();
            steps.push(Step { rule: label, line: spec.line, effect, matches, why });
            if matches {
                break;
            }
        }
        Explanation { decision, is_listed, steps }
    }
}

/// Why a rule is not for a caller.
fn not_for(spec: &RuleSpec, caller: &Caller<'_>) -> String {
    let context = caller.context;
    let claims = context.claims.as_deref();
    let is_one = |list: &Option<Vec<String>>, own: &[&str]| {
        list.as_ref().is_none_or(|list| list.iter().any(|one| own.contains(&one.as_str())))
    };
    let some =
        |one: Option<&Arc<str>>| -> Vec<String> { one.map(|one| one.to_string()).into_iter().collect() };
    let principal = &context.principal;
    let roles: Vec<String> =
        claims.iter().flat_map(|claims| &claims.roles).map(|role| role.to_string()).collect();
    let endpoint = context.endpoint.as_deref().unwrap_or("default").to_owned();
    let facts = [
        ("roles", &spec.roles, roles),
        ("tenants", &spec.tenants, some(principal.tenant.as_ref())),
        ("subjects", &spec.subjects, some(principal.subject.as_ref())),
        ("issuers", &spec.issuers, some(principal.issuer.as_ref())),
        ("clients", &spec.clients, some(claims.and_then(|claims| claims.client.as_ref()))),
        ("endpoints", &spec.endpoints, vec![endpoint]),
    ];
    for (field, list, own) in facts {
        let texts: Vec<&str> = own.iter().map(String::as_str).collect();
        if !is_one(list, &texts) {
            let wanted = list.as_ref().map(|list| list.join(", ")).unwrap_or_default();
            let own = match (field, own.is_empty()) {
                ("endpoints", _) => format!("this is {}", own.join(", ")),
                (_, true) => "the caller has none".to_owned(),
                (_, false) => format!("the caller has {}", own.join(", ")),
            };
            return format!("it is for {field} {wanted}, and {own}");
        }
    }
    "its condition does not hold for the caller".to_owned()
}
