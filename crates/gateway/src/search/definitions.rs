//! The definitions of the gateway's own tools. They are the same in every configuration, so that a client that has seen
//! them once need not be told of each change behind them.

use std::sync::LazyLock;

use serde_json::json;
use tidegate_protocol::Json;

/// The tool that finds tools.
pub(crate) const SEARCH: &str = "search_tools";
/// The tool that calls them.
pub(crate) const CALL: &str = "call_tool";
/// How many tools a search shows, unless it says otherwise.
pub(crate) const DEFAULT_LIMIT: usize = 10;
/// How many it shows at most.
pub(crate) const MAX_LIMIT: usize = 50;

/// All of them, in the order of the list.
pub(crate) fn own() -> [Json; 2] {
    static OWN: LazyLock<[Json; 2]> = LazyLock::new(|| [search(), call()]);
    OWN.clone()
}

fn search() -> Json {
    let definition = json!({
        "name": SEARCH,
        "title": "Search tools",
        "description": "Finds tools by what they do. Most tools are not listed: search here first, then run one \
            with call_tool. Returns the names, descriptions and input schemas of the tools that fit best. An empty \
            query lists the servers and how many tools each has; with a server it lists that server's tools.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "query": {
                    "type": "string",
                    "description": "What the tool should do, in a few words, or a part of its name.",
                },
                "limit": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": MAX_LIMIT,
                    "default": DEFAULT_LIMIT,
                    "description": "How many tools to return at most.",
                },
                "server": {
                    "type": "string",
                    "description": "Only tools of this server.",
                },
            },
            "required": ["query"],
        },
        "outputSchema": {
            "type": "object",
            "properties": {
                "tools": {
                    "type": "array",
                    "description": "The definitions of the tools that fit best, best first.",
                    "items": {
                        "type": "object",
                        "properties": {
                            "name": { "type": "string" },
                            "description": { "type": "string" },
                            "inputSchema": { "type": "object" },
                        },
                        "required": ["name"],
                    },
                },
                "total": {
                    "type": "integer",
                    "description": "How many tools fit, including those that are not returned.",
                },
                "servers": {
                    "type": "array",
                    "description": "For an empty query: the servers, and how many tools each has.",
                    "items": {
                        "type": "object",
                        "properties": { "name": { "type": "string" }, "tools": { "type": "integer" } },
                        "required": ["name", "tools"],
                    },
                },
            },
            "required": ["tools", "total"],
        },
        "annotations": { "readOnlyHint": true, "openWorldHint": false },
    });
    Json::from(definition)
}

fn call() -> Json {
    let definition = json!({
        "name": CALL,
        "title": "Call a tool",
        "description": "Calls a tool that search_tools has found, and returns its result.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "name": { "type": "string", "description": "The name of the tool, exactly as search_tools gives it." },
                "arguments": {
                    "type": "object",
                    "description": "The arguments of the tool, as its input schema describes them.",
                },
            },
            "required": ["name"],
        },
    });
    Json::from(definition)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_protocol::{Method, Revision, lower};

    #[test]
    fn every_revision_gets_definitions_that_it_knows() {
        for revision in Revision::ALL.into_iter().filter(|revision| !revision.is_modern()) {
            let list = Json::trusted(format!("{{\"tools\":{}}}", Json::array(&own())));
            let lowered: serde_json::Value = lower::result(&Method::ToolsList, revision, list).to().unwrap();
            for tool in lowered["tools"].as_array().unwrap() {
                assert!(tool["name"].is_string() && tool["description"].is_string(), "{revision:?}: {tool}");
                assert_eq!(tool["inputSchema"]["type"], "object", "{revision:?}: {tool}");
                assert_eq!(tidegate_service::schema::obstacles(&tool["inputSchema"]), [], "{tool}");
            }
            let old = revision <= Revision::V2024_11_05;
            assert_eq!(lowered["tools"][0].get("annotations").is_none(), old, "{revision:?}");
        }
    }
}
