//! How many at once, and who waits.

use std::sync::atomic::{AtomicUsize, Ordering};

use tidegate_config::LimitScopes;
use tidegate_protocol::Symbol;

use super::*;
use crate::Scope;

fn waits(entering: Result<Entering, Error>) -> Entering {
    match entering.unwrap() {
        Entering::Passed(_) => panic!("there was room"),
        waiting => waiting,
    }
}

#[tokio::test(start_paused = true)]
async fn so_many_run_and_so_many_wait() {
    let rig = Rig::of(LimitScopes { tenant: concurrent(2, 1), ..LimitScopes::default() });
    let (first, _second) = (rig.pass(&call("reef/ann")), rig.pass(&call("reef/ann")));
    let waiting = waits(rig.enter(&call("reef/ann")));
    let error = rig.refused(&call("reef/ann"));
    assert_eq!((error.symbol(), error.is_unexecuted()), (Symbol::RateLimited, true));
    assert_eq!(
        said(&error),
        r#"Only 2 calls for your organisation may run at once, and too many are waiting (1); try again in a moment {"symbol":"RATE_LIMIT_ERROR","retryAfterMs":1000,"limit":{"scope":"tenant","concurrent":2,"queue":1},"remaining":0}"#
    );
    let _other = rig.pass(&call("tide/ann"));
    let [reef, tide] = &rig.store.queues()[..] else { panic!("{:?}", rig.store.queues()) };
    assert_eq!((reef.scope, &*reef.key, reef.running, reef.waiting), (Scope::Tenant, "reef", 2, 1));
    assert_eq!((reef.max_running, reef.max_waiting, reef.waiting_by_priority), (2, 1, [0, 1, 0]));
    assert_eq!((&*tide.key, tide.running, tide.waiting), ("tide", 1, 0));
    drop(first);
    let third = waiting.pass().await.unwrap();
    drop((third, _second, _other));
    assert_eq!(rig.store.queues(), []);
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_in_time() {
    let rig = Rig::of(LimitScopes { server: concurrent(1, 9), ..LimitScopes::default() });
    let _first = rig.pass(&call("reef/ann"));
    let began = tokio::time::Instant::now();
    let error = waits(rig.enter(&call("reef/ann"))).pass().await.unwrap_err();
    assert_eq!(began.elapsed().as_secs(), 10);
    let expected = "Only 1 call to the server github may run at once, and this one waited for its turn too long (at most 10 s)";
    assert!(error.message().starts_with(expected), "{error}");
    assert!(error.is_unexecuted() && error.retry_after().is_some());
    // The caller's own deadline, if that is sooner.
    let mut hurried = call("reef/ann");
    hurried.context.deadline = Some((tokio::time::Instant::now() + Duration::from_secs(3)).into_std());
    let began = tokio::time::Instant::now();
    waits(rig.enter(&hurried)).pass().await.unwrap_err();
    assert_eq!(began.elapsed().as_secs(), 3);
    assert_eq!((rig.store.queues()[0].running, rig.store.queues()[0].waiting), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_where_there_is_no_queue() {
    let rig = Rig::of(LimitScopes { user: concurrent(1, 0), ..LimitScopes::default() });
    let _first = rig.pass(&call("reef/ann"));
    let error = rig.refused(&call("reef/ann"));
    assert_eq!(error.message(), "Only 1 call for each user may run at once; try again when one has ended");
    let _other = rig.pass(&call("reef/bob"));
}

#[tokio::test(start_paused = true)]
async fn a_quiet_tenant_has_its_turn_within_one_round() {
    let rig = Rig::of(LimitScopes { server: concurrent(1, 1000), ..LimitScopes::default() });
    let running = rig.pass(&call("flood/bot"));
    let flood: Vec<_> = (0..1000).map(|n| waits(rig.enter(&call(&format!("flood/bot{n}"))))).collect();
    let quiet = waits(rig.enter(&call("quiet/ann")));
    let served = Arc::new(AtomicUsize::new(0));
    for entering in flood {
        let served = served.clone();
        tokio::spawn(async move {
            let pass = entering.pass().await;
            served.fetch_add(usize::from(pass.is_ok()), Ordering::SeqCst);
        });
    }
    drop(running);
    let pass = quiet.pass().await.unwrap();
    assert!(served.load(Ordering::SeqCst) <= 1, "one of the others at most came before");
    drop(pass);
}

#[tokio::test(start_paused = true)]
async fn users_of_a_tenant_take_turns() {
    let rig = Rig::of(LimitScopes { tenant: concurrent(1, 10), ..LimitScopes::default() });
    let running = rig.pass(&call("reef/ann"));
    let anns: Vec<_> = (0..3).map(|_| waits(rig.enter(&call("reef/ann")))).collect();
    let bob = waits(rig.enter(&call("reef/bob")));
    let order = Arc::new(std::sync::Mutex::new(Vec::new()));
    let mut tasks = Vec::new();
    for (who, entering) in anns.into_iter().map(|ann| ("ann", ann)).chain([("bob", bob)]) {
        let order = order.clone();
        tasks.push(tokio::spawn(async move {
            let _pass = entering.pass().await.unwrap();
            order.lock().unwrap().push(who);
        }));
    }
    drop(running);
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(*order.lock().unwrap(), ["ann", "bob", "ann", "ann"]);
}

#[tokio::test(start_paused = true)]
async fn a_part_of_a_call_waits_for_no_second_place() {
    let one = || concurrent(1, 0);
    let rig = Rig::of(LimitScopes { tenant: one(), user: one(), endpoint: one(), ..LimitScopes::default() });
    let _outer = rig.pass(&call("reef/ann"));
    let part = Target { is_part: true, ..SEARCH };
    drop(passed(rig.limits.enter(&rig.store, &call("reef/ann"), part).unwrap()));
    rig.refused(&call("reef/ann"));
    // Places of tools and servers are for whatever runs there.
    let rig = Rig::of(LimitScopes { server: one(), ..LimitScopes::default() });
    let _outer = rig.pass(&call("reef/ann"));
    assert!(rig.limits.enter(&rig.store, &call("reef/ann"), part).is_err());
    let elsewhere = Target { server: Some("memory"), ..part };
    drop(passed(rig.limits.enter(&rig.store, &call("reef/ann"), elsewhere).unwrap()));
}

#[tokio::test(start_paused = true)]
async fn a_part_of_a_call_uses_what_the_outer_one_has() {
    let one = || concurrent(1, 0);
    let rig = Rig::of(LimitScopes { tenant: one(), server: one(), tool: one(), ..LimitScopes::default() });
    let outer = rig.pass(&call("reef/ann"));
    let mut part = call("reef/ann");
    part.context.extensions.insert(outer.held().unwrap());
    let inner = rig.pass(&part);
    assert_eq!(inner.held(), outer.held(), "and so do the parts of the part");
    let elsewhere = Target { server: Some("memory"), ..SEARCH };
    let deeper = passed(rig.limits.enter(&rig.store, &part, elsewhere).unwrap());
    assert_eq!(deeper.held().unwrap().0.len(), 4);
    drop(inner);
    rig.refused(&call("tide/bob"));
    drop((outer, deeper));
    assert_eq!(rig.store.queues(), []);
    assert_eq!(Rig::of(LimitScopes::default()).pass(&call("reef/ann")).held(), None);
}

#[tokio::test(start_paused = true)]
async fn whoever_goes_away_leaves_nothing_behind() {
    let rig = Rig::of(LimitScopes {
        user: concurrent(2, 9),
        tenant: concurrent(2, 9),
        server: concurrent(1, 9),
        ..LimitScopes::default()
    });
    let running = rig.pass(&call("reef/ann"));
    // One has a place of the user and of the tenant and waits for the server, another waits for the user.
    let (second, third) = (waits(rig.enter(&call("reef/ann"))), waits(rig.enter(&call("reef/ann"))));
    let third = tokio::spawn(third.pass());
    tokio::task::yield_now().await;
    let depths = || rig.store.queues().iter().map(|q| (q.running, q.waiting)).collect::<Vec<_>>();
    assert_eq!(depths(), [(2, 1), (1, 1), (2, 0)]);
    drop(second);
    tokio::task::yield_now().await;
    assert_eq!(
        rig.store.queues().iter().map(|q| q.waiting).sum::<usize>(),
        1,
        "the third waits for the server now"
    );
    third.abort();
    let _ = third.await;
    drop(running);
    assert_eq!(rig.store.queues(), []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn never_more_than_may_run_under_parallel_callers() {
    let rig = Arc::new(Rig::of(LimitScopes {
        tenant: concurrent(3, 1000),
        server: concurrent(5, 1000),
        ..LimitScopes::default()
    }));
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let tasks: Vec<_> = (0..64)
        .map(|task| {
            let (rig, now, most) = (rig.clone(), now.clone(), most.clone());
            tokio::spawn(async move {
                for _ in 0..50 {
                    let entering = rig.enter(&call(&format!("tenant{}/user{task}", task % 4))).unwrap();
                    let pass = entering.pass().await.unwrap();
                    most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    tokio::task::yield_now().await;
                    now.fetch_sub(1, Ordering::SeqCst);
                    drop(pass);
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert!(most.load(Ordering::SeqCst) <= 5);
    assert_eq!(rig.store.queues(), []);
}
