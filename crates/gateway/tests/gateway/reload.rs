//! New configurations and the end: what did not change goes on, what runs is let finish, nothing is left behind.
#![cfg(target_os = "linux")]

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tidegate_edge::Eras;
use tidegate_gateway::{Gateway, Settings, Source};
use tidegate_protocol::Symbol;
use tidegate_server::{Cx, Server, Tool};
use tidegate_service::Reply;
use tokio::sync::Notify;

use crate::faults::{listening, lives, pid, told};
use crate::rig::*;
use crate::world::child;

/// A server with a tool that waits until it is let go.
fn holding() -> (Server, Arc<Notify>, Arc<Notify>) {
    let (began, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (tell, wait) = (began.clone(), go.clone());
    let hold = Tool::new("hold").handler(move |_: (), _: Cx| {
        let (tell, wait) = (tell.clone(), wait.clone());
        async move {
            tell.notify_one();
            wait.notified().await;
            "held"
        }
    });
    (Server::new("holding", "1.0").tool(hold), began, go)
}

/// A call that runs until its server lets it go.
async fn held(gateway: &Gateway, began: &Notify) -> tokio::task::JoinHandle<(String, bool)> {
    let running = gateway.clone();
    let call = tokio::spawn(async move { modern().call(&running, "holding_hold").await });
    in_time("the call to begin", began.notified()).await;
    call
}

#[tokio::test]
async fn a_new_configuration_leaves_alone_what_did_not_change() {
    let (server, began, go) = holding();
    let (same, changed) = (child("same", Eras::Modern), child("changed", Eras::Legacy));
    let served = Served::start(server, Eras::Modern).await;
    let before = settings([same.clone(), changed.clone(), served.named("holding")]);
    let gateway = started(before.clone()).await;
    let kept = pid(&gateway, "same").await.unwrap();
    let replaced = pid(&gateway, "changed").await.unwrap();
    let call = held(&gateway, &began).await;

    // Something that cannot be used changes nothing, wherever it stands.
    let mut broken = before.clone();
    broken.servers.swap_remove(1);
    broken.servers.push(tidegate_gateway::ServerSettings::new("bad", Source::Builtin("nothing".into())));
    let tools = modern().list(&gateway, "tools/list").await;
    assert!(gateway.reload(broken).await.unwrap_err().message.contains("nothing"));
    assert_eq!(modern().list(&gateway, "tools/list").await, tools);
    assert_eq!(pid(&gateway, "changed").await, Some(replaced));

    let events = listening(&gateway).await;
    let mut other = changed.clone();
    other.prefix = "other_".to_owned();
    gateway.reload(settings([other.seal(), same])).await.unwrap();
    told(&events).await;
    until("the new process", async || {
        let tools = modern().list(&gateway, "tools/list").await;
        tools.iter().any(|name| name == "other_pid") && tools.iter().any(|name| name == "same_pid")
    })
    .await;
    let tools = modern().list(&gateway, "tools/list").await;
    assert!(
        tools.iter().all(|name| !name.starts_with("holding") && !name.starts_with("changed")),
        "{tools:?}"
    );
    assert_eq!(pid(&gateway, "same").await, Some(kept), "the same process");
    assert_ne!(pid(&gateway, "other").await, Some(replaced));
    until("the end of the old process", async || !lives(replaced)).await;
    // What was running runs to its end.
    assert!(!call.is_finished());
    go.notify_one();
    assert_eq!(in_time("the call", call).await.unwrap(), ("held".to_owned(), false));
    let error = modern().fails(&gateway, "tools/call", json!({"name": "holding_hold"})).await;
    assert_eq!(error.symbol(), Symbol::ToolNotFound);
    gateway.close().await;
}

#[tokio::test]
async fn closing_lets_calls_finish_and_leaves_nothing_behind() {
    let (server, began, go) = holding();
    let served = Served::start(server, Eras::Legacy).await;
    let gateway =
        gateway([served.named("holding"), child("new", Eras::Modern), child("old", Eras::Legacy)]).await;
    let pids = [pid(&gateway, "new").await.unwrap(), pid(&gateway, "old").await.unwrap()];
    let events = listening(&gateway).await;
    let call = held(&gateway, &began).await;
    let closing = tokio::spawn({
        let gateway = gateway.clone();
        async move { gateway.close().await }
    });
    in_time("the end of the subscription", async { while events.next().await.is_some() {} }).await;
    assert!(!closing.is_finished() && !call.is_finished());
    go.notify_one();
    assert_eq!(in_time("the call", call).await.unwrap(), ("held".to_owned(), false));
    in_time("the end", closing).await.unwrap();
    assert!(!pids.into_iter().any(lives), "a process is left");
    // Whoever still has a handle is told.
    let (text, failed) = modern().call(&gateway, "new_pid").await;
    assert!(failed, "{text}");
    let Reply::Subscription(open) =
        modern().ask(&gateway, "subscriptions/listen", json!({"notifications": {}})).await
    else {
        panic!()
    };
    assert_eq!(in_time("the end", open.events.next()).await, None);
    assert!(gateway.reload(Settings::default()).await.is_err(), "what is closed stays closed");
}

#[tokio::test]
async fn calls_that_do_not_end_are_ended_when_the_time_for_closing_is_over() {
    let (server, began, _go) = holding();
    let served = Served::start(server, Eras::Modern).await;
    let hasty = Settings { drain: Duration::from_millis(50), ..settings([served.named("holding")]) };
    let gateway = started(hasty).await;
    let call = held(&gateway, &began).await;
    in_time("the end", gateway.close()).await;
    let (text, failed) = in_time("an answer all the same", call).await.unwrap();
    assert!(failed, "{text}");
}

#[tokio::test]
async fn a_gateway_that_is_dropped_leaves_no_process() {
    let gateway = gateway([child("new", Eras::Modern), child("old", Eras::Legacy)]).await;
    let pids = [pid(&gateway, "new").await.unwrap(), pid(&gateway, "old").await.unwrap()];
    drop(gateway);
    until("the end of the processes", async || !pids.into_iter().any(lives)).await;
}

#[tokio::test]
async fn the_end_waits_for_what_servers_of_this_process_end_with() {
    let ended = Arc::new(std::sync::Mutex::new(Vec::new()));
    let told = ended.clone();
    let dial = move |settings: &tidegate_gateway::ServerSettings| {
        let (told, name) = (told.clone(), settings.name.clone());
        let target = tidegate_client::Target::from_door(Server::new("local", "1.0").build());
        let builder = tidegate_client::Client::builder(target)?.settings(settings.options.clone());
        Ok(builder.on_close(move || {
            let (told, name) = (told.clone(), name.clone());
            async move {
                tokio::time::sleep(Duration::from_millis(200)).await;
                told.lock().unwrap().push(name);
            }
        }))
    };
    let local =
        |name: &str| tidegate_gateway::ServerSettings::new(name, Source::Builtin("local".into())).seal();
    let gateway =
        Gateway::builder().settings(settings([local("gone"), local("last")])).dial(dial).start().unwrap();
    // One leaves with its configuration, right before the end.
    gateway.reload(settings([local("last")])).await.unwrap();
    in_time("the end", gateway.close()).await;
    let mut ended = ended.lock().unwrap().clone();
    ended.sort();
    assert_eq!(ended, ["gone", "last"]);
}

/// One thread for everything, as on a machine with one core: a reload that takes long is made elsewhere.
#[tokio::test(flavor = "current_thread")]
async fn a_reload_holds_up_no_call() {
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let (wait, dialled) = (std::sync::Mutex::new(wait), Arc::new(Notify::new()));
    let dialling = dialled.clone();
    let server = || Server::new("s", "1").tool(says("t", "well"));
    let (first, second) = (local("first", server()), local("second", server()));
    let gateway = Gateway::builder()
        .settings(settings([first.clone()]))
        .dial(move |server| {
            if server.name == "second" {
                dialling.notify_one();
                wait.lock().unwrap().recv().unwrap();
            }
            let Source::Target(target) = &server.source else { panic!("no target") };
            tidegate_client::Client::builder(target.clone())
        })
        .start()
        .unwrap();
    gateway.settled(PATIENCE).await;
    let reloading = tokio::spawn({
        let gateway = gateway.clone();
        async move { gateway.reload(settings([first, second])).await }
    });
    in_time("the server to be made", dialled.notified()).await;
    for _ in 0..10 {
        assert_eq!(modern().call(&gateway, "first_t").await, ("well".to_owned(), false));
        assert_eq!(modern().list(&gateway, "tools/list").await, ["first_t"]);
    }
    assert!(!reloading.is_finished());
    go.send(()).unwrap();
    in_time("the reload", reloading).await.unwrap().unwrap();
    until("the new server", async || modern().list(&gateway, "tools/list").await.len() == 2).await;
    gateway.close().await;
}

#[tokio::test]
async fn what_the_program_mounted_itself_outlives_every_configuration() {
    let server = |text: &str| Server::new("s", "1").tool(says("t", text));
    let gateway = Gateway::builder()
        .settings(settings([local("file", server("file"))]))
        .mount("own", server("own").build())
        .start()
        .unwrap();
    gateway.settled(PATIENCE).await;
    let caller = modern();
    assert_eq!(caller.list(&gateway, "tools/list").await, ["file_t", "own_t"]);
    gateway.reload(settings([])).await.unwrap();
    assert_eq!(caller.list(&gateway, "tools/list").await, ["own_t"]);
    assert_eq!(caller.call(&gateway, "own_t").await, ("own".to_owned(), false));
    let error = gateway.reload(settings([local("own", server("other"))])).await.unwrap_err();
    assert!(error.to_string().contains("two servers named \"own\""), "{error}");
    assert_eq!(caller.call(&gateway, "own_t").await, ("own".to_owned(), false));
    gateway.close().await;
    for (name, said) in [("a b", "may contain only letters"), ("", "needs a name")] {
        let error = Gateway::builder().mount(name, server("x").build()).start().unwrap_err();
        assert!(error.to_string().contains(said), "{error}");
    }
}
