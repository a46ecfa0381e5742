//! What policies decide, as lists of cases.

use std::sync::Arc;

use tidegate_policy::{DefaultEffect, Object, ObjectKind, Policy, PolicyMode, PolicySpec, RuleSpec};
use tidegate_protocol::Json;
use tidegate_service::{Claims, Context, Principal};

fn list(texts: &[&str]) -> Option<Vec<String>> {
    Some(texts.iter().map(|text| (*text).to_owned()).collect())
}

fn allow(texts: &[&str]) -> RuleSpec {
    RuleSpec { allow: list(texts).unwrap(), ..RuleSpec::default() }
}

fn deny(texts: &[&str]) -> RuleSpec {
    RuleSpec { deny: list(texts).unwrap(), ..RuleSpec::default() }
}

fn policy(rules: Vec<RuleSpec>) -> Policy {
    Policy::new(&PolicySpec { rules: lined(rules), ..PolicySpec::default() }).unwrap()
}

/// Each rule on a line of its own, as in a file.
fn lined(rules: Vec<RuleSpec>) -> Vec<RuleSpec> {
    rules.into_iter().enumerate().map(|(at, rule)| RuleSpec { line: Some(10 + at), ..rule }).collect()
}

fn problems(rules: Vec<RuleSpec>) -> Vec<String> {
    let problems = Policy::new(&PolicySpec { rules: lined(rules), ..PolicySpec::default() }).unwrap_err();
    problems.iter().map(ToString::to_string).collect()
}

fn caller(subject: &str, tenant: &str, roles: &[&str]) -> Context {
    let mut context = Context::local();
    context.principal = Principal::subject(subject).in_tenant(tenant).issued_by("https://id.example.com");
    let roles = roles.iter().map(|role| Arc::from(*role)).collect();
    context.claims = Some(Arc::new(Claims { roles, client: Some("cli".into()), ..Claims::default() }));
    context
}

fn tool(name: &str) -> Object<'_> {
    Object { kind: ObjectKind::Tool, name, server: name.split('_').next().unwrap_or_default() }
}

/// Whether it is listed, whether it may be called with these arguments, and by which rule.
fn asked(
    policy: &Policy,
    who: &Context,
    object: &Object<'_>,
    arguments: &'static str,
) -> (bool, bool, String) {
    let caller = policy.caller(who);
    let decision = policy.decide(&caller, object, Some(&Json::trusted(arguments)));
    (policy.shows(&caller, object), decision.is_allowed, decision.rule.to_string())
}

#[test]
fn the_first_rule_that_matches_decides() {
    let policy = policy(vec![
        RuleSpec { roles: list(&["intern"]), ..deny(&["github_create_*"]) },
        RuleSpec { name: Some("developers".into()), roles: list(&["dev"]), ..allow(&["github_*"]) },
        RuleSpec { when: Some("args.owner == principal.tenant".into()), ..allow(&["github_get_*"]) },
    ]);
    let (dev, both, other) =
        (caller("a", "acme", &["dev"]), caller("b", "acme", &["dev", "intern"]), caller("c", "acme", &[]));
    for (who, name, arguments, expected) in [
        (&dev, "github_create_issue", "{}", (true, true, "developers")),
        (&both, "github_create_issue", "{}", (false, false, "line 10")),
        (&both, "github_get_file", "{}", (true, true, "developers")),
        (&other, "github_create_issue", "{}", (false, false, "default")),
        (&other, "github_get_file", r#"{"owner":"acme"}"#, (true, true, "line 12")),
        (&other, "github_get_file", r#"{"owner":"evil"}"#, (true, false, "default")),
        (&other, "github_get_file", "{}", (true, false, "default")),
        (&dev, "slack_post", "{}", (false, false, "default")),
    ] {
        let (listed, allowed, rule) = asked(&policy, who, &tool(name), arguments);
        assert_eq!((listed, allowed, &*rule), expected, "{name} {arguments}");
    }
}

#[test]
fn every_list_that_is_there_must_fit() {
    let all = RuleSpec {
        roles: list(&["dev"]),
        tenants: list(&["acme"]),
        subjects: list(&["ann"]),
        issuers: list(&["https://id.example.com"]),
        clients: list(&["cli"]),
        endpoints: list(&["research"]),
        servers: list(&["git*"]),
        ..allow(&["*"])
    };
    let policy = policy(vec![all]);
    let mut ann = caller("ann", "acme", &["dev"]);
    ann.endpoint = Some("research".into());
    let may = |who: &Context, name: &str| policy.shows(&policy.caller(who), &tool(name));
    assert!(may(&ann, "github_x") && !may(&ann, "slack_x"));
    let others: [fn(&mut Context); 7] = [
        |who| who.principal.subject = Some("bob".into()),
        |who| who.principal.tenant = Some("other".into()),
        |who| who.principal.tenant = None,
        |who| who.principal.issuer = Some("https://evil.example.com".into()),
        |who| who.endpoint = None,
        |who| who.claims = None,
        |who| who.claims = Some(Arc::new(Claims { roles: vec!["dev".into()], ..Claims::default() })),
    ];
    for change in others {
        let mut other = ann.clone();
        change(&mut other);
        assert!(!may(&other, "github_x"), "{other:?}");
    }
}

#[test]
fn what_cannot_be_evaluated_lets_nobody_in() {
    let path = |rule: RuleSpec| RuleSpec { when: Some(r#"args.path.startsWith("/tmp/")"#.into()), ..rule };
    let ann = caller("ann", "acme", &[]);
    let allowing = policy(vec![path(allow(&["fs_*"]))]);
    assert_eq!(asked(&allowing, &ann, &tool("fs_read"), "{}"), (true, false, "default".into()));
    let denying = Policy::new(&PolicySpec {
        default: Some(DefaultEffect::Allow),
        rules: vec![path(deny(&["fs_*"]))],
        ..PolicySpec::default()
    });
    assert_eq!(asked(&denying.unwrap(), &ann, &tool("fs_read"), "{}"), (true, false, "rule 1".into()));
}

#[test]
fn a_caller_who_should_be_known_and_is_not_may_do_nothing() {
    let policy = policy(vec![allow(&["*"])]);
    let nobody = Context::local();
    let caller = policy.unknown_caller(&nobody);
    assert!(!policy.shows(&caller, &tool("x")));
    let decision = policy.decide(&caller, &tool("x"), None);
    assert_eq!((decision.is_allowed, decision.refuses(), &*decision.rule), (false, true, "no claims"));
    assert!(policy.shows(&policy.caller(&nobody), &tool("x")), "the local user is known");
}

#[test]
fn in_shadow_mode_everything_is_decided_and_nothing_refused() {
    let spec = PolicySpec { mode: PolicyMode::Shadow, rules: vec![deny(&["fs_*"])], ..PolicySpec::default() };
    let policy = Policy::new(&spec).unwrap();
    let ann = caller("ann", "acme", &[]);
    let caller = policy.caller(&ann);
    let decision = policy.decide(&caller, &tool("fs_rm"), None);
    assert_eq!((decision.as_str(), decision.refuses()), ("would_refuse", false));
    assert!(policy.shows(&caller, &tool("fs_rm")));
    let hidden = policy.hides_among(&caller, &policy.about(&tool("fs_rm")), &tool("fs_rm"));
    assert_eq!(hidden.map(|decision| decision.as_str()), Some("would_refuse"));
}

#[test]
fn views_are_shared_by_those_for_whom_the_same_rules_are() {
    let policy = policy(vec![
        RuleSpec { roles: list(&["dev"]), ..allow(&["github_*"]) },
        RuleSpec { when: Some(r#"principal.tenant == "acme""#.into()), ..allow(&["slack_*"]) },
        RuleSpec { when: Some("args.x == 1".into()), ..allow(&["fs_*"]) },
    ]);
    let view = |who: &Context| policy.view_rules(&policy.caller(who));
    assert_eq!(view(&caller("a", "acme", &["dev"])), view(&caller("b", "acme", &["dev", "other"])));
    assert_ne!(view(&caller("a", "acme", &["dev"])), view(&caller("a", "acme", &[])));
    assert_ne!(view(&caller("a", "acme", &[])), view(&caller("a", "other", &[])));
    // Where a rule compares the caller with what is called, each has a view of its own.
    let own = self::policy(vec![RuleSpec {
        when: Some("tool.startsWith(principal.subject)".into()),
        ..allow(&["*_x", "tool:*"])
    }]);
    let view = |who: &Context| own.view_rules(&own.caller(who));
    assert_ne!(view(&caller("a", "t", &[])), view(&caller("b", "t", &[])));
    let (ann, bob) = (caller("ann", "t", &[]), caller("bob", "t", &[]));
    let shows = |who: &Context| own.shows(&own.caller(who), &tool("ann_notes"));
    assert_eq!((shows(&ann), shows(&bob)), (true, false));
}

#[test]
fn policies_that_make_no_sense_are_refused() {
    for (rules, said) in [
        (vec![RuleSpec::default()], "neither allows nor denies"),
        (vec![RuleSpec { deny: vec!["x".into()], ..allow(&["x"]) }], "both allows and denies"),
        (vec![RuleSpec { roles: list(&[]), ..allow(&["x"]) }], "roles is an empty list"),
        (vec![RuleSpec { tenants: list(&["a*"]), ..allow(&["x"]) }], "list each one"),
        (vec![RuleSpec { name: Some(" ".into()), ..allow(&["x"]) }], "must be a text of one line"),
        (vec![RuleSpec { when: Some("args.".into()), ..allow(&["x"]) }], "when is not valid CEL"),
        (vec![RuleSpec { when: Some("args.x == 1".into()), ..allow(&["*"]) }], "\"tool:*\""),
        (vec![deny(&["*"]), allow(&["git_*"])], "contradicts the rule at line 10"),
        (
            vec![
                RuleSpec { name: Some("first".into()), roles: list(&["a", "b"]), ..allow(&["git_*"]) },
                RuleSpec { roles: list(&["a"]), ..deny(&["git_push"]) },
            ],
            "contradicts the rule \"first\" (line 10): it is never reached",
        ),
        (
            vec![
                RuleSpec { name: Some("x".into()), ..allow(&["a"]) },
                RuleSpec { name: Some("x".into()), ..allow(&["b"]) },
            ],
            "is also the name of",
        ),
    ] {
        let problems = problems(rules);
        assert!(problems.iter().any(|problem| problem.contains(said)), "{said}: {problems:?}");
    }
    let nobody = PolicySpec { default: Some(DefaultEffect::Deny), ..PolicySpec::default() };
    assert!(Policy::new(&nobody).unwrap_err()[0].to_string().contains("lets nobody do anything"));
    let many = PolicySpec { rules: vec![allow(&["x"]); 1001], ..PolicySpec::default() };
    assert!(Policy::new(&many).unwrap_err()[0].to_string().contains("more than 1000 rules"));
}

#[test]
fn rules_that_only_look_alike_are_no_contradiction() {
    for rules in [
        vec![RuleSpec { roles: list(&["a"]), ..deny(&["*"]) }, allow(&["git_*"])],
        vec![RuleSpec { when: Some("args.x == 1".into()), ..deny(&["git_*"]) }, allow(&["git_*"])],
        vec![RuleSpec { servers: list(&["a"]), ..deny(&["*"]) }, allow(&["*"])],
        vec![deny(&["prompt:*"]), allow(&["tool:*"])],
        vec![deny(&["git_push"]), allow(&["git_*"])],
    ] {
        assert!(policy(rules).notes().is_empty());
    }
    let twice = policy(vec![allow(&["git_*"]), allow(&["git_log"])]);
    assert!(twice.notes()[0].1.starts_with("has no effect"), "{:?}", twice.notes());
}

#[test]
fn an_explanation_names_each_rule_and_its_line() {
    let policy = policy(vec![
        RuleSpec { roles: list(&["admin"]), ..allow(&["*"]) },
        deny(&["slack_*"]),
        RuleSpec { when: Some("args.n < 5".into()), ..allow(&["fs_*"]) },
    ]);
    let ann = caller("ann", "acme", &["dev"]);
    let why = policy.explain(&policy.caller(&ann), &tool("fs_read"), Some(&Json::trusted(r#"{"n":7}"#)));
    assert_eq!(
        (why.decision.rule.as_ref(), why.decision.is_allowed, why.is_listed),
        ("default", false, true)
    );
    let steps: Vec<_> = why.steps.iter().map(|step| (step.line, step.matches, step.why.as_str())).collect();
    assert_eq!(
        steps,
        [
            (Some(10), false, "it is for roles admin, and the caller has dev"),
            (Some(11), false, "it is not about the tool \"fs_read\""),
            (Some(12), false, "its condition does not hold"),
        ]
    );
    let why = policy.explain(&policy.caller(&ann), &tool("slack_post"), None);
    assert_eq!((why.decision.line, why.steps.len(), why.is_listed), (Some(11), 2, false));
}

#[test]
fn whether_there_can_be_anything_of_a_kind() {
    let dev = |rule: RuleSpec| RuleSpec { roles: list(&["dev"]), ..rule };
    let some = policy(vec![
        RuleSpec { servers: list(&["vault"]), ..deny(&["resource:*"]) },
        deny(&["resource:reef://secret"]),
        dev(RuleSpec { when: Some("server == \"reef\"".to_owned()), ..allow(&["resource:*://notes/*"]) }),
        allow(&["git_*"]),
    ]);
    let (ann, bob) = (caller("ann", "acme", &["dev"]), caller("bob", "acme", &[]));
    for (who, kind, server, expected) in [
        (&ann, ObjectKind::Resource, "reef", true),
        (&ann, ObjectKind::Resource, "vault", false),
        (&bob, ObjectKind::Resource, "reef", false),
        (&bob, ObjectKind::Tool, "vault", true),
        (&ann, ObjectKind::Prompt, "reef", false),
    ] {
        let may = |caller| some.may_show_any(&caller, kind, server);
        assert_eq!(may(some.caller(who)), expected, "{kind:?} {server}");
        assert!(!may(some.unknown_caller(who)));
    }
    let shadow = PolicySpec { mode: PolicyMode::Shadow, ..some.spec().clone() };
    let shadow = Policy::new(&shadow).unwrap();
    assert!(shadow.may_show_any(&shadow.caller(&bob), ObjectKind::Resource, "vault"));
    let open = PolicySpec { default: Some(DefaultEffect::Allow), ..some.spec().clone() };
    let open = Policy::new(&open).unwrap();
    assert!(open.may_show_any(&open.caller(&bob), ObjectKind::Prompt, "vault"));
    assert!(!open.may_show_any(&open.caller(&bob), ObjectKind::Resource, "vault"));
}
