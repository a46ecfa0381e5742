//! What the scenarios are made of, each in the words of the client library.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Map, Value, json};
use tidegate_client::{Client, ElicitAnswer, ElicitKind, Elicitation, Handlers, Tool};

/// Answers everything that a server may ask.
pub(crate) fn handlers() -> Handlers {
    Handlers::new()
        .on_elicit(false, |question| std::future::ready(ElicitAnswer::Accept(filled_in(&question))))
        .on_sample(false, |_| async {
            Ok(json!({"role": "assistant", "model": "none", "content": {"type": "text", "text": "Hello"}}))
        })
        .roots(Vec::new())
}

/// A form in which only the box "confirmed" was ticked, if it has one. The rest is left to the defaults.
fn filled_in(question: &Elicitation) -> Map<String, Value> {
    let ElicitKind::Form(schema) = &question.kind else { return Map::new() };
    let box_to_tick =
        schema.pointer("/properties/confirmed").map(|_| ("confirmed".to_owned(), Value::Bool(true)));
    box_to_tick.into_iter().collect()
}

/// Lists the tools.
pub(crate) async fn list(client: &Client) -> Result<()> {
    client.tools().await?;
    Ok(())
}

/// Lists the tools and calls one.
pub(crate) async fn call(client: &Client, tool: &str, arguments: Value) -> Result<()> {
    list(client).await?;
    checked(client, tool, arguments).await
}

/// Calls a tool, which has to succeed.
async fn checked(client: &Client, tool: &str, arguments: Value) -> Result<()> {
    let result = client.call(tool, arguments).await?;
    ensure!(!result.is_error(), "{tool} failed: {}", result.text());
    Ok(())
}

/// Calls all tools that the library lists, with arguments made up from their schemas.
pub(crate) async fn call_all(client: &Client) -> Result<()> {
    let tools = client.tools().await?;
    ensure!(!tools.is_empty(), "the library lists no tool");
    for tool in tools {
        checked(client, tool.name(), made_up_arguments(&tool)).await?;
    }
    Ok(())
}

fn made_up_arguments(tool: &Tool) -> Value {
    let schema = tool.input_schema();
    let properties = schema.get("properties").and_then(Value::as_object);
    let made_up = |property: &Value| match property.get("type").and_then(Value::as_str) {
        Some("string") => json!("us-west1"),
        Some("integer" | "number") => json!(1),
        Some("boolean") => json!(true),
        Some("array") => json!([]),
        Some("object") => json!({}),
        _ => Value::Null,
    };
    properties.into_iter().flatten().map(|(name, property)| (name.clone(), made_up(property))).collect()
}

/// Makes calls that the suite spells out: an array of objects with `name` and `arguments`.
pub(crate) async fn call_given(client: &Client, calls: &Value) -> Result<()> {
    list(client).await?;
    for call in calls.as_array().context("`toolCalls` is no array")? {
        let tool = call.get("name").and_then(Value::as_str).context("a tool call without a name")?;
        checked(client, tool, call.get("arguments").cloned().unwrap_or_default()).await?;
    }
    Ok(())
}

/// Gives the input schema of one tool to another, which compares it with what was sent.
pub(crate) async fn echo_schema(client: &Client) -> Result<()> {
    let tools = client.tools().await?;
    let tool = tools.iter().find(|tool| tool.name() == "json_schema_2020_12_tool");
    let schema = tool.context("the tool with the schema is not listed")?.input_schema();
    checked(client, "json_schema_echo", json!({"schema": schema})).await
}

/// Calls tools that ask before they answer. One that does not ask is called while another waits for its answer, so
/// that a client that mixes the two up shows.
pub(crate) async fn confirm(client: &Client) -> Result<()> {
    list(client).await?;
    let of = |tool| checked(client, tool, json!({}));
    tokio::try_join!(of("test_mrtr_echo_state"), of("test_mrtr_unrelated"))?;
    of("test_mrtr_no_state").await?;
    of("test_mrtr_no_result_type").await
}

/// Lists and uses everything that a server can have.
pub(crate) async fn use_all(client: &Client) -> Result<()> {
    call(client, "test_headers", json!({})).await?;
    for resource in client.resources().await? {
        client.read(resource.uri()).await?;
    }
    for prompt in client.prompts().await? {
        client.get_prompt(prompt.name(), Value::Null).await?;
    }
    Ok(())
}
