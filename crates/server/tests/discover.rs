//! What a server says about itself, and which methods exist.

mod common;

use std::time::Duration;

use common::{Client, error_code};
use serde_json::{Value, json};
use tidegate_protocol::Revision;
use tidegate_server::{
    Argument, CacheHint, Completing, Cx, Icon, Prompt, PromptArgs, Resource, Scope, Server, TaskSupport, Tool,
};

fn tool(name: &str) -> Tool {
    Tool::new(name).handler(|(), _cx: Cx| async {})
}

#[tokio::test]
async fn everything_in_both_eras() {
    let door = Server::new("s", "1.2")
        .title("S")
        .description("A server")
        .website_url("https://x")
        .icon(Icon::new("https://x/i.png"))
        .instructions("Use it.")
        .extension("io.example/x", json!({"y": 1}))
        .cache(CacheHint { ttl: Duration::from_secs(3), scope: Scope::Public })
        .tool(tool("t").task(TaskSupport::Optional))
        .resource(Resource::text("x:1", "x", ""))
        .prompt(
            Prompt::new("p")
                .argument(Argument::new("a").complete(|_: Completing, _cx: Cx| async { vec![""] }))
                .handler(|_: PromptArgs, _cx: Cx| async { Ok("") }),
        )
        .build();
    let info = json!({"io.modelcontextprotocol/serverInfo": {
        "name": "s", "version": "1.2", "title": "S", "description": "A server", "websiteUrl": "https://x",
        "icons": [{"src": "https://x/i.png"}],
    }});
    let versions = json!(["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]);
    assert_eq!(
        Client::modern(&door).request("server/discover", json!({})).await,
        json!({
            "resultType": "complete", "supportedVersions": versions,
            "capabilities": {
                "tools": {"listChanged": true}, "prompts": {"listChanged": true},
                "resources": {"subscribe": true, "listChanged": true}, "completions": {}, "logging": {},
                "extensions": {"io.example/x": {"y": 1}, "io.modelcontextprotocol/tasks": {}},
            },
            "instructions": "Use it.", "ttlMs": 3000, "cacheScope": "public", "_meta": info,
        })
    );
    assert_eq!(
        Client::legacy(&door).request("server/discover", json!({})).await,
        json!({
            "supportedVersions": versions,
            "capabilities": {
                "tools": {"listChanged": true}, "prompts": {"listChanged": true},
                "resources": {"subscribe": true, "listChanged": true}, "completions": {}, "logging": {},
                "tasks": {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}},
            },
            "instructions": "Use it.", "_meta": info,
        })
    );
    let oldest =
        Client::modern(&door).revision(Revision::V2024_11_05).request("server/discover", json!({})).await;
    assert!(
        oldest["capabilities"].get("completions").is_none() && oldest["capabilities"].get("tasks").is_none()
    );
}

async fn capabilities(server: Server) -> Value {
    Client::modern(&server.build()).request("server/discover", json!({})).await["capabilities"].clone()
}

#[tokio::test]
async fn only_what_is_there_is_declared() {
    let empty = Server::new("s", "1");
    assert_eq!(capabilities(empty).await, json!({"logging": {}}));
    let tools = Server::new("s", "1").tool(tool("t"));
    assert_eq!(capabilities(tools).await, json!({"logging": {}, "tools": {"listChanged": true}}));
    let dynamic = capabilities(Server::new("s", "1").dynamic()).await;
    for kind in ["tools", "prompts", "resources", "completions"] {
        assert!(dynamic.get(kind).is_some(), "{kind}");
    }
    let advertised = Server::new("s", "1").tool(tool("t")).advertise_tools_in_capabilities(true);
    assert_eq!(capabilities(advertised).await["tools"]["t"]["name"], "t");
}

#[tokio::test]
async fn methods_of_what_is_not_there_do_not_exist() {
    let door = Server::new("s", "1").tool(tool("t")).build();
    let client = Client::modern(&door);
    for method in [
        "prompts/list",
        "prompts/get",
        "resources/list",
        "resources/read",
        "resources/templates/list",
        "completion/complete",
        "tasks/get",
        "tasks/update",
        "tasks/cancel",
        "tasks/result",
        "tasks/list",
        "ping",
        "initialize",
        "logging/setLevel",
        "resources/subscribe",
        "unknown/method",
    ] {
        let result = client.request(method, json!({})).await;
        assert_eq!(error_code(&result), Some(-32601), "{method}");
    }
    assert!(client.request("tools/list", json!({})).await.get("tools").is_some());

    let dynamic = Server::new("s", "1").dynamic().build();
    let client = Client::modern(&dynamic);
    assert_eq!(client.request("prompts/list", json!({})).await["prompts"], json!([]));
    assert_eq!(client.request("tools/list", json!({})).await["tools"], json!([]));
}

#[tokio::test]
async fn loops_end() {
    let door = Server::new("s", "1").tool(tool("t")).build();
    let mut client = Client::modern(&door);
    client.context().hops = 9;
    assert_eq!(error_code(&client.request("tools/list", json!({})).await), Some(-32603));
}
