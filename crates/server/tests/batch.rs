//! `tools/call_batch`.

mod common;

use common::Client;
use serde_json::{Value, json};
use tidegate_protocol::Revision;
use tidegate_server::{Cx, Elicit, Server, ServerDoor, Tool, ToolError};

fn door() -> ServerDoor {
    Server::new("s", "1")
        .tool(Tool::new("ok").handler(|(), _cx: Cx| async { "fine" }))
        .tool(Tool::new("bad").handler(|(), _cx: Cx| async { Err::<(), _>(ToolError::from("no luck")) }))
        .tool(Tool::new("panics").handler(|(), _cx: Cx| async { panic!("oh") as () }))
        .tool(Tool::new("asks").handler(|(), cx: Cx| async move {
            cx.elicit(Elicit::form_schema("?", json!({"type": "object", "properties": {}}))).await;
        }))
        .call_batch(true)
        .build()
}

async fn batch(client: &Client, names: &[&str]) -> Value {
    let calls: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
    client.request("tools/call_batch", json!({"calls": calls})).await
}

#[tokio::test]
async fn each_call_stands_alone_and_keeps_its_place() {
    let door = door();
    for client in [Client::modern(&door), Client::modern(&door).revision(Revision::V2025_06_18)] {
        let got = batch(&client, &["ok", "bad", "nope", "panics", "ok"]).await;
        let results = got["results"].as_array().unwrap();
        assert_eq!(results.iter().map(|r| r["index"].as_u64().unwrap()).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
        assert_eq!(results[0]["result"]["content"][0]["text"], "fine");
        assert_eq!((&results[1]["name"], &results[1]["result"]["isError"]), (&json!("bad"), &json!(true)));
        assert_eq!(results[2]["error"]["code"], -32602);
        assert_eq!(results[3]["error"]["code"], -32603);
        assert_eq!(results[4]["result"]["content"][0]["text"], "fine");
    }
}

#[tokio::test]
async fn a_batch_needs_calls_that_can_be_made_at_once() {
    let door = door();
    let client = Client::modern(&door);
    for wrong in
        [json!({}), json!({"calls": {}}), json!({"calls": []}), json!({"calls": vec![json!({}); 101]})]
    {
        assert_eq!(client.request("tools/call_batch", wrong).await["error"]["code"], -32602);
    }
    let asked = batch(&client, &["asks"]).await;
    assert!(asked["results"][0]["error"]["code"].is_i64(), "{asked}");
    assert_eq!(
        client.request("tools/call_batch", json!({"calls": [7]})).await["results"][0]["error"]["code"],
        -32602
    );
}

#[tokio::test]
async fn it_is_advertised_only_where_it_is_offered() {
    let offered = door();
    let modern = Client::modern(&offered).request("server/discover", json!({})).await;
    assert_eq!(modern["capabilities"]["extensions"]["dev.tidegate/call-batch"], json!({}));
    let legacy =
        Client::modern(&offered).revision(Revision::V2025_11_25).request("server/discover", json!({})).await;
    assert_eq!(legacy["capabilities"]["experimental"]["dev.tidegate/call-batch"], json!({}));
    let plain = Server::new("s", "1").tool(Tool::new("t").handler(|(), _cx: Cx| async { "x" })).build();
    let client = Client::modern(&plain);
    assert_eq!(batch(&client, &["t"]).await["error"]["code"], -32601);
    let capabilities = &client.request("server/discover", json!({})).await["capabilities"];
    assert!(!capabilities.to_string().contains("call-batch"));
}
