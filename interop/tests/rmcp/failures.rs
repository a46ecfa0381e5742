//! What does not work, and how the client is told.

use serde_json::{Value, json};

use crate::client::Op;
use crate::ways::{Connection, Way, everywhere, soon};

#[tokio::test]
async fn what_is_not_there_is_a_protocol_error() {
    for (op, code, hint) in [
        (Op::Call("eccho", json!({})), -32602, "eccho"),
        (Op::Prompt("explane", json!({})), -32602, "explane"),
        (Op::Prompt("explain", json!({})), -32602, "city"),
        (Op::CompletePrompt { prompt: "explane", argument: "city", typed: "" }, -32602, "explane"),
    ] {
        let outcome = everywhere(op.clone()).await;
        assert_eq!(outcome["error"]["code"], code, "{op:?}: {outcome}");
        let message = outcome["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains(hint), "{op:?}: `{message}` does not name {hint}");
    }
}

#[tokio::test]
async fn an_unknown_resource_has_the_code_of_its_era() {
    for way in Way::all() {
        let connection = Connection::open(&way).await;
        let outcome = soon("reading", connection.client.run(Op::Read("memo://nowhere"))).await;
        // SEP-2164: the code that legacy revisions have for this is gone.
        let code = if way.is_modern() { -32602 } else { -32002 };
        assert_eq!(outcome["error"]["code"], code, "{way:?}: {outcome}");
        assert_eq!(outcome["error"]["data"]["uri"], "memo://nowhere", "{way:?}: {outcome}");
    }
}

#[tokio::test]
async fn an_unknown_tool_is_answered_with_the_nearest_names() {
    let outcome = everywhere(Op::Call("eccho", json!({}))).await;
    let names = outcome["error"]["data"]["availableTools"].as_array().expect("the names that there are");
    assert_eq!(names.first(), Some(&Value::from("echo")));
}

#[tokio::test]
async fn bad_arguments_and_failing_tools_are_results_that_the_model_can_read() {
    for (op, hint) in [
        (Op::Call("echo", json!({})), "message"),
        (Op::Call("echo", json!({"message": 7})), "message"),
        (Op::Call("add", json!({"a": 1, "b": "two"})), "b"),
        (Op::Call("count", json!({"to": 1000})), "100"),
        (Op::Call("fail", json!({})), "The tide is out"),
    ] {
        let result = everywhere(op.clone()).await;
        assert_eq!(result["isError"], true, "{op:?}: {result}");
        let text = result["content"][0]["text"].as_str().unwrap_or_default();
        assert!(text.contains(hint), "{op:?}: `{text}` does not name {hint}");
    }
}
