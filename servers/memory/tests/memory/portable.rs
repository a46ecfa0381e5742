//! The schemas that every assistant and framework has to read.

use serde_json::{Map, Value, json};
use tidegate_memory::{Listed, MemoryServerSettings, server_with};
use tidegate_protocol::Method;
use tidegate_service::schema::{obstacles, portable, restated};

use crate::rig::{Folder, call_as, request};

/// All tools, also those that are usually not listed.
async fn all(folder: &Folder) -> (tidegate_server::ServerDoor, Vec<Value>) {
    let mut options = MemoryServerSettings::default();
    options.listed = Listed::All;
    let memory = server_with(folder.store(), options);
    let listed = request(&memory, None, Method::ToolsList, json!({})).await.unwrap();
    let tools = listed["tools"].as_array().unwrap().clone();
    assert!(tools.len() > 30, "{}", tools.len());
    (memory, tools)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_framework_can_read_the_schemas() {
    let folder = Folder::new();
    for tool in all(&folder).await.1 {
        let input = &tool["inputSchema"];
        assert_eq!(obstacles(input), [], "{tool}");
        assert_eq!(portable(input), *input, "{tool}");
        if let Some(output) = tool.get("outputSchema") {
            assert_eq!(restated(output), *output, "{}: it could say the same in plainer words", tool["name"]);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_fits_what_is_listed_is_taken() {
    let folder = Folder::new();
    let (memory, tools) = all(&folder).await;
    for tool in tools {
        let name = tool["name"].as_str().unwrap();
        for turn in 0..6 {
            let arguments = sample(&tool["inputSchema"], turn, 0);
            // What is wrong with what they mean is another matter.
            let result = call_as(&memory, None, name, arguments.clone()).await;
            let said = result["content"][0]["text"].as_str().unwrap_or_default();
            assert!(!said.starts_with("Invalid arguments for"), "{name} {arguments}: {said}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_null_is_taken_for_whatever_can_be_left_out() {
    let folder = Folder::new();
    let (memory, tools) = all(&folder).await;
    for tool in tools {
        let (name, input) = (tool["name"].as_str().unwrap(), &tool["inputSchema"]);
        let mut arguments = sample(input, 0, 0);
        for (name, _) in input["properties"].as_object().unwrap() {
            arguments.as_object_mut().unwrap().entry(name.as_str()).or_insert(Value::Null);
        }
        let result = call_as(&memory, None, name, arguments.clone()).await;
        let said = result["content"][0]["text"].as_str().unwrap_or_default();
        assert!(!said.starts_with("Invalid arguments for"), "{name} {arguments}: {said}");
    }
}

/// A value that fits a schema: another one each turn. The first has only what must be there.
fn sample(schema: &Value, turn: usize, depth: usize) -> Value {
    let number = |name: &str| schema[name].as_f64();
    if let Some(values) = schema["enum"].as_array() {
        return values[turn % values.len()].clone();
    }
    if let Some(value) = schema.get("const") {
        return value.clone();
    }
    if let Some(branches) = schema["anyOf"].as_array() {
        return sample(&branches[turn % branches.len()], turn, depth);
    }
    match schema["type"].as_str().unwrap_or_else(|| panic!("no type: {schema}")) {
        "object" => {
            let is_required = |name: &str| {
                schema["required"].as_array().is_some_and(|names| names.iter().any(|n| n == name))
            };
            let members = schema["properties"].as_object().into_iter().flatten();
            let wanted = members.filter(|(name, _)| is_required(name) || (turn + depth) % 2 == 1);
            let members: Map<_, _> =
                wanted.map(|(name, inner)| (name.clone(), sample(inner, turn, depth + 1))).collect();
            Value::Object(members)
        }
        "array" => {
            let least = number("minItems").unwrap_or(0.0) as usize;
            (0..least.max(turn % 3)).map(|n| sample(&schema["items"], turn + n, depth + 1)).collect()
        }
        "string" => json!("x".repeat(number("minLength").unwrap_or(1.0).max(1.0) as usize)),
        "boolean" => json!(turn.is_multiple_of(2)),
        "null" => Value::Null,
        "integer" => json!(number("minimum").unwrap_or(0.0) as i64 + (turn % 2) as i64),
        "number" => json!(number("maximum").or(number("minimum")).unwrap_or(0.5)),
        other => panic!("{other}"),
    }
}
