//! How many at once, how many wait, and how long.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn never_more_than_the_limit() {
    // The limit, who calls, and how many run at once at most.
    let cases: [(&str, &[&str], usize); 7] = [
        ("tenant = { concurrent = 3 }", &["reef/ann", "reef/bob"], 3),
        ("tenant = { concurrent = 3 }", &["reef/ann", "tide/ann"], 6),
        ("tenant = false\nuser = { concurrent = 1 }", &["reef/ann", "reef/bob", "tide/ann"], 3),
        ("tenant = false\ntool = { concurrent = 2 }", &["reef/ann", "tide/bob"], 2),
        ("tenant = false\nserver = { concurrent = 1 }", &["reef/ann", "tide/bob"], 1),
        ("tenant = false\nendpoint = { concurrent = 5 }", &["reef/ann", "tide/bob"], 5),
        (
            "tenant = { concurrent = 4 }\nuser = { concurrent = 3 }\ntool = { concurrent = 2 }",
            &["r/a", "r/b", "t/c"],
            2,
        ),
    ];
    for (limits, names, most) in cases {
        let meter = Meter::new(0);
        let gateway = meter.gateway(&format!("[limits]\n{limits}")).await;
        let callers = (0..MANY).map(|at| who(names[at % names.len()])).collect();
        let calling = tokio::spawn({
            let gateway = gateway.clone();
            async move { all_at_once(&gateway, callers, "s_work").await }
        });
        until("that as many run as may", async || meter.count() == most).await;
        until("that the others wait", async || {
            let queues = gateway.queues();
            queues.iter().map(|queue| queue.waiting).sum::<usize>() == MANY - most
        })
        .await;
        assert_eq!(meter.count(), most, "{limits}");
        assert_eq!(gateway.depth().running, MANY, "{limits}: those who wait for a limit are in");
        for queue in gateway.queues() {
            assert!(queue.running <= queue.max_running && queue.waiting <= queue.max_waiting, "{queue:?}");
            assert!(limits.contains(queue.scope.as_str()), "{queue:?}");
        }
        meter.let_go(MANY);
        for result in in_time("everybody", calling).await.unwrap() {
            assert_eq!(refusal(&result), Value::Null, "{limits}: {result}");
        }
        assert_eq!((meter.count(), meter.most()), (MANY, most), "{limits}");
        until_idle(&gateway).await;
        gateway.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_more_wait_than_may() {
    for (queue, refused) in [(0, MANY - 2), (1, MANY - 3), (20, MANY - 22), (100, 0)] {
        let meter = Meter::new(0);
        let gateway =
            meter.gateway(&format!("[limits]\ntenant = {{ concurrent = 2, queue = {queue} }}")).await;
        let answered = Arc::new(AtomicUsize::new(0));
        let calling = (0..MANY).map(|_| {
            let (gateway, answered) = (gateway.clone(), answered.clone());
            tokio::spawn(async move {
                let result = call(&who("reef/ann"), &gateway, "s_work", json!({})).await;
                answered.fetch_add(1, Ordering::Relaxed);
                result
            })
        });
        let calling: Vec<_> = calling.collect();
        // Everybody has come: those who found no room have their answer, and nobody else has.
        until("that the queue is full", async || {
            answered.load(Ordering::Relaxed) == refused
                && gateway.queues().iter().all(|one| one.waiting == queue.min(MANY - 2))
                && meter.count() == 2
        })
        .await;
        meter.let_go(MANY);
        let results = in_time("everybody", futures_util::future::join_all(calling)).await;
        let results: Vec<Value> = results.into_iter().map(Result::unwrap).collect();
        let whys: Vec<_> = results.iter().map(refusal).filter(|why| *why != Value::Null).collect();
        assert_eq!(whys.len(), refused, "queue = {queue}");
        assert_eq!((meter.count(), meter.most()), (MANY - refused, 2), "queue = {queue}");
        for why in whys {
            assert_eq!(why["symbol"], "RATE_LIMIT_ERROR", "{why}");
            let limit = json!({"scope": "tenant", "concurrent": 2, "queue": queue});
            assert_eq!(why["data"]["limit"], limit, "{why}");
            assert!(why["data"]["retryAfterMs"].as_u64().unwrap() > 0, "{why}");
        }
        until_idle(&gateway).await;
        gateway.close().await;
    }
}

/// Time goes on when nothing else does: nobody waits for it.
#[tokio::test(start_paused = true)]
async fn a_wait_ends_in_time_and_leaves_the_queue() {
    let meter = Meter::new(0);
    let gateway = meter.gateway("[limits]\ntenant = { concurrent = 1, wait = \"5s\" }").await;
    let calling = |gateway: &Gateway| {
        let gateway = gateway.clone();
        tokio::spawn(async move { call(&who("reef/ann"), &gateway, "s_work", json!({})).await })
    };
    let first = calling(&gateway);
    until("that it runs", async || meter.count() == 1).await;
    let began = tokio::time::Instant::now();
    let result = in_time("a refusal", calling(&gateway)).await.unwrap();
    assert!(began.elapsed() >= Duration::from_secs(5), "{:?}", began.elapsed());
    assert!(
        result["content"][0]["text"].as_str().unwrap().contains("waited for its turn too long"),
        "{result}"
    );
    assert_eq!(gateway.queues()[0].waiting, 0);
    // Whoever goes away leaves the queue, too.
    let gone = calling(&gateway);
    until("that it waits", async || gateway.queues()[0].waiting == 1).await;
    gone.abort();
    until("that it does not wait", async || gateway.queues()[0].waiting == 0).await;
    meter.let_go(1);
    assert_eq!(refusal(&in_time("the first", first).await.unwrap()), Value::Null);
    assert_eq!(meter.count(), 1, "nobody else ran");
    until_idle(&gateway).await;
    gateway.close().await;
}
