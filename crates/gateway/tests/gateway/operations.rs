//! What an operator does to single servers: a new process, a server that is off for a while, one that is tried at once.
#![cfg(target_os = "linux")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::json;
use tidegate_edge::Eras;
use tidegate_gateway::{Health, OperationError};
use tidegate_protocol::{Error, Json, Limits, Method, Symbol};
use tidegate_server::{Cx, Server, Tool};
use tidegate_service::layers::{BreakerSettings, BreakerState, RetryPolicy};
use tidegate_service::{Call, Reply};
use tokio::sync::Notify;

use crate::faults::{listening, lives, pid, told};
use crate::rig::*;
use crate::world::child;

fn small(name: &str) -> Server {
    Server::new(name.to_owned(), "1.0").tool(Tool::new("t").handler(|_: (), _: Cx| async { "t" }))
}

#[tokio::test]
async fn a_restart_is_another_process_and_nothing_leaves_the_lists() {
    for era in [Eras::Modern, Eras::Legacy] {
        let gateway = gateway([child("one", era), local("two", small("two"))]).await;
        let (tools, old) = (modern().list(&gateway, "tools/list").await, pid(&gateway, "one").await.unwrap());
        assert_eq!(gateway.restart_server("one").await, Ok(None));
        assert_eq!(modern().list(&gateway, "tools/list").await, tools, "nothing is gone meanwhile");
        let new = pid(&gateway, "one").await.unwrap();
        assert_ne!(new, old);
        until("the end of the old process", async || !lives(old)).await;
        until("it is ready", async || health(&gateway, "one") == Health::Ready).await;
        assert_eq!(pid(&gateway, "one").await, Some(new));
        gateway.close().await;
        until("the end of the new process", async || !lives(new)).await;
    }
}

#[tokio::test]
async fn running_calls_finish_where_they_began() {
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
    let gateway = gateway([local("s", Server::new("s", "1.0").tool(hold))]).await;
    for disables in [false, true] {
        let running = gateway.clone();
        let call = tokio::spawn(async move { modern().call(&running, "s_hold").await });
        in_time("the call to begin", began.notified()).await;
        match disables {
            false => assert_eq!(gateway.restart_server("s").await, Ok(None)),
            true => assert!(gateway.disable_server("s").await.unwrap()),
        }
        go.notify_one();
        assert_eq!(in_time("the call", call).await.unwrap(), ("held".to_owned(), false));
    }
    gateway.close().await;
}

#[tokio::test]
async fn a_server_that_is_off_has_nothing_until_it_is_on_again() {
    let servers = [child("one", Eras::Modern), local("two", small("two")), local("three", small("three"))];
    let gateway = gateway(servers.clone()).await;
    let (tools, old) = (modern().list(&gateway, "tools/list").await, pid(&gateway, "one").await.unwrap());
    let events = listening(&gateway).await;
    assert!(gateway.disable_server("one").await.unwrap());
    told(&events).await;
    assert_eq!(modern().list(&gateway, "tools/list").await, ["two_t", "three_t"]);
    let disabled = gateway.disabled();
    assert_eq!((disabled.len(), &*disabled[0].name), (1, "one"));
    assert!(disabled[0].reason.contains("switched off"), "{disabled:?}");
    assert!(gateway.status().iter().all(|server| server.name != "one"));
    until("the end of its process", async || !lives(old)).await;
    assert!(!gateway.disable_server("one").await.unwrap(), "it is off already");
    let refused = gateway.restart_server("one").await.unwrap_err();
    assert!(refused.to_string().starts_with("the server \"one\" is disabled: switched off"), "{refused}");
    // A configuration that still has it changes nothing about that.
    gateway.reload(settings(servers.clone())).await.unwrap();
    assert_eq!(modern().list(&gateway, "tools/list").await, ["two_t", "three_t"]);

    assert!(gateway.enable_server("one").await.unwrap());
    told(&events).await;
    until("it is ready", async || health(&gateway, "one") == Health::Ready).await;
    assert_eq!(modern().list(&gateway, "tools/list").await, tools, "with the same names in the same order");
    assert!(!gateway.enable_server("one").await.unwrap(), "it is on already");
    assert!(gateway.disabled().is_empty());

    // One that the configuration no longer has is forgotten: it is on when it comes back.
    gateway.disable_server("two").await.unwrap();
    gateway.reload(settings([servers[0].clone()])).await.unwrap();
    assert!(gateway.disabled().is_empty());
    gateway.reload(settings(servers)).await.unwrap();
    until("it is back", async || modern().list(&gateway, "tools/list").await == tools).await;
    gateway.close().await;
}

#[tokio::test]
async fn names_that_are_wrong_are_told_what_may_be_meant() {
    let gateway = gateway([local("github", small("github"))]).await;
    let near = Some("github".to_owned());
    let unknown = OperationError::Unknown { name: "githbu".to_owned(), near };
    assert_eq!(gateway.restart_server("githbu").await, Err(unknown.clone()));
    assert_eq!(gateway.reset_server("githbu").await, Err(unknown.clone()));
    assert_eq!(gateway.enable_server("githbu").await, Err(unknown.clone()));
    assert_eq!(gateway.disable_server("githbu").await, Err(unknown.clone()));
    assert_eq!(unknown.to_string(), "there is no server \"githbu\"; did you mean \"github\"?");
    gateway.close().await;
    assert_eq!(gateway.restart_server("github").await, Err(OperationError::Closed));
}

#[tokio::test]
async fn a_reset_closes_the_breaker_and_asks_at_once() {
    let well = Arc::new(AtomicBool::new(false));
    let is_well = well.clone();
    let answering = tower::service_fn(move |call: Call| {
        let text = match call.method {
            Method::Discover => discovery(json!({})),
            Method::ToolsList => json!({"resultType": "complete", "ttlMs": 0, "cacheScope": "public",
                "tools": [{"name": "t", "inputSchema": {"type": "object"}}]})
            .to_string(),
            Method::ToolsCall => {
                r#"{"resultType":"complete","content":[{"type":"text","text":"well"}]}"#.to_owned()
            }
            _ => return std::future::ready(Ok(Reply::method_not_found(&call.method))),
        };
        let reply = match call.method == Method::ToolsCall && !is_well.load(Ordering::SeqCst) {
            true => Reply::Error(Error::new(Symbol::Unavailable, "it is ill")),
            false => Reply::Complete(Json::parse(text, &Limits::default()).expect("JSON")),
        };
        std::future::ready(Ok::<_, std::convert::Infallible>(reply))
    });
    let mut server = door("s", answering);
    server.options.breaker = Some(BreakerSettings::consecutive(2, Duration::from_secs(3600)));
    server.options.retry = RetryPolicy::never();
    let gateway = gateway([server]).await;
    for _ in 0..3 {
        assert!(modern().call(&gateway, "s_t").await.1);
    }
    assert_eq!(gateway.status()[0].breaker, BreakerState::Open);
    well.store(true, Ordering::SeqCst);
    assert_eq!(gateway.reset_server("s").await, Ok(None), "it answers");
    assert_eq!(gateway.status()[0].breaker, BreakerState::Closed);
    assert_eq!(modern().call(&gateway, "s_t").await, ("well".to_owned(), false));
    gateway.close().await;

    let nowhere = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let gateway = started(settings([at("gone", nowhere)])).await;
    let why = gateway.reset_server("gone").await.unwrap();
    assert!(why.is_some_and(|why| !why.is_empty()), "it does not answer");
    gateway.close().await;
}
