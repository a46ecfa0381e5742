//! What is said while a call runs: progress one way, questions the other.

use rmcp::model::{ElicitResult, ElicitationAction};
use serde_json::{Value, json};

use crate::client::Op;
use crate::ways::{Connection, compare, eventually, soon};

#[tokio::test]
async fn progress_arrives_in_order() {
    let seen = compare("progress", async |way| {
        let connection = Connection::open(way).await;
        let result = soon("counting", connection.client.run(Op::Call("count", json!({"to": 3})))).await;
        assert_eq!(result["content"][0]["text"], "Counted to 3", "{way:?}");
        eventually("progress", || connection.client.seen.progress().len() >= 3).await;
        Value::from(connection.client.seen.progress())
    })
    .await;
    assert_eq!(
        seen,
        json!([[1.0, 3.0, "counted to 1"], [2.0, 3.0, "counted to 2"], [3.0, 3.0, "counted to 3"]])
    );
}

#[tokio::test]
async fn questions_are_asked_once_and_answers_reach_the_tool() {
    let accept = |content| ElicitResult::new(ElicitationAction::Accept).with_content(content);
    for (answer, greeting) in [
        (accept(json!({"name": "Ada"})), "Hello, Ada!"),
        (accept(json!({"name": "Ada", "age": 36})), "Hello, Ada (36)!"),
        (ElicitResult::new(ElicitationAction::Decline), "Keep your secret."),
        (ElicitResult::new(ElicitationAction::Cancel), "Never mind."),
    ] {
        let outcome = compare(greeting, async |way| {
            let connection = Connection::with_user(way, answer.clone()).await;
            let result = soon(greeting, connection.client.run(Op::Call("greet", json!({})))).await;
            json!({"text": result["content"][0]["text"], "questions": connection.client.seen.questions()})
        })
        .await;
        assert_eq!(outcome["text"], greeting);
        let questions = outcome["questions"].as_array().expect("a list");
        assert_eq!(questions.len(), 1, "{greeting}: {questions:?}");
        assert_eq!(questions[0]["message"], "Who is there?");
        assert_eq!(questions[0]["schema"]["properties"]["name"]["type"], "string");
        assert_eq!(questions[0]["schema"]["required"], json!(["name"]));
    }
}
