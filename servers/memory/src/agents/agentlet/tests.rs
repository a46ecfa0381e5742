//! What becomes of agents as they are written.

use super::*;

#[test]
fn three_ways_of_writing_are_one() {
    let plain = json!({
        "title": "My Agent", "description": "Be kind.", "short_name": "my-agent", "version": "1.2.0",
        "json_schema_extra": {"tools": [{"mcp_server": "web", "tool_name": "get", "usage": "to look"}, "x"]},
        "type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"],
    });
    let agent = Agent::read(&plain).unwrap();
    assert_eq!((&*agent.name, &*agent.version, agent.tools.len()), ("my-agent", "1.2.0", 2));
    assert_eq!(
        agent.schema,
        json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]})
    );
    assert_eq!(Agent::read(&agent.document()).unwrap().tools, agent.tools);
    let percolate = json!({
        "title": "MyAgent", "description": "Be kind.",
        "x-percolate": {"name": "a.b.C", "short_name": "my-agent", "tools": ["x"]},
        "properties": {"a": {"type": "string"}},
    });
    let agent = Agent::read(&percolate).unwrap();
    assert_eq!((&*agent.name, &*agent.version, &*agent.tools[0].tool_name), ("my-agent", "1.0.0", "x"));
    let told = json!({
        "name": "My Agent", "instructions": "Be kind.", "mcp_tools": ["x"], "target": "pydantic_ai",
        "result_schema": {"type": "object", "properties": {"a": {"type": "string"}}},
    });
    let agent = Agent::read(&told).unwrap();
    assert_eq!((&*agent.name, &*agent.description, agent.tools.len()), ("my-agent", "Be kind.", 1));
    assert_eq!(agent.document()["json_schema_extra"]["target"], "pydantic_ai");
    assert_eq!(agent.document()["json_schema_extra"]["name"], "My Agent");
    assert_eq!(Agent::read(&agent.document()).unwrap().extra, agent.extra);
    assert_eq!(slug("MyHTTPAgent 2!"), "my-httpagent-2");
}

#[test]
fn what_is_no_agent_is_refused_by_field() {
    for (document, field) in [
        (json!([]), "agentlet:"),
        (json!({"title": "x", "description": 5}), "agentlet.description:"),
        (json!({"title": "x", "description": ""}), "agentlet.description:"),
        (json!({"name": "x", "instructions": "y"}), "agentlet.result_schema:"),
        (json!({"title": "", "description": "y"}), "agentlet.short_name:"),
        (json!({"title": "!", "description": "y"}), "agentlet.title:"),
        (json!({"short_name": "a b", "description": "y"}), "agentlet.short_name:"),
        (
            json!({"title": "x", "description": "y", "x-percolate": {"short_name": "a_b"}}),
            "agentlet.short_name:",
        ),
        (json!({"name": "!", "instructions": "y", "result_schema": {}}), "agentlet.name:"),
        (json!({"title": "x", "description": "y", "x-percolate": 5}), "agentlet.x-percolate:"),
        (
            json!({"title": "x", "description": "y", "properties": {"a": {}}, "required": ["a", "b"]}),
            "agentlet.output_schema.required[1]:",
        ),
        (
            json!({"title": "x", "description": "y", "x-percolate": {"key_field": "z"}, "properties": {}}),
            "agentlet.json_schema_extra.key_field:",
        ),
        (
            json!({"title": "x", "description": "y", "json_schema_extra": {"embedding_fields": ["description", "z"]}}),
            "agentlet.json_schema_extra.embedding_fields[1]:",
        ),
        (
            json!({"title": "x", "description": "y", "json_schema_extra": {"indexed_columns": 5}}),
            "agentlet.json_schema_extra.indexed_columns:",
        ),
        (
            json!({"title": "x", "description": "y", "json_schema_extra": {"tags": "z"}}),
            "json_schema_extra.tags:",
        ),
        (
            json!({"title": "x", "description": "y", "json_schema_extra": {"tools": [5]}}),
            "json_schema_extra.tools[0]:",
        ),
    ] {
        let fault = Agent::read(&document).unwrap_err();
        assert!(fault.message.starts_with(field), "{document}: {fault}");
    }
}
