//! `@modelcontextprotocol/server-memory`: tools alone, and a file that survives the process.

use serde_json::{Value, json};
use tidegate_client::EraChoice;
use tidegate_protocol::Revision;

use crate::life;
use crate::meeting::{Meeting, Over};
use crate::place;
use crate::server::Program;

#[tokio::test(flavor = "multi_thread")]
async fn remembers_across_connections() {
    let file = place::scratch("memory").join("memory.jsonl");
    let script = place::package("@modelcontextprotocol/server-memory/dist/index.js");
    let program = Program::new(place::node(), &[&script]).env("MEMORY_FILE_PATH", file.display().to_string());

    let meeting = Meeting::open(&program, Over::Stdio, "", EraChoice::Auto).await;
    let facts = meeting.client.server().await.expect("facts");
    assert_eq!((facts.revision, facts.name().as_deref()), (Revision::V2025_11_25, Some("memory-server")));
    assert!(!facts.has_capability("prompts"), "{}", facts.capabilities);
    let tide = json!({"name": "tide", "entityType": "water", "observations": ["comes"]});
    let call = meeting.client.call("create_entities", json!({"entities": [tide.clone()]})).validate_output();
    assert_eq!(call.await.expect("created").structured(), Some(json!({"entities": [tide.clone()]})));
    // What the server does not offer is an error and no hang.
    let error = meeting.client.prompts().await.expect_err("it has no prompts");
    assert_eq!(error.code, "E203", "{error}");
    life::leaves_nothing_behind(meeting).await;

    let meeting = Meeting::open(&program, Over::Stdio, "", EraChoice::Auto).await;
    let call = meeting.client.call("read_graph", Value::Null).validate_output();
    let graph = call.await.expect("the graph").structured().expect("structured content");
    assert_eq!(graph, json!({"entities": [tide], "relations": []}));
    life::leaves_nothing_behind(meeting).await;
}
