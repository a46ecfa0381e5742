//! Interactive calls through the gateway: callers of both eras in front of servers of both eras, all in one gateway and
//! at the same time.

use std::collections::HashMap;
use std::net::SocketAddr;

use futures_util::future::join_all;
use serde_json::{Value, json};
use tidegate_client::Instances;
use tidegate_edge::Eras;
use tidegate_gateway::Gateway;
use tidegate_protocol::Method;
use tidegate_server::ServerHandle;
use tidegate_service::{Call, Door};
use tokio_util::sync::DropGuard;

use crate::callers::{REVISIONS, Wire};
use crate::rig::*;
use crate::world::{Seen, child, world};

/// The servers that are mounted, and under which name they know themselves.
const SERVERS: [(&str, &str); 6] = [
    ("here", "here"),
    ("old", "old"),
    ("new", "new"),
    ("both", "both"),
    ("pipe-old", "child"),
    ("pipe-new", "child"),
];

/// A gateway with a server of each era over each transport.
struct Rig {
    gateway: Gateway,
    /// What the servers in this process have seen.
    seen: Seen,
    handles: Vec<(&'static str, ServerHandle)>,
    _serving: Vec<(SocketAddr, DropGuard)>,
}

impl Rig {
    async fn start() -> Rig {
        Rig::with(Instances::PerUser).await
    }

    /// With so many processes of a legacy server.
    async fn with(instances: Instances) -> Rig {
        let seen = Seen::default();
        let here = world("here", seen.clone()).build();
        let mut handles = vec![("here", here.handle())];
        let mut servers = vec![door("here", here)];
        let mut serving = Vec::new();
        for (name, eras) in [("old", Eras::Legacy), ("new", Eras::Modern), ("both", Eras::Both)] {
            let built = world(name, seen.clone()).build();
            handles.push((name, built.handle()));
            let served = serve(built, eras, ([127, 0, 0, 1], 0).into()).await;
            servers.push(at(name, served.0));
            serving.push(served);
        }
        let mut old = child("pipe-old", Eras::Legacy);
        old.options.sessions.instances = instances;
        servers.extend([old.seal(), child("pipe-new", Eras::Modern)]);
        let gateway = gateway(servers).await;
        for status in gateway.status() {
            assert_eq!(status.health.as_str(), "ready", "{status:?}");
            let legacy = status.name.ends_with("old");
            assert_eq!(status.revision.unwrap().is_modern(), !legacy, "{status:?}");
        }
        Rig { gateway, seen, handles, _serving: serving }
    }

    /// How often the servers in this process have noted something.
    fn count(&self, what: &str) -> usize {
        self.seen.lock().unwrap().iter().filter(|seen| *seen == what).count()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_caller_is_asked_its_own_questions_by_every_server_at_the_same_time() {
    let rig = Rig::start().await;
    let names = ["Ann", "Bob"];
    let callers = REVISIONS.iter().flat_map(|revision| names.map(|name| (name, *revision)));
    let all = callers.map(|(name, revision)| {
        let rig = &rig;
        async move {
            let mut caller = Wire::open(&rig.gateway, name, revision).await;
            for (server, _) in SERVERS {
                let at = format!("{name} in {revision} in front of {server}");
                let call = async |caller: &mut Wire, tool: &str| {
                    caller.asked.clear();
                    let (text, failed) = caller.call(&format!("{server}_{tool}")).await;
                    assert!(!failed, "{at}: {text}");
                    text
                };
                assert_eq!(call(&mut caller, "greet").await, format!("Hello, {name}!"), "{at}");
                assert_eq!(caller.asked, ["elicitation/create"], "{at}");
                assert_eq!(call(&mut caller, "think").await, format!("{name} says \"hi\""), "{at}");
                assert_eq!(caller.asked, ["sampling/createMessage"], "{at}");
                assert_eq!(call(&mut caller, "look").await, format!("file:///{name}"), "{at}");
                assert_eq!(caller.asked, ["roots/list"], "{at}");
                assert_eq!(call(&mut caller, "chain").await, format!("{name}: {name} says \"hm\""), "{at}");
                assert_eq!(call(&mut caller, "who").await, name, "{at}");
            }
            assert!(caller.notes.is_empty(), "{:?}", caller.notes);
        }
    });
    join_all(all).await;
    rig.gateway.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn progress_and_logs_come_to_their_call_and_at_its_level() {
    let rig = Rig::start().await;
    for revision in REVISIONS {
        let mut caller = Wire::open(&rig.gateway, "Ann", revision).await;
        for (level, expected) in
            [(None, None), (Some("debug"), Some(3)), (Some("info"), Some(2)), (Some("error"), Some(1))]
        {
            caller.level = level;
            if let (Some(level), false) = (level, caller.is_modern()) {
                let set = caller.request("logging/setLevel", json!({"level": level})).await;
                assert_eq!(set["result"], json!({}));
            }
            // A modern caller that names no level gets none; a legacy one gets what is of interest.
            let logs = expected.unwrap_or(if caller.is_modern() { 0 } else { 2 });
            for (server, _) in SERVERS {
                let at = format!("{revision} in front of {server} at {level:?}");
                let token = json!(format!("token of {server}"));
                let params = json!({"name": format!("{server}_work"), "arguments": {}, "_meta": {"progressToken": token}});
                let answer = caller.request("tools/call", params).await;
                assert_eq!(answer["result"]["content"][0]["text"], "done", "{at}");
                let told = std::mem::take(&mut caller.notes);
                let of = |method: &str| -> Vec<&Value> {
                    told.iter().filter(|note| note["method"] == method).map(|note| &note["params"]).collect()
                };
                let progress = of("notifications/progress");
                assert!(progress.iter().all(|p| p["progressToken"] == token), "{at}: {progress:?}");
                assert_eq!(
                    progress.iter().map(|p| p["progress"].as_f64().unwrap()).collect::<Vec<_>>(),
                    [1.0, 2.0, 3.0],
                    "{at}"
                );
                let messages: Vec<_> =
                    of("notifications/message").iter().map(|m| m["data"].as_str().unwrap()).collect();
                let all = ["debug", "info", "error"];
                assert_eq!(messages, all[3 - logs..], "{at}");
                assert_eq!(told.len(), 3 + logs, "nothing else: {told:?}");
            }
        }
        // Without a token there is no progress.
        let quiet = caller.call("old_work").await;
        assert_eq!(quiet.0, "done");
        assert!(caller.notes.iter().all(|note| note["method"] != "notifications/progress"));
    }
    rig.gateway.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_call_is_cancelled_where_it_runs_and_no_other_is() {
    let rig = Rig::start().await;
    for (n, revision) in REVISIONS.into_iter().enumerate() {
        let mut ann = Wire::open(&rig.gateway, "Ann", revision).await;
        let mut bob = Wire::open(&rig.gateway, "Bob", revision).await;
        for (m, (server, _)) in SERVERS.into_iter().take(4).enumerate() {
            let wait = json!({"name": format!("{server}_wait"), "arguments": {}});
            let mine = ann.send("tools/call", wait.clone()).await;
            bob.send("tools/call", wait).await;
            let calls = n * 4 + m + 1;
            until("both to begin", async || {
                rig.count("began Ann") == calls && rig.count("began Bob") == calls
            })
            .await;
            let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
                "params": {"requestId": mine, "reason": "enough"}});
            ann.write(&cancelled.to_string()).await;
            until("the end of Ann's", async || rig.count("stopped Ann") == calls).await;
            assert_eq!(ann.call(&format!("{server}_who")).await.0, "Ann", "the connection goes on");
            assert_eq!(rig.count("stopped Bob"), n * 4, "{revision} in front of {server}");
        }
        drop(bob);
        // Who leaves wants nothing any more.
        until("the end of Bob's", async || rig.count("stopped Bob") == (n + 1) * 4).await;
    }
    rig.gateway.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_of_lists_and_resources_are_told_in_the_way_of_the_callers_era() {
    for revision in REVISIONS {
        // Where each caller has a process, what changes in one is no business of the others.
        let rig = Rig::with(Instances::One).await;
        let mut caller = Wire::open(&rig.gateway, "Ann", revision).await;
        let mut other = Wire::open(&rig.gateway, "Bob", revision).await;
        let resources: Vec<_> = SERVERS.iter().map(|(_, name)| format!("{name}://memo")).collect();
        // Both processes have the same resource, so theirs are qualified.
        let qualified = |server: &str, own: &str| match server.starts_with("pipe") {
            true => format!("{server}+{own}"),
            false => own.to_owned(),
        };
        let uris: Vec<_> =
            SERVERS.iter().zip(&resources).map(|((server, _), own)| qualified(server, own)).collect();
        match caller.is_modern() {
            true => {
                let wanted = json!({"toolsListChanged": true, "resourceSubscriptions": uris});
                let id = caller.send("subscriptions/listen", json!({"notifications": wanted})).await;
                let acknowledged = caller.told().await;
                assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
                let meta = &acknowledged["params"]["_meta"];
                assert_eq!(meta["io.modelcontextprotocol/subscriptionId"], id);
            }
            false => {
                for uri in &uris {
                    let answer = caller.request("resources/subscribe", json!({"uri": uri})).await;
                    assert_eq!(answer["result"], json!({}), "{answer}");
                }
            }
        }
        for ((server, _), uri) in SERVERS.iter().zip(&uris) {
            let at = format!("{revision} in front of {server}");
            assert_eq!(other.call(&format!("{server}_touch")).await.0, "touched");
            let updated = caller.told_of("notifications/resources/updated").await;
            assert_eq!(updated["params"]["uri"], **uri, "{at}");
            assert_eq!(other.call(&format!("{server}_grow")).await.0, "grew");
            caller.told_of("notifications/tools/list_changed").await;
            let answer = caller.request("tools/list", json!({})).await;
            assert!(
                keys(&answer["result"]).contains(&format!("{server}_grown")),
                "{at}: what was told is there"
            );
            caller.notes.clear();
            assert_eq!(caller.call(&format!("{server}_grown")).await.0, "grown");
        }
        if caller.is_modern() {
            assert!(other.notes.is_empty(), "who did not ask is not told: {:?}", other.notes);
        }
        rig.gateway.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn subscriptions_with_servers_end_with_their_caller() {
    let rig = Rig::start().await;
    let open = || rig.handles.iter().map(|(_, handle)| handle.subscriptions()).sum::<usize>();
    // The gateway listens itself. A legacy session of the modern edge is fed by one more.
    let before = open();
    for revision in REVISIONS {
        let mut caller = Wire::open(&rig.gateway, "Ann", revision).await;
        match caller.is_modern() {
            true => {
                let uris = ["here://memo", "new://memo", "both://memo"];
                let wanted = json!({"resourceSubscriptions": uris});
                caller.send("subscriptions/listen", json!({"notifications": wanted})).await;
                caller.told().await;
            }
            false => {
                for uri in ["here://memo", "new://memo", "both://memo"] {
                    caller.request("resources/subscribe", json!({"uri": uri})).await;
                }
            }
        }
        until("subscriptions", async || open() >= before + 3).await;
        drop(caller);
        until("their end", async || open() == before).await;
    }
    rig.gateway.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_there_has_the_code_of_the_callers_era() {
    let rig = Rig::start().await;
    for revision in REVISIONS {
        let mut caller = Wire::open(&rig.gateway, "Ann", revision).await;
        let code = if caller.is_modern() { -32602 } else { -32002 };
        for (server, name) in SERVERS.into_iter().take(4) {
            let uri = format!("{name}://nothing");
            let answer = caller.request("resources/read", json!({"uri": uri})).await;
            assert_eq!(answer["error"]["code"], code, "{revision} in front of {server}: {answer}");
            assert_eq!(answer["error"]["data"]["uri"], uri);
        }
        let answer = caller.request("resources/read", json!({"uri": "nobody://x"})).await;
        assert_eq!(answer["error"]["code"], code, "{answer}");
        for (method, params) in
            [("tools/call", json!({"name": "old_nothing"})), ("prompts/get", json!({"name": "new_nothing"}))]
        {
            let answer = caller.request(method, params).await;
            assert_eq!(answer["error"]["code"], -32602, "{method}: {answer}");
        }
        let answer = caller.request("vendor/unknown", json!({})).await;
        assert_eq!(answer["error"]["code"], -32601, "{answer}");
    }
    rig.gateway.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_whose_roots_change_tells_the_servers_that_know_them() {
    let (seen, built) = (Seen::default(), world("old", Seen::default()).build());
    let noted = seen.clone();
    // Whose call came last in which session.
    let sessions = std::sync::Arc::new(std::sync::Mutex::new(HashMap::new()));
    let watched = tower::service_fn(move |call: Call| {
        let mut sessions = sessions.lock().unwrap();
        if call.method == Method::RootsChanged {
            let whose = sessions.get(&call.context.caller).cloned();
            noted.lock().unwrap().push(whose.unwrap_or_default());
        } else if call.method == Method::ToolsCall {
            let info: Value =
                call.context.client_info.as_ref().and_then(|info| info.to().ok()).unwrap_or_default();
            sessions.insert(call.context.caller, info["name"].as_str().unwrap_or_default().to_owned());
        }
        drop(sessions);
        built.answer(call)
    });
    let old = serve(watched, Eras::Legacy, ([127, 0, 0, 1], 0).into()).await;
    let new = serve(world("new", Seen::default()).build(), Eras::Modern, ([127, 0, 0, 1], 0).into()).await;
    let gateway = gateway([at("new", new.0), at("old", old.0)]).await;
    let mut ann = Wire::open(&gateway, "Ann", "2025-11-25").await;
    let mut bob = Wire::open(&gateway, "Bob", "2025-06-18").await;
    for server in ["old", "new"] {
        assert_eq!(ann.call(&format!("{server}_look")).await.0, "file:///Ann");
        assert_eq!(bob.call(&format!("{server}_look")).await.0, "file:///Bob");
    }
    for (caller, told) in [(&mut ann, &["Ann"][..]), (&mut bob, &["Ann", "Bob"])] {
        caller.write(r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#).await;
        until("that it is told", async || seen.lock().unwrap().len() == told.len()).await;
        assert_eq!(*seen.lock().unwrap(), told, "in its own session and in no other");
    }
    gateway.close().await;
}
