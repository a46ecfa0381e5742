//! What one run may do.

use std::time::Duration;

use super::*;

/// Calls with these arguments, as they are written.
async fn spelled(caller: &Caller, gateway: &Gateway, tool: &str, arguments: &str) -> Value {
    let params = format!("{{\"name\":\"{tool}\",\"arguments\":{arguments}}}");
    let params =
        Params::parse(&Json::parse(params, &Limits::default()).unwrap(), &Limits::default()).unwrap();
    let Ok(reply) = gateway.answer(Call::new(Method::ToolsCall, params, caller.0.clone())).await;
    match reply {
        Reply::Complete(result) => result.to().unwrap(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn the_same_call_again_and_again() {
    let meter = Meter::free();
    let gateway =
        meter.gateway("[limits]\ntenant = false\n[limits.run]\nrepeats = 5\nexcept = [\"t_*\"]").await;
    let ann = who("reef/ann");
    for spelling in [
        r#"{"a":1,"b":"é"}"#,
        r#"{ "b" : "\u00e9", "a" : 1 }"#,
        r#"{"a":1.0,"b":"é"}"#,
        r#"{"b":"é","a":1e0}"#,
        r#"{"a": 1,"b": "é"}"#,
    ] {
        let result = spelled(&ann, &gateway, "s_work", spelling).await;
        assert_eq!(refusal(&result), Value::Null, "{spelling}: {result}");
    }
    let refused = spelled(&ann, &gateway, "s_work", r#"{"a":1,"b":"é"}"#).await;
    assert_eq!(refused["isError"], true);
    assert_eq!(
        refused["content"][0]["text"],
        "You have called s_work with these arguments 5 times in this run; the answer will not change. Use what you already \
         have, change the arguments, or stop."
    );
    let why = refusal(&refused);
    assert_eq!((&why["symbol"], &why["retryable"]), (&json!("BUDGET_EXCEEDED"), &json!(false)), "{why}");
    assert_eq!(why["data"]["limit"], json!({"scope": "run", "repeats": 5}), "{why}");
    assert_eq!(meter.count(), 5);
    // Through call_tool or in a batch it is the same call.
    let batch = json!({"calls": [{"name": "s_work", "arguments": {"b": "é", "a": 1}}]});
    assert!(ann.get(&gateway, "tools/call_batch", batch).await.to_string().contains("BUDGET_EXCEEDED"));
    assert_eq!(meter.count(), 5);
    // Other arguments, other tools, other people and other runs are others.
    let mut traced = ann.clone();
    traced.0.caller = Some(tidegate_service::CallerId::new());
    for (caller, tool, arguments) in [
        (&ann, "s_work", r#"{"a":2}"#),
        (&ann, "s_other", r#"{"a":1,"b":"é"}"#),
        (&who("reef/bob"), "s_work", r#"{"a":1,"b":"é"}"#),
        (&traced, "s_work", r#"{"a":1,"b":"é"}"#),
    ] {
        assert_eq!(
            refusal(&spelled(caller, &gateway, tool, arguments).await),
            Value::Null,
            "{tool} {arguments}"
        );
    }
    // What may be repeated may be repeated.
    for _ in 0..20 {
        assert_eq!(refusal(&spelled(&ann, &gateway, "t_work", "{}").await), Value::Null);
    }
    gateway.close().await;
}

#[tokio::test]
async fn a_trace_is_a_run() {
    let meter = Meter::free();
    let gateway = meter.gateway("[limits]\ntenant = false\n[limits.run]\ncalls = 2").await;
    let ann = who("reef/ann");
    let ask = async |trace: u32, at: u32| {
        let trace = format!("00-{trace:032x}-00f067aa0ba902b7-01");
        let params = json!({"name": "s_work", "arguments": {"at": at}, "_meta": {"traceparent": trace}});
        refusal(&ann.get(&gateway, "tools/call", params).await)
    };
    for trace in 1..4 {
        for at in 0..3 {
            let why = ask(trace, at).await;
            assert_eq!(why == Value::Null, at < 2, "{trace}, {at}: {why}");
        }
    }
    assert_eq!(meter.count(), 6);
    gateway.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_budget_of_calls_is_kept_to_the_unit() {
    let meter = Meter::free();
    let gateway = meter.gateway("[limits]\ntenant = false\n[limits.run]\ncalls = 20\nrepeats = 1000").await;
    let results = all_at_once(&gateway, vec![who("reef/ann"); MANY], "s_work").await;
    assert_eq!(results.iter().filter(|result| refusal(result) == Value::Null).count(), 20);
    assert_eq!(meter.count(), 20);
    let why = results.iter().map(refusal).find(|why| *why != Value::Null).unwrap();
    assert_eq!(why["data"]["limit"], json!({"scope": "run", "calls": 20}), "{why}");
    gateway.close().await;
}

#[tokio::test]
async fn a_budget_of_bytes() {
    let meter = Meter::free();
    let gateway = meter.gateway("[limits]\ntenant = false\n[limits.run]\nbytes = 3000\nrepeats = 1000").await;
    let ann = who("reef/ann");
    assert_eq!(refusal(&call(&ann, &gateway, "s_work", json!({"size": 5000})).await), Value::Null);
    let why = refusal(&call(&ann, &gateway, "s_work", json!({})).await);
    assert_eq!(why["data"]["limit"]["scope"], "run", "{why}");
    assert!(why["data"]["limit"]["bytes"].as_u64().unwrap() > 5000, "{why}");
    assert_eq!(meter.count(), 1);
    gateway.close().await;
}

/// The clock of the limits is that of the runtime, which goes on by itself when there is nothing else to do.
#[tokio::test(start_paused = true)]
async fn a_budget_of_time_and_its_window() {
    let meter = Meter::new(0);
    let gateway =
        meter.gateway("[limits]\ntenant = false\n[limits.run]\ntime = \"10s\"\nwindow = \"10m\"").await;
    let ann = who("reef/ann");
    let long = tokio::spawn({
        let (gateway, ann) = (gateway.clone(), ann.clone());
        async move { call(&ann, &gateway, "s_work", json!({"n": 1})).await }
    });
    until("that it runs", async || meter.count() == 1).await;
    tokio::time::sleep(Duration::from_secs(11)).await;
    meter.let_go(10);
    assert_eq!(refusal(&in_time("the call", long).await.unwrap()), Value::Null);
    let why = refusal(&call(&ann, &gateway, "s_work", json!({"n": 2})).await);
    assert_eq!(why["symbol"], "BUDGET_EXCEEDED", "{why}");
    assert!(why["data"]["limit"]["timeMs"].as_u64().unwrap() >= 11_000, "{why}");
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(refusal(&call(&ann, &gateway, "s_work", json!({"n": 3})).await), Value::Null);
    assert_eq!(meter.count(), 2);
    gateway.close().await;
}

#[tokio::test]
async fn the_answer_to_a_question_is_no_repetition() {
    let meter = Meter::free();
    let gateway = meter.gateway("[limits]\ntenant = false\n[limits.run]\nrepeats = 2").await;
    let mut ann = who("reef/ann");
    ann.0.capabilities =
        tidegate_protocol::ClientCapabilities::from_json(json!({"elicitation": {"form": {}}}).into());
    for round in 0..2 {
        let params = json!({"name": "s_ask", "arguments": {}});
        let Reply::InputRequired(input) = ann.ask(&gateway, "tools/call", params.clone()).await else {
            panic!("{round}: it asks")
        };
        let answers: serde_json::Map<_, _> = input
            .questions
            .iter()
            .map(|question| (question.key.to_string(), json!({"action": "accept", "content": {"who": "x"}})))
            .collect();
        let mut again = params;
        again["inputResponses"] = answers.into();
        again["requestState"] = json!(input.state.as_deref());
        let done = ann.get(&gateway, "tools/call", again).await;
        assert_eq!(done["content"][0]["text"], "thanks", "{round}: {done}");
    }
    let refused = call(&ann, &gateway, "s_ask", json!({})).await;
    assert_eq!(refusal(&refused)["symbol"], "BUDGET_EXCEEDED", "{refused}");
    gateway.close().await;
}
