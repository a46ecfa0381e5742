//! Asking agents that models of providers run.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tidegate_memory::{MemoryServerSettings, server_with};
use tidegate_protocol::{Json, Limits, Method, Params};
use tidegate_server::{Cx, Server, ServerDoor, Tool};
use tidegate_service::{Call, Context, Door, Notice, Outbox, Reply};

use crate::provider::{Answer, End, Fake, KEY, claude, fails, gpt, memory};
use crate::rig::{Folder, ann, ask, call_as, refused, request};

fn good() -> Value {
    json!({"answer": "Paris ☀", "reasoning": "I know it", "confidence": 0.9, "tags": ["geography"]})
}

fn question() -> Value {
    json!({"agent_uri": "test-agent", "prompt": "What is the capital of France?"})
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_comes_however_the_stream_is_cut() {
    for size in [1, 2, 7, 64, 10_000] {
        let Answer::Stream(text, ..) = claude::answers(good()) else { unreachable!() };
        let fake = Fake::new([Answer::Stream(text, size, End::Well)]).await;
        let folder = Folder::new();
        let answer = ask(&fake.memory(&folder, fake.claude()), "ask_agent", question()).await;
        assert_eq!(answer["status"], "success");
        assert_eq!(answer["agent_uri"], "agentlet://system/test-agent");
        assert_eq!(answer["response"], good(), "in pieces of {size}");
        assert_eq!(answer["model"], "claude-test-1");
        assert_eq!(answer["usage"], json!({"input_tokens": 25, "output_tokens": 10}));
        assert_eq!(answer["steps"], 1);
        assert!(answer["trace_id"].is_string() && answer["session_id"].is_string());
        let came = &fake.came()[0];
        assert_eq!(came.path, "/v1/messages");
        assert_eq!(came.header("x-api-key"), Some(KEY));
        assert_eq!(came.header("anthropic-version"), Some("2023-06-01"));
        assert_eq!(came.body["model"], "claude-test");
        assert_eq!(came.body["tool_choice"], json!({"type": "tool", "name": "answer"}));
        assert!(came.body["system"].as_str().unwrap().starts_with("You answer the question briefly"));
        assert!(came.body["tools"][0]["input_schema"]["description"].is_null(), "the prompt is said once");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_of_the_memory_are_called_and_their_results_shown() {
    let answer = json!({"answer": "Ann likes tea", "known": true, "sources": [{"source": "Ann", "says": "likes tea"}]});
    let fake =
        Fake::new([claude::calls("search_nodes", json!({"query": "tea"})), claude::answers(answer.clone())])
            .await;
    let folder = Folder::new();
    let memory = fake.memory(&folder, fake.claude());
    ask(&memory, "create_entities", json!({"entities": [ann()]})).await;
    let given =
        ask(&memory, "ask_agent", json!({"agent_uri": "librarian", "prompt": "Who likes tea?"})).await;
    assert_eq!((&given["response"], &given["steps"]), (&answer, &json!(2)));
    assert_eq!(given["tools_called"], json!(["search_nodes"]));
    assert_eq!(given["usage"]["input_tokens"], 50);
    assert_eq!(fake.body(0)["tool_choice"], json!({"type": "any"}));
    let shown = fake.body(1)["messages"][2]["content"][0].clone();
    assert_eq!((&shown["type"], &shown["tool_use_id"]), (&json!("tool_result"), &json!("toolu_1")));
    assert!(shown["content"].as_str().unwrap().contains("lives in Kiel"), "{shown}");
    // A tenant's agents see that tenant's memory.
    let fake =
        Fake::new([claude::calls("search_nodes", json!({"query": "tea"})), claude::answers(answer)]).await;
    let memory = fake.memory(&folder, fake.claude());
    call_as(
        &memory,
        Some("other"),
        "ask_agent",
        json!({"agent_uri": "librarian", "prompt": "Who likes tea?"}),
    )
    .await;
    assert!(!fake.body(1).to_string().contains("Kiel"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_may_be_over_in_a_moment_is_tried_again() {
    let cut = |end| {
        let events = claude::message(&[json!({"type": "text", "text": "half an answer"})]);
        Answer::Stream(claude::events(&events[..4]), 5, end)
    };
    let mut amid = claude::message(&[json!({"type": "text", "text": "half an answer"})]);
    amid.truncate(4);
    amid.push(json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}));
    let busy =
        Answer::Status(429, vec![("retry-after", "0".into())], json!({"error": {"message": "slow down"}}));
    for (name, trouble) in [
        ("429", busy),
        ("529", fails(529, "Overloaded")),
        ("500", fails(500, "oh")),
        ("error amid the stream", Answer::Stream(claude::events(&amid), 3, End::Well)),
        ("cut off", cut(End::Cut)),
        ("ended early", cut(End::Well)),
    ] {
        let fake = Fake::new([trouble, claude::answers(good())]).await;
        let folder = Folder::new();
        let answer = ask(&fake.memory(&folder, fake.claude()), "ask_agent", question()).await;
        assert_eq!((&answer["response"], fake.came().len()), (&good(), 2), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn trouble_that_stays_is_told_and_the_key_is_not() {
    let echo = format!("you sent {KEY}");
    let later =
        Answer::Status(429, vec![("retry-after", "3600".into())], json!({"error": {"message": "quota"}}));
    for (trouble, said, requests) in [
        (fails(401, &echo), "The provider anthropic rejected the API key (401)", 1),
        (fails(403, &echo), "The provider anthropic rejected the API key (403)", 1),
        (fails(404, "no such model"), "does not know the model claude-test (404): no such model", 1),
        (fails(400, &echo), "rejected the request (400): you sent (secret)", 3),
        (later, "has received too many requests (429): quota", 1),
        (fails(529, "Overloaded"), "The provider anthropic is overloaded (529): Overloaded", 3),
        (fails(500, "oh"), "The provider anthropic failed (500): oh", 3),
        (
            Answer::Status(302, vec![("location", "http://127.0.0.1:1/".into())], json!({})),
            "returned an unexpected status (302)",
            1,
        ),
        (Answer::Stream("data: {\"type\": \"mess".into(), 4, End::Cut), "was cut off", 3),
        (Answer::Stream("data: nonsense\n\n".into(), 4, End::Well), "not valid JSON", 3),
    ] {
        let fake = Fake::new([trouble]).await;
        let folder = Folder::new();
        let sentence = refused(&fake.memory(&folder, fake.claude()), "ask_agent", question()).await;
        assert!(sentence.contains(said), "{said}: {sentence}");
        assert!(!sentence.contains(KEY), "{sentence}");
        assert_eq!(fake.came().len(), requests, "{said}");
    }
    let folder = Folder::new();
    let nowhere = tidegate_memory::Provider::openai("http://127.0.0.1:1/v1").models(["m"]);
    let sentence = refused(&memory(&folder, nowhere, |_| {}), "ask_agent", question()).await;
    assert_eq!(sentence, "The provider openai cannot be reached: the connection failed");
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_that_do_not_fit_are_asked_for_again() {
    let mut bad = good();
    bad["confidence"] = "high".into();
    let fake = Fake::new([
        claude::answers(bad.clone()),
        claude::says(&[
            json!({"type": "text", "text": "Here it is, without the rest: {\"answer\": \"Paris\"}"}),
        ]),
        claude::says(&[json!({"type": "text", "text": format!("At last:\n```json\n{}\n```", good())})]),
    ])
    .await;
    let folder = Folder::new();
    let answer = ask(&fake.memory(&folder, fake.claude()), "ask_agent", question()).await;
    assert_eq!((&answer["response"], &answer["steps"]), (&good(), &json!(3)));
    let told = fake.body(1)["messages"][2]["content"][0]["content"].as_str().unwrap().to_owned();
    assert!(told.contains("confidence: ") && told.contains("again"), "{told}");
    let mut events = claude::message(&[]);
    let at = events.len() - 2;
    events[at]["delta"]["stop_reason"] = "refusal".into();
    let fake = Fake::new([Answer::Stream(claude::events(&events), 99, End::Well)]).await;
    let sentence = refused(&fake.memory(&folder, fake.claude()), "ask_agent", question()).await;
    assert_eq!((&*sentence, fake.came().len()), ("The model claude-test-1 refused to answer", 1));
    let fake = Fake::new([claude::answers(bad)]).await;
    let sentence = refused(&fake.memory(&folder, fake.claude()), "ask_agent", question()).await;
    assert!(sentence.contains("in 3 attempts: confidence: "), "{sentence}");
    assert_eq!(fake.came().len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_are_none_are_told_to_the_model() {
    let wrong = "{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{query: tea\"}}";
    let mut events =
        claude::message(&[json!({"type": "tool_use", "id": "t1", "name": "search_nodes", "input": {}})]);
    events[3] = serde_json::from_str(wrong).unwrap();
    let answer = json!({"answer": "no", "known": false, "sources": []});
    let fake = Fake::new([
        Answer::Stream(claude::events(&events), 8, End::Well),
        claude::calls("no_such_tool", json!({})),
        claude::calls("open_nodes", json!({"names": 5})),
        claude::answers(answer),
    ])
    .await;
    let folder = Folder::new();
    let given = ask(
        &fake.memory(&folder, fake.claude()),
        "ask_agent",
        json!({"agent_uri": "librarian", "prompt": "Who likes tea?"}),
    )
    .await;
    assert_eq!(given["steps"], 4);
    let shown = |at: usize| {
        let messages = fake.body(at)["messages"].as_array().unwrap().clone();
        let last = messages.last().unwrap()["content"][0].clone();
        assert_eq!(last["is_error"], true, "{last}");
        last["content"].as_str().unwrap().to_owned()
    };
    assert!(shown(1).contains("must be a JSON object, and are not: {query: tea"));
    assert!(shown(2).contains("There is no tool \"no_such_tool\"") && shown(2).contains("search_nodes"));
    assert!(shown(3).contains("names"), "{}", shown(3));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_does_not_come_to_an_end_is_stopped() {
    let fake = Fake::new([claude::calls("search_nodes", json!({"query": "tea"}))]).await;
    let folder = Folder::new();
    let asked = json!({"agent_uri": "librarian", "prompt": "Who likes tea?"});
    let steps = memory(&folder, fake.claude(), |options| options.agents.steps = 3);
    let sentence = refused(&steps, "ask_agent", asked.clone()).await;
    assert!(sentence.contains("called tools 2 times without reaching an answer"), "{sentence}");
    assert_eq!(fake.came().len(), 3);
    assert_eq!(
        fake.body(2)["tool_choice"],
        json!({"type": "tool", "name": "answer"}),
        "the last must answer"
    );
    let tokens = memory(&folder, fake.claude(), |options| options.agents.tokens = 100);
    let sentence = refused(&tokens, "ask_agent", asked.clone()).await;
    assert!(sentence.contains("may use 100 tokens: it has used 0"), "{sentence}");
    assert_eq!(fake.came().len(), 3, "nothing was asked");
    let mut events = claude::message(&[
        json!({"type": "tool_use", "id": "t", "name": "search_nodes", "input": {"query": "x"}}),
    ]);
    events[0]["message"]["usage"]["input_tokens"] = 99_900.into();
    let fake = Fake::new([Answer::Stream(claude::events(&events), 99, End::Well)]).await;
    let sentence = refused(&fake.memory(&folder, fake.claude()), "ask_agent", asked).await;
    assert!(sentence.contains("may use 100000 tokens: it has used 99915"), "{sentence}");
    assert_eq!(fake.came().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_never_ends_is_stopped_in_time() {
    let events = claude::message(&[json!({"type": "text", "text": "on and on"})]);
    let endless = Answer::Stream(claude::events(&events[..4]), 4_096, End::Never);
    let fake = Fake::new([endless]).await;
    let folder = Folder::new();
    let quick = memory(&folder, fake.claude(), |options| options.agents.time = Duration::from_millis(300));
    let sentence = refused(&quick, "ask_agent", question()).await;
    assert_eq!(sentence, "The agent had no answer within 0.3 s and was stopped");
    gone(&fake).await;
}

/// Waits until the provider has noticed that nobody listens.
async fn gone(fake: &Fake) {
    for _ in 0..500 {
        if fake.open.load(Ordering::SeqCst) == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the stream is still open");
}

/// A call with progress, and a way to cancel it.
fn call(arguments: Value, outbox: &Outbox) -> Call {
    let params = Json::from(json!({"name": "ask_agent", "arguments": arguments}));
    let mut context = Context::local();
    context.progress_token = Some(Json::trusted("7"));
    context.outbox = Some(outbox.clone());
    Call::new(Method::ToolsCall, Params::parse(&params, &Limits::default()).unwrap(), context)
}

#[tokio::test(flavor = "multi_thread")]
async fn progress_is_told_and_cancelling_stops_the_model() {
    let answer = json!({"type": "tool_use", "id": "toolu_1", "name": "answer", "input": {"answer": "on and on and on"}});
    let events = claude::message(&[answer]);
    let endless = Answer::Stream(claude::events(&events[..7]), 4_096, End::Never);
    let fake = Fake::new([claude::calls("search_nodes", json!({"query": "x"})), endless]).await;
    let folder = Folder::new();
    let memory = fake.memory(&folder, fake.claude());
    let outbox = Outbox::new(1_000);
    let call = call(json!({"agent_uri": "librarian", "prompt": "?"}), &outbox);
    let cancel = call.context.cancel.clone();
    let asked = tokio::spawn(async move { memory.answer(call).await });
    let mut told: Vec<Value> = Vec::new();
    let writing = |told: &[Value]| told.iter().any(|params| params["_meta"]["dev.tidegate/text"] == true);
    for _ in 0..500 {
        while let Some(Notice::Progress(params)) = outbox.try_next() {
            told.push(params.to().unwrap());
        }
        if writing(&told) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(writing(&told), "{told:?}");
    assert_eq!(told[0]["message"], "Step 1: asking the model");
    assert_eq!(told[1]["message"], "Searching the knowledge graph");
    assert_eq!(told[2]["message"], "Step 2: asking the model");
    let numbers: Vec<_> = told.iter().map(|params| params["progress"].as_f64().unwrap()).collect();
    assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "{numbers:?}");
    assert_eq!(fake.open.load(Ordering::SeqCst), 1);
    cancel.cancel();
    let _ = asked.await;
    gone(&fake).await;
}

/// What is told of a question, as pairs of whether it is text and the message.
async fn told(memory: &ServerDoor, arguments: Value) -> (Value, Vec<(bool, String)>) {
    let outbox = Outbox::new(10_000);
    let Reply::Complete(result) = memory.answer(call(arguments, &outbox)).await.unwrap() else { panic!() };
    let (mut told, mut last) = (Vec::new(), 0.0);
    while let Some(notice) = outbox.try_next() {
        let Notice::Progress(params) = notice else { continue };
        let params: Value = params.to().unwrap();
        let progress = params["progress"].as_f64().unwrap();
        assert!(progress > last && params.get("total").is_none(), "{params}");
        last = progress;
        let is_text = params["_meta"]["dev.tidegate/text"] == true;
        told.push((is_text, params["message"].as_str().unwrap().to_owned()));
    }
    (result.to().unwrap(), told)
}

fn text_of(told: &[(bool, String)]) -> String {
    told.iter().filter(|(is_text, _)| *is_text).map(|(_, message)| message.as_str()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_text_of_an_answer_is_told_while_it_is_written() {
    let written = "Tea \"Earl Grey\",\nfor Ännchen 🦀. ".repeat(40);
    let answer = json!({"answer": written, "reasoning": "because", "confidence": 0.5, "tags": ["tea"]});
    let question = json!({"agent_uri": "test-agent", "prompt": "?"});
    let speaks = json!({"type": "text", "text": "Let me think {about} it."});
    let gives = json!({"type": "tool_use", "id": "toolu_1", "name": "answer", "input": answer});
    for (what, fake, is_claude) in [
        ("Anthropic", Fake::new([claude::says(&[speaks, gives])]).await, true),
        ("OpenAI", Fake::new([gpt::says(&format!("Sure: {answer}"), true)]).await, false),
    ] {
        let folder = Folder::new();
        let memory = fake.memory(&folder, if is_claude { fake.claude() } else { fake.gpt() });
        let (result, told) = told(&memory, question.clone()).await;
        assert_eq!(result["structuredContent"]["response"], answer, "{what}");
        assert_eq!(text_of(&told), written, "{what}");
        let pieces = told.iter().filter(|(is_text, _)| *is_text).count();
        assert!(pieces < 100, "{what}: {pieces} pieces");
        // Nothing is told to who does not ask for it, and the other name does the same.
        let params = json!({"name": "ask_agent_stream", "arguments": question});
        let result = request(&memory, None, Method::ToolsCall, params).await.unwrap();
        assert_eq!(result["structuredContent"]["status"], "success", "{what}: {result}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_asked_for_again_begins_anew() {
    let mut bad = good();
    bad["confidence"] = "high".into();
    let fake = Fake::new([claude::answers(bad), claude::answers(good())]).await;
    let folder = Folder::new();
    let memory = fake.memory(&folder, fake.claude());
    let (result, told) = told(&memory, question()).await;
    assert_eq!(result["structuredContent"]["response"], good());
    let again = told.iter().position(|(_, message)| message == "The answer does not fit the agent's schema");
    let text = good()["answer"].as_str().unwrap().to_owned();
    assert_eq!(text_of(&told[again.unwrap()..]), text, "{told:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_keeps_failing_is_left_alone() {
    let folder = Folder::new();
    // What the caller did wrong says nothing about the provider.
    let fake = Fake::new([fails(400, "no")]).await;
    let memory = fake.memory(&folder, fake.claude());
    for _ in 0..5 {
        assert!(refused(&memory, "ask_agent", question()).await.contains("rejected the request"));
    }
    let fake = Fake::new([fails(503, "down for ann@example.com")]).await;
    let memory = fake.memory(&folder, fake.claude().models(["claude-test", "claude-other"]));
    let state = |seen: Value| seen["models"][0]["circuit"]["state"].clone();
    assert_eq!(state(ask(&memory, "debug_embedding_config", json!({})).await), "CLOSED");
    for _ in 0..3 {
        assert!(refused(&memory, "ask_agent", question()).await.contains("failed (503)"));
    }
    let sent = fake.came().len();
    let result = call_as(&memory, None, "ask_agent", question()).await;
    let said = result["content"][0]["text"].as_str().unwrap();
    assert!(said.starts_with("Service temporarily unavailable"), "{said}");
    assert!(said.contains("the provider anthropic (claude-test) failed 3 times in a row"), "{said}");
    assert!(!said.contains("ann@example.com") && !said.contains("503"), "that was another caller's: {said}");
    let error = &result["_meta"]["dev.tidegate/error"];
    assert_eq!(
        (&error["symbol"], &error["retryable"]),
        (&json!("CIRCUIT_BREAKER_OPEN"), &json!(true)),
        "{error}"
    );
    assert_eq!(fake.came().len(), sent, "nothing was sent");
    let seen = ask(&memory, "debug_embedding_config", json!({})).await;
    assert!(!seen.to_string().contains("ann@example.com"), "{seen}");
    assert_eq!(state(seen), "OPEN");
    // Another model of the same provider is asked all the same.
    let mut other = question();
    other["model"] = "claude-other".into();
    assert!(refused(&memory, "ask_agent", other).await.contains("failed (503)"));
    assert!(fake.came().len() > sent);
}

#[tokio::test(flavor = "multi_thread")]
async fn endpoints_like_openai_answer_too() {
    let fake = Fake::new([gpt::says(&good().to_string(), true)]).await;
    let folder = Folder::new();
    let memory = fake.memory(&folder, fake.gpt().api_key(KEY));
    let answer = ask(&memory, "ask_agent", question()).await;
    assert_eq!(answer["response"], good());
    assert_eq!(answer["model"], "gpt-test-1");
    assert_eq!(answer["usage"], json!({"input_tokens": 30, "output_tokens": 7}));
    let came = &fake.came()[0];
    assert_eq!(came.path, "/v1/chat/completions");
    assert_eq!(came.header("authorization"), Some(&*format!("Bearer {KEY}")));
    assert_eq!(came.body["response_format"]["type"], "json_schema");
    assert_eq!(came.body["stream_options"], json!({"include_usage": true}));
    assert_eq!(
        came.body["messages"][1],
        json!({"role": "user", "content": "What is the capital of France?"})
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn endpoints_that_refuse_are_asked_for_less() {
    let other = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.";
    let fake = Fake::new([
        fails(400, other),
        fails(400, "response_format is not supported"),
        fails(400, "this model does not support tools"),
        gpt::says("<think>{hm}</think>Let me look. {\"tool\": \"search_nodes\", \"arguments\": {\"query\": \"tea\"}}", false),
        gpt::says("{\"answer\": {\"answer\": \"Ann\", \"known\": true, \"sources\": []}}", false),
    ])
    .await;
    let folder = Folder::new();
    let memory = fake.memory(&folder, fake.gpt());
    ask(&memory, "create_entities", json!({"entities": [ann()]})).await;
    let answer =
        ask(&memory, "ask_agent", json!({"agent_uri": "librarian", "prompt": "Who likes tea?"})).await;
    assert_eq!(answer["response"]["answer"], "Ann");
    assert_eq!(answer["usage"]["estimated"], true);
    assert!(answer["usage"]["input_tokens"].as_u64().unwrap() > 100);
    assert!(fake.body(0)["max_tokens"].is_u64() && fake.body(1)["max_completion_tokens"].is_u64());
    assert!(fake.body(1)["response_format"].is_object() && fake.body(2)["response_format"].is_null());
    assert!(fake.body(2)["tools"].is_array() && fake.body(3)["tools"].is_null());
    assert!(fake.body(3)["messages"][0]["content"].as_str().unwrap().contains("search_nodes"));
    let last = fake.body(4)["messages"][3]["content"].as_str().unwrap().to_owned();
    assert!(last.starts_with("The tool search_nodes gave:") && last.contains("Kiel"), "{last}");
    assert_eq!(fake.came().len(), 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_as_local_servers_write_them_are_understood() {
    let answer = json!({"answer": "Ann", "known": true, "sources": []});
    let fake = Fake::new([
        gpt::calls(json!([
            {"function": {"name": "search_nodes", "arguments": {"query": "tea"}}},
            {"function": {"name": "open_nodes", "arguments": "{\"names\": [\"Ann\"]}"}},
        ])),
        gpt::says(&answer.to_string(), false),
    ])
    .await;
    let folder = Folder::new();
    let memory = fake.memory(&folder, fake.gpt());
    ask(&memory, "create_entities", json!({"entities": [ann()]})).await;
    let given =
        ask(&memory, "ask_agent", json!({"agent_uri": "librarian", "prompt": "Who likes tea?"})).await;
    assert_eq!(given["response"], answer);
    let messages = fake.body(1)["messages"].as_array().unwrap().clone();
    assert_eq!(messages[2]["tool_calls"][0]["function"]["arguments"], "{\"query\":\"tea\"}");
    let ids: Vec<_> = (0..2).map(|at| messages[2]["tool_calls"][at]["id"].as_str().unwrap()).collect();
    assert_ne!(ids[0], ids[1]);
    for (at, id) in ids.iter().enumerate() {
        assert_eq!(
            (&messages[3 + at]["role"], &messages[3 + at]["tool_call_id"]),
            (&json!("tool"), &json!(id))
        );
        assert!(messages[3 + at]["content"].as_str().unwrap().contains("lives in Kiel"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_names_no_model_is_asked_what_it_has() {
    let models = Answer::Status(200, Vec::new(), json!({"data": [{"id": "llama3"}, {"id": "other"}]}));
    let message = json!({"model": "llama3", "choices": [{"message": {"content": good().to_string()}, "finish_reason": "stop"}]});
    // This one does not stream, either.
    let fake = Fake::new([models, Answer::Status(200, Vec::new(), message)]).await;
    let folder = Folder::new();
    let provider = fake.gpt().models(Vec::<String>::new());
    let answer = ask(&fake.memory(&folder, provider), "ask_agent", question()).await;
    assert_eq!((&answer["response"], &answer["model"]), (&good(), &json!("llama3")));
    assert_eq!(fake.came()[0].path, "/v1/models");
    assert_eq!(fake.body(1)["model"], "llama3");
    let refusal = json!({"agent_uri": "test-agent", "prompt": "?", "model": "gpt-9"});
    let said = refused(&fake.memory(&folder, fake.gpt()), "ask_agent", refusal).await;
    assert_eq!(said, "model: \"gpt-9\" is not available. Available models: openai/gpt-test");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_goes_on_where_it_was() {
    let fake = Fake::new([claude::answers(good())]).await;
    let folder = Folder::new();
    let memory = fake.memory(&folder, fake.claude());
    let say = |tenant, prompt: &str| {
        let arguments = json!({"agent_uri": "test-agent", "prompt": prompt, "session_id": "s-1"});
        let memory = memory.clone();
        async move { call_as(&memory, tenant, "ask_agent", arguments).await["structuredContent"].clone() }
    };
    assert_eq!(say(Some("acme"), "first").await["session_id"], "s-1");
    say(Some("acme"), "second").await;
    say(Some("other"), "third").await;
    let messages = fake.body(1)["messages"].as_array().unwrap().clone();
    assert_eq!(messages.len(), 3);
    assert_eq!(messages[0]["content"], "first");
    assert!(messages[1]["content"].as_str().unwrap().contains("Paris"));
    assert_eq!(fake.body(2)["messages"].as_array().unwrap().len(), 1, "another tenant, another session");
    let kept = call_as(&memory, Some("acme"), "get_session", json!({"session_id": "s-1"})).await;
    let kept = &kept["structuredContent"];
    assert_eq!(kept["count"], 4);
    assert_eq!(
        (&kept["messages"][0]["role"], &kept["messages"][0]["content"]),
        (&json!("user"), &json!("first"))
    );
    assert_eq!(kept["messages"][1]["model"], "claude-test-1");
    assert_eq!(kept["messages"][1]["input_tokens"], 25);
    assert!(kept["messages"][1]["trace_id"].is_string());
    let listed = call_as(&memory, Some("acme"), "list_sessions", json!({})).await;
    assert_eq!(listed["structuredContent"]["sessions"][0]["session_id"], "s-1");
    let theirs = call_as(&memory, Some("third"), "get_session", json!({"session_id": "s-1"})).await;
    assert_eq!(theirs["isError"], true);
    // Much that was said before is left out, from the beginning.
    for at in 0..12 {
        say(Some("acme"), &format!("{at} {}", "x".repeat(3_000))).await;
    }
    let last = fake.came().last().unwrap().body["messages"].as_array().unwrap().clone();
    assert!(last.len() < 24 && last[0]["role"] == "user", "{}", last.len());
    assert!(!Value::from(last).to_string().contains("first"));
}

/// A door with a tool of another server, which says who calls.
fn web(calls: &Arc<AtomicUsize>) -> ServerDoor {
    let calls = calls.clone();
    Server::new("gateway", "1")
        .tool(Tool::new("web_get").description("Gets a page").handler(move |(), cx: Cx| {
            calls.fetch_add(1, Ordering::SeqCst);
            async move { format!("{:?} {}", cx.principal(), "long ".repeat(10_000)) }
        }))
        .build()
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_of_other_servers_are_called_in_the_callers_name() {
    let calls = Arc::new(AtomicUsize::new(0));
    let fake = Fake::new([claude::calls("web_get", json!({})), claude::answers(json!({"a": "b"}))]).await;
    let folder = Folder::new();
    let memory = memory(&folder, fake.claude(), |options| options.tools = Some(web(&calls).boxed()));
    let agent = json!({
        "agent_name": "surfer", "description": "Surf.", "output_schema": {"type": "object", "required": ["a"]},
        "tools": [{"mcp_server": "web", "tool_name": "get", "usage": "to read pages"}, "search_nodes", "gone_tool"],
    });
    let made = call_as(&memory, Some("acme"), "create_agent", agent).await;
    assert_ne!(made["isError"], true, "{made}");
    let given =
        call_as(&memory, Some("acme"), "ask_agent", json!({"agent_uri": "surfer", "prompt": "go"})).await;
    let given = &given["structuredContent"];
    assert_eq!(given["response"], json!({"a": "b"}));
    assert_eq!(given["unavailable_tools"], json!(["gone_tool"]));
    assert_eq!(calls.load(Ordering::SeqCst), 1);
    let offered: Vec<_> =
        (0..3).map(|at| fake.body(0)["tools"][at]["name"].as_str().unwrap().to_owned()).collect();
    assert_eq!(offered, ["web_get", "search_nodes", "answer"]);
    assert!(fake.body(0)["tools"][0]["description"].as_str().unwrap().contains("Use it to read pages"));
    let shown = fake.body(1)["messages"][2]["content"][0]["content"].as_str().unwrap().to_owned();
    assert!(shown.contains("Some(\"acme\")") && shown.contains("more bytes") && shown.len() < 20_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_that_ask_themselves_come_to_an_end() {
    let fake =
        Fake::new([claude::calls("ask_agent", json!({"agent_uri": "mirror", "prompt": "and you?"}))]).await;
    let folder = Folder::new();
    let quick = memory(&folder, fake.claude(), |options| options.agents.steps = 2);
    let agent = json!({
        "agent_name": "mirror", "description": "Ask yourself.", "output_schema": {"type": "object"},
        "tools": ["ask_agent"],
    });
    ask(&quick, "create_agent", agent).await;
    let asked = json!({"agent_uri": "mirror", "prompt": "who?"});
    let sentence = refused(&quick, "ask_agent", asked.clone()).await;
    assert!(sentence.contains("without reaching an answer"), "{sentence}");
    // Two steps, and both are needed by the first.
    assert_eq!(fake.came().len(), 2);
    assert!(fake.body(1).to_string().contains("The agent was not asked: a question may take 2 steps"));
    let deep = memory(&folder, fake.claude(), |options| options.agents.steps = 30);
    refused(&deep, "ask_agent", asked).await;
    assert_eq!(fake.came().len(), 2 + 30);
    let bodies: String = fake.came().iter().map(|came| came.body.to_string()).collect();
    assert!(bodies.contains("Agents may ask agents at most 3 levels deep"));
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_that_are_asked_share_what_there_is() {
    // Each asks sixteen others at once, whenever it is asked.
    let blocks: Vec<Value> = (0..16)
        .map(|at| {
            let input = json!({"agent_uri": "crowd", "prompt": "?"});
            json!({"type": "tool_use", "id": format!("t{at}"), "name": "ask_agent", "input": input})
        })
        .collect();
    let fake = Fake::new([claude::says(&blocks)]).await;
    let folder = Folder::new();
    let crowd = json!({
        "agent_name": "crowd", "description": "Ask.", "output_schema": {"type": "object"}, "tools": ["ask_agent"],
    });
    let usual = fake.memory(&folder, fake.claude());
    ask(&usual, "create_agent", crowd).await;
    let asked = json!({"agent_uri": "crowd", "prompt": "?"});
    refused(&usual, "ask_agent", asked.clone()).await;
    assert!(fake.came().len() <= 8, "{} requests", fake.came().len());
    // The same for tokens: each request takes 35.
    let before = fake.came().len();
    let poor = memory(&folder, fake.claude(), |options| {
        options.agents.steps = 1_000;
        options.agents.tokens = 10_000;
    });
    refused(&poor, "ask_agent", asked).await;
    assert!(fake.came().len() - before < 300, "{} requests", fake.came().len() - before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_that_is_named_is_the_one_that_agents_see() {
    let answer = json!({"answer": "?", "known": true, "sources": []});
    // The model tries to look elsewhere.
    let search = claude::calls("search_nodes", json!({"query": "tea", "tenant_id": "other"}));
    let fake = Fake::new([search, claude::answers(answer)]).await;
    let folder = Folder::new();
    let memory = fake.memory(&folder, fake.claude());
    for (tenant, city) in [("acme", "Kiel"), ("other", "Rome"), ("default", "Oslo")] {
        let ann =
            json!({"name": "Ann", "entityType": "person", "observations": [format!("drinks tea in {city}")]});
        ask(&memory, "create_entities", json!({"entities": [ann], "tenant_id": tenant})).await;
    }
    let asked = json!({"agent_uri": "librarian", "prompt": "?", "tenant_id": "acme", "session_id": "s"});
    ask(&memory, "ask_agent", asked).await;
    let shown = fake.body(1).to_string();
    assert!(shown.contains("Kiel") && !shown.contains("Rome") && !shown.contains("Oslo"), "{shown}");
    assert_eq!(
        ask(&memory, "get_session", json!({"session_id": "s", "tenant_id": "acme"})).await["count"],
        2
    );
    refused(&memory, "get_session", json!({"session_id": "s"})).await;
    // Without one it is the usual memory, whatever the model says.
    let search = claude::calls("search_nodes", json!({"query": "tea", "tenant_id": "other"}));
    let answer = json!({"answer": "?", "known": true, "sources": []});
    let fake = Fake::new([search, claude::answers(answer)]).await;
    let memory = fake.memory(&folder, fake.claude());
    ask(&memory, "ask_agent", json!({"agent_uri": "librarian", "prompt": "?"})).await;
    let shown = fake.body(1).to_string();
    assert!(shown.contains("Oslo") && !shown.contains("Rome"), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_that_ask_say_what_they_cannot() {
    let tool = Tool::new("web_buy").description("Buys").handler(|(), cx: Cx| async move {
        let asked =
            tidegate_server::Elicit::form_schema("Sure?", json!({"type": "object", "properties": {}}));
        cx.elicit(asked).await.accepted().map(|_| "bought".to_owned())
    });
    let fake = Fake::new([claude::calls("web_buy", json!({})), claude::answers(json!({}))]).await;
    let folder = Folder::new();
    let memory = memory(&folder, fake.claude(), |options| {
        options.tools = Some(Server::new("gateway", "1").tool(tool).build().boxed());
    });
    let buyer = json!({
        "agent_name": "buyer", "description": "Buy.", "output_schema": {"type": "object"}, "tools": ["web_buy"],
    });
    ask(&memory, "create_agent", buyer).await;
    ask(&memory, "ask_agent", json!({"agent_uri": "buyer", "prompt": "?"})).await;
    let shown = fake.body(1).to_string();
    assert!(shown.contains("wanted to ask the user something") && !shown.contains("capability"), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_an_agent_does_not_have_is_no_end() {
    let fake = Fake::new([claude::calls("web_get", json!({})), claude::answers(good())]).await;
    let folder = Folder::new();
    let answer = ask(&fake.memory(&folder, fake.claude()), "ask_agent", question()).await;
    assert_eq!((&answer["response"], &answer["steps"]), (&good(), &json!(2)));
    assert!(fake.body(1).to_string().contains("There are none: give the answer"));
    let fake = Fake::new([claude::calls("web_get", json!({}))]).await;
    let sentence = refused(&fake.memory(&folder, fake.claude()), "ask_agent", question()).await;
    assert!(sentence.contains("called tools 7 times"), "{sentence}");
    assert_eq!(fake.came().len(), 8);
}

#[tokio::test(flavor = "multi_thread")]
async fn resources_of_an_agent_can_be_read_by_it() {
    let fake = Fake::new([
        claude::calls("read_resource", json!({"uri": "memory://knowledge-graph"})),
        claude::calls("read_resource", json!({"uri": "my-agents://list"})),
        claude::answers(json!({"a": "b"})),
    ])
    .await;
    let folder = Folder::new();
    let memory = fake.memory(&folder, fake.claude());
    ask(&memory, "create_entities", json!({"entities": [ann()], "tenant_id": "acme"})).await;
    let agentlet = json!({
        "short_name": "reader", "description": "Read.", "properties": {"a": {"type": "string"}},
        "json_schema_extra": {"resources": [{"uri": "memory://knowledge-graph", "description": "what is known"}]},
    });
    ask(&memory, "create_agent", json!({"agentlet": agentlet, "tenant_id": "acme"})).await;
    ask(&memory, "ask_agent", json!({"agent_uri": "reader", "prompt": "?", "tenant_id": "acme"})).await;
    let offered = &fake.body(0)["tools"][0];
    assert_eq!(offered["name"], "read_resource");
    assert!(offered["description"].as_str().unwrap().contains("memory://knowledge-graph: what is known"));
    assert!(fake.body(1).to_string().contains("lives in Kiel"), "{}", fake.body(1));
    assert!(fake.body(2).to_string().contains("uri: must be one of"), "only what the agent names is read");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_model_that_can_talk_is_taken() {
    let ids = ["nomic-embed-text:latest", "whisper-1", "llama3", "other"].map(|id| json!({"id": id}));
    let models = Answer::Status(200, Vec::new(), json!({"data": ids}));
    let message = json!({"model": "m", "choices": [{"message": {"content": good().to_string()}, "finish_reason": "stop"}]});
    let said = Answer::Status(200, Vec::new(), message);
    let folder = Folder::new();
    for (wanted, asked) in [
        (Value::Null, "llama3"),
        (json!("oai/"), "llama3"),
        (json!("oai"), "llama3"),
        (json!("oai/x/y"), "x/y"),
    ] {
        let fake =
            Fake::new(if asked == "x/y" { vec![said.clone()] } else { vec![models.clone(), said.clone()] })
                .await;
        let provider = fake.gpt().named("oai").models(Vec::<String>::new());
        let mut arguments = question();
        arguments["model"] = wanted.clone();
        ask(&fake.memory(&folder, provider), "ask_agent", arguments).await;
        assert_eq!(fake.came().last().unwrap().body["model"], asked, "{wanted}");
    }
    let fake = Fake::new([models]).await;
    let provider = fake.gpt().named("oai").models(Vec::<String>::new());
    let arguments = json!({"agent_uri": "test-agent", "prompt": "?", "model": "nowhere/gpt"});
    let sentence = refused(&fake.memory(&folder, provider), "ask_agent", arguments).await;
    assert!(sentence.starts_with("model: \"nowhere/gpt\" is not known"), "{sentence}");
    assert!(sentence.ends_with("The providers are: oai"), "{sentence}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_model_it_says_what_to_do() {
    let folder = Folder::new();
    let memory = server_with(folder.store(), MemoryServerSettings::default());
    let sentence = refused(&memory, "ask_agent", question()).await;
    for name in [
        "[memory.models]",
        "ANTHROPIC_API_KEY",
        "OPENAI_BASE_URL",
        "OLLAMA_HOST",
        "TIDEGATE_MODEL",
        "sampling",
    ] {
        assert!(sentence.contains(name), "{sentence}");
    }
    for (arguments, said) in [
        (json!({"agent_uri": "test-agent", "prompt": " "}), "prompt: must not be empty"),
        (json!({"agent_uri": "test-agent", "prompt": "x".repeat(100_001)}), "prompt: must have at most"),
        (json!({"agent_uri": "test-agent", "prompt": "x", "session_id": ""}), "session_id: "),
        (
            json!({"agent_uri": "test-agent", "prompt": "x", "tenant_id": "a\nb"}),
            "tenant_id: must be one line",
        ),
        (json!({"agent_uri": "test-agent", "prompt": "x", "tenant_id": " "}), "tenant_id: must not be blank"),
    ] {
        let sentence = refused(&memory, "ask_agent", arguments).await;
        assert!(sentence.starts_with(said), "{sentence}");
    }
}
