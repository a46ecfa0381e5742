//! Servers that are down, slow, garbled, killed or replaced: the rest goes on, and what is wrong is said.
#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use serde_json::{Value, json};
use tidegate_edge::Eras;
use tidegate_gateway::{Gateway, Health, Settings};
use tidegate_protocol::{Method, Symbol};
use tidegate_server::{Cx, Prompt, PromptArgs, Resource, Server};
use tidegate_service::layers::BreakerSettings;
use tidegate_service::{Call, Door, Notice, Outbox, Reply};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::Notify;

use crate::rig::*;
use crate::world::child;

/// A server with one of everything.
fn small(name: &str, tool: &str) -> Server {
    Server::new(name, "1.0")
        .dynamic()
        .tool(says(tool, &format!("{tool} of {name}")))
        .prompt(Prompt::new("p").handler(|_: PromptArgs, _: Cx| async { Ok("Hello") }))
        .resource(Resource::text(format!("{name}://r"), "r", "text"))
}

/// An address where nobody listens.
async fn nowhere() -> std::net::SocketAddr {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap()
}

/// A directory of a test's own, which is not there yet.
fn directory(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("gateway-{name}-{}", std::process::id()));
    std::fs::remove_dir_all(&path).ok();
    path
}

/// Told of changes of the list of tools.
pub(crate) async fn listening(gateway: &Gateway) -> Outbox {
    let params = json!({"notifications": {"toolsListChanged": true}});
    match modern().ask(gateway, "subscriptions/listen", params).await {
        Reply::Subscription(open) => open.events,
        other => panic!("{other:?}"),
    }
}

pub(crate) async fn told(events: &Outbox) {
    assert_eq!(in_time("a change", events.next()).await, Some(Notice::ToolsChanged));
}

/// A server that answers every request with bytes that are no message.
async fn garbled() -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut taken = [0; 4096];
                while stream.read(&mut taken).await.is_ok_and(|read| read > 0) {
                    let answer =
                        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 5\r\n\r\n{{{{{";
                    if stream.write_all(answer.as_bytes()).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    address
}

/// Who calls at once waits for a server that is just starting, for what it does not list, too.
#[tokio::test]
async fn what_a_starting_server_does_not_list() {
    let ready = Arc::new(Notify::new());
    let hidden = Server::new("slow", "1").tool(says("hidden", "found").unlisted()).build();
    let gate = ready.clone();
    let slow = tower::service_fn(move |call: Call| {
        let (hidden, gate) = (hidden.clone(), gate.clone());
        async move {
            if call.method == Method::Discover {
                gate.notified().await;
                gate.notify_one();
            }
            hidden.answer(call).await
        }
    });
    let gateway = Gateway::start(settings([door("slow", slow)])).unwrap();
    let asked = tokio::spawn({
        let gateway = gateway.clone();
        async move { modern().call(&gateway, "slow_hidden").await }
    });
    // It has asked and found nothing before the server is there.
    tokio::task::yield_now().await;
    ready.notify_one();
    assert_eq!(asked.await.unwrap(), ("found".to_owned(), false));
    gateway.close().await;
}

#[tokio::test]
async fn servers_that_are_down_hang_or_garble_do_not_hold_up_the_rest() {
    // It takes connections and never says a word.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let ready = Arc::new(Notify::new());
    let (slow, gate) = (small("slow", "t").build(), ready.clone());
    let slow = tower::service_fn(move |call: Call| {
        let (slow, gate) = (slow.clone(), gate.clone());
        async move {
            if call.method == Method::Discover {
                gate.notified().await;
                gate.notify_one();
            }
            slow.answer(call).await
        }
    });
    let servers = [
        at("refused", nowhere().await),
        at("silent", silent.local_addr().unwrap()),
        at("garbled", garbled().await),
        door("slow", slow),
        local("good", small("good", "t")),
    ];
    let gateway = Gateway::start(settings(servers)).unwrap();
    let caller = modern();
    // Neither ends before it is answered, and the others never are.
    assert_eq!(caller.call(&gateway, "good_t").await, ("t of good".to_owned(), false));
    assert_eq!(caller.list(&gateway, "tools/list").await, ["good_t"]);
    assert_eq!(caller.list(&gateway, "prompts/list").await, ["good_p"]);
    assert_eq!(
        caller.get(&gateway, "resources/read", json!({"uri": "good://r"})).await["contents"][0]["text"],
        "text"
    );
    until("what is wrong with them", async || {
        ["refused", "garbled"].iter().all(|name| matches!(health(&gateway, name), Health::Down { .. }))
    })
    .await;
    for (name, wrong) in [("silent", Health::Starting), ("slow", Health::Starting), ("good", Health::Ready)] {
        assert_eq!(health(&gateway, name), wrong, "{name}");
    }
    // Who asks for what they may have is told why it is not there.
    let all = ["\"refused\" is down", "\"garbled\" is down", "\"slow\" is still starting"];
    for (name, told) in [("t", &all[..]), ("refused_t", &all[..1])] {
        let error = caller.fails(&gateway, "tools/call", json!({"name": name})).await;
        assert_eq!(error.symbol(), Symbol::ToolNotFound);
        for part in all {
            assert_eq!(error.message().contains(part), told.contains(&part), "{part:?}: {error}");
        }
    }
    let events = listening(&gateway).await;
    ready.notify_one();
    told(&events).await;
    assert_eq!(caller.list(&gateway, "tools/list").await, ["slow_t", "good_t"]);
    assert_eq!(caller.call(&gateway, "slow_t").await.0, "t of slow");
    gateway.close().await;
}

#[tokio::test]
async fn a_server_that_never_says_whether_it_tells_of_changes_is_listed_all_the_same() {
    let server = small("s", "t").build();
    let deaf = tower::service_fn(move |call: Call| {
        let server = server.clone();
        async move {
            if call.method == Method::Listen {
                std::future::pending::<()>().await;
            }
            server.answer(call).await
        }
    });
    let gateway = Gateway::start(settings([door("s", deaf)])).unwrap();
    until("its tools", async || modern().list(&gateway, "tools/list").await == ["s_t"]).await;
    gateway.close().await;
}

#[tokio::test]
async fn the_last_known_lists_stay_and_the_server_comes_back_by_itself() {
    for eras in [Eras::Modern, Eras::Legacy] {
        let dir = directory(&format!("kept-{eras:?}"));
        let server = Served::start(small("s", "t"), eras).await;
        let address = server.address;
        let settings = || Settings { state_dir: Some(dir.clone()), ..settings([at("s", address)]) };
        let first = started(settings()).await;
        let caller = modern();
        let before = caller.get(&first, "tools/list", json!({})).await["tools"].clone();
        let kept = || {
            std::fs::read_dir(dir.join("lists")).is_ok_and(|mut files| {
                files.any(|file| {
                    file.is_ok_and(|file| file.path().extension().is_some_and(|end| end == "json"))
                })
            })
        };
        until("the lists on disk", async || kept()).await;
        first.close().await;
        drop(server);

        let gateway = started(settings()).await;
        let Health::Down { why, .. } = health(&gateway, "s") else { panic!("{:?}", gateway.status()) };
        assert_eq!(gateway.status()[0].listed, [1, 1, 1, 0]);
        let list = caller.get(&gateway, "tools/list", json!({})).await;
        assert_eq!(list["tools"], before);
        assert_eq!((&list["ttlMs"], &list["cacheScope"]), (&json!(0), &json!("private")));
        let (text, failed) = caller.call(&gateway, "s_t").await;
        // Where the server is, and why it cannot be reached, is the business of whoever runs the gateway.
        let is_told = |text: &str| text.contains("The server \"s\" is down") && !text.contains("127.0.0.1");
        assert!(why.contains("127.0.0.1"), "{why}");
        assert!(failed && is_told(&text), "{text}");
        for (method, params) in
            [("prompts/get", json!({"name": "s_p"})), ("resources/read", json!({"uri": "s://r"}))]
        {
            let error = caller.fails(&gateway, method, params).await;
            assert_eq!(error.symbol(), Symbol::Unavailable);
            assert!(is_told(&error.to_string()), "{error}");
        }
        let events = listening(&gateway).await;
        let back = small("s", "t").tool(says("more", "more")).build();
        let _serving = serve(back, eras, address).await;
        told(&events).await;
        assert_eq!(caller.list(&gateway, "tools/list").await, ["s_t", "s_more"]);
        assert_eq!(caller.call(&gateway, "s_more").await, ("more".to_owned(), false));
        assert_eq!(health(&gateway, "s"), Health::Ready);
        gateway.close().await;
        std::fs::remove_dir_all(&dir).ok();
    }
}

#[tokio::test]
async fn nobody_waits_for_a_server_of_which_all_is_known() {
    let dir = directory("warm");
    let server = Served::start(small("s", "t").instructions("Be kind."), Eras::Legacy).await;
    let address = server.address;
    let settings = || Settings { state_dir: Some(dir.clone()), ..settings([at("s", address)]) };
    let first = started(settings()).await;
    let kept = || {
        std::fs::read_dir(dir.join("lists"))
            .into_iter()
            .flatten()
            .flatten()
            .any(|file| std::fs::read_to_string(file.path()).is_ok_and(|text| text.contains("Be kind.")))
    };
    until("what it says on disk", async || kept()).await;
    first.close().await;
    drop(server);
    // It takes connections now, and says nothing.
    let _silent = in_time("the address to be free", async {
        loop {
            if let Ok(listener) = TcpListener::bind(address).await {
                return listener;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    let gateway = Gateway::start(settings()).unwrap();
    let discover = modern();
    let discover = discover.get(&gateway, "server/discover", json!({})).now_or_never();
    let said = discover.expect("an answer at once")["instructions"].clone();
    assert_eq!(said, "Its tools and prompts have `s_` before their names here.\n\nBe kind.");
    let caller = modern();
    let listed = caller.list(&gateway, "tools/list").now_or_never();
    assert_eq!(listed.expect("a list at once"), ["s_t"]);
    assert_eq!(health(&gateway, "s"), Health::Starting);
    gateway.close().await;
    std::fs::remove_dir_all(&dir).ok();
}

#[tokio::test]
async fn a_server_that_goes_away_is_noticed_and_so_is_its_return() {
    for eras in [Eras::Modern, Eras::Legacy] {
        let server = Served::start(small("s", "t"), eras).await;
        let address = server.address;
        let mut settings = at("s", address);
        // What could not be reached is there again when it answers a probe, however long callers were told to wait.
        settings.options.breaker = Some(BreakerSettings::consecutive(5, Duration::from_secs(3600)));
        let gateway = gateway([settings, local("good", small("good", "t"))]).await;
        let caller = modern();
        assert_eq!(caller.call(&gateway, "s_t").await.0, "t of s");
        drop(server);
        until("that it is down", async || {
            let (text, failed) = caller.call(&gateway, "s_t").await;
            assert!(failed, "{text}");
            matches!(health(&gateway, "s"), Health::Down { .. })
        })
        .await;
        let (text, _) = caller.call(&gateway, "s_t").await;
        assert!(text.contains("The server \"s\" is down"), "{text}");
        assert_eq!(caller.list(&gateway, "tools/list").await, ["s_t", "good_t"], "it stays listed");
        assert_eq!(caller.call(&gateway, "good_t").await.0, "t of good");
        let _serving = serve(small("s", "t").build(), eras, address).await;
        until("that it is back", async || health(&gateway, "s") == Health::Ready).await;
        assert_eq!(caller.call(&gateway, "s_t").await, ("t of s".to_owned(), false));
        gateway.close().await;
    }
}

#[tokio::test]
async fn a_session_that_the_server_has_forgotten_costs_one_retryable_error_at_most() {
    let server = Served::start(small("s", "t"), Eras::Legacy).await;
    let address = server.address;
    let gateway = gateway([at("s", address)]).await;
    let caller = legacy();
    assert_eq!(caller.call(&gateway, "s_t").await.0, "t of s");
    drop(server);
    let _serving = serve(small("s", "t").build(), Eras::Legacy, address).await;
    let call = json!({"name": "s_t", "arguments": {}});
    let first = caller.get(&gateway, "tools/call", call.clone()).await;
    if first["isError"] == true {
        assert_eq!(first["_meta"]["dev.tidegate/error"]["retryable"], true, "{first}");
        assert_eq!(caller.call(&gateway, "s_t").await, ("t of s".to_owned(), false));
    }
    gateway.close().await;
}

/// The process of a server, as it says itself.
pub(crate) async fn pid(gateway: &Gateway, server: &str) -> Option<u32> {
    let (text, failed) = modern().call(gateway, &format!("{server}_pid")).await;
    (!failed).then(|| text.parse().unwrap())
}

pub(crate) fn lives(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

#[tokio::test]
async fn a_process_that_dies_is_started_again() {
    let gateway = gateway([child("new", Eras::Modern), child("old", Eras::Legacy)]).await;
    let before = modern().list(&gateway, "tools/list").await;
    for server in ["new", "old"] {
        let first = pid(&gateway, server).await.expect("it runs");
        let (text, failed) = modern().call(&gateway, &format!("{server}_die")).await;
        assert!(failed, "{text}");
        assert_eq!(modern().list(&gateway, "tools/list").await, before, "it stays listed");
        until("another process", async || pid(&gateway, server).await.is_some_and(|second| second != first))
            .await;
        assert!(!lives(first));
        until("that it is well", async || health(&gateway, server) == Health::Ready).await;
    }
    gateway.close().await;
}

#[tokio::test]
async fn a_process_that_nobody_uses_rests_until_it_is_called() {
    let mut servers = [child("new", Eras::Modern), child("old", Eras::Legacy)];
    for server in &mut servers {
        server.idle = Some(Duration::from_millis(1));
        server.options.sessions.idle = Duration::from_millis(1);
    }
    let gateway = gateway(servers.map(|server| server.seal())).await;
    let caller = modern();
    let tools = caller.list(&gateway, "tools/list").await;
    for server in ["new", "old"] {
        let first = pid(&gateway, server).await.expect("it runs");
        until("its rest", async || health(&gateway, server) == Health::Resting && !lives(first)).await;
        assert_eq!(caller.list(&gateway, "tools/list").await, tools, "it stays listed");
        let second = pid(&gateway, server).await.expect("it was started again");
        assert_ne!(first, second);
        until("its rest", async || health(&gateway, server) == Health::Resting && !lives(second)).await;
    }
    gateway.close().await;
}

#[tokio::test]
async fn a_list_that_is_kept_belongs_to_one_server() {
    let dir = directory("whose");
    let (one, two) = (Served::start(small("s", "one"), Eras::Modern).await, nowhere().await);
    let with = |address| Settings { state_dir: Some(dir.clone()), ..settings([at("s", address)]) };
    let first = started(with(one.address)).await;
    until("the lists on disk", async || {
        std::fs::read_dir(dir.join("lists")).is_ok_and(|files| {
            let texts = files.flatten().map(|file| std::fs::read_to_string(file.path()).unwrap_or_default());
            texts.into_iter().any(|text| {
                serde_json::from_str::<Value>(&text).is_ok_and(|all| all["tools"][0]["name"] == "one")
            })
        })
    })
    .await;
    first.close().await;
    let other = started(with(two)).await;
    assert_eq!(modern().list(&other, "tools/list").await, [""; 0], "the name means another server now");
    other.close().await;
    std::fs::remove_dir_all(&dir).ok();
}
