//! Whatever is not listed: it is at an endpoint like everything else, or it is not there.

use std::sync::{Arc, OnceLock};

use serde_json::{Value, json};
use tidegate_gateway::{Gateway, ServerSettings};
use tidegate_protocol::{Json, Limits, Method, Params};
use tidegate_server::{Cx, PageRequest, Resource, ResourcePage, Server, Tool, ToolError};
use tidegate_service::{Call, Door, Notice, Reply};

use super::patterns;
use crate::rig::{endpoint, keys, legacy, local, modern, person, says, scripted, settings, started, until};

#[tokio::test]
async fn tools_that_nobody_lists() {
    let server =
        |name: &str| Server::new(name, "1").tool(says("a", "a")).tool(says("hidden", "found").unlisted());
    let mut settings = settings([local("reef", server("reef")), local("vault", server("vault"))]);
    let mut reef = endpoint("reef");
    reef.servers = patterns(["reef"]);
    let mut listed = endpoint("listed");
    listed.tools = patterns(["*_a"]);
    settings.endpoints = vec![reef, listed];
    let gateway = started(settings).await;
    for (at, tool, is_there) in [
        ("reef", "reef_hidden", true),
        ("reef", "vault_hidden", false),
        ("listed", "reef_hidden", false),
        ("nowhere", "reef_hidden", false),
    ] {
        let caller = modern().at(at);
        let reply = caller.ask(&gateway, "tools/call", json!({"name": tool})).await;
        assert_eq!(matches!(reply, Reply::Complete(_)), is_there, "{at}: {tool}: {reply:?}");
        let definition = json!({"_meta": {tidegate_service::UNLISTED: tool}});
        let found = keys(&caller.get(&gateway, "tools/list", definition).await);
        assert_eq!(!found.is_empty(), is_there, "{at}: {tool}");
    }
    gateway.close().await;
}

#[tokio::test]
async fn resources_of_a_callers_own() {
    let asked = Arc::new(std::sync::Mutex::new(Vec::new()));
    let notes = |name: &'static str| {
        let asked = asked.clone();
        Server::new(name, "1")
            .resource(Resource::text(format!("{name}://shared"), "shared", ""))
            .resource_source(move |_: PageRequest, cx: Cx| {
                asked.lock().unwrap().push(name);
                let who = cx.principal().subject.clone().unwrap_or_default();
                let note = |n| Resource::new(format!("{name}://{who}/{n}"), format!("{n}"));
                std::future::ready(Ok::<_, ToolError>(ResourcePage::new((1..=2).map(note))))
            })
    };
    let mut settings = settings([local("reef", notes("reef")), local("vault", notes("vault"))]);
    let mut vault = endpoint("vault");
    vault.servers = patterns(["vault"]);
    let mut some = endpoint("some");
    some.resources = patterns(["vault://*/1"]);
    let mut none = endpoint("none");
    none.resources = patterns([]);
    settings.endpoints = vec![vault, some, none];
    let gateway = started(settings).await;
    let listed = async |at: &str| {
        let (caller, mut all, mut params) = (person("ann").at(at), Vec::new(), json!({}));
        loop {
            let page = caller.get(&gateway, "resources/list", params).await;
            all.extend(keys(&page));
            match page.get("nextCursor") {
                Some(cursor) => params = json!({"cursor": cursor}),
                None => return all,
            }
        }
    };
    assert_eq!(listed("vault").await, ["vault://shared", "vault://ann/1", "vault://ann/2"]);
    assert_eq!(*asked.lock().unwrap(), ["vault"], "nobody else is asked");
    assert_eq!(listed("some").await, ["vault://ann/1"]);
    asked.lock().unwrap().clear();
    for at in ["none", "nowhere"] {
        assert_eq!(listed(at).await, [""; 0]);
    }
    assert_eq!(asked.lock().unwrap().len(), 0);
    gateway.close().await;
}

fn vendor(name: &'static str) -> ServerSettings {
    scripted(name, move |call| match call.method.as_str() {
        "vendor/echo" => Some(json!({"server": name}).to_string()),
        "tools/list" => {
            Some(json!({"tools": [{"name": "a", "inputSchema": {"type": "object"}}]}).to_string())
        }
        "resources/list" => {
            Some(json!({"resources": [{"name": "r", "uri": format!("{name}://r")}]}).to_string())
        }
        _ => None,
    })
}

#[tokio::test]
async fn methods_of_servers() {
    for servers in [vec![vendor("reef")], vec![vendor("reef"), vendor("vault")]] {
        let count = servers.len();
        let mut settings = settings(servers);
        let mut reef = endpoint("reef");
        reef.servers = patterns(["reef"]);
        let mut vault = endpoint("vault");
        vault.servers = patterns(["vault"]);
        let mut tools = endpoint("tools");
        tools.tools = patterns(["reef_*"]);
        settings.endpoints = vec![reef, vault, tools];
        let gateway = started(settings).await;
        for params in [json!({"_meta": {"dev.tidegate/server": "reef"}}), json!({"uri": "reef://r"})] {
            let answer = modern().at("reef").get(&gateway, "vendor/echo", params.clone()).await;
            assert_eq!(answer["server"], "reef");
            // What such a method does nobody knows: it may be what a tool does that is not there.
            for at in ["vault", "tools", "nowhere"] {
                let reply = modern().at(at).ask(&gateway, "vendor/echo", params.clone()).await;
                assert!(matches!(reply, Reply::Error(_)), "{count}, {at}: {params}: {reply:?}");
            }
        }
        gateway.close().await;
    }
}

#[tokio::test]
async fn what_roots_a_client_has_concerns_servers_that_are_there() {
    let told = Arc::new(std::sync::Mutex::new(Vec::new()));
    let server = |name: &'static str| {
        let told = told.clone();
        scripted(name, move |call| {
            if call.method == Method::RootsChanged {
                told.lock().unwrap().push(name);
            }
            (call.method == Method::ToolsList).then(|| json!({"tools": []}).to_string())
        })
    };
    let mut settings = settings([server("reef"), server("vault")]);
    let mut vault = endpoint("vault");
    vault.servers = patterns(["vault"]);
    settings.endpoints = vec![vault];
    let gateway = started(settings).await;
    modern().at("nowhere").ask(&gateway, "notifications/roots/list_changed", json!({})).await;
    modern().at("vault").ask(&gateway, "notifications/roots/list_changed", json!({})).await;
    assert_eq!(*told.lock().unwrap(), ["vault"]);
    gateway.close().await;
}

/// A server whose tool calls another one through the gateway, in the name of whoever called it.
fn agent(gateway: &Arc<OnceLock<Gateway>>) -> Server {
    let gateway = gateway.clone();
    let ask = Tool::new("ask").handler(move |_: (), cx: Cx| {
        let gateway = gateway.get().cloned().unwrap();
        async move {
            let mut answers = Vec::new();
            for tool in ["reef_read", "vault_read"] {
                let params = Params::parse(&Json::from(json!({"name": tool})), &Limits::default()).unwrap();
                let Ok(reply) = gateway.answer(Call::new(Method::ToolsCall, params, cx.on_behalf())).await;
                answers.push(matches!(reply, Reply::Complete(_)).to_string());
            }
            answers.join(" ")
        }
    });
    Server::new("agent", "1").tool(ask)
}

#[tokio::test]
async fn an_agent_has_the_tools_of_the_endpoint_where_it_is_asked() {
    let there = Arc::new(OnceLock::new());
    let server = |name: &str| local(name, Server::new(name, "1").tool(says("read", "read")));
    let mut settings = settings([local("agent", agent(&there)), server("reef"), server("vault")]);
    let mut reef = endpoint("reef");
    reef.servers = patterns(["agent", "reef"]);
    settings.endpoints = vec![reef];
    let gateway = started(settings).await;
    assert!(there.set(gateway.clone()).is_ok());
    assert_eq!(modern().call(&gateway, "agent_ask").await.0, "true true");
    assert_eq!(modern().at("reef").call(&gateway, "agent_ask").await.0, "true false");
    gateway.close().await;
}

#[tokio::test]
async fn what_a_server_logs_is_heard_where_all_of_it_is() {
    let say = tokio::sync::broadcast::Sender::new(16);
    let mut settings = settings([crate::logs::speaker(say.clone())]);
    let mut tools = endpoint("tools");
    tools.tools = patterns(["speaker_*"]);
    let mut others = endpoint("others");
    others.servers = patterns(["others"]);
    settings.endpoints = vec![endpoint("all"), tools, others];
    let gateway = started(settings).await;
    let listen = async |at: &str| {
        let wanted = json!({"notifications": {"toolsListChanged": true}});
        match legacy().at(at).ask(&gateway, "subscriptions/listen", wanted).await {
            Reply::Subscription(open) => open.events,
            other => panic!("{other:?}"),
        }
    };
    let (all, hushed) =
        (listen("all").await, [listen("tools").await, listen("others").await, listen("x").await]);
    // The session in which it speaks is the user's, and is opened by the first call.
    legacy().at("all").ask(&gateway, "tools/call", json!({"name": "speaker_x"})).await;
    let heard = |events: &tidegate_service::Outbox| matches!(events.try_next(), Some(Notice::Log(_)));
    until("that it is heard", async || {
        let params: Value = json!({"level": "error", "data": "loud"});
        let _ = say.send(json!({"jsonrpc": "2.0", "method": "notifications/message", "params": params}));
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        heard(&all)
    })
    .await;
    for events in &hushed {
        assert!(!heard(events));
    }
    gateway.close().await;
}
