//! Many clients doing everything at once on several threads: nobody waits for ever, and nothing is left behind.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};
use tidegate_edge::http::Settings;
use tidegate_edge::stdio;
use tidegate_service::Notice;

use crate::common::*;

/// Keeps letting tools finish and telling of changes.
fn stir(stub: &Stub) -> tokio::task::JoinHandle<()> {
    let stub = stub.clone();
    tokio::spawn(async move {
        loop {
            stub.release(1);
            stub.tell(&Notice::ToolsChanged);
            stub.tell(&Notice::ResourceUpdated("mem:a".into()));
            tokio::task::yield_now().await;
        }
    })
}

async fn everything_ends(stub: &Stub) {
    stub.until("all tools to end", |c| c.running == 0).await;
    in_time("all subscriptions to end", async {
        while stub.subscriptions() > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn legacy_sessions() {
    let stub = Stub::new();
    let client = Client::new(&stub, Settings::default());
    let stirring = stir(&stub);
    let clients: Vec<_> = (0..8).map(|seed| tokio::spawn(one_session(client.clone(), seed))).collect();
    for client in clients {
        client.await.unwrap();
    }
    stirring.abort();
    everything_ends(&stub).await;
}

async fn one_session(client: Client, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let session = Session::open(&client, "2025-11-25").await;
    let mut changes = session.get().send().await.events();
    for n in 0..60 {
        let token =
            json!({"name": "progress", "arguments": {"n": 3, "wait": true}, "_meta": {"progressToken": n}});
        match random.u8(..7) {
            0 => {
                let got = session.call(n, "slow", json!({})).send().await.json().await;
                assert_eq!(text(&got), "done");
            }
            1 => {
                let got = session.request(n, "tools/call", token).send().await.events().rest().await;
                assert_eq!((got.len(), &got[3]["id"]), (4, &json!(n)));
            }
            // The connection breaks somewhere, and the client comes back.
            2 => {
                let mut events = session.request(n, "tools/call", token).send().await.events();
                for _ in 0..random.u8(..3) {
                    events.event().await;
                }
                events.event().await;
                let last = events.last_id().to_owned();
                drop(events);
                let rest = session.get_from(&last).send().await.events().rest().await;
                assert_eq!(rest.last().unwrap()["id"], json!(n), "{rest:?}");
            }
            3 => {
                let running = tokio::spawn(session.call(n, "never", json!({})).send());
                tokio::task::yield_now().await;
                // It may not have begun yet: cancelled until it has ended.
                while !running.is_finished() {
                    session.notify("notifications/cancelled", json!({"requestId": n})).await;
                    tokio::task::yield_now().await;
                }
                assert_eq!(running.await.unwrap().text().await, "");
            }
            4 => {
                let mut events = session
                    .call(n, "ask", json!({"ask": ["form", "roots"], "rounds": 2}))
                    .send()
                    .await
                    .events();
                for _ in 0..4 {
                    session.answer(&events.message().await, json!({"n": n})).await;
                }
                assert!(text(&events.message().await).contains("form2"));
            }
            5 => changes = session.get().send().await.events(),
            _ => {
                session.request(n, "resources/subscribe", json!({"uri": "mem:a"})).send().await;
                // Told of again and again, so this must come.
                loop {
                    let told = changes.message().await;
                    if told["params"]["uri"] == "mem:a" {
                        break;
                    }
                }
                session.request(n, "resources/unsubscribe", json!({"uri": "mem:a"})).send().await;
            }
        }
    }
    assert_eq!(session.delete().send().await.status, 204);
    while changes.next().await.is_some() {}
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn modern_requests() {
    let stub = Stub::new();
    let client = Client::new(&stub, Settings::default());
    let stirring = stir(&stub);
    let clients: Vec<_> = (0..8).map(|seed| tokio::spawn(modern_client(client.clone(), seed))).collect();
    for client in clients {
        client.await.unwrap();
    }
    stirring.abort();
    everything_ends(&stub).await;
}

async fn modern_client(client: Client, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    for n in 0..60 {
        let with_token =
            json!({"name": "progress", "arguments": {"n": 3, "wait": true}, "_meta": {"progressToken": n}});
        match random.u8(..4) {
            0 => assert_eq!(text(&client.ask("tools/call", json!({"name": "slow"})).await), "done"),
            1 => {
                let got =
                    client.modern(&modern(n, "tools/call", with_token)).send().await.events().rest().await;
                assert_eq!((got.len(), &got[3]["id"]), (4, &json!(n)));
            }
            2 => {
                let mut events = client.modern(&modern(n, "tools/call", with_token)).send().await.events();
                events.message().await;
            }
            _ => {
                let listen =
                    modern(n, "subscriptions/listen", json!({"notifications": {"toolsListChanged": true}}));
                let mut events = client.modern(&listen).send().await.events();
                assert_eq!(events.message().await["method"], "notifications/subscriptions/acknowledged");
                for _ in 0..3 {
                    assert_eq!(events.message().await["method"], "notifications/tools/list_changed");
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_pipe() {
    let stub = Stub::new();
    let mut pipe = Pipe::legacy(&stub, stdio::Settings::default(), "2025-11-25").await;
    let mut random = fastrand::Rng::with_seed(7);
    let (mut wanted, mut cancelled) = (BTreeSet::new(), BTreeSet::new());
    for n in 0..1000u64 {
        let name = if random.bool() { "slow" } else { "echo" };
        match random.bool() {
            true => pipe.call(n, name, json!({})).await,
            false => pipe.send(&modern(n, "tools/call", json!({"name": name}))).await,
        }
        if random.u8(..4) == 0 {
            pipe.cancel(n).await;
            cancelled.insert(n);
        } else {
            wanted.insert(n);
        }
        stub.release(usize::from(random.bool()));
    }
    stub.release(1000);
    let (rest, ended) = pipe.finish().await;
    assert_eq!(ended, stdio::Ended::Eof);
    let mut answered = BTreeSet::new();
    for id in rest.iter().filter_map(|m: &Value| m["id"].as_u64()) {
        assert!(answered.insert(id), "{id} was answered twice");
    }
    let missing: Vec<_> = wanted.difference(&answered).collect();
    assert!(missing.is_empty(), "never answered: {missing:?}");
    assert!(answered.difference(&wanted).all(|id| cancelled.contains(id)));
    everything_ends(&stub).await;
}
