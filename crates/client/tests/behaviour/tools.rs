//! Tools: what is known of them, for how long, and what is checked.

use std::time::Duration;

use serde_json::{Value, json};
use tidegate_client::{Client, ClientState, ServerCapability};
use tidegate_edge::Eras;
use tidegate_server::Server;

use crate::world::{World, mirrored, plain};

#[tokio::test]
async fn the_list_is_fetched_once_until_it_changes() {
    for eras in [Eras::Legacy, Eras::Modern] {
        let world = World::start(eras).await;
        // Our own servers say that their lists are good for no time; here the client's word counts.
        let client = world.client(|options| options.cache_ttl = Duration::from_secs(60));
        assert_eq!(client.state(), ClientState::Connected);
        client.tools().await.unwrap();
        assert_eq!(client.state(), ClientState::Ready);
        let before = world.lists();
        client.get_tool_schema("plain").await.unwrap();
        if eras == Eras::Legacy {
            assert_eq!(world.lists(), before, "a legacy server says nothing, so ours counts");
        }
        client.invalidate();
        assert!(client.stale_tools().is_none());
        client.tools().await.unwrap();
        assert!(world.lists() > before);
    }
}

#[tokio::test]
async fn a_changed_list_is_fetched_again() {
    let world = World::start(Eras::Legacy).await;
    let client = world.client(|_| {});
    assert_eq!(client.tools().await.unwrap().len(), 4);
    world.handle.add_tool(plain("more")).unwrap();
    for _ in 0..100 {
        if client.stale_tools().is_none() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(client.tools().await.unwrap().len(), 5);
}

#[tokio::test]
async fn an_unknown_tool_is_looked_for_once_more() {
    let world = World::start(Eras::Legacy).await;
    let client = world.client(|_| {});
    client.tools().await.unwrap();
    let before = world.lists();
    let error = client.get_tool_schema("nope").await.unwrap_err();
    assert_eq!((error.code, error.message.as_str()), ("E204", "Unknown tool: nope"));
    assert_eq!(world.lists(), before + 1);
    let error = client.call("nope", Value::Null).await.unwrap_err();
    assert_eq!((error.code, error.retryable), ("E204", false));
}

#[tokio::test]
async fn a_server_without_tools_is_refused_where_they_are_needed() {
    let door = Server::new("bare", "1").build();
    let target = tidegate_client::Target::from_door(door);
    let builder =
        Client::builder(target).unwrap().configure(|options| options.require = vec![ServerCapability::Tools]);
    let error = builder.connect().await.unwrap_err();
    assert_eq!(
        (error.code, error.message.as_str()),
        ("E205", "MCP server does not support tools capability")
    );
}

#[tokio::test]
async fn arguments_are_mirrored_into_headers() {
    let world = World::start(Eras::Modern).await;
    let client = world.client(|_| {});
    for region in ["eu", "Zürich ", "=?base64?x?="] {
        let result = client.call("mirrored", json!({"region": region})).await.unwrap();
        assert_eq!(result.text(), region, "the server checks the header against the body");
    }
    let before = world.calls();
    world.handle.remove_tool("mirrored");
    world.handle.add_tool(mirrored("Area")).unwrap();
    let result = client.call("mirrored", json!({"region": "eu"})).await.unwrap();
    assert_eq!(result.text(), "eu", "a changed schema is fetched, and the call made once more");
    assert_eq!(world.calls(), before + 2);
}

#[tokio::test]
async fn results_are_checked_when_asked_for() {
    let world = World::start(Eras::Both).await;
    let client = world.client(|_| {});
    let result = client.call("honest", Value::Null).validate_output().await.unwrap();
    assert_eq!(result.structured(), Some(json!({"n": 1})));
}
