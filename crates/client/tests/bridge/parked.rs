//! Calls that wait for an answer.

use std::time::Duration;

use serde_json::json;
use tidegate_edge::Eras;
use tidegate_protocol::{Json, Limits, Params};

use crate::rig::{Got, Rig, call, make, named, person, session, until};

#[tokio::test]
async fn a_question_in_the_middle_of_a_call_is_the_callers() {
    let rig = Rig::start(Eras::Legacy).await;
    let (door, ann) = (rig.door(|_| {}), session());
    let state = make(&door, call(&ann, "greet", json!({}))).await.state(&["who"]);
    let answered = json!({"requestState": state, "inputResponses": {"who": named("Ann")}});
    assert_eq!(make(&door, call(&ann, "greet", answered.clone())).await, Got::Text("Hello, Ann!".into()));
    let again = make(&door, call(&ann, "greet", answered)).await.failure();
    assert!(again.contains("is over"), "a call that has ended is not run a second time: {again}");
}

#[tokio::test]
async fn questions_that_belong_together_come_together() {
    let rig = Rig::start(Eras::Legacy).await;
    let (door, ann) = (rig.door(|_| {}), session());
    let state = make(&door, call(&ann, "pair", json!({}))).await.state(&["one", "two"]);
    let half = json!({"requestState": state, "inputResponses": {"two": named("Bob")}});
    let state = make(&door, call(&ann, "pair", half)).await.state(&["one"]);
    let rest = json!({"requestState": state, "inputResponses": {"one": named("Ann")}});
    assert_eq!(make(&door, call(&ann, "pair", rest)).await, Got::Text("Ann and Bob".into()));
}

#[tokio::test]
async fn each_round_has_a_state_of_its_own() {
    let rig = Rig::start(Eras::Legacy).await;
    let (door, ann) = (rig.door(|_| {}), session());
    let first = make(&door, call(&ann, "chain", json!({}))).await.state(&["one"]);
    let one = json!({"requestState": first, "inputResponses": {"one": named("Ann")}});
    let second = make(&door, call(&ann, "chain", one.clone())).await.state(&["two"]);
    assert_ne!(first, second);
    let old = make(&door, call(&ann, "chain", one)).await.failure();
    assert!(old.contains("round that is over"), "{old}");
    let two = json!({"requestState": second, "inputResponses": {"two": named("Bob")}});
    assert_eq!(make(&door, call(&ann, "chain", two)).await, Got::Text("Ann then Bob".into()));
}

#[tokio::test]
async fn answers_that_come_before_their_question_are_kept_for_it() {
    let rig = Rig::start(Eras::Legacy).await;
    let (door, ann) = (rig.door(|_| {}), session());
    let early = json!({"inputResponses": {"who": named("Ann"), "nobody asked": named("x")}});
    assert_eq!(make(&door, call(&ann, "greet", early)).await, Got::Text("Hello, Ann!".into()));
}

#[tokio::test]
async fn the_same_retry_twice_joins_the_first() {
    let rig = Rig::start(Eras::Legacy).await;
    let (door, ann) = (rig.door(|_| {}), session());
    let state = make(&door, call(&ann, "chain", json!({}))).await.state(&["one"]);
    let one = json!({"requestState": state, "inputResponses": {"one": named("Ann")}});
    let (a, b) =
        tokio::join!(make(&door, call(&ann, "chain", one.clone())), make(&door, call(&ann, "chain", one)));
    assert_eq!(a.state(&["two"]), b.state(&["two"]), "both get the outcome of the one round");
}

#[tokio::test]
async fn what_does_not_fit_is_refused_and_the_call_waits_on() {
    let rig = Rig::start(Eras::Legacy).await;
    let (door, ann, bob) = (rig.door(|_| {}), person("ann"), person("bob"));
    let state = make(&door, call(&ann, "greet", json!({}))).await.state(&["who"]);
    let with = |answer| json!({"requestState": state, "inputResponses": {"who": answer}});
    for (what, refused, sentence) in [
        ("another principal", call(&bob, "greet", with(named("Bob"))), "not valid for this request"),
        ("another tool", call(&ann, "pair", with(named("Ann"))), "not valid for this request"),
        ("a wrong shape", call(&ann, "greet", with(json!({"action": "perhaps"}))), "\"action\""),
        ("no object", call(&ann, "greet", with(json!("Ann"))), "must be an object"),
        (
            "a forged state",
            call(&ann, "greet", json!({"requestState": format!("{state}x"), "inputResponses": {}})),
            "not valid for this request",
        ),
    ] {
        let said = make(&door, refused).await.failure();
        assert!(said.contains(sentence), "{what}: {said}");
    }
    assert_eq!(make(&door, call(&ann, "greet", with(named("Ann")))).await, Got::Text("Hello, Ann!".into()));
}

#[tokio::test]
async fn a_retry_may_be_spelled_in_another_way() {
    let rig = Rig::start(Eras::Legacy).await;
    let (door, ann) = (rig.door(|_| {}), session());
    let with = |text: String| {
        let mut call = call(&ann, "greet", json!({}));
        call.params = Params::parse(&Json::trusted(text), &Limits::default()).unwrap();
        call
    };
    let first = r#"{"arguments":{},"more":{"b":{"d":1,"c":"A"},"a":[1.0]},"name":"greet"}"#;
    for again in [
        // Copilot CLI begins with the arguments, and its retry with the name.
        r#""name":"greet","arguments":{},"more":{"b":{"d":1,"c":"A"},"a":[1.0]}"#,
        r#""more" : { "a":[1], "b":{"c":"\u0041","d":1e0} }, "name":"gr\u0065et""#,
    ] {
        let state = make(&door, with(first.to_owned())).await.state(&["who"]);
        let answers = r#""inputResponses":{"who":{"action":"accept","content":{"name":"Ann"}}}"#;
        let other = again.replace("[1", "[2");
        let refused = make(&door, with(format!(r#"{{{other},"requestState":"{state}",{answers}}}"#))).await;
        assert!(refused.failure().contains("not valid for this request"), "other arguments are another call");
        let retry = with(format!(r#"{{{again},"requestState":"{state}",{answers}}}"#));
        assert_eq!(make(&door, retry).await, Got::Text("Hello, Ann!".into()), "{again}");
    }
}

#[tokio::test]
async fn a_retry_without_answers_is_asked_again() {
    let rig = Rig::start(Eras::Legacy).await;
    let (door, ann) = (rig.door(|_| {}), session());
    let state = make(&door, call(&ann, "greet", json!({}))).await.state(&["who"]);
    let state = make(&door, call(&ann, "greet", json!({"requestState": state}))).await.state(&["who"]);
    let answered = json!({"requestState": state, "inputResponses": {"who": named("Ann")}});
    assert_eq!(make(&door, call(&ann, "greet", answered)).await, Got::Text("Hello, Ann!".into()));
}

#[tokio::test]
async fn nobody_elses_call_is_thrown_out_when_too_many_wait() {
    let rig = Rig::start(Eras::Legacy).await;
    let client = rig.client(|options| (options.park.per_caller, options.park.total) = (2, 3));
    let (door, ann, bob) = (client.door(), person("ann"), person("bob"));
    let mut states = Vec::new();
    for _ in 0..2 {
        states.push(make(&door, call(&ann, "greet", json!({}))).await.state(&["who"]));
    }
    let full = make(&door, call(&ann, "greet", json!({}))).await.failure();
    assert!(full.contains("Too many calls wait"), "{full}");
    make(&door, call(&bob, "greet", json!({}))).await.state(&["who"]);
    let full = make(&door, call(&person("eve"), "greet", json!({}))).await.failure();
    assert!(full.contains("Too many calls wait"), "{full}");
    assert_eq!(client.parked(), 3);
    for state in states {
        let answered = json!({"requestState": state, "inputResponses": {"who": named("Ann")}});
        assert_eq!(make(&door, call(&ann, "greet", answered)).await, Got::Text("Hello, Ann!".into()));
    }
}

#[tokio::test]
async fn nothing_rests_while_a_call_waits_for_answers() {
    let rig = Rig::start(Eras::Legacy).await;
    let client = rig.client(|_| {});
    let (door, ann) = (client.door(), session());
    let state = make(&door, call(&ann, "greet", json!({}))).await.state(&["who"]);
    assert!(!client.rest().await);
    let answered = json!({"requestState": state, "inputResponses": {"who": named("Ann")}});
    assert_eq!(make(&door, call(&ann, "greet", answered)).await, Got::Text("Hello, Ann!".into()));
    assert!(client.rest().await);
    assert!(!client.is_running());
    make(&door, call(&ann, "greet", json!({}))).await.state(&["who"]);
    assert_eq!(rig.handshakes.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn a_call_that_nobody_resumes_is_given_up() {
    let rig = Rig::start(Eras::Legacy).await;
    let client = rig.client(|options| options.park.time = Duration::from_millis(200));
    let (door, ann) = (client.door(), session());
    let state = make(&door, call(&ann, "greet", json!({}))).await.state(&["who"]);
    until("the parked call is given up", || client.parked() == 0).await;
    let answered = json!({"requestState": state, "inputResponses": {"who": named("Ann")}});
    let late = make(&door, call(&ann, "greet", answered)).await.failure();
    assert!(late.contains("start again") || late.contains("Start again"), "{late}");
}

#[tokio::test]
async fn a_restart_is_told_and_nothing_runs_a_second_time() {
    let rig = Rig::start(Eras::Legacy).await;
    let ann = person("ann");
    let state = make(&rig.door(|_| {}), call(&ann, "greet", json!({}))).await.state(&["who"]);
    let answered = json!({"requestState": state, "inputResponses": {"who": named("Ann")}});
    let told = make(&rig.door(|_| {}), call(&ann, "greet", answered)).await.failure();
    assert!(told.contains("start again"), "{told}");
}

#[tokio::test]
async fn a_caller_that_leaves_cancels_the_call() {
    let rig = Rig::start(Eras::Legacy).await;
    let (door, ann) = (rig.door(|_| {}), session());
    let gone =
        tokio::time::timeout(Duration::from_millis(300), make(&door, call(&ann, "act", json!({})))).await;
    assert!(gone.is_err());
    until("the tool is stopped", || *rig.acted.lock().unwrap() == ["began", "stopped"]).await;
}

#[tokio::test]
async fn a_modern_server_needs_none_of_this() {
    let rig = Rig::start(Eras::Modern).await;
    let client = rig.client(|_| {});
    let (door, ann) = (client.door(), person("ann"));
    let state = make(&door, call(&ann, "greet", json!({}))).await.state(&["who"]);
    assert_eq!(client.parked(), 0, "its state passes through untouched");
    let answered = json!({"requestState": state, "inputResponses": {"who": named("Ann")}});
    // The server's own seal is bound to nobody in particular, as we log in to it as ourselves.
    assert_eq!(make(&door, call(&ann, "greet", answered)).await, Got::Text("Hello, Ann!".into()));
}

#[tokio::test]
async fn the_questions_of_all_rounds_are_counted() {
    let rig = Rig::start(Eras::Legacy).await;
    let (door, ann) = (rig.door(|options| options.max_questions = 1), session());
    let at_once = make(&door, call(&ann, "pair", json!({}))).await.failure();
    assert!(at_once.contains("more than 1 questions"), "{at_once}");
    let state = make(&door, call(&ann, "chain", json!({}))).await.state(&["one"]);
    let one = json!({"requestState": state, "inputResponses": {"one": named("Ann")}});
    let later = make(&door, call(&ann, "chain", one)).await.failure();
    assert!(later.contains("more than 1 questions"), "{later}");
}
