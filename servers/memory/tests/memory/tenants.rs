//! Tenants that are named by an argument, where nobody is known.

use serde_json::{Value, json};
use tidegate_memory::{Listed, Options, server_with};
use tidegate_protocol::Method;

use crate::rig::{Folder, ann, ask, call_as, refused, request};

async fn names(memory: &tidegate_server::ServerDoor, tenant: Option<&str>, given: Value) -> Vec<String> {
    let result = call_as(memory, tenant, "read_graph", json!({"tenant_id": given})).await;
    assert_ne!(result["isError"], true, "{result}");
    let entities = result["structuredContent"]["entities"].as_array().unwrap().clone();
    entities.iter().map(|entity| entity["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_that_is_named_has_a_memory_of_its_own() {
    let folder = Folder::new();
    let memory = folder.server();
    ask(&memory, "create_entities", json!({"entities": [ann()], "tenant_id": "my-tenant"})).await;
    assert_eq!(names(&memory, None, json!("my-tenant")).await, ["Ann"]);
    for usual in [Value::Null, json!(""), json!("default"), json!("other")] {
        assert!(names(&memory, None, usual.clone()).await.is_empty(), "{usual}");
    }
    // It is the same as that of somebody who is known to be of that tenant.
    assert_eq!(names(&memory, Some("my-tenant"), Value::Null).await, ["Ann"]);
    assert_eq!(names(&memory, Some("my-tenant"), json!("my-tenant")).await, ["Ann"]);
    let denied = call_as(&memory, Some("other"), "read_graph", json!({"tenant_id": "my-tenant"})).await;
    assert_eq!(denied["isError"], true);
    let said = denied["content"][0]["text"].as_str().unwrap();
    assert!(said.starts_with("tenant_id: Access denied"), "{said}");
    let said = refused(&memory, "read_graph", json!({"tenant_id": 5})).await;
    assert_eq!(said, "Invalid arguments for read_graph: tenant_id: 5 is not of type \"string\"");
    // Resources are those of the usual tenant.
    let graph = json!({"uri": "memory://knowledge-graph"});
    let graph = request(&memory, None, Method::ResourcesRead, graph).await.unwrap();
    assert!(!graph["contents"][0]["text"].as_str().unwrap().contains("Ann"), "{graph}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_examples_of_percolate_are_understood() {
    let folder = Folder::new();
    let memory = folder.server();
    let agent = json!({
        "tenant_id": "my-tenant", "user_id": "user-123", "agent_name": "my-custom-agent", "description": "Help.",
        "output_schema": {"type": "object", "properties": {"answer": {"type": "string"}}},
    });
    let made = ask(&memory, "create_agent", agent).await;
    assert_eq!(made["agent_uri"], "agentlet://user/user-123/my-custom-agent");
    for uri in ["my-custom-agent", "user/user-123/my-custom-agent", "user/my-tenant/my-custom-agent"] {
        let found = ask(&memory, "get_agent", json!({"agent_uri": uri, "tenant_id": "my-tenant"})).await;
        assert_eq!(found["agent_uri"], made["agent_uri"], "{uri}");
    }
    let said = refused(&memory, "get_agent", json!({"agent_uri": "user/user-123/my-custom-agent"})).await;
    assert_eq!(said, "Access denied: can only access your own tenant's agents");
    let document =
        json!({"text": "Express Shipping is quick.", "title": "Shipping", "tenant_id": "my-tenant"});
    ask(&memory, "ingest_document", document).await;
    let search = json!({"query": "shipping", "tenant_id": "my-tenant", "limit": 5});
    assert_eq!(ask(&memory, "search_knowledge_base", search).await["count"], 1);
    let other = json!({"query": "shipping", "tenant_id": "test-tenant"});
    assert_eq!(ask(&memory, "search_knowledge_base", other).await["count"], 0);
    let service = json!({"name": "Express Shipping", "entityType": "service", "observations": ["next-day"]});
    ask(&memory, "create_entities", json!({"entities": [service], "tenant_id": "my-tenant"})).await;
    let lookup = json!({"entity_type": "service", "query": "Express Shipping", "tenant_id": "my-tenant"});
    assert_eq!(ask(&memory, "lookup_entity", lookup).await["entity"]["name"], "Express Shipping");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_tool_lists_the_tenant_unless_it_is_known_who_calls() {
    for by_argument in [true, false] {
        let folder = Folder::new();
        let mut options = Options::default();
        assert!(options.tenants_by_argument, "as long as nobody has to say who they are");
        options.listed = Listed::All;
        options.tenants_by_argument = by_argument;
        let memory = server_with(folder.store(), options);
        let listed = request(&memory, None, Method::ToolsList, json!({})).await.unwrap();
        for tool in listed["tools"].as_array().unwrap() {
            let schema = &tool["inputSchema"];
            let tenant = &schema["properties"]["tenant_id"];
            assert_eq!(tenant["type"] == "string", by_argument, "{tool}");
            assert_eq!(tenant.is_object(), by_argument, "{tool}");
            assert_eq!(schema["additionalProperties"], json!(false), "{tool}");
        }
        // Listed or not, it is taken, and is not a way to the memory of somebody else.
        ask(&memory, "create_entities", json!({"entities": [ann()], "tenant_id": "acme"})).await;
        assert_eq!(names(&memory, None, json!("acme")).await, ["Ann"]);
        let denied = call_as(&memory, Some("other"), "read_graph", json!({"tenant_id": "acme"})).await;
        let said = denied["content"][0]["text"].as_str().unwrap();
        assert!(said.starts_with("tenant_id: Access denied"), "{said}");
    }
}
