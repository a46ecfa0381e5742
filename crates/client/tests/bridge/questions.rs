//! Whose question it is that a server asks over a pipe, where nothing says so.

use serde_json::{Value, json};
use tidegate_client::{ClientDoor, Instances};
use tidegate_protocol::{ClientCapabilities, Json, Method, Params};
use tidegate_service::{Call, Door, Reply};
use tokio::task::JoinHandle;

use crate::pipe::{Pipe, client};
use crate::rig::{Who, call, person, session};

const FORM: &str = "elicitation/create";
const ROOTS: &str = "roots/list";
const ALL: &str = r#"{"elicitation":{},"sampling":{},"roots":{}}"#;
const PER_USER: Instances = Instances::PerUser;

fn by(who: &Who, tool: &str, capabilities: &'static str) -> Call {
    let mut call = call(who, tool, json!({}));
    call.context.capabilities = ClientCapabilities::from_json(Json::trusted(capabilities));
    call
}

/// Makes a call meanwhile.
fn begin(door: &ClientDoor, call: Call) -> JoinHandle<Reply> {
    let door = door.clone();
    tokio::spawn(async move {
        let reply = tokio::time::timeout(std::time::Duration::from_secs(20), door.answer(call)).await;
        reply.expect("an answer").unwrap()
    })
}

/// What a call is asked: the messages of its forms, and the state for the retry.
async fn asked(reply: JoinHandle<Reply>) -> (Vec<String>, String) {
    match reply.await.unwrap() {
        Reply::InputRequired(input) => {
            let message = |question: &tidegate_service::Question| {
                let params: Value = question.params.to().unwrap();
                params["message"].as_str().unwrap_or(question.method.as_str()).to_owned()
            };
            let state = input.state.map(|state| state.to_string()).unwrap_or_default();
            (input.questions.iter().map(message).collect(), state)
        }
        other => panic!("{other:?}"),
    }
}

async fn text(reply: JoinHandle<Reply>) -> String {
    match reply.await.unwrap() {
        Reply::Complete(result) => {
            let result: Value = result.to().unwrap();
            result["content"][0]["text"].as_str().unwrap().to_owned()
        }
        other => panic!("{other:?}"),
    }
}

fn said(what: &str) -> Value {
    json!({"content": [{"type": "text", "text": what}]})
}

/// The call again with the answer to its only question.
fn again(mut first: Call, state: &str, key: &str, answer: Value) -> Call {
    let mut params: Value = first.params.to_json().to().unwrap();
    params["requestState"] = json!(state);
    params["inputResponses"] = json!({key: answer});
    first.params = Params::parse(&params.into(), &Default::default()).unwrap();
    first
}

async fn refusal(pipe: &mut Pipe, id: &str) -> i64 {
    let answer = pipe.read().await;
    assert_eq!(answer["id"], id, "{answer}");
    answer["error"]["code"].as_i64().unwrap_or_else(|| panic!("{answer}"))
}

#[tokio::test]
async fn each_call_says_who_makes_it() {
    let (client, mut pipes) = client(PER_USER, |_| {});
    let mut call = by(&session(), "a", ALL);
    call.context.client_info = Some(Json::trusted(r#"{"name":"ann","version":"1"}"#));
    let calling = begin(&client.door(), call);
    let mut pipe = pipes.next().await;
    let request = pipe.called().await;
    let caller = json!({"clientInfo": {"name": "ann", "version": "1"},
        "clientCapabilities": {"elicitation": {}, "sampling": {}, "roots": {}}});
    assert_eq!(request["params"]["_meta"]["dev.tidegate/caller"], caller);
    pipe.answer(&request, said("done")).await;
    assert_eq!(text(calling).await, "done");
}

#[tokio::test]
async fn the_only_call_that_can_be_asked_is() {
    let (client, mut pipes) = client(PER_USER, |_| {});
    let door = client.door();
    let ann = begin(&door, by(&session(), "a", ALL));
    let mut pipe = pipes.next().await;
    let anns = pipe.called().await;
    let bare = begin(&door, by(&session(), "b", "{}"));
    let bares = pipe.called().await;
    pipe.ask("for ann", FORM).await;
    assert_eq!(asked(ann).await.0, ["for ann"]);
    pipe.answer(&bares, said("bare")).await;
    assert_eq!(text(bare).await, "bare");
    assert_eq!(anns["params"]["name"], "a");
}

#[tokio::test]
async fn between_clients_nobody_guesses_and_then_they_take_turns() {
    let (client, mut pipes) = client(PER_USER, |_| {});
    let door = client.door();
    let (ann, bob) = (session(), session());
    let (anns, bobs) = (begin(&door, by(&ann, "a", ALL)), begin(&door, by(&bob, "b", ALL)));
    let mut pipe = pipes.next().await;
    let (first, second) = (pipe.called().await, pipe.called().await);
    pipe.ask("whose", FORM).await;
    assert_eq!(refusal(&mut pipe, "whose").await, -32600);
    for request in [&first, &second] {
        pipe.answer(request, said("did without")).await;
    }
    assert_eq!((text(anns).await, text(bobs).await), ("did without".to_owned(), "did without".to_owned()));

    // From now on one after the other; who cannot be asked does not wait.
    let anns = begin(&door, by(&ann, "a", ALL));
    assert_eq!(pipe.called().await["params"]["name"], "a");
    let bobs = begin(&door, by(&bob, "b", ALL));
    let bare = begin(&door, by(&session(), "c", "{}"));
    let request = pipe.called().await;
    assert_eq!(request["params"]["name"], "c", "Bob waits");
    pipe.answer(&request, said("at once")).await;
    assert_eq!(text(bare).await, "at once");
    pipe.ask("for ann", FORM).await;
    let (messages, state) = asked(anns).await;
    assert_eq!(messages, ["for ann"]);
    assert!(!bobs.is_finished());
    let answer = json!({"action": "accept", "content": {}});
    let retry = begin(&door, again(by(&ann, "a", ALL), &state, "question-1-1", answer));
    assert_eq!(pipe.read().await["result"]["action"], "accept");
    pipe.ask("again for ann", FORM).await;
    let (messages, _) = asked(retry).await;
    assert_eq!(messages, ["again for ann"]);
    assert!(!bobs.is_finished(), "her call is not over");
    bobs.abort();
}

#[tokio::test]
async fn among_the_calls_of_one_client_the_last_answered_is_asked_else_the_newest() {
    let (client, mut pipes) = client(PER_USER, |_| {});
    let (door, ann) = (client.door(), session());
    let first = begin(&door, by(&ann, "first", ALL));
    let mut pipe = pipes.next().await;
    pipe.called().await;
    pipe.ask("one", FORM).await;
    let (_, state) = asked(first).await;
    let answer = json!({"action": "decline"});
    let retry = begin(&door, again(by(&ann, "first", ALL), &state, "question-1-1", answer));
    assert_eq!(pipe.read().await["result"]["action"], "decline");
    let second = begin(&door, by(&ann, "second", ALL));
    let seconds = pipe.called().await;
    pipe.ask("two", FORM).await;
    assert_eq!(asked(retry).await.0, ["two"], "it was answered last");
    pipe.answer(&seconds, said("second")).await;
    assert_eq!(text(second).await, "second");
}

#[tokio::test]
async fn a_question_of_a_call_that_is_over_goes_to_no_other_client() {
    let (client, mut pipes) = client(PER_USER, |options| {
        options.park.settle = std::time::Duration::from_secs(5);
    });
    let door = client.door();
    let anns = begin(&door, by(&session(), "a", ALL));
    let mut pipe = pipes.next().await;
    let request = pipe.called().await;
    pipe.ask("for ann", FORM).await;
    // Ann's call has the question, and waits for more to come with it.
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    let bobs = begin(&door, by(&session(), "b", ALL));
    let bobs_request = pipe.called().await;
    pipe.answer(&request, said("never mind")).await;
    assert_eq!(text(anns).await, "never mind");
    assert_eq!(refusal(&mut pipe, "for ann").await, -32600, "Bob is not asked");
    pipe.answer(&bobs_request, said("bob")).await;
    assert_eq!(text(bobs).await, "bob");
}

#[tokio::test]
async fn a_server_is_told_what_a_client_would_that_has_declared_nothing() {
    for (method, code, needed) in [
        (FORM, -32602, json!({"elicitation": {"form": {}}})),
        ("sampling/createMessage", -32601, json!({"sampling": {}})),
        (ROOTS, -32601, json!({"roots": {}})),
    ] {
        let (client, mut pipes) = client(PER_USER, |_| {});
        let door = client.door();
        let bare = begin(&door, by(&session(), "a", "{}"));
        let mut pipe = pipes.next().await;
        let request = pipe.called().await;
        pipe.ask("q", method).await;
        assert_eq!(refusal(&mut pipe, "q").await, code, "{method}");
        pipe.answer(&request, said("did without")).await;
        assert_eq!(text(bare).await, "did without", "a result passes as it came");

        let bare = begin(&door, by(&session(), "a", "{}"));
        let request = pipe.called().await;
        pipe.ask("q", method).await;
        refusal(&mut pipe, "q").await;
        pipe.fail(&request, -32603).await;
        let Reply::Error(error) = bare.await.unwrap() else { panic!() };
        assert_eq!(error.code(tidegate_protocol::Revision::LATEST_MODERN), -32021);
        let data: Value = error.data().unwrap().to().unwrap();
        assert_eq!(data["requiredCapabilities"], needed);
    }
}

#[tokio::test]
async fn roots_are_not_asked_for_outside_of_a_call() {
    let (client, mut pipes) = client(PER_USER, |_| {});
    let list = Call::new(Method::ToolsList, Params::empty(), by(&session(), "a", ALL).context);
    let listing = begin(&client.door(), list);
    let mut pipe = pipes.next().await;
    pipe.ask("early", ROOTS).await;
    let request = pipe.read().await;
    assert_eq!(request["method"], "tools/list");
    assert_eq!(refusal(&mut pipe, "early").await, -32600);
    pipe.answer(&request, json!({"tools": []})).await;
    assert!(matches!(listing.await.unwrap(), Reply::Complete(_)));
}

#[tokio::test]
async fn a_session_that_was_told_roots_is_that_clients_from_then_on() {
    let (client, mut pipes) = client(PER_USER, |_| {});
    let door = client.door();
    let (ann, bob) = (session(), session());
    let first = begin(&door, by(&ann, "a", ALL));
    let mut anns = pipes.next().await;
    let request = anns.called().await;
    anns.ask("roots", ROOTS).await;
    let (_, state) = asked(first).await;
    let roots = json!({"roots": [{"uri": "file:///ann"}]});
    let retry = begin(&door, again(by(&ann, "a", ALL), &state, "question-1-1", roots));
    assert_eq!(anns.read().await["result"]["roots"][0]["uri"], "file:///ann");
    anns.answer(&request, said("looked")).await;
    assert_eq!(text(retry).await, "looked");

    let other = begin(&door, by(&bob, "b", ALL));
    let mut bobs = pipes.next().await;
    let request = bobs.called().await;
    bobs.answer(&request, said("bob")).await;
    assert_eq!(text(other).await, "bob");
    let same = begin(&door, by(&ann, "a", ALL));
    let request = anns.called().await;
    anns.answer(&request, said("ann")).await;
    assert_eq!(text(same).await, "ann");
    assert!(pipes.is_empty());

    // Only there is it told that they have changed.
    for who in [&bob, &ann] {
        let mut changed = by(who, "a", ALL);
        changed.method = Method::RootsChanged;
        changed.params = Params::empty();
        door.answer(changed).await.unwrap();
    }
    assert_eq!(anns.read().await["method"], "notifications/roots/list_changed");
    let next = begin(&door, by(&bob, "b", ALL));
    assert_eq!(bobs.read().await["method"], "tools/call", "Bob's hears nothing of it");
    next.abort();
}

#[tokio::test]
async fn users_take_turns_where_all_share_one_session() {
    let (client, mut pipes) = client(Instances::One, |_| {});
    let door = client.door();
    let anns = begin(&door, by(&person("ann"), "a", ALL));
    let mut pipe = pipes.next().await;
    let request = pipe.called().await;
    let more = begin(&door, by(&person("ann"), "more", ALL));
    let more_request = pipe.called().await;
    let bobs = begin(&door, by(&person("bob"), "b", ALL));
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    pipe.answer(&request, said("ann")).await;
    assert_eq!(text(anns).await, "ann");
    assert!(!bobs.is_finished());
    pipe.answer(&more_request, said("more")).await;
    assert_eq!(text(more).await, "more");
    let request = pipe.called().await;
    assert_eq!(request["params"]["name"], "b");
    pipe.answer(&request, said("bob")).await;
    assert_eq!(text(bobs).await, "bob");
}

#[tokio::test]
async fn a_question_of_a_call_that_was_given_up_goes_to_no_other_client() {
    let (client, mut pipes) = client(PER_USER, |_| {});
    let door = client.door();
    let bobs = begin(&door, by(&session(), "b", ALL));
    let mut pipe = pipes.next().await;
    pipe.called().await;
    bobs.abort();
    assert_eq!(pipe.read().await["method"], "notifications/cancelled");
    let anns = begin(&door, by(&session(), "a", ALL));
    let request = pipe.called().await;
    pipe.ask("for bob", FORM).await;
    assert_eq!(refusal(&mut pipe, "for bob").await, -32600, "the server may not have heard it yet");
    pipe.answer(&request, said("ann")).await;
    assert_eq!(text(anns).await, "ann");
}

#[tokio::test]
async fn no_user_is_asked_while_another_has_a_call_in_the_same_session() {
    let (client, mut pipes) = client(Instances::One, |_| {});
    let door = client.door();
    let anns = begin(&door, by(&person("ann"), "a", ALL));
    let mut pipe = pipes.next().await;
    let first = pipe.called().await;
    let bobs = begin(&door, by(&person("bob"), "b", "{}"));
    let second = pipe.called().await;
    pipe.ask("whose", FORM).await;
    assert_eq!(refusal(&mut pipe, "whose").await, -32600);
    for (request, calling) in [(first, anns), (second, bobs)] {
        pipe.answer(&request, said("done")).await;
        assert_eq!(text(calling).await, "done");
    }
}

#[tokio::test]
async fn an_answer_answers_one_question() {
    let (client, mut pipes) = client(PER_USER, |_| {});
    let (door, ann) = (client.door(), session());
    let first = begin(&door, by(&ann, "a", ALL));
    let mut pipe = pipes.next().await;
    pipe.called().await;
    let ask = |id: &str| {
        let meta = json!({"dev.tidegate/input": {"key": "k", "of": 1}});
        let schema = json!({"type": "object", "properties": {}});
        let params = json!({"message": id, "requestedSchema": schema, "_meta": meta});
        json!({"jsonrpc": "2.0", "id": id, "method": FORM, "params": params})
    };
    pipe.say(ask("May I say hello?")).await;
    let (_, state) = asked(first).await;
    let retry =
        begin(&door, again(by(&ann, "a", ALL), &state, "k", json!({"action": "accept", "content": {}})));
    assert_eq!(pipe.read().await["result"]["action"], "accept");
    pipe.say(ask("May I have all your money?")).await;
    assert_eq!(asked(retry).await.0, ["May I have all your money?"], "it has the same key");
}

#[tokio::test]
async fn a_legacy_caller_that_leaves_takes_its_question_along() {
    let (client, mut pipes) = client(PER_USER, |_| {});
    let (door, mut call) = (client.door(), by(&session(), "a", ALL));
    call.context.revision = tidegate_protocol::Revision::V2025_11_25;
    let leaves = call.context.cancel.clone();
    let calling = begin(&door, call);
    let mut pipe = pipes.next().await;
    let request = pipe.called().await;
    pipe.ask("one", FORM).await;
    asked(calling).await;
    leaves.cancel();
    let told = pipe.read().await;
    assert_eq!(told["method"], "notifications/cancelled");
    assert_eq!(told["params"]["requestId"], request["id"]);
}

#[tokio::test]
async fn retries_that_were_given_up_count_no_more() {
    let (client, mut pipes) = client(PER_USER, |options| options.park.per_caller = 2);
    let (door, ann) = (client.door(), session());
    let mut pipe = None;
    for _ in 0..5 {
        let first = begin(&door, by(&ann, "a", ALL));
        let pipe = match &mut pipe {
            Some(pipe) => pipe,
            None => pipe.insert(pipes.next().await),
        };
        pipe.called().await;
        pipe.ask("one", FORM).await;
        let (_, state) = asked(first).await;
        let retry =
            begin(&door, again(by(&ann, "a", ALL), &state, "question-1-1", json!({"action": "cancel"})));
        assert_eq!(pipe.read().await["result"]["action"], "cancel");
        retry.abort();
        assert_eq!(pipe.read().await["method"], "notifications/cancelled");
    }
}

#[tokio::test]
async fn who_waits_for_an_answer_is_not_asked_for_others() {
    let (client, mut pipes) = client(PER_USER, |_| {});
    let door = client.door();
    let anns = begin(&door, by(&session(), "a", ALL));
    let mut pipe = pipes.next().await;
    pipe.called().await;
    pipe.ask("for ann", FORM).await;
    asked(anns).await;
    let bare = begin(&door, by(&session(), "b", "{}"));
    let request = pipe.called().await;
    pipe.ask("for nobody", FORM).await;
    assert_eq!(refusal(&mut pipe, "for nobody").await, -32600);
    pipe.answer(&request, said("did without")).await;
    assert_eq!(text(bare).await, "did without");
}

#[tokio::test]
async fn what_is_asked_at_the_start_is_asked_in_the_first_call_of_a_client_with_its_own_session() {
    let (client, mut pipes) = client(Instances::PerClient, |_| {});
    let (door, ann) = (client.door(), session());
    let list = Call::new(Method::ToolsList, Params::empty(), by(&ann, "a", ALL).context);
    let listing = begin(&door, list);
    let mut pipe = pipes.next().await;
    pipe.ask("early", ROOTS).await;
    let request = pipe.read().await;
    pipe.answer(&request, json!({"tools": []})).await;
    assert!(matches!(listing.await.unwrap(), Reply::Complete(_)));
    let calling = begin(&door, by(&ann, "a", ALL));
    assert_eq!(asked(calling).await.0, [ROOTS]);
}

#[tokio::test]
async fn roots_are_not_given_while_others_have_calls_in_the_same_session() {
    let (client, mut pipes) = client(PER_USER, |_| {});
    let door = client.door();
    let anns = begin(&door, by(&session(), "a", ALL));
    let mut pipe = pipes.next().await;
    let first = pipe.called().await;
    let bare = begin(&door, by(&session(), "b", "{}"));
    let second = pipe.called().await;
    pipe.ask("roots", ROOTS).await;
    assert_eq!(refusal(&mut pipe, "roots").await, -32600);
    for (request, calling) in [(first, anns), (second, bare)] {
        pipe.answer(&request, said("done")).await;
        assert_eq!(text(calling).await, "done");
    }
    assert!(pipes.is_empty());
}
