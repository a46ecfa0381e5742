//! What a server must have, and what is said before its tools are called.

use serde_json::json;
use tidegate_client::ServerCapability;
use tidegate_edge::Eras;
use tidegate_gateway::Health;
use tidegate_protocol::Revision;
use tidegate_server::{Cx, Prompt, PromptArgs, Server};
use tidegate_service::Reply;

use crate::raw::Raw;
use crate::rig::*;

/// A server that has prompts and no tools.
fn bare() -> Server {
    Server::new("bare", "1").prompt(Prompt::new("p").handler(|_: PromptArgs, _: Cx| async { Ok("Hello") }))
}

const SENTENCE: &str = "MCP server does not support tools capability";

#[tokio::test]
async fn a_server_without_what_is_required_is_refused() {
    let (old, new) = tokio::join!(Served::start(bare(), Eras::Legacy), Served::start(bare(), Eras::Modern));
    for mut server in [local("bare", bare()), old.named("bare"), new.named("bare")] {
        server.options.require = vec![ServerCapability::Prompts, ServerCapability::Tools];
        let gateway =
            gateway([server.seal(), local("fine", Server::new("fine", "1").tool(says("t", "t")))]).await;
        let Health::Down { why, told } = health(&gateway, "bare") else { panic!("{:?}", gateway.status()) };
        assert!(why.contains(SENTENCE) && told.contains(SENTENCE), "{why} / {told}");
        for caller in [modern(), legacy()] {
            let error = caller.fails(&gateway, "tools/call", json!({"name": "bare_x"})).await;
            assert!(error.message().contains(SENTENCE), "its callers are told: {error}");
            assert_eq!(caller.call(&gateway, "fine_t").await, ("t".to_owned(), false));
        }
        gateway.close().await;
    }
}

#[tokio::test]
async fn a_server_with_what_is_required_is_used() {
    let mut server = local("s", bare());
    server.options.require = vec![ServerCapability::Prompts, ServerCapability::Logging];
    let gateway = gateway([server.seal()]).await;
    assert_eq!(health(&gateway, "s"), Health::Ready);
    gateway.close().await;
}

#[tokio::test]
async fn three_steps_come_before_the_first_call_of_every_session() {
    for raw in [Raw::http(false).await, Raw::stdio(false)] {
        let mut settings = raw.settings.clone();
        settings.options.three_steps(Revision::V2024_11_05);
        settings.options.client_info = json!({"name": "hx-docling-ui", "version": "1.0.0"}).into();
        let gateway = gateway([settings.seal()]).await;
        assert_eq!(health(&gateway, "s"), Health::Ready, "another revision than offered is good enough");
        // The first is in the session in which the gateway has listed the tools, the second opens one.
        for caller in [modern(), person("ann")] {
            let reply = caller.ask(&gateway, "tools/call", json!({"name": "s_chat"})).await;
            assert!(matches!(reply, Reply::Complete(_)), "{reply:?}");
        }
        let heard = raw.heard();
        let methods: Vec<String> = heard
            .iter()
            .filter_map(|text| {
                serde_json::from_str::<serde_json::Value>(text).unwrap()["method"].as_str().map(str::to_owned)
            })
            .filter(|method| method != "ping" && method != "logging/setLevel")
            .collect();
        let hello = heard.iter().find(|text| text.contains("\"initialize\"")).unwrap();
        for part in [r#""protocolVersion":"2024-11-05""#, r#""name":"hx-docling-ui""#] {
            assert!(hello.contains(part), "{part} in {hello}");
        }
        let id = serde_json::from_str::<serde_json::Value>(hello).unwrap()["id"].as_str().unwrap().to_owned();
        assert_eq!((id.len(), id.matches('-').count()), (36, 4), "a UUID: {id}");
        let place = |from: usize, method: &str| {
            from + methods[from..]
                .iter()
                .position(|other| other == method)
                .unwrap_or_else(|| panic!("{method}: {methods:?}"))
        };
        assert_eq!(methods[..2], ["initialize", "notifications/initialized"]);
        let called = place(0, "tools/call");
        assert!(place(0, "tools/list") < called, "{methods:?}");
        let second = place(1, "initialize");
        assert_eq!(
            methods[second..second + 4],
            ["initialize", "notifications/initialized", "tools/list", "tools/call"],
            "{methods:?}"
        );
        gateway.close().await;
    }
}

#[tokio::test]
async fn the_offered_revision_can_be_chosen() {
    let raw = Raw::http(false).await;
    let mut settings = raw.settings.clone();
    settings.options.offer_revision(Revision::V2025_06_18);
    let gateway = gateway([settings.seal()]).await;
    assert!(raw.last(Some("initialize")).as_str().contains(r#""protocolVersion":"2025-06-18""#));
    gateway.close().await;
}
