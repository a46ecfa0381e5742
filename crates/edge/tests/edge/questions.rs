//! What a modern server asks in its reply, a legacy client is asked in a request of the server.

use std::time::Duration;

use serde_json::{Value, json};
use tidegate_edge::http::Settings;
use tidegate_edge::{EdgeSettings, stdio};

use crate::common::*;

fn accept(name: &str) -> Value {
    json!({"action": "accept", "content": {"name": name}})
}

async fn session(stub: &Stub, revision: &str) -> Session {
    Session::open(&Client::new(stub, Settings::default()), revision).await
}

/// The question on the wire, without what is random in it.
fn shown(question: &Value) -> String {
    let mut question = question.clone();
    if let Some(id) = question["params"].get_mut("elicitationId") {
        assert!(id.as_str().is_some_and(|id| id.len() >= 16));
        *id = json!("<minted>");
    }
    format!("{question}\n")
}

#[tokio::test(start_paused = true)]
async fn each_kind_of_question() {
    let stub = Stub::new();
    let client = Client::new(&stub, Settings::default());
    let capabilities = json!({"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}});
    let session = Session::with(&client, "2025-11-25", capabilities).await;
    let mut table = String::new();
    for (kind, answer) in [
        ("form", accept("Alice")),
        ("url", json!({"action": "accept"})),
        ("sample", json!({"role": "assistant", "content": {"type": "text", "text": "Ho"}, "model": "m"})),
        ("roots", json!({"roots": [{"uri": "file:///x"}]})),
    ] {
        let mut events = session.call("q", "ask", json!({"ask": [kind]})).send().await.events();
        let question = events.message().await;
        table += &shown(&question);
        session.answer(&question, answer).await;
        let result = events.message().await;
        assert_eq!(result["id"], "q");
        table += &format!("  {}\n", text(&result));
        assert_eq!(events.next().await, None);
    }
    insta::assert_snapshot!(table, @r#"
    {"id":1,"jsonrpc":"2.0","method":"elicitation/create","params":{"_meta":{"dev.tidegate/input":{"key":"form1","of":1}},"message":"Name?","requestedSchema":{"properties":{"name":{"type":"string"}},"type":"object"}}}
      {"answers":{"form1":{"action":"accept","content":{"name":"Alice"}}},"state":"round 1"}
    {"id":2,"jsonrpc":"2.0","method":"elicitation/create","params":{"_meta":{"dev.tidegate/input":{"key":"url1","of":1}},"elicitationId":"<minted>","message":"Sign in","mode":"url","url":"https://example.com/"}}
      {"answers":{"url1":{"action":"accept"}},"state":"round 1"}
    {"id":3,"jsonrpc":"2.0","method":"sampling/createMessage","params":{"_meta":{"dev.tidegate/input":{"key":"sample1","of":1}},"maxTokens":9,"messages":[{"content":{"text":"Hi","type":"text"},"role":"user"}]}}
      {"answers":{"sample1":{"content":{"text":"Ho","type":"text"},"model":"m","role":"assistant"}},"state":"round 1"}
    {"id":4,"jsonrpc":"2.0","method":"roots/list","params":{"_meta":{"dev.tidegate/input":{"key":"roots1","of":1}}}}
      {"answers":{"roots1":{"roots":[{"uri":"file:///x"}]}},"state":"round 1"}
    "#);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_used_for_several_clients() {
    let stub = Stub::new();
    let client = Client::new(&stub, Settings::default());
    let session = Session::with(&client, "2025-11-25", json!({"elicitation": {}, "sampling": {}})).await;
    let ask = |id: &str, tool: &str, caller: Value| {
        let meta = json!({"dev.tidegate/caller": caller});
        let params = json!({"name": tool, "arguments": {"ask": ["form"]}, "_meta": meta});
        session.request(id, "tools/call", params)
    };
    // The question names the call, so that whoever is in front knows whose it is.
    let info = json!({"name": "ann", "version": "1"});
    let able = json!({"clientInfo": info, "clientCapabilities": {"elicitation": {}, "roots": {}}});
    let mut events = ask("one", "ask", able.clone()).send().await.events();
    let question = events.message().await;
    let hint = json!({"key": "form1", "of": 1, "call": "one"});
    assert_eq!(question["params"]["_meta"], json!({"dev.tidegate/input": hint}));
    session.answer(&question, accept("Ann")).await;
    assert_eq!(events.message().await["id"], "one");
    // The service is told who calls, and no more than the session can do.
    let answer = ask("who", "context", able).send().await.json().await;
    let context: Value = serde_json::from_str(text(&answer)).unwrap();
    assert_eq!(context["clientInfo"], info);
    assert_eq!(context["capabilities"], json!({"elicitation": {"form": {}}}));
    // What is no caller is refused.
    for wrong in [json!(7), json!({"clientInfo": 7}), json!({"clientCapabilities": []})] {
        let answer = ask("two", "ask", wrong).send().await.json().await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn several_questions_at_once_in_any_order() {
    let stub = Stub::new();
    let session = session(&stub, "2025-11-25").await;
    let mut events =
        session.call(1, "ask", json!({"ask": ["form", "sample", "roots"]})).send().await.events();
    let questions = [events.message().await, events.message().await, events.message().await];
    for question in &questions {
        assert_eq!(question["params"]["_meta"]["dev.tidegate/input"]["of"], 3);
    }
    for question in questions.iter().rev() {
        assert!(events.is_quiet().await, "not before all are answered");
        let key = question["params"]["_meta"]["dev.tidegate/input"]["key"].clone();
        session.answer(question, json!({"answer to": key})).await;
    }
    insta::assert_snapshot!(text(&events.message().await), @r#"{"answers":{"form1":{"answer to":"form1"},"roots1":{"answer to":"roots1"},"sample1":{"answer to":"sample1"}},"state":"round 1"}"#);
}

#[tokio::test(start_paused = true)]
async fn several_rounds() {
    let stub = Stub::new();
    let session = session(&stub, "2025-11-25").await;
    let mut events = session.call(1, "ask", json!({"rounds": 3})).send().await.events();
    for round in 1..=3 {
        let question = events.message().await;
        assert_eq!(question["params"]["_meta"]["dev.tidegate/input"]["key"], format!("form{round}"));
        session.answer(&question, accept(&format!("name {round}"))).await;
    }
    // Only the newest answers and the newest state go back.
    insta::assert_snapshot!(text(&events.message().await), @r#"{"answers":{"form3":{"action":"accept","content":{"name":"name 3"}}},"state":"round 3"}"#);
    assert_eq!(stub.calls().iter().filter(|c| *c == "tools/call ask").count(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_state_that_was_not_renewed_does_not_come_back() {
    let stub = Stub::new();
    let session = session(&stub, "2025-11-25").await;
    let mut events = session.call(1, "ask", json!({"rounds": 1, "forget": 1})).send().await.events();
    session.answer(&events.message().await, accept("A")).await;
    assert!(text(&events.message().await).ends_with(r#""state":null}"#));
    // The second round gives no state: that of the first is not good for it.
    let mut events = session.call(2, "ask", json!({"rounds": 2, "forget": 2})).send().await.events();
    session.answer(&events.message().await, accept("A")).await;
    session.answer(&events.message().await, accept("B")).await;
    let answer = events.message().await;
    assert!(text(&answer).ends_with(r#""state":null}"#), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn prompts_ask_too() {
    let stub = Stub::new();
    let session = session(&stub, "2025-11-25").await;
    let mut events = session.request(1, "prompts/get", json!({"name": "p"})).send().await.events();
    session.answer(&events.message().await, accept("Alice")).await;
    let result = events.message().await;
    assert!(result["result"]["description"].as_str().unwrap().contains("Alice"), "{result}");
}

#[tokio::test(start_paused = true)]
async fn clients_that_refuse() {
    let stub = Stub::new();
    let session = session(&stub, "2025-11-25").await;
    let mut table = String::new();
    for kind in ["form", "sample", "roots"] {
        let mut events = session.call(1, "ask", json!({"ask": [kind]})).send().await.events();
        session.refuse(&events.message().await, "I would rather not").await;
        let mut answer = events.message().await;
        // When it was is not what this is about.
        for at in ["/result/_meta/dev.tidegate~1error", "/result/structuredContent"] {
            if let Some(error) = answer.pointer_mut(at) {
                error["timestamp"] = json!("<now>");
                error["correlationId"] = json!("<id>");
            }
        }
        table += &format!("{kind}: {answer}\n");
    }
    insta::assert_snapshot!(table, @r#"
    form: {"id":1,"jsonrpc":"2.0","result":{"content":[{"text":"{\"answers\":{\"form1\":{\"action\":\"cancel\"}},\"state\":\"round 1\"}","type":"text"}]}}
    sample: {"id":1,"jsonrpc":"2.0","result":{"_meta":{"dev.tidegate/error":{"code":-32603,"correlationId":"<id>","error":true,"message":"The client answered sampling/createMessage with an error: I would rather not","retryable":false,"symbol":"TOOL_EXECUTION_ERROR","timestamp":"<now>","tool":"ask"}},"content":[{"text":"The client answered sampling/createMessage with an error: I would rather not","type":"text"}],"isError":true}}
    roots: {"id":1,"jsonrpc":"2.0","result":{"_meta":{"dev.tidegate/error":{"code":-32603,"correlationId":"<id>","error":true,"message":"The client answered roots/list with an error: I would rather not","retryable":false,"symbol":"TOOL_EXECUTION_ERROR","timestamp":"<now>","tool":"ask"}},"content":[{"text":"The client answered roots/list with an error: I would rather not","type":"text"}],"isError":true}}
    "#);
    assert!(session.works().await);
}

#[tokio::test(start_paused = true)]
async fn answers_that_are_none() {
    let stub = Stub::new();
    let session = session(&stub, "2025-11-25").await;
    let mut events = session.call(1, "ask", json!({})).send().await.events();
    let question = events.message().await;
    // To nothing that was asked, or under another type of id.
    for id in [json!(99), json!(question["id"].to_string()), json!("x"), json!(-1)] {
        session.answer(&json!({"id": id}), accept("Mallory")).await;
    }
    assert!(events.is_quiet().await);
    session.answer(&question, json!("yes")).await;
    // As with a client that answers with an error: the call was fine, and the tool has failed.
    let failed = events.message().await;
    assert_eq!(failed["result"]["isError"], true, "{failed}");
    assert!(
        failed["result"]["content"][0]["text"].as_str().unwrap().contains("is not an object"),
        "{failed}"
    );
    // A second answer comes too late.
    session.answer(&question, accept("Alice")).await;
    assert!(session.works().await);
}

#[tokio::test(start_paused = true)]
async fn one_session_does_not_answer_for_another() {
    let stub = Stub::new();
    let client = Client::new(&stub, Settings::default());
    let alice = Session::open(&client, "2025-11-25").await;
    let mallory = Session::open(&client, "2025-11-25").await;
    let mut events = alice.call(1, "ask", json!({})).send().await.events();
    let question = events.message().await;
    mallory.answer(&question, accept("Mallory")).await;
    assert!(events.is_quiet().await);
    alice.answer(&question, accept("Alice")).await;
    assert!(text(&events.message().await).contains("Alice"));
}

#[tokio::test(start_paused = true)]
async fn what_the_client_cannot_answer_is_not_asked() {
    let stub = Stub::new();
    let client = Client::new(&stub, Settings::default());
    let all = json!({"elicitation": {}, "sampling": {}, "roots": {}});
    let mut table = String::new();
    for (revision, capabilities, ask) in [
        ("2025-11-25", json!({}), json!(["form"])),
        ("2025-11-25", json!({"elicitation": {"url": {}}}), json!(["form"])),
        ("2025-11-25", all.clone(), json!(["url"])),
        ("2025-11-25", json!({"elicitation": {}}), json!(["sample"])),
        ("2025-11-25", json!({"elicitation": {}}), json!(["roots"])),
        // One that can be answered is not asked either: the call could not be finished.
        ("2025-11-25", json!({"elicitation": {}}), json!(["form", "sample"])),
        ("2025-06-18", json!({"elicitation": {"url": {}}}), json!(["url"])),
        ("2025-03-26", all.clone(), json!(["form"])),
        ("2024-11-05", all, json!(["form"])),
    ] {
        let session = Session::with(&client, revision, capabilities).await;
        let answer = session.call(1, "ask", json!({"ask": ask})).send().await;
        table += &format!("{revision} {ask}: {}\n", answer.line().await);
    }
    insta::assert_snapshot!(table, @r#"
    2025-11-25 ["form"]: 200 {"jsonrpc":"2.0","id":1,"error":{"code":-32021,"message":"Missing required client capability: elicitation.form. Declare it and try again","data":{"requiredCapabilities":{"elicitation":{"form":{}}}}}}
    2025-11-25 ["form"]: 200 {"jsonrpc":"2.0","id":1,"error":{"code":-32021,"message":"Missing required client capability: elicitation.form. Declare it and try again","data":{"requiredCapabilities":{"elicitation":{"form":{}}}}}}
    2025-11-25 ["url"]: 200 {"jsonrpc":"2.0","id":1,"error":{"code":-32021,"message":"Missing required client capability: elicitation.url. Declare it and try again","data":{"requiredCapabilities":{"elicitation":{"url":{}}}}}}
    2025-11-25 ["sample"]: 200 {"jsonrpc":"2.0","id":1,"error":{"code":-32021,"message":"Missing required client capability: sampling. Declare it and try again","data":{"requiredCapabilities":{"sampling":{}}}}}
    2025-11-25 ["roots"]: 200 {"jsonrpc":"2.0","id":1,"error":{"code":-32021,"message":"Missing required client capability: roots. Declare it and try again","data":{"requiredCapabilities":{"roots":{}}}}}
    2025-11-25 ["form","sample"]: 200 {"jsonrpc":"2.0","id":1,"error":{"code":-32021,"message":"Missing required client capability: sampling. Declare it and try again","data":{"requiredCapabilities":{"sampling":{}}}}}
    2025-06-18 ["url"]: 200 {"jsonrpc":"2.0","id":1,"error":{"code":-32021,"message":"Missing required client capability: elicitation.url. Declare it and try again","data":{"requiredCapabilities":{"elicitation":{"url":{}}}}}}
    2025-03-26 ["form"]: 200 {"jsonrpc":"2.0","id":1,"error":{"code":-32021,"message":"Missing required client capability: elicitation.form. Declare it and try again","data":{"requiredCapabilities":{"elicitation":{"form":{}}}}}}
    2024-11-05 ["form"]: 200 {"jsonrpc":"2.0","id":1,"error":{"code":-32021,"message":"Missing required client capability: elicitation.form. Declare it and try again","data":{"requiredCapabilities":{"elicitation":{"form":{}}}}}}
    "#);
}

#[tokio::test(start_paused = true)]
async fn questions_are_lowered_and_answers_raised() {
    let stub = Stub::new();
    let mut table = String::new();
    for (revision, answer) in [("2025-06-18", json!("red, green")), ("2025-11-25", json!(["red", "green"]))] {
        let session = session(&stub, revision).await;
        let mut events = session.call(1, "ask", json!({"ask": ["pick"]})).send().await.events();
        let question = events.message().await;
        session.answer(&question, json!({"action": "accept", "content": {"colours": answer}})).await;
        table += &format!("{question}\n  {}\n", text(&events.message().await));
    }
    insta::assert_snapshot!(table, @r#"
    {"id":1,"jsonrpc":"2.0","method":"elicitation/create","params":{"_meta":{"dev.tidegate/input":{"key":"pick1","of":1}},"message":"Which?","requestedSchema":{"properties":{"colours":{"description":"One or more of these, separated by commas: red, green","type":"string"}},"type":"object"}}}
      {"answers":{"pick1":{"action":"accept","content":{"colours":["red","green"]}}},"state":"round 1"}
    {"id":1,"jsonrpc":"2.0","method":"elicitation/create","params":{"_meta":{"dev.tidegate/input":{"key":"pick1","of":1}},"message":"Which?","requestedSchema":{"properties":{"colours":{"items":{"enum":["red","green"],"type":"string"},"type":"array"}},"type":"object"}}}
      {"answers":{"pick1":{"action":"accept","content":{"colours":["red","green"]}}},"state":"round 1"}
    "#);
}

#[tokio::test(start_paused = true)]
async fn a_question_that_nobody_answers() {
    let stub = Stub::new();
    let edge = EdgeSettings { answer_within: Duration::from_secs(30), ..EdgeSettings::default() };
    let client = Client::new(&stub, Settings { edge, ..Settings::default() });
    let session = Session::open(&client, "2025-11-25").await;
    let start = tokio::time::Instant::now();
    let mut events = session.call(1, "ask", json!({})).send().await.events();
    let question = events.message().await;
    let answer = events.message().await;
    assert_eq!(start.elapsed().as_secs(), 30);
    assert_eq!(answer["result"]["isError"], true);
    assert_eq!(text(&answer), "The client did not answer elicitation/create within 30 s");
    session.answer(&question, accept("too late")).await;
    assert!(session.works().await);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_never_stops_asking_is_stopped() {
    let stub = Stub::new();
    let edge = EdgeSettings { max_rounds: 3, ..EdgeSettings::default() };
    let client = Client::new(&stub, Settings { edge, ..Settings::default() });
    let session = Session::open(&client, "2025-11-25").await;
    let mut events = session.call(1, "ask", json!({"rounds": 99})).send().await.events();
    for _ in 0..3 {
        session.answer(&events.message().await, accept("again")).await;
    }
    let stopped = events.message().await;
    assert_eq!(stopped["error"]["message"], "The call was stopped after asking 3 times", "{stopped}");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_reads_no_streams_cannot_be_asked() {
    let stub = Stub::new();
    let session = session(&stub, "2025-11-25").await;
    let start = tokio::time::Instant::now();
    let answer = session.call(1, "ask", json!({})).header("accept", "application/json").send().await;
    assert_eq!(start.elapsed().as_secs(), 0, "said at once and not when the time for an answer is up");
    assert_eq!(code(&answer.json().await), (-32021, json!(1)));
}

#[tokio::test(start_paused = true)]
async fn cancelled_while_a_question_is_open() {
    let stub = Stub::new();
    let session = session(&stub, "2025-11-25").await;
    let mut events = session.call(1, "ask", json!({})).send().await.events();
    let question = events.message().await;
    session.notify("notifications/cancelled", json!({"requestId": 1})).await;
    assert_eq!(events.next().await, None);
    session.answer(&question, accept("late")).await;
    assert_eq!(stub.calls().iter().filter(|c| *c == "tools/call ask").count(), 1, "not called again");
    assert!(session.works().await);
}

#[tokio::test(start_paused = true)]
async fn a_question_survives_a_broken_connection() {
    let stub = Stub::new();
    let session = session(&stub, "2025-11-25").await;
    let mut events = session.call(1, "ask", json!({})).send().await.events();
    events.event().await;
    let primer = events.last_id().to_owned();
    events.message().await;
    drop(events);
    let mut resumed = session.get_from(&primer).send().await.events();
    session.answer(&resumed.message().await, accept("Alice")).await;
    assert!(text(&resumed.message().await).contains("Alice"));
}

#[tokio::test(start_paused = true)]
async fn over_stdio() {
    let stub = Stub::new();
    let mut pipe = Pipe::legacy(&stub, stdio::Settings::default(), "2025-11-25").await;
    // Two calls ask at the same time, and each gets its own answers.
    pipe.call("a", "ask", json!({"ask": ["form", "roots"]})).await;
    pipe.call("b", "ask", json!({"ask": ["form"]})).await;
    let mut questions = Vec::new();
    for _ in 0..3 {
        questions.push(pipe.recv().await);
    }
    let ids: std::collections::BTreeSet<_> = questions.iter().map(|q| q["id"].to_string()).collect();
    assert_eq!(ids.len(), 3, "{questions:?}");
    for (question, name) in questions.iter().zip(["for a", "for a", "for b"]).rev() {
        pipe.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": accept(name)})).await;
    }
    let answers = [pipe.recv().await, pipe.recv().await];
    insta::assert_snapshot!(lines(&answers), @r#"
    {"id":"b","jsonrpc":"2.0","result":{"content":[{"text":"{\"answers\":{\"form1\":{\"action\":\"accept\",\"content\":{\"name\":\"for b\"}}},\"state\":\"round 1\"}","type":"text"}]}}
    {"id":"a","jsonrpc":"2.0","result":{"content":[{"text":"{\"answers\":{\"form1\":{\"action\":\"accept\",\"content\":{\"name\":\"for a\"}},\"roots1\":{\"action\":\"accept\",\"content\":{\"name\":\"for a\"}}},\"state\":\"round 1\"}","type":"text"}]}}
    "#);
    pipe.call("c", "ask", json!({"ask": ["form"]})).await;
    let question = pipe.recv().await;
    pipe.send(&json!({"jsonrpc": "2.0", "id": question["id"], "error": {"code": 1, "message": "no"}})).await;
    assert!(text(&pipe.recv().await).contains("cancel"));
}
