//! `@modelcontextprotocol/server-memory`: tools alone, and a file that survives the process.

use serde_json::{Value, json};
use tidegate_client::{Client, EraChoice, Target};
use tidegate_protocol::Revision;

use crate::lifecycle;
use crate::meeting::{Meeting, Over};
use crate::paths;
use crate::server::Program;

#[tokio::test(flavor = "multi_thread")]
async fn remembers_across_connections() {
    let file = paths::scratch("memory").join("memory.jsonl");
    let script = paths::package("@modelcontextprotocol/server-memory/dist/index.js");
    let program = Program::new(paths::node(), &[&script]).env("MEMORY_FILE_PATH", file.display().to_string());

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
    lifecycle::leaves_nothing_behind(meeting).await;

    let meeting = Meeting::open(&program, Over::Stdio, "", EraChoice::Auto).await;
    let call = meeting.client.call("read_graph", Value::Null).validate_output();
    let graph = call.await.expect("the graph").structured().expect("structured content");
    assert_eq!(graph, json!({"entities": [tide], "relations": []}));
    lifecycle::leaves_nothing_behind(meeting).await;
}

/// What our memory says beyond what `server-memory` says, tool by tool.
const ADDITIONS: [(&str, &[&str]); 8] = [
    ("create_entities", &["created"]),
    ("create_relations", &["created"]),
    ("add_observations", &["added", "entityName", "totalObservations"]),
    ("delete_entities", &["deleted", "entityNames"]),
    ("delete_observations", &["deleted", "entities"]),
    ("delete_relations", &["deleted"]),
    ("search_nodes", &["count", "ids"]),
    ("open_nodes", &["found", "ids", "notFound"]),
];

/// The text of a result, as JSON where it is that, and its structured content without additions; or that it failed.
async fn answer(client: &Client, tool: &str, arguments: Value) -> (bool, Value, Value) {
    let additions = ADDITIONS.iter().find(|(name, _)| *name == tool).map_or(&[][..], |(_, members)| *members);
    let result = client.request("tools/call", json!({"name": tool, "arguments": arguments})).await;
    let result: Value = result.expect("a result").to().expect("JSON");
    let text = result["content"][0]["text"].as_str().unwrap_or_default();
    let failed = result["isError"].as_bool().unwrap_or_default();
    let mut structured = result["structuredContent"].clone();
    if let Some(members) = structured.as_object_mut() {
        members.retain(|name, _| !additions.contains(&name.as_str()));
    }
    if failed {
        // Our failures have their machine form as structured content.
        structured = Value::Null;
    }
    (failed, serde_json::from_str(text).unwrap_or_else(|_| json!(text)), structured)
}

/// A call as an assistant might make it, of a handful of names, so that they meet.
fn some_call(random: &mut fastrand::Rng) -> (&'static str, Value) {
    const NAMES: [&str; 6] = ["Ann", "Bob", "Acme", "tide table", "Zoë", "a_1"];
    const FACTS: [&str; 5] = ["likes tea", "lives in Kiel", "LIKES TEA", "100 % sure", "über alles"];
    let name = |random: &mut fastrand::Rng| NAMES[random.usize(..NAMES.len())];
    let fact = |random: &mut fastrand::Rng| FACTS[random.usize(..FACTS.len())];
    let relation = |random: &mut fastrand::Rng| {
        let kind = ["knows", "works_at"][random.usize(..2)];
        json!({"from": name(random), "to": name(random), "relationType": kind})
    };
    match random.usize(..10) {
        0 | 1 => {
            let entity = json!({"name": name(random), "entityType": "thing", "observations": [fact(random)]});
            ("create_entities", json!({"entities": [entity]}))
        }
        2 => ("create_relations", json!({"relations": [relation(random)]})),
        3 | 4 => {
            let observed = json!({"entityName": name(random), "contents": [fact(random)]});
            ("add_observations", json!({"observations": [observed]}))
        }
        5 => ("delete_entities", json!({"entityNames": [name(random)]})),
        6 => {
            let deletion = json!({"entityName": name(random), "observations": [fact(random)]});
            ("delete_observations", json!({"deletions": [deletion]}))
        }
        7 => ("delete_relations", json!({"relations": [relation(random)]})),
        8 => {
            // Where theirs finds nothing at all, ours may find what is near: nothing is near a zebra.
            let query = ["tea", "KIEL", "a", "thing", "%", "", "ë", "zebra"][random.usize(..8)];
            ("search_nodes", json!({"query": query}))
        }
        _ => ("open_nodes", json!({"names": [name(random), name(random)]})),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn our_memory_answers_as_it_does() {
    let folder = paths::scratch("memory-replay");
    let script = paths::package("@modelcontextprotocol/server-memory/dist/index.js");
    let file = folder.join("memory.jsonl").display().to_string();
    let program = Program::new(paths::node(), &[&script]).env("MEMORY_FILE_PATH", file);
    let meeting = Meeting::open(&program, Over::Stdio, "", EraChoice::Auto).await;
    let store = tidegate_memory::Store::open(folder.join("memory.db")).expect("a store");
    let ours = Client::connect(Target::from_door(tidegate_memory::server(store))).await.expect("our memory");

    let mut random = fastrand::Rng::with_seed(7);
    let mut failures = 0;
    for n in 0..400 {
        let (tool, arguments) = match n % 20 {
            19 => ("read_graph", json!({})),
            _ => some_call(&mut random),
        };
        let theirs = answer(&meeting.client, tool, arguments.clone()).await;
        assert_eq!(answer(&ours, tool, arguments.clone()).await, theirs, "call {n}: {tool} {arguments}");
        failures += usize::from(theirs.0);
    }
    assert!(failures > 5, "entities that are not there are among the calls");

    let tools = |definitions: Vec<std::sync::Arc<tidegate_client::Tool>>| {
        definitions.iter().map(|tool| tool.name().to_owned()).collect::<Vec<_>>()
    };
    let known = tools(ours.tools().await.expect("our tools"));
    for name in tools(meeting.client.tools().await.expect("their tools")) {
        assert!(known.contains(&name), "{name} is missing");
    }
    // Their file, read by ours, is the same graph.
    let (_, theirs, _) = answer(&meeting.client, "read_graph", json!({})).await;
    let text = std::fs::read_to_string(folder.join("memory.jsonl")).expect("their file");
    let store = tidegate_memory::Store::open(folder.join("imported.db")).expect("a store");
    let imported =
        Client::connect(Target::from_door(tidegate_memory::server(store))).await.expect("a memory");
    assert!(!answer(&imported, "import_graph", json!({"jsonl": text})).await.0);
    assert_eq!(answer(&imported, "read_graph", json!({})).await.1, theirs);
    ours.close().await;
    imported.close().await;
    lifecycle::leaves_nothing_behind(meeting).await;
}
