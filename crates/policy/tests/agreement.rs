//! Lists and calls never disagree, whatever the policy: for random policies, callers and arguments.

use std::sync::Arc;

use proptest::prelude::*;
use tidegate_policy::{DefaultEffect, Object, ObjectKind, Policy, PolicySpec, RuleSpec};
use tidegate_protocol::Json;
use tidegate_service::{Claims, Context, Principal};

const NAMES: [&str; 6] = ["git_log", "git_push", "fs_read", "fs_write", "mail_send", "x"];
const PATTERNS: [&str; 9] =
    ["*", "git_*", "fs_*", "*_read", "mail_send", "tool:*", "prompt:*", "resource:git_*", "tool:x"];
const ROLES: [&str; 3] = ["dev", "ops", "admin"];
const TENANTS: [&str; 2] = ["acme", "other"];
const CONDITIONS: [&str; 8] = [
    "args.n == 1",
    "args.n > 1",
    "has(args.n) && args.n == 1",
    "args.owner == principal.tenant",
    r#""dev" in claims.roles"#,
    r#"principal.tenant == "acme""#,
    r#"server == "git""#,
    r#"server == principal.tenant"#,
];
const ARGUMENTS: [&str; 6] =
    ["{}", r#"{"n":1}"#, r#"{"n":2}"#, r#"{"n":"x"}"#, r#"{"owner":"acme"}"#, r#"{"n":1,"owner":"other"}"#];

fn some(of: &'static [&'static str]) -> impl Strategy<Value = Option<Vec<String>>> {
    prop::option::weighted(0.4, prop::sample::subsequence(of.to_vec(), 1..=of.len()))
        .prop_map(|all| all.map(|all| all.into_iter().map(str::to_owned).collect()))
}

fn rule() -> impl Strategy<Value = RuleSpec> {
    let patterns = prop::sample::subsequence(PATTERNS.to_vec(), 1..=2);
    let when = prop::option::weighted(0.5, prop::sample::select(CONDITIONS.to_vec()));
    (any::<bool>(), patterns, some(&ROLES), some(&TENANTS), when).prop_map(
        |(allows, patterns, roles, tenants, when)| {
            let patterns: Vec<String> = patterns.into_iter().map(str::to_owned).collect();
            let (allow, deny) = if allows { (patterns, vec![]) } else { (vec![], patterns) };
            RuleSpec { allow, deny, roles, tenants, when: when.map(str::to_owned), ..RuleSpec::default() }
        },
    )
}

fn caller() -> impl Strategy<Value = Context> {
    let roles = prop::sample::subsequence(ROLES.to_vec(), 0..=3);
    (roles, prop::option::of(prop::sample::select(TENANTS.to_vec()))).prop_map(|(roles, tenant)| {
        let mut context = Context::local();
        context.principal =
            Principal { subject: Some("ann".into()), tenant: tenant.map(Arc::from), issuer: None };
        let roles = roles.into_iter().map(Arc::from).collect();
        context.claims = Some(Arc::new(Claims { roles, ..Claims::default() }));
        context
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn what_is_hidden_is_refused_and_what_is_shown_may_be_called_somehow(
        rules in prop::collection::vec(rule(), 0..8),
        default in prop::option::of(prop::sample::select(vec![DefaultEffect::Allow, DefaultEffect::Deny])),
        who in caller(),
    ) {
        // Policies that make no sense are refused, and another test has those.
        let Ok(policy) = Policy::new(&PolicySpec { rules: rules.clone(), default, ..PolicySpec::default() }) else {
            return Ok(());
        };
        let caller = policy.caller(&who);
        for kind in [ObjectKind::Tool, ObjectKind::Prompt, ObjectKind::Resource] {
            for name in NAMES {
                let object = Object { kind, name, server: name.split('_').next().unwrap() };
                let is_shown = policy.shows(&caller, &object);
                let allowed: Vec<bool> = ARGUMENTS
                    .iter()
                    .map(|text| policy.decide(&caller, &object, Some(&Json::trusted(*text))).is_allowed)
                    .collect();
                if !is_shown {
                    prop_assert!(allowed.iter().all(|it| !it), "{kind:?} {name} is hidden and may be called: {rules:?}");
                }
                // What depends on no arguments is the same with all of them, and as the list says.
                let depends = rules.iter().any(|rule| rule.when.as_ref().is_some_and(|when| when.contains("args")));
                if !depends || !kind.has_arguments() {
                    prop_assert!(allowed.iter().all(|it| *it == is_shown), "{kind:?} {name}: {is_shown} {allowed:?} {rules:?}");
                }
                // And it is explained by the rule that decided.
                for text in ARGUMENTS {
                    let arguments = Json::trusted(text);
                    let decision = policy.decide(&caller, &object, Some(&arguments)).clone();
                    let why = policy.explain(&caller, &object, Some(&arguments));
                    let last = why.steps.last().filter(|step| step.matches).map(|step| step.rule.clone());
                    prop_assert_eq!(last.unwrap_or_else(|| "default".into()), decision.rule.clone());
                    prop_assert_eq!(why.decision, decision);
                    prop_assert_eq!(why.is_listed, is_shown);
                }
            }
        }
    }
}
