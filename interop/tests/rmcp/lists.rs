//! What there is: the server itself, its tools, resources, templates and prompts.

use rmcp::model::ProtocolVersion;
use serde_json::{Value, json};
use tidegate::Eras;

use crate::client::Op;
use crate::ways::{Connection, Transport, Way, everywhere, soon};

/// One member of each element.
fn each<'a>(list: &'a Value, member: &str) -> Vec<&'a Value> {
    list.as_array().expect("a list").iter().map(|element| &element[member]).collect()
}

#[tokio::test]
async fn lists_hold_the_same_definitions() {
    for (op, names) in [
        (Op::ListTools, &["echo", "add", "fail", "count", "greet", "contents", "wait"][..]),
        (Op::ListResources, &["about", "dot"]),
        (Op::ListTemplates, &["weather"]),
        (Op::ListPrompts, &["explain"]),
    ] {
        let list = everywhere(op.clone()).await;
        let mut listed: Vec<&str> = each(&list, "name").into_iter().filter_map(Value::as_str).collect();
        let mut expected = names.to_vec();
        // Any order will do, as long as it is the same everywhere.
        listed.sort_unstable();
        expected.sort_unstable();
        assert_eq!(listed, expected, "{op:?}");
    }
}

#[tokio::test]
async fn definitions_arrive_whole() {
    let tools = everywhere(Op::ListTools).await;
    let tool = |name: &str| {
        let tool = tools.as_array().expect("a list").iter().find(|tool| tool["name"] == name);
        tool.unwrap_or_else(|| panic!("no tool {name}")).clone()
    };
    let echo = tool("echo");
    assert_eq!(echo["title"], "Echo");
    assert_eq!(echo["description"], "Says back what it is told");
    assert_eq!(echo["annotations"]["readOnlyHint"], true);
    assert_eq!(echo["_meta"]["example.com/colour"], "blue");
    assert_eq!(echo["inputSchema"]["properties"]["message"]["type"], "string");
    assert_eq!(echo["inputSchema"]["required"], json!(["message"]));
    assert_eq!(tool("add")["outputSchema"]["properties"]["sum"]["type"], "integer");

    let resources = everywhere(Op::ListResources).await;
    assert_eq!(each(&resources, "uri"), ["memo://about", "memo://dot"]);
    assert_eq!(each(&resources, "mimeType"), ["text/plain", "image/png"]);
    let templates = everywhere(Op::ListTemplates).await;
    assert_eq!(each(&templates, "uriTemplate"), ["weather://{city}/today"]);
    let prompts = everywhere(Op::ListPrompts).await;
    assert_eq!(
        each(&prompts, "arguments"),
        [&json!([{"name": "city", "description": "Which city", "required": true}])]
    );
}

#[tokio::test]
async fn initialize_and_discover_say_the_same_about_the_server() {
    let info = everywhere(Op::ServerInfo).await;
    assert_eq!(info["serverInfo"]["name"], "fixture");
    assert_eq!(info["serverInfo"]["version"], "1.2.3");
    assert_eq!(info["serverInfo"]["title"], "Fixture");
    assert_eq!(info["instructions"], "Ask for anything");
    for capability in ["tools", "resources", "prompts", "completions"] {
        assert!(info["capabilities"][capability].is_object(), "no capability {capability} in {info}");
    }
}

#[tokio::test]
async fn every_revision_that_rmcp_knows_is_spoken() {
    let versions = [
        ProtocolVersion::V_2024_11_05,
        ProtocolVersion::V_2025_03_26,
        ProtocolVersion::V_2025_06_18,
        ProtocolVersion::V_2025_11_25,
        ProtocolVersion::V_2026_07_28,
    ];
    for way in Way::over_all_transports(versions) {
        let connection = Connection::open(&way).await;
        let info = connection.client.service.peer_info().expect("connected");
        assert_eq!(info.protocol_version, way.version, "{way:?}");
        let said = soon("echo", connection.client.run(Op::Call("echo", json!({"message": "hi"})))).await;
        assert_eq!(said["content"][0]["text"], "hi", "{way:?}");
    }
}

#[tokio::test]
async fn an_undecided_client_finds_the_newest_era_of_the_server() {
    for (eras, version) in [
        (Eras::Both, ProtocolVersion::V_2026_07_28),
        (Eras::Modern, ProtocolVersion::V_2026_07_28),
        (Eras::Legacy, ProtocolVersion::V_2025_11_25),
    ] {
        for transport in Transport::ALL {
            let connection = Connection::undecided(transport, eras).await;
            let info = connection.client.service.peer_info().expect("connected");
            assert_eq!(info.protocol_version, version, "{eras:?} over {transport:?}");
            let said = soon("echo", connection.client.run(Op::Call("echo", json!({"message": "hi"})))).await;
            assert_eq!(said["content"][0]["text"], "hi", "{eras:?} over {transport:?}");
        }
    }
}
