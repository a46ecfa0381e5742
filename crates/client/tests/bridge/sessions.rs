//! Whose session is whose.

use std::collections::HashSet;
use std::time::Duration;

use serde_json::json;
use tidegate_client::Instances;
use tidegate_edge::Eras;
use tidegate_protocol::{Capability, ClientCapabilities, Json, Method, Params};
use tidegate_service::{Call, Connected, Context, Door, Reply};

use crate::rig::{Got, Rig, Who, call, make, named, person, session, until};

const FORMS: &str = r#"{"elicitation":{"form":{}}}"#;

fn list() -> Call {
    Call::new(Method::ToolsList, Params::empty(), Context::local())
}

/// How many sessions calls came over.
fn distinct(rig: &Rig) -> usize {
    rig.sessions.lock().unwrap().iter().collect::<HashSet<_>>().len()
}

#[tokio::test]
async fn a_user_has_one_session_whichever_client_they_use() {
    let rig = Rig::start(Eras::Legacy).await;
    let door = rig.door(|options| options.sessions.instances = Instances::PerUser);
    assert!(matches!(door.answer(list()).await, Ok(Reply::Complete(_))));
    let nobody = Who::default();
    for who in [&session(), &session(), &nobody, &nobody] {
        make(&door, call(who, "greet", json!({}))).await.state(&["who"]);
    }
    let mut incapable = call(&session(), "greet", json!({}));
    incapable.context.capabilities = ClientCapabilities::none();
    assert!(matches!(door.answer(incapable).await, Ok(Reply::Error(_))));
    assert_eq!(distinct(&rig), 1);
    let declared = ClientCapabilities::on_behalf(&Capability::ASKABLE);
    assert_eq!(*rig.handshakes.lock().unwrap(), [declared.as_json().as_str()]);
}

#[tokio::test]
async fn two_users_never_share_one() {
    let rig = Rig::start(Eras::Legacy).await;
    let door = rig.door(|options| options.sessions.instances = Instances::PerUser);
    let (ann, bob) = (person("ann"), person("bob"));
    for who in [&ann, &bob, &ann, &bob] {
        make(&door, call(who, "greet", json!({}))).await.state(&["who"]);
    }
    let sessions = rig.sessions.lock().unwrap().clone();
    assert_eq!((sessions[0], sessions[1]), (sessions[2], sessions[3]));
    assert_ne!(sessions[0], sessions[1]);
}

#[tokio::test]
async fn each_client_may_have_its_own_and_keeps_it() {
    let rig = Rig::start(Eras::Legacy).await;
    let door = rig.door(|options| options.sessions.instances = Instances::PerClient);
    let (ann, bob) = (session(), session());
    let with_info = |info: &'static str| {
        let mut call = call(&Who::default(), "greet", json!({}));
        call.context.client_info = Some(Json::trusted(info));
        call
    };
    for _ in 0..2 {
        for who in [&ann, &bob] {
            make(&door, call(who, "greet", json!({}))).await.state(&["who"]);
        }
        for info in [r#"{"name":"one"}"#, r#"{"name":"two"}"#] {
            make(&door, with_info(info)).await.state(&["who"]);
        }
    }
    let sessions = rig.sessions.lock().unwrap().clone();
    assert_eq!(sessions[..4], sessions[4..]);
    assert_eq!(distinct(&rig), 4);
}

#[tokio::test]
async fn who_asks_for_itself_shares_the_session_of_the_client() {
    let rig = Rig::start(Eras::Legacy).await;
    let client = rig.client(|options| options.sessions.instances = Instances::PerClient);
    client.server().await.unwrap();
    let mut list = list();
    list.context.caller = Some(client.caller());
    assert!(matches!(client.door().answer(list).await, Ok(Reply::Complete(_))));
    assert_eq!(rig.handshakes.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn what_is_declared_can_be_limited() {
    let rig = Rig::start(Eras::Legacy).await;
    let door = rig.door(|options| {
        options.sessions.instances = Instances::PerUser;
        options.sessions.capabilities = vec![Capability::Sampling];
    });
    let refused = make(&door, call(&session(), "greet", json!({}))).await.failure();
    assert!(refused.contains("elicitation.form"), "{refused}");
    assert_eq!(*rig.handshakes.lock().unwrap(), [r#"{"sampling":{}}"#]);
}

#[tokio::test]
async fn a_session_is_kept_while_its_client_is_connected_and_for_a_while_after() {
    let rig = Rig::start(Eras::Legacy).await;
    let client = rig.client(|options| {
        options.sessions.instances = Instances::PerUser;
        options.sessions.idle = Duration::from_millis(200);
    });
    assert!(!client.keeps_state(), "nobody has called");
    let connected = Connected::new();
    let ann = Who { caller: Some(connected.caller()), subject: None };
    let state = make(&client.door(), call(&ann, "greet", json!({}))).await.state(&["who"]);
    let answered = json!({"requestState": state, "inputResponses": {"who": named("Ann")}});
    make(&client.door(), call(&ann, "greet", answered)).await;
    tokio::time::sleep(Duration::from_millis(400)).await;
    assert!(client.keeps_state(), "Ann is still connected");
    drop(connected);
    assert!(client.keeps_state(), "she may come back");
    until("the end of that", || !client.keeps_state()).await;
}

#[tokio::test]
async fn a_caller_of_its_own_needs_but_one_session() {
    let rig = Rig::start(Eras::Legacy).await;
    let door = rig.door(|_| {});
    let ann = session();
    make(&door, call(&ann, "greet", json!({}))).await.state(&["who"]);
    let mut list = list();
    list.context.caller = ann.caller;
    list.context.capabilities = ClientCapabilities::from_json(Json::trusted(FORMS));
    assert!(matches!(door.answer(list).await, Ok(Reply::Complete(_))));
    assert_eq!(*rig.handshakes.lock().unwrap(), [FORMS]);
}

#[tokio::test]
async fn callers_take_turns_where_there_is_one_session() {
    let rig = Rig::start(Eras::Legacy).await;
    let door = rig.door(|options| options.sessions.instances = Instances::One);
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
    let door = rig.door(|options| options.sessions.max = 2);
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
