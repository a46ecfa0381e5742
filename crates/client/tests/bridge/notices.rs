//! Notifications that the protocol does not define, and those about roots: from callers to servers and back.

mod world;

use serde_json::{Value, json};
use tidegate_client::Instances;
use tidegate_edge::Eras;
use tidegate_protocol::{Json, Symbol};
use tidegate_service::{Call, Door, Notice, Outbox, Reply};

use crate::rig::{Who, person, session, until};
pub(crate) use world::run_if_asked;
use world::{Over, World, made, reply, say, tool};

const EVERYWHERE: [(Over, Eras); 4] = [
    (Over::Http, Eras::Legacy),
    (Over::Http, Eras::Modern),
    (Over::Stdio, Eras::Legacy),
    (Over::Stdio, Eras::Modern),
];

fn told(who: &Who, method: &str, params: &'static str) -> Call {
    made(who, method, Json::trusted(params))
}

#[tokio::test]
async fn what_a_caller_tells_is_passed_on_as_it_came() {
    for (over, eras) in EVERYWHERE {
        let world = World::start(over, eras).await;
        let (door, ann) = (world.client(|_| {}).door(), person("ann"));
        assert_eq!(say(&door, tool(&ann, "heard")).await, "");
        let vendor = told(&ann, "notifications/vendor", r#"{"n":1.0e0,"_meta":{"k": 7}}"#);
        assert_eq!(reply(&door, vendor).await.unwrap(), json!({"resultType": "complete"}));
        let heard = say(&door, tool(&ann, "heard")).await;
        assert_eq!(heard, "notifications/vendor n=1.0e0 k=7", "{over:?} {eras:?}");
    }
}

#[tokio::test]
async fn what_belongs_to_a_session_goes_no_further() {
    let world = World::start(Over::Http, Eras::Legacy).await;
    let (door, ann) = (world.client(|_| {}).door(), person("ann"));
    say(&door, tool(&ann, "heard")).await;
    for method in ["notifications/initialized", "notifications/cancelled", "notifications/progress"] {
        let error = reply(&door, told(&ann, method, "{}")).await.unwrap_err();
        assert_eq!(error.symbol(), Symbol::MethodNotFound, "{method}");
    }
    assert_eq!(say(&door, tool(&ann, "heard")).await, "");
}

#[tokio::test]
async fn it_goes_to_the_session_that_the_callers_calls_are_made_in() {
    let world = World::start(Over::Http, Eras::Legacy).await;
    let door = world.client(|options| options.sessions.instances = Instances::PerUser).door();
    let (ann, bob, eve) = (session(), session(), person("eve"));
    say(&door, tool(&ann, "heard")).await;
    for who in [&ann, &bob, &eve] {
        reply(&door, told(who, "notifications/vendor", r#"{"n":1}"#)).await.unwrap();
    }
    let seen = world.seen();
    let [call, first, second, third] = &seen[..] else { panic!("{seen:?}") };
    assert_eq!((&*call.what, &*first.what), ("tools/call heard", "notifications/vendor n=1 k="));
    assert_eq!((&first.session, &second.session), (&call.session, &call.session), "both are one user");
    assert_ne!(third.session, call.session);
}

#[tokio::test]
async fn changed_roots_are_told_in_the_callers_sessions_and_nowhere_else() {
    let world = World::start(Over::Http, Eras::Legacy).await;
    let door = world.client(|_| {}).door();
    let (ann, bob, eve) = (session(), session(), session());
    for who in [&ann, &bob] {
        say(&door, tool(who, "heard")).await;
    }
    for who in [&eve, &ann] {
        reply(&door, told(who, "notifications/roots/list_changed", "{}")).await.unwrap();
    }
    until("the server hears of it", || world.seen().len() == 3).await;
    let seen = world.seen();
    assert_eq!(seen[2].what, "notifications/roots/list_changed n= k=");
    assert_eq!(seen[2].session, seen[0].session, "Ann's session, not Bob's; Eve has none");

    let world = World::start(Over::Http, Eras::Modern).await;
    let door = world.client(|_| {}).door();
    reply(&door, told(&ann, "notifications/roots/list_changed", "{}")).await.unwrap();
    assert_eq!(say(&door, tool(&ann, "heard")).await, "", "a modern server asks when it needs them");
}

/// What a call is told while it runs.
async fn tells(door: &impl Door, mut call: Call) -> Vec<Notice> {
    let outbox = Outbox::default();
    call.context.outbox = Some(outbox.clone());
    assert!(matches!(door.answer(call).await, Ok(Reply::Complete(_))));
    std::iter::from_fn(|| outbox.try_next()).collect()
}

fn vendor(params: &'static str) -> Notice {
    Notice::Other { method: "notifications/vendor".into(), params: Some(Json::trusted(params)) }
}

fn telling(who: &Who) -> Call {
    made(who, "tools/call", Json::trusted(r#"{"name":"tells","arguments":{ "n":1.0e0 }}"#))
}

#[tokio::test]
async fn what_a_server_tells_in_a_call_reaches_the_call() {
    for (over, eras) in &EVERYWHERE[..3] {
        let world = World::start(*over, *eras).await;
        let (door, ann) = (world.client(|_| {}).door(), person("ann"));
        assert_eq!(tells(&door, telling(&ann)).await, [vendor(r#"{ "n":1.0e0 }"#)], "{over:?} {eras:?}");
    }
}

#[tokio::test]
async fn what_may_be_somebody_elses_reaches_nobody() {
    // Over one pipe nothing says whose it is.
    for eras in [Eras::Legacy, Eras::Modern] {
        let world = World::start(Over::Stdio, eras).await;
        let door = world.client(|options| options.sessions.instances = Instances::One).door();
        let mut call = telling(&session());
        call.context.capabilities = tidegate_protocol::ClientCapabilities::none();
        assert_eq!(tells(&door, call).await, [], "{eras:?}");
    }
}

async fn listen(door: &impl Door, who: &Who) -> Outbox {
    let filter = Json::from(json!({"notifications": {"toolsListChanged": true}}));
    match door.answer(made(who, "subscriptions/listen", filter)).await {
        Ok(Reply::Subscription(subscription)) => subscription.events,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn what_a_server_tells_outside_of_any_call_reaches_what_the_caller_listens_to() {
    for eras in [Eras::Legacy, Eras::Modern] {
        let world = World::start(Over::Http, eras).await;
        let (door, ann, bob) = (world.client(|_| {}).door(), session(), session());
        let (anns, bobs) = (listen(&door, &ann).await, listen(&door, &bob).await);
        until("the server has both subscriptions", || world.listeners() >= 2).await;
        let later =
            json!({"name": "later", "arguments": {"to": if eras == Eras::Legacy { "me" } else { "first" }}});
        say(&door, made(&ann, "tools/call", Json::from(later))).await;
        let heard = tokio::time::timeout(std::time::Duration::from_secs(10), anns.next()).await;
        assert_eq!(heard.expect("a notification"), Some(vendor(r#"{"n":2}"#)), "{eras:?}");
        let changed: Value = reply(&door, tool(&ann, "changed")).await.unwrap();
        assert!(changed["content"].is_array());
        let next = tokio::time::timeout(std::time::Duration::from_secs(10), bobs.next()).await;
        assert_eq!(
            next.expect("a change"),
            Some(Notice::ToolsChanged),
            "Bob has heard nothing before: {eras:?}"
        );
    }
}
