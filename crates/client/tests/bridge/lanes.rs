//! Whose session is whose.

use serde_json::json;
use tidegate_client::Instances;
use tidegate_edge::Eras;
use tidegate_protocol::{ClientCapabilities, Method, Params};
use tidegate_service::{Call, Context, Door, Reply};

use crate::rig::{Got, Rig, Who, call, make, named, person, session};

const FORMS: &str = r#"{"elicitation":{"form":{}}}"#;

fn list() -> Call {
    Call::new(Method::ToolsList, Params::empty(), Context::local())
}

#[tokio::test]
async fn a_caller_has_one_session_and_shares_it_with_nobody() {
    let rig = Rig::start(Eras::Legacy).await;
    let door = rig.door(|options| options.lanes.shared = true);
    let (ann, bob) = (session(), person("bob"));
    for who in [&ann, &bob, &ann, &bob] {
        make(&door, call(who, "greet", json!({}))).await.state(&["who"]);
    }
    let sessions = rig.sessions.lock().unwrap().clone();
    assert_eq!(sessions.len(), 4);
    assert_eq!(sessions[0], sessions[2]);
    assert_eq!(sessions[1], sessions[3]);
    assert_ne!(sessions[0], sessions[1]);
}

/// Some servers hide tools from clients that they cannot ask, so lists are read in a session that declares everything;
/// who cannot be asked calls in one that declares nothing.
#[tokio::test]
async fn lists_share_a_session_and_so_do_those_who_cannot_be_asked() {
    let rig = Rig::start(Eras::Legacy).await;
    let door = rig.door(|options| options.lanes.shared = true);
    for _ in 0..3 {
        assert!(matches!(door.answer(list()).await, Ok(Reply::Complete(_))));
    }
    make(&door, call(&session(), "greet", json!({}))).await.state(&["who"]);
    for _ in 0..2 {
        let mut incapable = call(&session(), "greet", json!({}));
        incapable.context.capabilities = ClientCapabilities::none();
        assert!(matches!(door.answer(incapable).await, Ok(Reply::Error(_))));
    }
    assert_eq!(*rig.handshakes.lock().unwrap(), [ClientCapabilities::all().as_json().as_str(), FORMS, "{}"]);
}

#[tokio::test]
async fn a_caller_of_its_own_needs_but_one_session() {
    let rig = Rig::start(Eras::Legacy).await;
    let door = rig.door(|_| {});
    let ann = session();
    make(&door, call(&ann, "greet", json!({}))).await.state(&["who"]);
    let mut list = list();
    list.context.caller = ann.caller;
    list.context.capabilities = ClientCapabilities::from_json(tidegate_protocol::Json::trusted(FORMS));
    assert!(matches!(door.answer(list).await, Ok(Reply::Complete(_))));
    assert_eq!(*rig.handshakes.lock().unwrap(), [FORMS]);
}

#[tokio::test]
async fn somebody_unknown_gets_a_session_for_each_call() {
    let rig = Rig::start(Eras::Legacy).await;
    let door = rig.door(|options| options.lanes.shared = true);
    let nobody = Who::default();
    for _ in 0..2 {
        let state = make(&door, call(&nobody, "greet", json!({}))).await.state(&["who"]);
        let answered = json!({"requestState": state, "inputResponses": {"who": named("X")}});
        assert_eq!(make(&door, call(&nobody, "greet", answered)).await, Got::Text("Hello, X!".into()));
    }
    let sessions = rig.sessions.lock().unwrap().clone();
    // Each call was replayed once by the framework, on its own session.
    let distinct: std::collections::HashSet<_> = sessions.iter().collect();
    assert_eq!(distinct.len(), 2, "{sessions:?}");
}

#[tokio::test]
async fn callers_take_turns_where_there_is_one_session() {
    let rig = Rig::start(Eras::Legacy).await;
    let door = rig.door(|options| options.lanes.instances = Instances::One);
    let (ann, bob) = (person("ann"), person("bob"));
    let state = make(&door, call(&ann, "greet", json!({}))).await.state(&["who"]);
    let waiting = tokio::spawn({
        let (door, bob) = (door.clone(), bob.clone());
        async move { make(&door, call(&bob, "greet", json!({}))).await }
    });
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    assert!(!waiting.is_finished(), "it is Ann's turn until her call is done");
    let answered = json!({"requestState": state, "inputResponses": {"who": named("Ann")}});
    assert_eq!(make(&door, call(&ann, "greet", answered)).await, Got::Text("Hello, Ann!".into()));
    waiting.await.unwrap().state(&["who"]);
    assert_eq!(rig.handshakes.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn sessions_are_bounded() {
    let rig = Rig::start(Eras::Legacy).await;
    let door = rig.door(|options| options.lanes.max = 2);
    let states = [session(), session()];
    for who in &states {
        make(&door, call(who, "greet", json!({}))).await.state(&["who"]);
    }
    let full = make(&door, call(&session(), "greet", json!({}))).await.failure();
    assert!(full.contains("sessions with the server are in use"), "{full}");
}

#[tokio::test]
async fn many_callers_at_once_share_one_handshake() {
    let rig = Rig::start(Eras::Legacy).await;
    let (door, ann) = (rig.door(|_| {}), session());
    let calls = (0..16).map(|_| make(&door, call(&ann, "greet", json!({}))));
    for got in futures_util::future::join_all(calls).await {
        got.state(&["who"]);
    }
    assert_eq!(rig.handshakes.lock().unwrap().len(), 1);
}
