//! Several endpoints on one site: each has its own sessions, and every call says at which it came in.

use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tidegate_edge::http::{EndpointPath, Settings, Site};
use tidegate_protocol::seal::{Key, Sealer};
use tidegate_service::{Notice, Principal};

use crate::common::*;

const RESEARCH: &str = "/research/mcp";

fn settings() -> Settings {
    Settings::default().endpoint("research", RESEARCH)
}

fn site(stub: &Stub, settings: &Settings) -> (Site<tidegate_service::BoxDoor>, Client) {
    let site = Site::new(stub.door(), settings);
    (site.clone(), Client::of_site(site))
}

async fn status(ask: Ask) -> u16 {
    ask.send().await.status
}

#[tokio::test(start_paused = true)]
async fn every_call_says_at_which_endpoint_it_came_in() {
    let stub = Stub::new();
    let (_, default) = site(&stub, &settings());
    let told = json!({"jsonrpc": "2.0", "method": "notifications/vendor", "params": {}});
    let bare = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    for (client, name) in [(default.clone(), "-"), (default.at(RESEARCH), "research")] {
        client.ask("tools/call", json!({"name": "echo"})).await;
        let listen = modern(1, "subscriptions/listen", json!({"notifications": {"toolsListChanged": true}}));
        client.modern(&listen).send().await.events().message().await;
        let notification = client.post(told.to_string()).header("mcp-protocol-version", "2026-07-28");
        assert_eq!(status(notification).await, 202);
        assert_eq!(status(client.post(bare.to_string())).await, 200);
        assert_eq!(status(client.post(json!([bare, bare]).to_string())).await, 200);
        assert_eq!(stub.endpoints(), [name], "without a session");

        let session = Session::open(&client, "2025-03-26").await;
        assert_eq!(status(session.call(1, "echo", json!({}))).await, 200);
        assert_eq!(status(session.post(&json!([bare]))).await, 200);
        session.notify("notifications/vendor", json!({})).await;
        let task = session.call(2, "task", json!({"script": ["working", "completed"]}));
        assert_eq!(status(task).await, 200);
        let mut events = session.get().send().await.events();
        settle().await;
        stub.tell(&Notice::ToolsChanged);
        events.message().await;
        assert_eq!(stub.endpoints(), [name], "with one");
    }
    let last: Vec<String> = stub.calls();
    assert!(last.iter().filter(|call| *call == "subscriptions/listen").count() >= 4, "{last:?}");
}

#[tokio::test(start_paused = true)]
async fn over_stdio_the_settings_say_it() {
    let stub = Stub::new();
    let mut settings = tidegate_edge::stdio::Settings::default();
    settings.edge.endpoint = Some("research".into());
    let mut pipe = Pipe::open(&stub, settings);
    pipe.ask(&modern(1, "tools/call", json!({"name": "echo"}))).await;
    pipe.ask(&initialize("2025-11-25", json!({}))).await;
    pipe.ask(&json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "echo"}})).await;
    assert_eq!(stub.endpoints(), ["research"]);
}

#[tokio::test(start_paused = true)]
async fn sessions_are_good_at_their_own_endpoint() {
    let stub = Stub::new();
    let dir = TempDir::new().unwrap();
    for settings in [settings(), settings().keep_sessions(Sealer::new(Key::derive("key")), dir.path())] {
        let (_, default) = site(&stub, &settings);
        let research = default.at(RESEARCH);
        for (own, other) in [(&default, &research), (&research, &default)] {
            let session = Session::open(own, "2025-11-25").await;
            let elsewhere = Session { client: other.clone(), ..session.clone() };
            assert_eq!(status(elsewhere.call(1, "echo", json!({}))).await, 404);
            assert_eq!(status(elsewhere.delete()).await, 404);
            assert!(session.works().await);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_is_opened_anew_at_the_endpoint_of_that_name_and_path() {
    let stub = Stub::new();
    let dir = TempDir::new().unwrap();
    let kept = |settings: Settings| settings.keep_sessions(Sealer::new(Key::derive("key")), dir.path());
    let (before, client) = site(&stub, &kept(settings()));
    let session = Session::open(&client.at(RESEARCH), "2025-11-25").await;
    session.request(1, "resources/subscribe", json!({"uri": "mem:a"})).send().await;
    // Longer than changes are collected for before they are written.
    tokio::time::sleep(Duration::from_secs(1)).await;
    drop((before, client));
    let renamed = Settings::default().endpoint("other", RESEARCH);
    let moved = Settings::default().endpoint("research", "/moved");
    for (settings, path, expected) in
        [(renamed, RESEARCH, 404), (moved, "/moved", 404), (settings(), RESEARCH, 200)]
    {
        let (_, client) = site(&stub, &kept(settings));
        stub.endpoints();
        let again = Session { client: client.at(path), ..session.clone() };
        assert_eq!(status(again.call(1, "echo", json!({}))).await, expected, "{path}");
        if expected == 200 {
            assert_eq!(stub.endpoints(), ["research"], "discovery and the call");
            let mut events = again.get().send().await.events();
            let told: Vec<Value> =
                [events.message().await, events.message().await, events.message().await].into();
            assert!(told.iter().all(|message| message["method"].is_string()));
            assert_eq!(
                events.message().await["params"]["uri"],
                "mem:a",
                "it knows what it has subscribed to"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn endpoints_come_and_go_while_others_stay() {
    let stub = Stub::new();
    let (site, default) = site(&stub, &settings());
    let (research, sales) = (default.at(RESEARCH), default.at("/sales/mcp"));
    let sessions =
        [Session::open(&default, "2025-11-25").await, Session::open(&research, "2025-11-25").await];
    assert_eq!(status(sales.post(initialize("2025-11-25", json!({})).to_string())).await, 404);

    let named = |name: &str| EndpointPath::new(name, format!("/{name}/mcp"));
    site.set_endpoints(vec![named("sales"), named("research")]);
    let of_sales = Session::open(&sales, "2025-11-25").await;
    assert_eq!(site.sessions(), 3);
    assert!(sessions[0].works().await && sessions[1].works().await && of_sales.works().await);
    let mut standalone = of_sales.get().send().await.events();
    let listen = modern(1, "subscriptions/listen", json!({"notifications": {"toolsListChanged": true}}));
    let mut subscription = sales.modern(&listen).send().await.events();
    subscription.message().await;
    let running = of_sales.call(1, "never", json!({})).send();
    let stopped = async {
        stub.until("the call to run", |counts| counts.running == 1).await;
        site.set_endpoints(vec![named("research")]);
        stub.until("the call to end", |counts| counts.stopped == 1).await;
    };
    tokio::join!(running, stopped);
    while standalone.next().await.is_some() {}
    assert_eq!(subscription.message().await["result"]["resultType"], "complete", "it ends as it should");
    assert_eq!(status(of_sales.call(2, "echo", json!({}))).await, 404);
    assert!(sessions[0].works().await && sessions[1].works().await);
    assert_eq!(site.sessions(), 2);

    site.set_endpoints(vec![named("research"), named("sales")]);
    assert_eq!(status(of_sales.call(2, "echo", json!({}))).await, 404, "what has ended stays so");
    site.set_endpoints(vec![EndpointPath::new("other", RESEARCH)]);
    assert_eq!(
        status(sessions[1].call(2, "echo", json!({}))).await,
        404,
        "another endpoint at the same path"
    );
    assert!(sessions[0].works().await);
}

#[tokio::test(start_paused = true)]
async fn all_endpoints_have_room_for_so_many_sessions_together() {
    let settings = Settings { max_sessions: 3, http_sse: true, ..settings() };
    let (site, default) = site(&Stub::new(), &settings);
    let research = default.at(RESEARCH);
    let first = Session::open(&default, "2025-11-25").await;
    let second = Session::open(&research, "2025-11-25").await;
    let stream = default.request("GET", "/sse").send().await;
    assert_eq!(stream.status, 200);
    let hello = initialize("2025-11-25", json!({})).to_string();
    for client in [&default, &research] {
        let refused = client.post(&hello).send().await;
        assert_eq!((refused.status, refused.header("retry-after")), (503, "30"));
        let message = refused.json().await;
        assert!(message["error"]["message"].as_str().unwrap().contains("limit of 3"), "{message}");
    }
    assert_eq!(status(default.request("GET", "/sse")).await, 503);
    drop(stream);
    Session::open(&research, "2025-11-25").await;
    assert_eq!(status(first.delete()).await, 204);
    Session::open(&research, "2025-11-25").await;
    assert!(second.works().await);
    assert_eq!(site.sessions(), 3);
    // What nobody uses makes room, wherever it is.
    tokio::time::sleep(settings.session_idle).await;
    Session::open(&default, "2025-11-25").await;
}

#[tokio::test(start_paused = true)]
async fn one_principal_cannot_have_all_sessions() {
    let (_, client) = site(&Stub::new(), &Settings { max_sessions: 400, ..settings() });
    let hello = initialize("2025-11-25", json!({})).to_string();
    for n in 0..100 {
        let client = if n % 2 == 0 { client.clone() } else { client.at(RESEARCH) };
        assert_eq!(status(client.post(&hello).signed_in("ann")).await, 200);
    }
    let refused = client.post(&hello).signed_in("ann").send().await;
    assert_eq!((refused.status, refused.header("retry-after")), (503, "30"));
    let message = refused.json().await;
    assert!(message["error"]["message"].as_str().unwrap().contains("you have 100 open"), "{message}");
    assert_eq!(status(client.post(&hello).signed_in("bob")).await, 200);
    assert_eq!(status(client.post(&hello)).await, 200);
}

#[tokio::test(start_paused = true)]
async fn everything_of_a_principal_can_be_ended() {
    let stub = Stub::new();
    let dir = TempDir::new().unwrap();
    let kept = || {
        let settings = Settings { http_sse: true, ..settings() };
        settings.keep_sessions(Sealer::new(Key::derive("key")), dir.path())
    };
    let (site, client) = site(&stub, &kept());
    let hello = initialize("2025-11-25", json!({})).to_string();
    let mut ids = Vec::new();
    for (subject, path) in [("ann", "/mcp"), ("ann", RESEARCH), ("bob", "/mcp")] {
        let answer = client.at(path).post(&hello).signed_in(subject).send().await;
        ids.push((answer.header("mcp-session-id").to_owned(), subject, path));
    }
    let ask = |client: &Client, (id, subject, path): &(String, &str, &str), tool: &str| {
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool}});
        client.at(path).post(call.to_string()).header("mcp-session-id", id).signed_in(subject)
    };
    let mut streams = Vec::new();
    for subject in ["ann", "bob"] {
        let mut events = client.request("GET", "/sse").signed_in(subject).send().await.events();
        let path = events.event().await.unwrap().data;
        for message in [
            initialize("2024-11-05", json!({})),
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "never"}}),
        ] {
            let post = client.request("POST", &path).body(message.to_string()).signed_in(subject);
            assert_eq!(status(post).await, 202);
            settle().await;
        }
        streams.push(events);
    }
    let running = ask(&client, &ids[0], "never").send();
    let ended = async {
        stub.until("three calls to run", |counts| counts.running == 3).await;
        site.end_sessions_of(&Principal::subject("ann"));
        stub.until("two of them to end", |counts| counts.stopped == 2).await;
    };
    tokio::join!(running, ended);
    let [of_ann, mut of_bob]: [Events; 2] = streams.try_into().ok().unwrap();
    of_ann.rest().await;
    of_bob.message().await;
    assert!(of_bob.is_quiet().await);
    assert_eq!(stub.counts().running, 1);
    for (id, expected) in ids.iter().zip([404, 404, 200]) {
        assert_eq!(status(ask(&client, id, "echo")).await, expected, "{id:?}");
    }
    drop((site, client, of_bob));
    tokio::time::sleep(Duration::from_secs(1)).await;
    let (_, client) = self::site(&stub, &kept());
    for (id, expected) in ids.iter().zip([404, 404, 200]) {
        assert_eq!(status(ask(&client, id, "echo")).await, expected, "{id:?} after a restart");
    }
}
