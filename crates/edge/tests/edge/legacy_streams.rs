//! Streams of legacy clients: changes on the standalone one, and those of requests, which can be resumed.

use serde_json::json;
use tidegate_edge::http::Settings;
use tidegate_service::Notice;

use crate::common::*;

async fn session(stub: &Stub, revision: &str) -> Session {
    Session::open(&Client::new(stub, Settings::default()), revision).await
}

#[tokio::test(start_paused = true)]
async fn the_standalone_stream_tells_of_changes() {
    let stub = Stub::new();
    let session = session(&stub, "2025-11-25").await;
    let mut events = session.get().send().await.events();
    let primer = events.event().await.unwrap();
    assert_eq!((primer.data.as_str(), primer.id.is_some()), ("", true), "2025-11-25 streams open with an id");
    settle().await;
    stub.tell(&Notice::ToolsChanged);
    stub.tell(&Notice::ResourceUpdated("mem:a".into()));
    let mut got = vec![events.message().await];
    assert!(events.is_quiet().await, "nobody subscribed to mem:a");

    assert_eq!(session.request(1, "resources/subscribe", json!({"uri": "mem:a"})).send().await.status, 200);
    settle().await;
    assert_eq!(stub.subscriptions(), 1, "the new subscription took the place of the old");
    stub.tell(&Notice::ResourceUpdated("mem:a".into()));
    stub.tell(&Notice::PromptsChanged);
    got.extend([events.message().await, events.message().await]);

    assert_eq!(session.request(2, "resources/unsubscribe", json!({"uri": "mem:a"})).send().await.status, 200);
    settle().await;
    stub.tell(&Notice::ResourceUpdated("mem:a".into()));
    stub.tell(&Notice::ResourcesChanged);
    got.push(events.message().await);
    assert!(events.is_quiet().await);
    insta::assert_snapshot!(lines(&got), @r#"
    {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}
    {"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"mem:a"}}
    {"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}
    {"jsonrpc":"2.0","method":"notifications/resources/list_changed"}
    "#);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_lost_while_subscriptions_change() {
    let stub = Stub::new();
    let session = session(&stub, "2025-11-25").await;
    let mut events = session.get().send().await.events();
    settle().await;
    for n in 0..20 {
        session.request(n, "resources/subscribe", json!({"uri": format!("mem:{n}")})).send().await;
        stub.tell(&Notice::ToolsChanged);
        let got = events.message().await;
        assert_eq!(got["method"], "notifications/tools/list_changed", "{n}");
    }
    settle().await;
    for n in 0..20 {
        stub.tell(&Notice::ResourceUpdated(format!("mem:{n}").into()));
        assert_eq!(events.message().await["params"]["uri"], format!("mem:{n}"));
    }
    assert_eq!(stub.subscriptions(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_is_opened_again_brings_what_happened_meanwhile_and_nothing_else() {
    let stub = Stub::new();
    let session = session(&stub, "2025-11-25").await;
    session.request(1, "resources/subscribe", json!({"uri": "mem:a"})).send().await;
    for _ in 0..3 {
        let mut events = session.get().send().await.events();
        assert!(events.is_quiet().await, "nothing has happened");
    }
    settle().await;
    stub.tell(&Notice::ToolsChanged);
    stub.tell(&Notice::ResourceUpdated("mem:a".into()));
    let mut events = session.get().send().await.events();
    let got = [events.message().await, events.message().await];
    assert!(events.is_quiet().await);
    insta::assert_snapshot!(lines(&got), @r#"
    {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}
    {"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"mem:a"}}
    "#);
    assert_eq!(stub.subscriptions(), 1);
    session.delete().send().await;
    settle().await;
    assert_eq!(stub.subscriptions(), 0, "what nobody will read ends with the session");
}

#[tokio::test(start_paused = true)]
async fn where_nobody_knows_what_was_heard_everything_is_told_once() {
    // A client that says where it was has missed nothing.
    for resume in [false, true] {
        let stub = Stub::new();
        let session = session(&stub, "2025-11-25").await;
        session.request(1, "resources/subscribe", json!({"uri": "mem:a"})).send().await;
        let mut events = session.get().send().await.events();
        assert!(events.is_quiet().await, "nothing has happened");
        stub.tell(&Notice::ToolsChanged);
        events.message().await;
        let last = events.last_id().to_owned();
        drop(events);
        settle().await;
        stub.tell(&Notice::PromptsChanged);

        let again = if resume { session.get_from(&last) } else { session.get() };
        let mut events = again.send().await.events();
        let mut got = vec![events.message().await];
        while !resume && got.len() < 4 {
            got.push(events.message().await);
        }
        assert!(events.is_quiet().await);
        let everything = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}
{"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}
{"jsonrpc":"2.0","method":"notifications/resources/list_changed"}
{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"mem:a"}}"#;
        let missed = r#"{"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}"#;
        assert_eq!(lines(&got).trim(), if resume { missed } else { everything });
        drop(events);
        settle().await;
        let mut events = session.get().send().await.events();
        assert_eq!(
            events.is_quiet().await,
            !resume,
            "everything is told once, and the news of a broken stream again"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_new_standalone_stream_takes_the_place_of_the_old() {
    let stub = Stub::new();
    let session = session(&stub, "2025-11-25").await;
    // The old one may be stuck: it is not read until the end.
    let mut old = session.get().send().await.events();
    settle().await;
    let mut new = session.get().send().await.events();
    assert!(new.is_quiet().await, "nothing has happened");
    assert_eq!(stub.subscriptions(), 1);
    // Subscriptions made now reach the stream that is open now.
    session.request(1, "resources/subscribe", json!({"uri": "mem:a"})).send().await;
    settle().await;
    stub.tell(&Notice::ResourceUpdated("mem:a".into()));
    assert_eq!(new.message().await["params"]["uri"], "mem:a");
    stub.tell(&Notice::ToolsChanged);
    assert_eq!(new.message().await["method"], "notifications/tools/list_changed");
    assert!(new.is_quiet().await, "told once");
    assert_eq!(old.next().await, None);
}

#[tokio::test(start_paused = true)]
async fn a_stream_taken_over_before_it_began() {
    let stub = Stub::new();
    let session = session(&stub, "2025-11-25").await;
    let mut standalone = session.get().send().await.events();
    let primer = standalone.event().await.unwrap().id.unwrap();
    let waiting = tokio::spawn(session.call(1, "slow", json!({})).send());
    stub.until("the call to run", |c| c.running == 1).await;
    // Nobody has been given this id yet, but it can be guessed.
    let guessed = primer.replace("-0-0", "-1-0");
    let mut stolen = session.get_from(&guessed).send().await.events();
    stub.release(1);
    assert_eq!(text(&stolen.message().await), "done");
    assert_eq!(waiting.await.unwrap().text().await, "", "not left waiting");
}

#[tokio::test(start_paused = true)]
async fn a_get_needs_to_accept_events() {
    let session = session(&Stub::new(), "2025-11-25").await;
    let refused = session.get().header("accept", "application/json").send().await;
    insta::assert_snapshot!(refused.line().await, @r#"406 {"jsonrpc":"2.0","error":{"code":-32600,"message":"Not acceptable: a GET needs Accept: text/event-stream"}}"#);
    assert!(session.get().without("accept").send().await.is_stream());
}

#[tokio::test(start_paused = true)]
async fn a_broken_stream_is_resumed() {
    for revision in &LEGACY[1..] {
        let stub = Stub::new();
        let session = session(&stub, revision).await;
        // The client's other stream is open all the while.
        let _standalone = session.get().send().await.events();
        let ask = session.call_with_token(1, "progress", json!({"n": 3, "wait": true}), json!("t"));
        let mut events = ask.send().await.events();
        assert_eq!(events.message().await["params"]["progress"], 1);
        let last = events.last_id().to_owned();
        drop(events);
        settle().await;
        stub.release(1);
        settle().await;
        assert_eq!(stub.counts().running, 1, "a disconnect stops nothing");

        let mut events = session.get_from(&last).send().await.events();
        assert_eq!(events.message().await["params"]["progress"], 2);
        assert!(events.is_quiet().await);
        stub.release(2);
        assert_eq!(events.message().await["params"]["progress"], 3);
        assert_eq!(text(&events.message().await), "done");
        assert_eq!(events.next().await, None);
        // And once more, now that all is over.
        let again = session.get_from(&last).send().await.events().rest().await;
        assert_eq!((again.len(), text(&again[2])), (3, "done"), "{revision}");
        let nothing = session.get_from(events.last_id()).send().await.events().rest().await;
        assert_eq!(nothing, [json!(null); 0]);
    }
}

const NOTHING_KEPT: &str = r#"400 {"jsonrpc":"2.0","error":{"code":-32600,"message":"Bad request: nothing is kept for this Last-Event-ID, or no longer"}}"#;

#[tokio::test(start_paused = true)]
async fn only_what_is_kept_is_resumed() {
    let stub = Stub::new();
    let client = Client::new(&stub, Settings { kept_bytes: 300, ..Settings::default() });
    let session = Session::open(&client, "2025-11-25").await;
    let ask = session.call_with_token(1, "progress", json!({"n": 20, "wait": true}), json!("t"));
    let mut events = ask.send().await.events();
    events.message().await;
    let first = events.last_id().to_owned();
    for _ in 0..19 {
        stub.release(1);
        events.message().await;
    }
    let last = events.last_id().to_owned();
    let (life, _) = first.split_once('-').unwrap();
    let ids = ["1-1", "9-9", "1", "a-b", "-", "1-99999", "99999999999999999999999-1", "", "1-1-1"];
    for id in ids.into_iter().flat_map(|id| [id.to_owned(), format!("{life}-{id}")]) {
        let answer = session.get_from(&id).send().await.line().await;
        assert_eq!(answer, NOTHING_KEPT, "{id:?}");
    }
    // Nor is what belongs to another session.
    let other = Session::open(&client, "2025-11-25").await;
    assert_eq!(other.get_from(&last).send().await.status, 400);
    let mut rest = session.get_from(&last).send().await.events();
    stub.release(1);
    assert_eq!(text(&rest.message().await), "done");
}

#[tokio::test(start_paused = true)]
async fn a_tool_may_close_the_connection_and_go_on() {
    let stub = Stub::new();
    let session = session(&stub, "2025-11-25").await;
    let _standalone = session.get().send().await.events();
    let mut events = session.call(1, "close_stream", json!({})).send().await.events();
    let primer = events.event().await.unwrap();
    assert_eq!((primer.data.as_str(), primer.id.is_some()), ("", true));
    assert_eq!(events.retry(), Some(1000));
    assert_eq!(events.event().await, None, "closed before the response");
    let last = events.last_id().to_owned();
    assert_eq!(stub.counts().running, 1);

    let mut resumed = session.get_from(&last).send().await.events();
    assert!(resumed.is_quiet().await, "and not closed again");
    stub.release(1);
    assert_eq!(text(&resumed.message().await), "after the break");
    assert_eq!(resumed.next().await, None);
}

#[tokio::test(start_paused = true)]
async fn a_connection_closed_while_nobody_reads_is_not_closed_again() {
    let stub = Stub::new();
    let session = session(&stub, "2025-11-25").await;
    let arguments = json!({"n": 1, "wait": true, "close": true});
    let mut events = session.call_with_token(1, "progress", arguments, json!("t")).send().await.events();
    events.message().await;
    let last = events.last_id().to_owned();
    drop(events);
    // The tool closes the stream now, which nobody reads.
    stub.release(1);
    settle().await;
    let mut resumed = session.get_from(&last).send().await.events();
    assert!(resumed.is_quiet().await);
    stub.release(1);
    assert_eq!(text(&resumed.message().await), "done");
}

#[tokio::test(start_paused = true)]
async fn older_clients_could_not_come_back_and_are_not_sent_away() {
    for revision in &LEGACY[..3] {
        let stub = Stub::new();
        stub.release(1);
        let answer = session(&stub, revision).await.call(1, "close_stream", json!({})).send().await;
        assert_eq!(text(&answer.json().await), "after the break", "{revision}");
    }
}

#[tokio::test(start_paused = true)]
async fn only_2025_11_25_gets_events_without_content() {
    for revision in LEGACY {
        let stub = Stub::new();
        stub.release(1);
        let session = session(&stub, revision).await;
        let mut events = session.call_with_token(1, "progress", json!({}), json!(1)).send().await.events();
        let first = events.event().await.unwrap();
        assert_eq!(first.data.is_empty(), revision == "2025-11-25", "{revision}");
    }
}
