//! Limits and priorities for some calls.

use tidegate_config::{LimitRule, LimitScopes, Patterns, RateUnit::Hour};
use tidegate_service::Claims;
use tidegate_service::fair_queue::Priority;

use super::*;

fn patterns(texts: &[&str]) -> Option<Patterns> {
    Some(Patterns::new(texts.iter().copied()).unwrap())
}

fn rule(scopes: LimitScopes) -> LimitRule {
    LimitRule {
        tools: None,
        servers: None,
        endpoints: None,
        roles: None,
        tenants: None,
        scopes,
        priority: None,
    }
}

fn once() -> LimitScopes {
    LimitScopes { user: rate(1, Hour), ..LimitScopes::default() }
}

fn rig(rules: Vec<LimitRule>) -> Rig {
    Rig::new(&LimitSettings { scopes: LimitScopes::default(), rules, run: None })
}

#[tokio::test(start_paused = true)]
async fn a_rule_is_for_what_matches_all_of_it() {
    let mut dev = call("reef/ann");
    dev.context.claims =
        Some(Arc::new(Claims { roles: vec!["dev".into(), "ops".into()], ..Claims::default() }));
    let mut research = call("reef/ann");
    research.context.endpoint = Some("research".into());
    let cases: Vec<(&str, LimitRule, Call, bool)> = vec![
        ("tool", LimitRule { tools: patterns(&["github_s*"]), ..rule(once()) }, call("a/b"), true),
        ("other tool", LimitRule { tools: patterns(&["github_c*"]), ..rule(once()) }, call("a/b"), false),
        ("server", LimitRule { servers: patterns(&["git*"]), ..rule(once()) }, call("a/b"), true),
        ("other server", LimitRule { servers: patterns(&["x"]), ..rule(once()) }, call("a/b"), false),
        ("role", LimitRule { roles: patterns(&["ops"]), ..rule(once()) }, dev.clone(), true),
        ("no role", LimitRule { roles: patterns(&["*"]), ..rule(once()) }, call("a/b"), false),
        ("tenant", LimitRule { tenants: patterns(&["reef"]), ..rule(once()) }, call("reef/b"), true),
        ("no tenant", LimitRule { tenants: patterns(&["*"]), ..rule(once()) }, call("ann"), false),
        (
            "endpoint",
            LimitRule { endpoints: patterns(&["research"]), ..rule(once()) },
            research.clone(),
            true,
        ),
        (
            "default endpoint",
            LimitRule { endpoints: patterns(&["default"]), ..rule(once()) },
            research,
            false,
        ),
        (
            "both",
            LimitRule { tools: patterns(&["*"]), tenants: patterns(&["tide"]), ..rule(once()) },
            call("reef/b"),
            false,
        ),
    ];
    for (what, rule, call, matches) in cases {
        let rig = rig(vec![rule]);
        rig.done(&call).unwrap();
        assert_eq!(rig.done(&call).is_err(), matches, "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn every_rule_that_matches_counts_and_alone() {
    let all = |scopes| LimitRule { tools: patterns(&["*"]), ..rule(scopes) };
    let twice = LimitScopes { tenant: rate(2, Hour), ..LimitScopes::default() };
    let rig = Rig::new(&LimitSettings {
        scopes: LimitScopes { tenant: rate(3, Hour), ..LimitScopes::default() },
        // Two that say the same are two.
        rules: vec![all(once()), all(twice.clone()), all(twice)],
        run: None,
    });
    rig.done(&call("reef/ann")).unwrap();
    let error = rig.refused(&call("reef/ann"));
    assert!(
        error.message().starts_with("The limit of 1 call an hour of this kind for each user is"),
        "{error}"
    );
    rig.done(&call("reef/bob")).unwrap();
    assert!(rig.refused(&call("reef/zoe")).message().contains("2 calls an hour of this kind for your"));
    // A list is no tool: only what is for all counts.
    let list = Call { method: Method::ToolsList, ..call("reef/ann") };
    let nowhere = Target::default();
    drop(passed(rig.limits.enter(&rig.store, &list, nowhere).unwrap()));
    assert!(
        rig.limits.enter(&rig.store, &list, nowhere).unwrap_err().message().contains("3 calls an hour for")
    );
}

#[tokio::test(start_paused = true)]
async fn priorities_count_where_calls_wait() {
    let says = |tenant, priority| LimitRule {
        tenants: patterns(&[tenant]),
        priority: Some(priority),
        ..rule(LimitScopes::default())
    };
    let by_server = LimitRule { servers: patterns(&["github"]), ..says("*", Priority::Low) };
    let settings = LimitSettings {
        scopes: LimitScopes { server: concurrent(1, 10), ..LimitScopes::default() },
        rules: vec![says("urgent", Priority::High), says("u*", Priority::Low), by_server],
        run: None,
    };
    let rig = Rig::new(&settings);
    for (who, priority) in
        [("urgent/a", Priority::High), ("ugly/a", Priority::Low), ("reef/a", Priority::Normal)]
    {
        assert_eq!(rig.limits.priority(&call(who)), priority, "{who}: the server is not known yet");
    }
    let running = rig.pass(&call("reef/a"));
    let normal = rig.enter(&call("reef/a")).unwrap();
    let urgent = rig.enter(&call("urgent/a")).unwrap();
    assert_eq!(rig.store.queues()[0].waiting_by_priority, [1, 0, 1]);
    drop(running);
    let urgent = urgent.pass().await.unwrap();
    assert_eq!(rig.store.queues()[0].waiting, 1);
    drop(urgent);
    drop(normal.pass().await.unwrap());
}
