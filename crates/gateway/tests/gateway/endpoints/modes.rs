//! All tools, or a way to search for them: each endpoint in its own way.

use serde_json::{Value, json};
use tidegate_config::ToolMode;
use tidegate_gateway::{Gateway, Settings};
use tidegate_protocol::Symbol;
use tidegate_server::Server;
use tidegate_service::Reply;

use super::patterns;
use crate::rig::{Caller, endpoint, local, modern, says, settings, started};

const OWN: [&str; 2] = ["search_tools", "call_tool"];

fn world(mode: ToolMode, other: ToolMode) -> Settings {
    let server = |name: &str| {
        Server::new(name, "1")
            .tool(says("find_fish", "fish"))
            .tool(says("find_coral", "coral"))
            .tool(says("pin", "!"))
    };
    let mut settings = settings([local("reef", server("reef")), local("vault", server("vault"))]);
    settings.tools.mode = mode;
    settings.tools.favourites = patterns(["*_pin"]).unwrap();
    let mut other_way = endpoint("other");
    other_way.mode = Some(other);
    let mut reef = endpoint("reef");
    reef.servers = patterns(["reef"]);
    reef.tools = patterns(["*_find_*"]);
    reef.mode = Some(ToolMode::Search);
    let mut none = endpoint("none");
    (none.tools, none.mode) = (patterns([]), Some(ToolMode::Search));
    settings.endpoints = vec![other_way, reef, none, endpoint("same")];
    settings
}

async fn run(caller: &Caller, gateway: &Gateway, tool: &str, arguments: Value) -> Result<String, Symbol> {
    match caller.ask(gateway, "tools/call", json!({"name": tool, "arguments": arguments})).await {
        Reply::Complete(result) => Ok(result.as_str().to_owned()),
        Reply::Error(error) => Err(error.symbol()),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn an_endpoint_lists_in_its_own_way() {
    let all =
        ["reef_find_fish", "reef_find_coral", "reef_pin", "vault_find_fish", "vault_find_coral", "vault_pin"];
    let few = [OWN[0], OWN[1], "reef_pin", "vault_pin"];
    for (mode, other) in [(ToolMode::All, ToolMode::Search), (ToolMode::Search, ToolMode::All)] {
        let gateway = started(world(mode, other)).await;
        let listed = |mode| if mode == ToolMode::All { &all[..] } else { &few[..] };
        assert_eq!(modern().list(&gateway, "tools/list").await, listed(mode));
        assert_eq!(modern().at("same").list(&gateway, "tools/list").await, listed(mode));
        assert_eq!(modern().at("other").list(&gateway, "tools/list").await, listed(other));
        assert_eq!(modern().at("reef").list(&gateway, "tools/list").await, OWN);
        assert_eq!(modern().at("none").list(&gateway, "tools/list").await, [""; 0]);
        for (at, has_own) in
            [("same", mode), ("other", other)].map(|(at, mode)| (at, mode == ToolMode::Search))
        {
            for tool in OWN {
                let arguments = json!({"query": "fish", "name": "reef_find_fish"});
                let done = run(&modern().at(at), &gateway, tool, arguments).await;
                assert_eq!(done.err(), (!has_own).then_some(Symbol::ToolNotFound), "{at}: {tool}");
            }
        }
        gateway.close().await;
    }
}

#[tokio::test]
async fn searching_finds_what_the_endpoint_has() {
    let gateway = started(world(ToolMode::All, ToolMode::Search)).await;
    let (reef, other) = (modern().at("reef"), modern().at("other"));
    for arguments in [json!({"query": "find"}), json!({"query": "pin"}), json!({"query": ""})] {
        let found = run(&other, &gateway, "search_tools", arguments.clone()).await.unwrap();
        assert!(found.contains("vault"), "{found}");
        let found = run(&reef, &gateway, "search_tools", arguments.clone()).await.unwrap();
        assert!(!found.contains("vault") && !found.contains("reef_pin"), "{arguments}: {found}");
    }
    let servers = run(&reef, &gateway, "search_tools", json!({"query": ""})).await.unwrap();
    assert!(servers.contains("2 tools of 1 servers"), "{servers}");
    let of = async |server: &str| {
        let found = run(&reef, &gateway, "search_tools", json!({"query": "", "server": server})).await;
        let found: Value = serde_json::from_str(&found.unwrap()).unwrap();
        found["content"][0]["text"].as_str().unwrap().replace(server, "…")
    };
    assert!(of("reef").await.contains("…_find_coral"));
    assert_eq!(
        of("vault").await,
        of("nonesuch").await,
        "a server that is not there is like one that nobody has"
    );
    for (name, found) in [("reef_find_fish", true), ("reef_pin", false), ("vault_find_fish", false)] {
        let called = run(&reef, &gateway, "call_tool", json!({"name": name, "arguments": {}})).await;
        assert_eq!(called.is_ok(), found, "{name}: {called:?}");
        let called = run(&reef, &gateway, name, json!({})).await;
        assert_eq!(called.is_ok(), found, "{name}: {called:?}");
    }
    let near =
        reef.fails(&gateway, "tools/call", json!({"name": "call_tool", "arguments": {"name": "pine"}})).await;
    assert!(!near.message().contains("pin,") && !near.message().contains("vault"), "{near}");
    let none = run(&modern().at("none"), &gateway, "search_tools", json!({"query": ""})).await;
    assert_eq!(none, Err(Symbol::ToolNotFound), "where there are no tools, none can be searched");
    gateway.close().await;
}

#[tokio::test]
async fn names_do_not_depend_on_the_endpoint() {
    let server = || Server::new("s", "1").tool(says("search_tools", "mine")).tool(says("x", "x"));
    let mut settings = settings([local("s", server())]);
    settings.servers[0].prefix = String::new();
    let mut searching = endpoint("searching");
    searching.mode = Some(ToolMode::Search);
    settings.endpoints = vec![searching, endpoint("plain")];
    let gateway = started(settings).await;
    let names = modern().list(&gateway, "tools/list").await;
    assert!(!names.contains(&"search_tools".to_owned()), "{names:?}");
    assert_eq!(modern().at("plain").list(&gateway, "tools/list").await, names);
    for name in &names {
        for at in ["plain", "searching"] {
            modern().at(at).call(&gateway, name).await;
        }
    }
    gateway.close().await;
}
