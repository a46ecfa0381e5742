//! `@modelcontextprotocol/server-everything`, over its three transports. It runs on version 1 of the TypeScript SDK and
//! so speaks the legacy era alone.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tidegate_client::{Change, EraChoice, Filter};
use tidegate_protocol::Revision;

use crate::lifecycle;
use crate::meeting::{Meeting, Over, ROOT, Scenario, eventually, held, soon, try_all};
use crate::paths;
use crate::server::Program;

const SCENARIOS: &[Scenario<Meeting>] = &[
    ("facts", |meeting| Box::pin(facts(meeting))),
    ("lists", |meeting| Box::pin(lists(meeting))),
    ("call", |meeting| Box::pin(call(meeting))),
    ("structured output", |meeting| Box::pin(structured_output(meeting))),
    ("task", |meeting| Box::pin(task(meeting))),
    ("errors", |meeting| Box::pin(errors(meeting))),
    ("read", |meeting| Box::pin(read(meeting))),
    ("prompt", |meeting| Box::pin(prompt(meeting))),
    ("completion", |meeting| Box::pin(completion(meeting))),
    ("progress", |meeting| Box::pin(progress(meeting))),
    ("log", |meeting| Box::pin(log(meeting))),
    ("elicitation", |meeting| Box::pin(elicitation(meeting))),
    ("page to visit", |meeting| Box::pin(page_to_visit(meeting))),
    ("sampling", |meeting| Box::pin(sampling(meeting))),
    ("roots", |meeting| Box::pin(roots(meeting))),
    ("cancellation", |meeting| Box::pin(cancellation(meeting))),
    ("resource changes", |meeting| Box::pin(resource_changes(meeting))),
];

fn program(transport: &str) -> Program {
    let script = paths::package("@modelcontextprotocol/server-everything/dist/index.js");
    let loopback = format!("file://{}", paths::own("node/loopback.mjs"));
    let import = if transport == "stdio" { vec![] } else { vec!["--import", &loopback] };
    let args = [import, vec![&script, transport]].concat();
    Program::new(paths::node(), &args).env("PORT", "0")
}

async fn meet(transport: &str, over: Over, path: &str) {
    let meeting = Meeting::open(&program(transport), over, path, EraChoice::Auto).await;
    let transport = meeting.client.server().await.expect("facts").transport;
    assert_eq!(transport, over.name());
    try_all(&format!("everything {transport}"), &meeting, SCENARIOS.iter().copied()).await;
    lifecycle::leaves_nothing_behind(meeting).await;
}

/// As behind a gateway: the client in front speaks no legacy, and answers what the server asks.
#[tokio::test(flavor = "multi_thread")]
async fn stdio_behind_a_door() {
    let meeting = Meeting::behind_a_door(&program("stdio"), Over::Stdio, "", EraChoice::Auto).await;
    let elsewhere = ["facts", "log"];
    let scenarios = SCENARIOS.iter().filter(|(name, _)| !elsewhere.contains(name)).copied();
    try_all("everything stdio behind a door", &meeting, scenarios).await;
    lifecycle::leaves_nothing_behind(meeting).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn stdio() {
    meet("stdio", Over::Stdio, "").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn http() {
    meet("streamableHttp", Over::Http, "/mcp").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sse() {
    meet("sse", Over::Sse, "/sse").await;
}

/// It answers 400 where others say 404 when they have forgotten a session.
#[tokio::test(flavor = "multi_thread")]
async fn http_restarted() {
    let meeting = Meeting::open(&program("streamableHttp"), Over::Http, "/mcp", EraChoice::Auto).await;
    call(&meeting).await;
    let _again = lifecycle::restarted(&meeting, &program("streamableHttp"));
    call(&meeting).await;
    elicitation(&meeting).await;
    meeting.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sse_restarted() {
    let meeting = Meeting::open(&program("sse"), Over::Sse, "/sse", EraChoice::Auto).await;
    call(&meeting).await;
    let _again = lifecycle::restarted(&meeting, &program("sse"));
    call(&meeting).await;
    elicitation(&meeting).await;
    meeting.close().await;
}

/// As people configure it: npx starts a shell that starts Node.js, and none of them may stay.
#[tokio::test(flavor = "multi_thread")]
async fn through_npx() {
    let prefix = paths::npm().display().to_string();
    let program = Program::new("npx", &["--no", "--prefix", &prefix, "--", "mcp-server-everything", "stdio"]);
    let meeting = Meeting::open(&program, Over::Stdio, "", EraChoice::Auto).await;
    call(&meeting).await;
    lifecycle::leaves_nothing_behind(meeting).await;
}

async fn facts(meeting: &Meeting) {
    let facts = meeting.client.server().await.expect("facts");
    assert_eq!(facts.revision, Revision::V2025_11_25);
    assert_eq!(facts.name().as_deref(), Some("mcp-servers/everything"));
    for capability in ["tools.listChanged", "resources.subscribe", "prompts", "logging", "completions"] {
        assert!(facts.has_capability(capability), "{capability} in {}", facts.capabilities);
    }
    assert!(facts.instructions.is_some());
    meeting.client.ping().await.expect("a ping");
}

async fn lists(meeting: &Meeting) {
    let tools = meeting.client.tools().await.expect("tools");
    let names: Vec<_> = tools.iter().map(|tool| tool.name()).collect();
    // The last three are only there for a client that declared what they need.
    for name in
        ["echo", "get-sum", "get-roots-list", "trigger-elicitation-request", "trigger-sampling-request"]
    {
        assert!(names.contains(&name), "{name} among {names:?}");
    }
    assert!(!meeting.client.resources().await.expect("resources").is_empty());
    assert_eq!(meeting.client.resource_templates().await.expect("templates").len(), 2);
    assert_eq!(meeting.client.prompts().await.expect("prompts").len(), 4);
}

async fn call(meeting: &Meeting) {
    assert_eq!(meeting.text("echo", json!({"message": "hi ⚓"})).await, "Echo: hi ⚓");
    let image = meeting.client.call("get-tiny-image", Value::Null).await.expect("an image");
    assert!(image.content().iter().any(|block| block["type"] == "image"), "{}", image.json());
}

async fn structured_output(meeting: &Meeting) {
    let call =
        meeting.client.call("get-structured-content", json!({"location": "Chicago"})).validate_output();
    let weather = call.await.expect("it fits its schema").structured().expect("structured content");
    assert_eq!(weather["humidity"], 82, "{weather}");
}

/// A tool that is nothing but a task of 2025-11-25: it is called as one and waited for.
async fn task(meeting: &Meeting) {
    let call = meeting.client.call("simulate-research-query", json!({"topic": "tides"}));
    let report = call.await.expect("the report");
    assert!(report.text().contains("Research Report: tides"), "{}", report.json());
}

async fn errors(meeting: &Meeting) {
    let client = &meeting.client;
    // Version 1 of the SDK makes results of these.
    let unknown = client.call("ecco", Value::Null).await.expect("a result that says so");
    assert!(unknown.is_error() && unknown.text().contains("ecco"), "{}", unknown.json());
    let invalid = client.call("get-sum", json!({"a": "one", "b": 2})).await.expect("a result that says so");
    assert!(invalid.is_error(), "{}", invalid.json());
    let missing = client.get_tool_schema("ecco").await.expect_err("it is not in the list");
    assert_eq!(missing.code, "E204", "{missing}");
    let missing = client.read("demo://nowhere").await.expect_err("there is none");
    assert_eq!(missing.code, "E204", "{missing}");
    let missing = client.get_prompt("nothing", Value::Null).await.expect_err("there is none");
    assert_eq!(missing.code, "E204", "{missing}");
    let invalid = client.get_prompt("args-prompt", Value::Null).await.expect_err("an argument is missing");
    assert_eq!(invalid.code, "E203", "{invalid}");
    let strange = client.request("no/such/method", json!({})).await.expect_err("there is none");
    assert_eq!(strange.code, "E203", "{strange}");
}

async fn read(meeting: &Meeting) {
    let read = meeting.client.read("demo://resource/dynamic/text/7").await.expect("text");
    assert!(read.text().starts_with("Resource 7"), "{}", read.json());
}

async fn prompt(meeting: &Meeting) {
    let prompt = meeting.client.get_prompt("args-prompt", json!({"city": "Bergen"})).await.expect("a prompt");
    assert_eq!(prompt.messages()[0].text(), Some("What's weather in Bergen?"), "{}", prompt.json());
}

async fn completion(meeting: &Meeting) {
    let reference = json!({"type": "ref/prompt", "name": "completable-prompt"});
    let completed = meeting.client.complete(reference, json!({"name": "department", "value": "S"})).await;
    let completed: Value = completed.expect("a completion").to().expect("JSON");
    assert_eq!(completed["completion"]["values"], json!(["Sales", "Support"]), "{completed}");
}

async fn progress(meeting: &Meeting) {
    let seen = Arc::new(Mutex::new(Vec::<Value>::new()));
    let tell = seen.clone();
    let call = meeting.client.call("trigger-long-running-operation", json!({"duration": 0.3, "steps": 3}));
    call.on_progress(move |told| held(&tell).push(told.to().expect("JSON"))).await.expect("a result");
    let steps: Vec<_> = held(&seen).iter().map(|p| (p["progress"].as_u64(), p["total"].as_u64())).collect();
    assert_eq!(steps, [1, 2, 3].map(|step| (Some(step), Some(3))));
}

async fn log(meeting: &Meeting) {
    // It writes a message of level info when it has learnt the roots, and one at random when it is told to.
    meeting.text("toggle-simulated-logging", Value::Null).await;
    eventually("a log message", async || !held(&meeting.seen.logs).is_empty()).await;
    meeting.text("toggle-simulated-logging", Value::Null).await;
}

async fn elicitation(meeting: &Meeting) {
    let said = meeting.text("trigger-elicitation-request", Value::Null).await;
    assert!(said.contains("- Name: Ada"), "{said}");
    assert!(
        said.contains("It was a dark and stormy night."),
        "fields left alone have their defaults: {said}"
    );
    *held(&meeting.seen.declines) = true;
    let said = meeting.text("trigger-elicitation-request", Value::Null).await;
    *held(&meeting.seen.declines) = false;
    assert!(said.contains("User declined"), "{said}");
}

async fn page_to_visit(meeting: &Meeting) {
    let arguments = json!({"url": "https://example.com/consent", "message": "Please consent"});
    let said = meeting.text("trigger-url-elicitation", arguments).await;
    assert!(said.contains("User completed the URL elicitation flow"), "{said}");
    assert!(held(&meeting.seen.questions).iter().any(|question| question == "Please consent"));
    // The other way to say so is an error that names the page, after which the call is made again.
    let arguments = json!({"url": "https://example.com/again", "errorPath": true});
    let said = meeting.text("trigger-url-elicitation", arguments).await;
    assert!(said.contains("User completed the URL elicitation flow"), "{said}");
    let questions = held(&meeting.seen.questions);
    assert!(
        questions.iter().any(|question| question.contains("to satisfy the prerequisite")),
        "{questions:?}"
    );
}

async fn sampling(meeting: &Meeting) {
    let said =
        meeting.text("trigger-sampling-request", json!({"prompt": "Six by nine?", "maxTokens": 10})).await;
    assert!(said.contains("\"42\""), "{said}");
    let sample = held(&meeting.seen.samples)[0].clone();
    assert_eq!(sample["maxTokens"], 10, "{sample}");
}

async fn roots(meeting: &Meeting) {
    let said = meeting.text("get-roots-list", Value::Null).await;
    assert!(said.contains(ROOT), "{said}");
}

async fn cancellation(meeting: &Meeting) {
    let long = json!({"duration": 60, "steps": 1});
    let call = meeting.client.call("trigger-long-running-operation", long).into_future();
    assert!(tokio::time::timeout(Duration::from_millis(300), call).await.is_err(), "it takes long");
    assert_eq!(meeting.text("echo", json!({"message": "still there"})).await, "Echo: still there");
}

async fn resource_changes(meeting: &Meeting) {
    let uri = "demo://resource/dynamic/text/1";
    let changes = meeting.client.subscribe(Filter::default().resource(uri)).await.expect("a subscription");
    meeting.text("toggle-subscriber-updates", Value::Null).await;
    assert_eq!(soon("the change", changes.next()).await, Some(Change::Resource(uri.to_owned())));
    meeting.text("toggle-subscriber-updates", Value::Null).await;
}
