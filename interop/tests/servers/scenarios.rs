//! What is done with every server that speaks the [vocabulary](crate::vocabulary).

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};
use tidegate_client::{Change, Filter};
use tokio_util::sync::CancellationToken;

use crate::meeting::{ROOT, Scenario, eventually, held, soon};
use crate::vocabulary::{Talk, UnknownTool};

/// All of them, in an order in which none disturbs the next.
pub(crate) const SCENARIOS: &[Scenario<Talk>] = &[
    ("facts", |talk| Box::pin(facts(talk))),
    ("lists", |talk| Box::pin(lists(talk))),
    ("call", |talk| Box::pin(call(talk))),
    ("many at once", |talk| Box::pin(many_at_once(talk))),
    ("structured output", |talk| Box::pin(structured_output(talk))),
    ("broken output schema", |talk| Box::pin(broken_output_schema(talk))),
    ("failing tool", |talk| Box::pin(failing_tool(talk))),
    ("unknown tool", |talk| Box::pin(unknown_tool(talk))),
    ("read", |talk| Box::pin(read(talk))),
    ("unknown resource", |talk| Box::pin(unknown_resource(talk))),
    ("prompt", |talk| Box::pin(prompt(talk))),
    ("completion", |talk| Box::pin(completion(talk))),
    ("progress", |talk| Box::pin(progress(talk))),
    ("log", |talk| Box::pin(log(talk))),
    ("elicitation", |talk| Box::pin(elicitation(talk))),
    ("sampling", |talk| Box::pin(sampling(talk))),
    ("roots", |talk| Box::pin(roots(talk))),
    ("cancellation", |talk| Box::pin(cancellation(talk))),
    ("timeout", |talk| Box::pin(timeout(talk))),
    ("list changes", |talk| Box::pin(list_changes(talk))),
    ("resource changes", |talk| Box::pin(resource_changes(talk))),
];

async fn facts(talk: &Talk) {
    if let Some(between) = &talk.meeting.between {
        let facts = between.server().await.expect("facts");
        assert_eq!((facts.revision, facts.transport), (talk.way.revision, talk.way.over.name()));
    }
    let facts = talk.meeting.client.server().await.expect("facts");
    let (revision, transport) = match talk.way.door {
        false => (talk.way.revision, talk.way.over.name()),
        true => (tidegate_protocol::Revision::INTERNAL, "local"),
    };
    assert_eq!(facts.revision, revision, "the revision");
    assert_eq!(facts.transport, transport, "the transport");
    assert_eq!(facts.name().as_deref(), Some(talk.way.name), "the name");
    assert_eq!(facts.version().as_deref(), Some("1.2.3"), "the version");
    assert_eq!(facts.instructions.as_deref(), Some("Ask for anything"), "the instructions");
    for capability in ["tools", "resources", "prompts"] {
        assert!(facts.has_capability(capability), "{capability} in {}", facts.capabilities);
    }
    talk.meeting.client.ping().await.expect("a ping, or what stands for it");
}

async fn lists(talk: &Talk) {
    let client = &talk.meeting.client;
    let tools = client.tools().await.expect("tools");
    let names: Vec<_> = tools.iter().map(|tool| tool.name()).collect();
    for name in ["echo", "add", "count", "greet", "pid"] {
        assert!(names.contains(&name), "{name} among {names:?}");
    }
    let echo = client.get_tool_schema("echo").await.expect("echo");
    assert_eq!(echo.description().as_deref(), Some("Says back what it is told"));
    assert_eq!(echo.input_schema()["properties"]["message"]["type"], "string");
    let resources = client.resources().await.expect("resources");
    assert_eq!(resources.iter().map(|one| one.uri()).collect::<Vec<_>>(), ["memo://about"]);
    let templates = client.resource_templates().await.expect("templates");
    assert_eq!(templates.iter().map(|one| one.uri_template()).collect::<Vec<_>>(), ["memo://city/{city}"]);
    let prompts = client.prompts().await.expect("prompts");
    assert_eq!(prompts.iter().map(|one| one.name()).collect::<Vec<_>>(), ["explain"]);
}

async fn call(talk: &Talk) {
    let message = "hi ⚓ \"quoted\"\n\u{1F30A}";
    assert_eq!(talk.meeting.text("echo", json!({"message": message})).await, message);
    let long = "tide ".repeat(100_000);
    assert_eq!(talk.meeting.text("echo", json!({"message": long})).await, long, "half a megabyte");
}

async fn many_at_once(talk: &Talk) {
    let calls = (0..20).map(|n| talk.meeting.text("echo", json!({"message": n.to_string()})));
    let expected: Vec<_> = (0..20).map(|n| n.to_string()).collect();
    assert_eq!(join_all(calls).await, expected);
}

async fn structured_output(talk: &Talk) {
    let result = talk.meeting.client.call("add", json!({"a": 2, "b": 3})).validate_output().await;
    let result = result.expect("it fits its schema");
    assert_eq!(result.structured(), Some(json!({"sum": 5})), "{}", result.json());
}

async fn broken_output_schema(talk: &Talk) {
    let client = &talk.meeting.client;
    let error =
        client.call("lie", Value::Null).validate_output().await.expect_err("it does not fit its schema");
    assert_eq!(error.code, "E306", "{error}");
    assert!(error.message.contains("/sum"), "it says where: {error}");
    assert!(client.call("lie", Value::Null).await.is_ok(), "nobody asked for a check");
}

async fn failing_tool(talk: &Talk) {
    let result = talk.meeting.client.call("fail", Value::Null).await.expect("a result that says so");
    assert!(result.is_error(), "{}", result.json());
    assert!(result.text().contains("The tide is out"), "{}", result.json());
}

async fn unknown_tool(talk: &Talk) {
    match (talk.meeting.client.call("ecco", Value::Null).await, talk.way.unknown_tool) {
        (Err(error), UnknownTool::Error) => assert_eq!(error.code, "E204", "{error}"),
        (Ok(result), UnknownTool::Result) => {
            assert!(result.is_error() && result.text().contains("ecco"), "{}", result.json());
        }
        (outcome, expected) => panic!("{outcome:?} instead of {expected:?}"),
    }
    let error = talk.meeting.client.get_tool_schema("ecco").await.expect_err("it is not in the list");
    assert_eq!(error.code, "E204", "{error}");
}

async fn read(talk: &Talk) {
    for (uri, text) in [("memo://about", "A fixture."), ("memo://city/Bergen", "Mild in Bergen.")] {
        let read = talk.meeting.client.read(uri).await.expect(uri);
        assert_eq!(read.text(), text, "{}", read.json());
        assert_eq!(read.contents()[0].mime_type.as_deref(), Some("text/plain"), "{}", read.json());
    }
}

async fn unknown_resource(talk: &Talk) {
    let error = talk.meeting.client.read("memo://nowhere").await.expect_err("there is none");
    assert_eq!(error.code, "E204", "{error:?}");
}

async fn prompt(talk: &Talk) {
    let client = &talk.meeting.client;
    let prompt = client.get_prompt("explain", json!({"topic": "tides"})).await.expect("a prompt");
    assert_eq!(prompt.messages()[0].text(), Some("Explain tides."), "{}", prompt.json());
    let error = client.get_prompt("explain", Value::Null).await.expect_err("an argument is missing");
    assert!(matches!(error.code, "E203" | "E201"), "{error}");
}

async fn completion(talk: &Talk) {
    for reference in [
        json!({"type": "ref/prompt", "name": "explain"}),
        json!({"type": "ref/resource", "uri": "memo://city/{city}"}),
    ] {
        let name = if reference["type"] == "ref/prompt" { "topic" } else { "city" };
        let what = format!("{reference}");
        let completed = talk.meeting.client.complete(reference, json!({"name": name, "value": "Ber"})).await;
        let completed: Value = completed.expect(&what).to().expect("JSON");
        assert_eq!(
            completed["completion"]["values"],
            json!(["Bergen", "Berlin", "Bern"]),
            "{what}: {completed}"
        );
    }
}

async fn progress(talk: &Talk) {
    let seen = Arc::new(Mutex::new(Vec::<Value>::new()));
    let tell = seen.clone();
    let call = talk.meeting.client.call("count", json!({"to": 3}));
    let result =
        call.on_progress(move |told| held(&tell).push(told.to().expect("JSON"))).await.expect("a result");
    assert_eq!(result.text(), "Counted to 3");
    let seen = held(&seen);
    let told: Vec<_> =
        seen.iter().map(|p| (p["progress"].as_f64(), p["total"].as_f64(), &p["message"])).collect();
    let (one, two, three) = (json!("counted to 1"), json!("counted to 2"), json!("counted to 3"));
    let expected: Vec<_> =
        [(1.0, &one), (2.0, &two), (3.0, &three)].map(|(n, m)| (Some(n), Some(3.0), m)).into();
    assert_eq!(told, expected);
}

async fn log(talk: &Talk) {
    talk.meeting.text("say", Value::Null).await;
    let seen = &talk.meeting.seen;
    // FastMCP wraps the text.
    let said = |log: &Value| log["level"] == "warning" && log["data"].to_string().contains("High water");
    eventually("the log message", async || held(&seen.logs).iter().any(said)).await;
}

async fn elicitation(talk: &Talk) {
    assert_eq!(talk.meeting.text("greet", Value::Null).await, "Hello, Ada!");
    assert_eq!(*held(&talk.meeting.seen.questions), ["Who is there?"], "asked once");
}

async fn sampling(talk: &Talk) {
    assert_eq!(talk.meeting.text("think", Value::Null).await, "It is 42");
    let samples = held(&talk.meeting.seen.samples).clone();
    assert_eq!(samples.len(), 1, "asked once: {samples:?}");
    assert_eq!(samples[0]["messages"][0]["role"], "user", "{samples:?}");
}

async fn roots(talk: &Talk) {
    assert_eq!(talk.meeting.text("where", Value::Null).await, ROOT);
}

/// The number of calls of `wait` that the server knows were cancelled.
async fn waited(talk: &Talk) -> u32 {
    talk.meeting.text("waited", Value::Null).await.parse().expect("a number")
}

async fn cancellation(talk: &Talk) {
    let before = waited(talk).await;
    let client = &talk.meeting.client;
    // The future is dropped when the time is over.
    let dropped =
        tokio::time::timeout(Duration::from_millis(500), client.call("wait", Value::Null).into_future());
    assert!(dropped.await.is_err(), "it waits");
    eventually("the server hears of the dropped call", async || waited(talk).await > before).await;

    let token = CancellationToken::new();
    let call = tokio::spawn(client.call("wait", Value::Null).cancel_with(token.clone()).into_future());
    tokio::time::sleep(Duration::from_millis(500)).await;
    token.cancel();
    let error = soon("the cancelled call", call).await.expect("no panic").expect_err("it was cancelled");
    assert_eq!(error.code, "E206", "{error}");
    eventually("the server hears of the cancelled call", async || waited(talk).await > before + 1).await;
}

async fn timeout(talk: &Talk) {
    let call = talk.meeting.client.call("wait", Value::Null).timeout(Duration::from_millis(500));
    // Behind a door too: the client's own clock is the first to say so.
    let error = call.await.expect_err("it takes too long");
    assert_eq!(error.code, "E202", "{error}");
    let said = error.message;
    assert!(said.contains("within 0.5 s"), "{said}");
    assert_eq!(talk.meeting.text("echo", json!({"message": "still there"})).await, "still there");
}

async fn list_changes(talk: &Talk) {
    let client = &talk.meeting.client;
    let changes = client.subscribe(Filter::lists()).await.expect("a subscription");
    assert!(client.get_tool_schema("grown").await.is_err(), "not yet");
    talk.meeting.text("grow", Value::Null).await;
    assert_eq!(soon("the change", changes.next()).await, Some(Change::Tools));
    let tools = client.tools().await.expect("tools");
    assert!(tools.iter().any(|tool| tool.name() == "grown"), "the known list has been forgotten");
    assert_eq!(talk.meeting.text("grown", Value::Null).await, "I am new");
}

async fn resource_changes(talk: &Talk) {
    let changes = talk.meeting.client.subscribe(Filter::default().resource("memo://about")).await;
    let changes = changes.expect("a subscription");
    talk.meeting.text("touch", Value::Null).await;
    let change = soon("the change", changes.next()).await;
    assert_eq!(change, Some(Change::Resource("memo://about".to_owned())));
}
