//! Whose turn it is: nobody waits longer because somebody else makes many calls. Orders are looked at, not times.

use super::*;

/// How many wait, at a limit or for the gateway as a whole.
fn waiting(gateway: &Gateway) -> usize {
    gateway.depth().waiting + gateway.queues().iter().map(|queue| queue.waiting).sum::<usize>()
}

/// Starts calls one after the other: each of them is in line before the next one comes.
async fn in_line(
    gateway: &Gateway,
    names: impl IntoIterator<Item = &'static str>,
) -> Vec<tokio::task::JoinHandle<Value>> {
    let mut tasks = Vec::new();
    for (at, name) in names.into_iter().enumerate() {
        let mine = gateway.clone();
        tasks.push(tokio::spawn(async move { call(&who(name), &mine, "s_work", json!({})).await }));
        until("that it is in line", async || waiting(gateway) == at).await;
    }
    tasks
}

/// Who was served, in this order, when all of these came one after the other while one place was taken.
async fn order(gateway: Gateway, meter: &Meter, names: Vec<&'static str>) -> Vec<String> {
    let count = names.len();
    let tasks = in_line(&gateway, names).await;
    until("that the first one runs", async || meter.count() == 1).await;
    assert_eq!(waiting(&gateway), count - 1);
    meter.let_go(count);
    for task in tasks {
        let result = in_time("its turn", task).await.unwrap();
        assert_eq!(refusal(&result), Value::Null, "{result}");
    }
    until_idle(&gateway).await;
    gateway.close().await;
    meter.served()
}

/// 300 calls of one, and then one of each of these.
fn flood(name: &'static str, quiet: &[&'static str]) -> Vec<&'static str> {
    std::iter::repeat_n(name, 300).chain(quiet.iter().copied()).collect()
}

#[tokio::test]
async fn whoever_comes_after_a_flood_is_served_within_one_turn() {
    // The limit, who floods, and who comes after that.
    let cases = [
        ("tenant = false\nserver = { concurrent = 1, queue = 500 }", "reef/ann", ["tide/bob", "wave/cid"]),
        ("tenant = false\ntool = { concurrent = 1, queue = 500 }", "reef/ann", ["tide/bob", "wave/cid"]),
        ("tenant = false\nendpoint = { concurrent = 1, queue = 500 }", "reef/ann", ["tide/bob", "wave/cid"]),
        ("tenant = { concurrent = 1, queue = 500 }", "reef/ann", ["reef/bob", "reef/cid"]),
    ];
    for (limits, flooding, quiet) in cases {
        let meter = Meter::new(0);
        let gateway = meter.gateway(&format!("[limits]\n{limits}")).await;
        let served = order(gateway, &meter, flood(flooding, &quiet)).await;
        // One runs, one of the flood was first in line, and then everybody else comes before its second turn.
        assert_eq!(served[..5], ["ann", "ann", "bob", "cid", "ann"], "{limits}");
        assert_eq!(served.len(), 302);
    }
}

#[tokio::test]
async fn so_it_is_in_the_queue_of_the_whole_gateway() {
    let meter = Meter::new(0);
    let limits = tidegate_service::layers::Limits { concurrent: 1, waiting: 500, ..Default::default() };
    let gateway = Gateway::builder().settings(meter.settings("")).limits(limits).start().unwrap();
    gateway.settled(crate::rig::PATIENCE).await;
    let served = order(gateway, &meter, flood("reef/ann", &["tide/bob", "wave/cid"])).await;
    assert_eq!(served[..5], ["ann", "ann", "bob", "cid", "ann"]);
}

#[tokio::test]
async fn a_full_queue_has_room_for_who_has_few_in_it() {
    let meter = Meter::new(0);
    let gateway = meter.gateway("[limits]\ntenant = false\nserver = { concurrent = 1, queue = 50 }").await;
    let flood = in_line(&gateway, vec!["reef/ann"; 51]).await;
    let refused = call(&who("reef/ann"), &gateway, "s_work", json!({})).await;
    assert_eq!(refusal(&refused)["symbol"], "RATE_LIMIT_ERROR", "{refused}");
    let quiet = tokio::spawn({
        let gateway = gateway.clone();
        async move { call(&who("tide/bob"), &gateway, "s_work", json!({})).await }
    });
    // The last one of the flood made room.
    let mut flood = flood;
    let pushed_out = in_time("that somebody made room", flood.pop().unwrap()).await.unwrap();
    assert!(
        pushed_out["content"][0]["text"].as_str().unwrap().contains("too many are waiting"),
        "{pushed_out}"
    );
    meter.let_go(MANY);
    assert_eq!(refusal(&in_time("the quiet one", quiet).await.unwrap()), Value::Null);
    for task in flood {
        assert_eq!(refusal(&in_time("the flood", task).await.unwrap()), Value::Null);
    }
    assert_eq!(meter.served()[..4], ["ann", "ann", "bob", "ann"]);
    until_idle(&gateway).await;
    gateway.close().await;
}

#[tokio::test]
async fn priorities() {
    let meter = Meter::new(0);
    let limits = "[limits]\ntenant = false\nserver = { concurrent = 1 }\n\
                  [[limits.rules]]\ntools = [\"s_work\"]\nendpoints = [\"urgent\"]\npriority = \"high\"\n\
                  [[limits.rules]]\nendpoints = [\"idle\"]\npriority = \"low\"\n[endpoints.urgent]\n[endpoints.idle]";
    let gateway = meter.gateway(limits).await;
    let mut tasks = Vec::new();
    for (at, (name, endpoint)) in
        [("first", ""), ("low", "idle"), ("normal", ""), ("high", "urgent")].into_iter().enumerate()
    {
        let mine = gateway.clone();
        let caller = if endpoint.is_empty() { who(name) } else { who(name).at(endpoint) };
        tasks.push(tokio::spawn(async move { call(&caller, &mine, "s_work", json!({})).await }));
        until("that it is in line", async || {
            gateway.queues().iter().any(|queue| queue.running == 1 && queue.waiting == at)
        })
        .await;
    }
    assert_eq!(gateway.queues()[0].waiting_by_priority, [1, 1, 1]);
    meter.let_go(tasks.len());
    for task in tasks {
        in_time("its turn", task).await.unwrap();
    }
    assert_eq!(meter.served(), ["first", "high", "normal", "low"]);
    until_idle(&gateway).await;
    gateway.close().await;
}
