//! Prompts and completions.

mod common;

use common::{Client, error_code};
use serde_json::{Value, json};
use tidegate_server::{
    Argument, Completing, Completions, Content, Cx, Prompt, PromptArgs, PromptMessage, PromptResult,
    Resource, ResourceContents, ResourceTemplate, Server, ServerDoor, Vars,
};

fn door() -> ServerDoor {
    Server::new("s", "1")
        .prompt(
            Prompt::new("greet")
                .title("Greet")
                .description("Greets somebody")
                .argument(Argument::new("name").required().description("Who").complete(
                    |typed: Completing, _cx: Cx| async move { typed.filter(["Ann", "Anton", "Bob"]) },
                ))
                .argument(Argument::new("tone").title("Tone").complete(
                    |typed: Completing, _cx: Cx| async move {
                        vec![format!(
                            "warm to {}",
                            typed.arguments.get("name").map_or("nobody", String::as_str)
                        )]
                    },
                ))
                .argument(Argument::new("plain"))
                .handler(|args: PromptArgs, _cx: Cx| async move {
                    Ok(vec![
                        PromptMessage::user(format!("Greet {} {}.", &args["name"], &args["tone"])),
                        PromptMessage::assistant(Content::image("AA==", "image/png")),
                    ])
                }),
        )
        .prompt(Prompt::new("bare").handler(|_: PromptArgs, _cx: Cx| async {
            let resource = Content::resource(ResourceContents::text("x:1", "t"));
            Ok(PromptResult::new(vec![PromptMessage::user(resource)]).description("Other").meta("k", 1))
        }))
        .resource(Resource::text("memo://fixed", "fixed", ""))
        .resource_template(
            ResourceTemplate::new("memo://{id}/{part}", "memo")
                .reader(|_: Vars, _cx: Cx| async { Ok("") })
                .complete("id", |_: Completing, _cx: Cx| async {
                    (0..250).map(|i| format!("id{i}")).collect::<Vec<_>>()
                }),
        )
        .build()
}

#[tokio::test]
async fn listed_and_filled_in() {
    let door = door();
    let client = Client::legacy(&door);
    let list = client.request("prompts/list", json!({})).await;
    assert_eq!(
        list["prompts"][0],
        json!({
            "name": "greet", "title": "Greet", "description": "Greets somebody",
            "arguments": [
                {"name": "name", "description": "Who", "required": true}, {"name": "tone", "title": "Tone"}, {"name": "plain"},
            ],
        })
    );
    assert_eq!(list["prompts"][1], json!({"name": "bare"}));
    insta::assert_snapshot!(
        client.text("prompts/get", r#"{"name":"greet","arguments":{"name":"Ann"}}"#).await,
        @r#"{"description":"Greets somebody","messages":[{"role":"user","content":{"type":"text","text":"Greet Ann ."}},{"role":"assistant","content":{"type":"image","data":"AA==","mimeType":"image/png"}}]}"#
    );
    insta::assert_snapshot!(
        Client::modern(&door).text("prompts/get", r#"{"name":"bare"}"#).await,
        @r#"{"resultType":"complete","description":"Other","messages":[{"role":"user","content":{"type":"resource","resource":{"uri":"x:1","text":"t"}}}],"_meta":{"k":1,"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}}"#
    );
}

#[tokio::test]
async fn bad_requests() {
    let door = door();
    let client = Client::modern(&door);
    for (params, sentence) in [
        (json!({}), "\"name\" must be a string"),
        (json!({"name": "nobody"}), "Unknown prompt: nobody"),
        (json!({"name": "greet"}), "missing required argument: name"),
        (json!({"name": "greet", "arguments": {"name": 7}}), "values are strings"),
        (json!({"name": "greet", "arguments": []}), "values are strings"),
    ] {
        let result = client.request("prompts/get", params.clone()).await;
        assert_eq!(error_code(&result), Some(-32602), "{params}");
        assert!(result["error"]["message"].as_str().unwrap().contains(sentence), "{result}");
    }
}

async fn completion(client: &Client, reference: Value, name: &str, value: &str) -> Value {
    let params = json!({
        "ref": reference, "argument": {"name": name, "value": value}, "context": {"arguments": {"name": "Ann"}},
    });
    client.request("completion/complete", params).await
}

#[tokio::test]
async fn completions() {
    let door = door();
    let client = Client::legacy(&door);
    let prompt = json!({"type": "ref/prompt", "name": "greet"});
    let template = json!({"type": "ref/resource", "uri": "memo://{id}/{part}"});
    for (reference, name, value, want) in [
        (&prompt, "name", "an", json!({"values": ["Ann", "Anton"], "total": 2, "hasMore": false})),
        (&prompt, "tone", "", json!({"values": ["warm to Ann"], "total": 1, "hasMore": false})),
        (&prompt, "plain", "x", json!({"values": [], "total": 0, "hasMore": false})),
        (&template, "part", "", json!({"values": [], "total": 0, "hasMore": false})),
    ] {
        let result = completion(&client, reference.clone(), name, value).await;
        assert_eq!(result, json!({"completion": want}), "{name}");
    }
    let many = completion(&Client::modern(&door), template, "id", "").await;
    assert_eq!(many["resultType"], "complete");
    let completion = &many["completion"];
    assert_eq!(completion["values"].as_array().unwrap().len(), 100);
    assert_eq!((&completion["total"], &completion["hasMore"]), (&json!(250), &json!(true)));
}

#[tokio::test]
async fn nothing_to_complete() {
    let door = door();
    let client = Client::modern(&door);
    for (reference, name) in [
        (json!({"type": "ref/prompt", "name": "nobody"}), "name"),
        (json!({"type": "ref/prompt", "name": "greet"}), "nothing"),
        (json!({"type": "ref/resource", "uri": "memo://{nothing}"}), "id"),
        (json!({"type": "ref/resource", "uri": "memo://{id}/{part}"}), "nothing"),
        (json!({"type": "ref/tool", "name": "x"}), "x"),
        (json!({}), "x"),
    ] {
        let result = completion(&client, reference.clone(), name, "").await;
        assert_eq!(error_code(&result), Some(-32602), "{reference} {name}");
    }
    let fixed = completion(&client, json!({"type": "ref/resource", "uri": "memo://fixed"}), "x", "").await;
    assert_eq!(fixed["completion"]["values"], json!([]));
    for params in [json!({}), json!({"ref": {}}), json!({"ref": {}, "argument": {"name": "x"}})] {
        assert_eq!(error_code(&client.request("completion/complete", params).await), Some(-32602));
    }
}

#[tokio::test]
async fn a_completer_can_know_of_more_than_it_tells() {
    let door = Server::new("s", "1")
        .prompt(
            Prompt::new("p")
                .argument(Argument::new("a").complete(|_: Completing, _cx: Cx| async {
                    Completions { values: vec!["x".into()], total: Some(7) }
                }))
                .handler(|_: PromptArgs, _cx: Cx| async { Ok("") }),
        )
        .build();
    let result =
        completion(&Client::legacy(&door), json!({"type": "ref/prompt", "name": "p"}), "a", "").await;
    assert_eq!(result, json!({"completion": {"values": ["x"], "total": 7, "hasMore": true}}));
}
