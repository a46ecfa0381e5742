//! How often.

use tidegate_config::LimitScopes;
use tidegate_config::RateUnit::{Hour, Minute, Second};
use tidegate_protocol::Symbol;

use super::*;

#[tokio::test(start_paused = true)]
async fn so_many_at_once_and_then_evenly() {
    let rig = Rig::of(LimitScopes { tenant: rate(100, Minute), ..LimitScopes::default() });
    for _ in 0..100 {
        rig.done(&call("reef/ann")).unwrap();
    }
    let error = rig.refused(&call("reef/bob"));
    assert_eq!((error.symbol(), error.is_unexecuted()), (Symbol::RateLimited, true));
    assert_eq!(
        said(&error),
        r#"The limit of 100 calls a minute for your organisation is reached; try again in 1 s {"symbol":"RATE_LIMIT_ERROR","retryAfterMs":600,"limit":{"scope":"tenant","rate":"100/m"},"remaining":0}"#
    );
    assert_eq!(error.retry_after(), Some(Duration::from_millis(600)));
    rig.done(&call("tide/ann")).unwrap();
    tokio::time::advance(Duration::from_millis(600)).await;
    rig.done(&call("reef/bob")).unwrap();
    rig.refused(&call("reef/ann"));
    tokio::time::advance(Duration::from_secs(3600)).await;
    for _ in 0..100 {
        rig.done(&call("reef/ann")).unwrap();
    }
    rig.refused(&call("reef/ann"));
}

#[tokio::test(start_paused = true)]
async fn whose_limit_it_is() {
    let none = LimitScopes::default;
    for (scopes, who, sentence) in [
        (
            LimitScopes { user: rate(1, Hour), ..none() },
            "a/b",
            "The limit of 1 call a hour for each user is reached",
        ),
        (
            LimitScopes { tenant: rate(1, Second), ..none() },
            "ann",
            "The limit of 1 call a second for each caller is",
        ),
        (
            LimitScopes { tool: rate(1, Hour), ..none() },
            "a/b",
            "of the tool github_search is reached; try again in 60 min",
        ),
        (LimitScopes { server: rate(1, Hour), ..none() }, "a/b", "to the server github is reached"),
        (LimitScopes { endpoint: rate(1, Hour), ..none() }, "a/b", "at this endpoint is reached"),
    ] {
        let rig = Rig::of(scopes);
        rig.done(&call(who)).unwrap();
        let error = rig.refused(&call(who));
        assert!(error.message().contains(&sentence.replace("a hour", "an hour")), "{error}");
        // What is a tool's or a server's is everybody's.
        let other = rig.done(&call("others/zoe"));
        let is_shared = sentence.contains("github") || sentence.contains("endpoint");
        assert_eq!(other.is_err(), is_shared, "{sentence}");
    }
}

#[tokio::test(start_paused = true)]
async fn principals_are_told_apart_by_issuer_subject_and_tenant() {
    let rig = Rig::of(LimitScopes { user: rate(1, Hour), ..LimitScopes::default() });
    let mut others = vec![call("reef/ann"), call("tide/ann"), call("ann"), call("reef/bob")];
    others[0].context.principal.issuer = Some("https://other.example.com".into());
    rig.done(&call("reef/ann")).unwrap();
    for other in &others {
        rig.done(other).unwrap();
        rig.refused(other);
    }
    // Without tenants, each caller is one by itself; and none is the tenant of its own name.
    let rig = Rig::of(LimitScopes { tenant: rate(1, Hour), ..LimitScopes::default() });
    for who in ["ann", "bob", "ann/x"] {
        rig.done(&call(who)).unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_user_uses_up_nothing_of_the_tenant() {
    let rig = Rig::of(LimitScopes { user: rate(2, Hour), tenant: rate(3, Hour), ..LimitScopes::default() });
    rig.done(&call("reef/ann")).unwrap();
    rig.done(&call("reef/ann")).unwrap();
    for _ in 0..10 {
        assert!(rig.refused(&call("reef/ann")).message().contains("each user"));
    }
    rig.done(&call("reef/bob")).unwrap();
    assert!(rig.refused(&call("reef/bob")).message().contains("organisation"));
}

#[tokio::test(start_paused = true)]
async fn what_counts() {
    let rig = Rig::of(LimitScopes { user: rate(1, Hour), ..LimitScopes::default() });
    let asks = |method: Method| Call { method, ..call("ann") };
    let free = [Method::Ping, Method::Discover, Method::TasksCancel, Method::TasksUpdate, Method::Cancelled];
    for method in free.iter().cloned().chain([Method::from_name("notifications/of_somebody")]) {
        rig.done(&asks(method)).unwrap();
    }
    rig.done(&asks(Method::ToolsList)).unwrap();
    for method in [Method::ToolsCall, Method::ResourcesRead, Method::Listen, Method::from_name("x/y")] {
        rig.refused(&asks(method));
    }
    rig.done(&asks(Method::Ping)).unwrap();
    // A part of another call counts, too.
    let part = Target { is_part: true, ..SEARCH };
    assert!(rig.limits.enter(&rig.store, &call("ann"), part).is_err());
}

#[tokio::test(start_paused = true)]
async fn a_new_configuration_keeps_the_count_of_what_stays() {
    let scopes = LimitScopes { user: rate(1, Hour), ..LimitScopes::default() };
    let mut rig = Rig::of(scopes.clone());
    rig.done(&call("ann")).unwrap();
    rig.limits = CallLimits::new(&settings(LimitScopes { server: rate(9, Hour), ..scopes.clone() }));
    assert!(rig.refused(&call("ann")).message().contains("each user"));
    rig.limits = CallLimits::new(&settings(LimitScopes { user: rate(2, Hour), ..scopes }));
    rig.done(&call("ann")).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn exactly_so_many_under_parallel_callers() {
    let rig = Arc::new(Rig::of(LimitScopes { tenant: rate(100, Hour), ..LimitScopes::default() }));
    let tasks: Vec<_> = (0..64)
        .map(|task| {
            let rig = rig.clone();
            tokio::spawn(async move {
                let mut passed = 0;
                for _ in 0..50 {
                    passed += u32::from(rig.done(&call(&format!("reef/user{task}"))).is_ok());
                    tokio::task::yield_now().await;
                }
                passed
            })
        })
        .collect();
    let mut passed = 0;
    for task in tasks {
        passed += task.await.unwrap();
    }
    assert_eq!(passed, 100);
}

/// Whoever reads figures learns how near somebody is to a limit, and not who.
#[tokio::test(start_paused = true)]
async fn what_is_left_to_whoever_has_used_most() {
    let scopes = LimitScopes {
        user: rate(10, RateUnit::Minute),
        tool: rate(1000, RateUnit::Minute),
        tenant: concurrent(4, 10),
        ..LimitScopes::default()
    };
    let rig = Rig::of(scopes);
    let left = || -> Vec<(&str, Option<f64>, Option<f64>)> {
        let left = rig.limits.left(&rig.store).into_iter();
        left.map(|left| (left.scope.as_str(), left.rate, left.places)).collect()
    };
    let unused = [("user", Some(1.0), None), ("tenant", None, Some(1.0)), ("tool", Some(1.0), None)];
    assert_eq!(left(), unused);
    (0..5).for_each(|_| rig.done(&call("reef/ann")).unwrap());
    rig.done(&call("reef/bob")).unwrap();
    let held = rig.pass(&call("reef/bob"));
    assert_eq!(
        left(),
        [("user", Some(0.5), None), ("tenant", None, Some(0.75)), ("tool", Some(0.993), None)]
    );
    drop(held);
    // It comes back with the time, and limits of another configuration are others.
    tokio::time::advance(Duration::from_secs(60)).await;
    assert_eq!(left(), unused);
    (0..10).for_each(|_| rig.done(&call("reef/ann")).unwrap());
    assert_eq!(left()[0], ("user", Some(0.0), None));
    let other = CallLimits::new(&settings(LimitScopes {
        user: rate(11, RateUnit::Minute),
        ..LimitScopes::default()
    }));
    assert_eq!(other.left(&rig.store)[0].rate, Some(1.0));
    assert!(CallLimits::new(&settings(LimitScopes::default())).left(&rig.store).is_empty());
}
