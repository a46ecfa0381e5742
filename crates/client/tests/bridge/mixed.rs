//! Two clients of one user in front of one server on a pipe that asks them at the same moment, while lists are read and
//! the server dies now and then: nobody ever gets the other's question.

use std::time::Duration;

use serde_json::{Value, json};
use tidegate_client::{ClientDoor, Instances};
use tidegate_protocol::{Method, Params};
use tidegate_service::{Call, Context, Door, Reply};

use crate::pipe::{Pipe, Pipes, client};
use crate::rig::{Who, call, named, session};

const ROUNDS: usize = 24;

/// A server that asks each caller for its name, with the tool's name in the question, and dies at every tenth call.
async fn serve(mut pipes: Pipes) {
    loop {
        let Some(mut pipe) = pipes.opened().await else { return };
        let mut asked: Vec<(String, Value)> = Vec::new();
        let mut calls = 0;
        while let Some(message) = pipe.try_read().await {
            match message["method"].as_str() {
                Some("tools/call") => {
                    calls += 1;
                    if calls % 10 == 0 {
                        break;
                    }
                    // Long enough for the other's call to come in between.
                    tokio::time::sleep(Duration::from_millis(fastrand::u64(0..4))).await;
                    let question = format!("q{calls}");
                    ask(&mut pipe, &question, &message).await;
                    asked.push((question, message));
                }
                Some(_) if message["id"].is_null() => {}
                Some("tools/list") => pipe.answer(&message, json!({"tools": []})).await,
                Some(_) => pipe.answer(&message, json!({})).await,
                None => {
                    let Some(at) = asked.iter().position(|(id, _)| message["id"] == **id) else { continue };
                    let (_, request) = asked.remove(at);
                    let said = match message["result"]["content"]["name"].as_str() {
                        Some(name) => format!("{} is {name}", request["params"]["name"].as_str().unwrap()),
                        None => "nobody said".to_owned(),
                    };
                    pipe.answer(&request, json!({"content": [{"type": "text", "text": said}]})).await;
                }
            }
        }
    }
}

async fn ask(pipe: &mut Pipe, id: &str, call: &Value) {
    let params = json!({"message": call["params"]["name"],
        "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}});
    pipe.say(json!({"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": params})).await;
}

/// Calls the tool of one's own name again and again. Returns how often one was asked, and how often refused.
async fn calls(door: ClientDoor, who: Who, name: &'static str) -> (usize, usize) {
    let (mut asked, mut refused) = (0, 0);
    for _ in 0..ROUNDS {
        let mut rest = json!({});
        for _ in 0..4 {
            let answer = door.answer(call(&who, name, rest.clone())).await.unwrap();
            match answer {
                Reply::InputRequired(input) => {
                    assert_eq!(input.questions.len(), 1);
                    let question = &input.questions[0];
                    let params: Value = question.params.to().unwrap();
                    assert_eq!(params["message"], name, "the other's question");
                    asked += 1;
                    let key = question.key.to_string();
                    rest = json!({"requestState": input.state.unwrap().to_string(), "inputResponses": {key: named(name)}});
                    continue;
                }
                Reply::Complete(result) => {
                    let result: Value = result.to().unwrap();
                    let text = result["content"][0]["text"].as_str().unwrap();
                    match text {
                        // The server has died.
                        _ if result["isError"] == true => {}
                        "nobody said" => refused += 1,
                        _ => assert_eq!(text, format!("{name} is {name}")),
                    }
                }
                // The server was not yet back.
                Reply::Error(_) => {}
                other => panic!("{other:?}"),
            }
            break;
        }
    }
    (asked, refused)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_of_two_clients_gets_its_own_question_or_a_refusal() {
    let (client, pipes) = client(Instances::PerUser, |options| {
        options.breaker = None;
        options.timeout = Duration::from_secs(20);
    });
    let door = client.door();
    tokio::spawn(serve(pipes));
    let lists = tokio::spawn({
        let door = door.clone();
        async move {
            loop {
                let _ = door.answer(Call::new(Method::ToolsList, Params::empty(), Context::local())).await;
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
    });
    let both =
        async { tokio::join!(calls(door.clone(), session(), "ann"), calls(door.clone(), session(), "bob")) };
    let (anns, bobs) = tokio::time::timeout(Duration::from_secs(120), both).await.expect("nothing hangs");
    lists.abort();
    assert!(anns.0 > ROUNDS / 4 && bobs.0 > ROUNDS / 4, "they take turns: {anns:?} {bobs:?}");
    client.close().await;
}
