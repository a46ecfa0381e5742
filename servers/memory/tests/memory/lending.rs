//! Asking agents that the client's own model runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use tidegate_memory::{MemoryServerSettings, server_with};
use tidegate_protocol::{ClientCapabilities, Json, Limits, Method, Params};
use tidegate_server::{Cx, Server, ServerDoor, Tool};
use tidegate_service::{Call, Context, Door, Notice, Outbox, Reply};

use crate::rig::{Folder, ask};

/// Calls a tool and lets the model answer what is asked, round by round. Returns the result and the questions.
async fn converse(server: &ServerDoor, arguments: Value, answers: &[&str]) -> (Value, Vec<Value>) {
    let mut params = json!({"name": "ask_agent", "arguments": arguments});
    let mut questions = Vec::new();
    loop {
        let parsed = Params::parse(&Json::from(params.clone()), &Limits::default()).unwrap();
        let mut context = Context::local();
        context.capabilities = ClientCapabilities::from_json(Json::from(json!({"sampling": {}})));
        match server.answer(Call::new(Method::ToolsCall, parsed, context)).await.unwrap() {
            Reply::Complete(result) => return (result.to().unwrap(), questions),
            Reply::InputRequired(input) => {
                let mut given = json!({});
                for question in &input.questions {
                    assert_eq!(question.method, Method::SamplingCreate);
                    let text = answers[questions.len().min(answers.len() - 1)];
                    given[&*question.key] = json!({
                        "role": "assistant", "content": {"type": "text", "text": text}, "model": "client-model",
                    });
                    questions.push(question.params.to::<Value>().unwrap());
                }
                params["inputResponses"] = given;
                params["requestState"] = input.state.as_deref().into();
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_clients_model_answers_and_uses_tools() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let tool = Tool::new("web_get").description("Gets a page").handler(move |(), _: Cx| {
        let calls = counted.fetch_add(1, Ordering::SeqCst) + 1;
        async move { format!("the page, for the {calls}. time") }
    });
    let folder = Folder::new();
    let mut options = MemoryServerSettings::default();
    options.tools = Some(Server::new("gateway", "1").tool(tool).build().boxed());
    let memory = server_with(folder.store(), options);
    let agent = json!({
        "agent_name": "surfer", "description": "Surf.", "model": "claude-x",
        "output_schema": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
        "tools": ["web_get"],
    });
    ask(&memory, "create_agent", agent).await;
    let answers = [
        "I will look: {\"tool\": \"web_get\", \"arguments\": {}}",
        "{\"answer\": {\"a\": \"one\"}}",
        "```json\n{\"answer\": {\"a\": 1}}\n```",
    ];
    let asked = json!({"agent_uri": "surfer", "prompt": "go", "session_id": "s"});
    let (result, questions) = converse(&memory, asked.clone(), &answers).await;
    let given = &result["structuredContent"];
    assert_eq!(given["response"], json!({"a": 1}), "{result}");
    assert_eq!((&given["model"], &given["steps"]), (&json!("client-model"), &json!(3)));
    assert_eq!(given["usage"]["estimated"], true);
    assert_eq!(calls.load(Ordering::SeqCst), 1, "the tool was called once in all rounds");
    assert_eq!(questions.len(), 3);
    let system = questions[0]["systemPrompt"].as_str().unwrap();
    assert!(system.starts_with("Surf.") && system.contains("web_get") && system.contains("JSON Schema"));
    assert_eq!(questions[0]["modelPreferences"]["hints"][0]["name"], "claude-x");
    let shown = questions[1]["messages"][2]["content"]["text"].as_str().unwrap();
    assert_eq!(shown, "The tool web_get gave:\nthe page, for the 1. time");
    let corrected = questions[2]["messages"][4]["content"]["text"].as_str().unwrap();
    assert!(corrected.contains("a: "), "{corrected}");
    // The next question goes on from there, though all rounds of it are calls of their own.
    let (result, questions) = converse(&memory, asked, &["{\"answer\": {\"a\": 2}}"]).await;
    assert_eq!(result["structuredContent"]["response"], json!({"a": 2}));
    assert_eq!(questions[0]["messages"].as_array().unwrap().len(), 3);
    let kept = ask(&memory, "get_session", json!({"session_id": "s"})).await;
    assert_eq!(kept["count"], 4);
    assert_eq!(kept["messages"][1]["tool_calls"][0]["name"], "web_get");
}

#[tokio::test(flavor = "multi_thread")]
async fn progress_goes_on_from_round_to_round_and_a_turn_is_kept_once() {
    let folder = Folder::new();
    let memory = folder.server();
    let agent = json!({
        "agent_name": "looker", "description": "Look.", "tools": ["search_nodes"],
        "output_schema": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
    });
    ask(&memory, "create_agent", agent).await;
    let answers = [
        "{\"tool\": \"search_nodes\", \"arguments\": {\"query\": \"x\"}}",
        "{\"tool\": \"search_nodes\", \"arguments\": {\"query\": \"y\"}}",
        "{\"answer\": {\"a\": 1}}",
    ];
    let outbox = Outbox::new(1_000);
    let arguments = json!({"agent_uri": "looker", "prompt": "go", "session_id": "s"});
    let mut params = json!({"name": "ask_agent", "arguments": arguments});
    let mut answers = answers.into_iter();
    let answer = |params: &Value| {
        let parsed = Params::parse(&Json::from(params.clone()), &Limits::default()).unwrap();
        let mut context = Context::local();
        context.capabilities = ClientCapabilities::from_json(Json::from(json!({"sampling": {}})));
        context.progress_token = Some(Json::trusted("7"));
        context.outbox = Some(outbox.clone());
        memory.answer(Call::new(Method::ToolsCall, parsed, context))
    };
    loop {
        match answer(&params).await.unwrap() {
            Reply::Complete(result) => {
                assert_ne!(result.to::<Value>().unwrap()["isError"], true);
                break;
            }
            Reply::InputRequired(input) => {
                params["inputResponses"] = json!({&*input.questions[0].key: {
                    "role": "assistant", "content": {"type": "text", "text": answers.next().unwrap()}, "model": "m",
                }});
                params["requestState"] = input.state.as_deref().into();
            }
            other => panic!("{other:?}"),
        }
    }
    let mut told = Vec::new();
    while let Some(Notice::Progress(params)) = outbox.try_next() {
        told.push(params.to::<Value>().unwrap()["progress"].as_f64().unwrap());
    }
    assert_eq!(told, [1.0, 2.0, 3.0, 4.0, 5.0]);
    // The last round again, as a client sends it that did not hear the answer.
    assert!(matches!(answer(&params).await.unwrap(), Reply::Complete(_)));
    assert_eq!(ask(&memory, "get_session", json!({"session_id": "s"})).await["count"], 2);
    // What is no answer at all fails the tool, and not the request.
    params["inputResponses"] = json!({"step-3": {"role": "robot"}});
    let Reply::Complete(result) = answer(&params).await.unwrap() else { panic!("no result") };
    let result: Value = result.to().unwrap();
    assert_eq!(result["isError"], true, "{result}");
    assert!(
        result["content"][0]["text"].as_str().unwrap().starts_with("The client gave no answer of its model")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_cannot_is_not_asked_for_ever() {
    let folder = Folder::new();
    let asked = json!({"agent_uri": "test-agent", "prompt": "go"});
    let (result, questions) = converse(&folder.server(), asked, &["I would rather not."]).await;
    assert_eq!(result["isError"], true);
    let sentence = result["content"][0]["text"].as_str().unwrap();
    assert!(sentence.contains("in 3 attempts: there is no JSON object in it"), "{sentence}");
    assert_eq!(questions.len(), 3);
    let unknown = json!({"agent_uri": "nobody", "prompt": "go"});
    let (result, questions) = converse(&folder.server(), unknown, &["x"]).await;
    assert!(result["content"][0]["text"].as_str().unwrap().contains("there is no agent \"nobody\""));
    assert!(questions.is_empty(), "nothing is asked for an agent that is not there");
}
