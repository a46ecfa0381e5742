//! What a caller was given at one endpoint is unknown at others, to the same caller.

use serde_json::{Value, json};
use tidegate_edge::Eras;
use tidegate_gateway::Gateway;
use tidegate_protocol::{ClientCapabilities, Json, Symbol};
use tidegate_server::{Cx, Elicit, Server, Tool, ToolError};
use tidegate_service::Reply;

use crate::rig::{Caller, Served, endpoint, local, person, says, scripted, settings, started};

/// A server in this process and one of the legacy era, behind two endpoints that have everything.
async fn gateway() -> (Gateway, Served) {
    let ask = || {
        Tool::new("ask").handler(|_: (), cx: Cx| async move {
            let schema = json!({"type": "object", "properties": {"who": {"type": "string"}}});
            cx.elicit(Elicit::form_schema("Who?", schema)).await.accepted()?;
            Ok::<_, ToolError>("thanks")
        })
    };
    let served = Served::start(Server::new("r", "1").tool(ask()), Eras::Legacy).await;
    let here = Server::new("s", "1").tool(ask()).tool(says("a", "a")).tool(says("b", "b"));
    let mut settings = settings([local("s", here), served.named("r")]);
    settings.tools.page_bytes = 1;
    settings.endpoints = vec![endpoint("work"), endpoint("home")];
    (started(settings).await, served)
}

/// Ann, who can be asked: at an endpoint, and wherever else she can be.
fn anns() -> (Caller, [Caller; 2]) {
    let mut ann = person("ann");
    let declared = Json::trusted(r#"{"elicitation":{"form":{}}}"#);
    ann.0.capabilities = ClientCapabilities::from_json(declared);
    (ann.at("work"), [ann.at("home"), ann])
}

#[tokio::test]
async fn cursors() {
    let (gateway, _served) = gateway().await;
    let (work, elsewhere) = anns();
    let cursor = work.get(&gateway, "tools/list", json!({})).await["nextCursor"].clone();
    for other in &elsewhere {
        let refused = other.fails(&gateway, "tools/list", json!({"cursor": cursor})).await;
        assert_eq!(refused.symbol(), Symbol::InvalidCursor);
        let theirs = other.get(&gateway, "tools/list", json!({})).await["nextCursor"].clone();
        let refused = work.fails(&gateway, "tools/list", json!({"cursor": theirs})).await;
        assert_eq!(refused.symbol(), Symbol::InvalidCursor);
    }
    work.get(&gateway, "tools/list", json!({"cursor": cursor})).await;
    gateway.close().await;
}

#[tokio::test]
async fn calls_that_wait_for_an_answer() {
    let (gateway, _served) = gateway().await;
    let (work, elsewhere) = anns();
    for tool in ["s_ask", "r_ask"] {
        let Reply::InputRequired(input) = work.ask(&gateway, "tools/call", json!({"name": tool})).await
        else {
            panic!("{tool} asks")
        };
        let answers: serde_json::Map<String, Value> = input
            .questions
            .iter()
            .map(|question| (question.key.to_string(), json!({"action": "accept", "content": {"who": "x"}})))
            .collect();
        let again = json!({"name": tool, "inputResponses": answers, "requestState": input.state.as_deref()});
        for other in &elsewhere {
            match other.ask(&gateway, "tools/call", again.clone()).await {
                Reply::Complete(result) => assert!(result.as_str().contains("\"isError\":true"), "{result}"),
                Reply::Error(error) => assert_eq!(error.symbol(), Symbol::StateRefused, "{error}"),
                other => panic!("{tool}: {other:?}"),
            }
        }
        let done = work.get(&gateway, "tools/call", again).await;
        assert_eq!(done["content"][0]["text"], "thanks", "{tool}: {done}");
    }
    gateway.close().await;
}

#[tokio::test]
async fn addresses() {
    // Only who gave such an address says whose it is.
    let server = |name: &'static str| {
        scripted(name, move |call| {
            let result = match call.method.as_str() {
                "tools/list" => json!({"tools": [{"name": "give", "inputSchema": {"type": "object"}}]}),
                "tools/call" => {
                    json!({"content": [{"type": "resource_link", "uri": "x-given:1", "name": "given"}]})
                }
                "resources/read" => json!({"contents": [{"uri": call.params.str("uri")?, "text": name}]}),
                _ => return None,
            };
            Some(result.to_string())
        })
    };
    let mut settings = settings([server("one"), server("two")]);
    settings.endpoints = vec![endpoint("work"), endpoint("home")];
    let gateway = started(settings).await;
    let (work, elsewhere) = anns();
    work.get(&gateway, "tools/call", json!({"name": "two_give"})).await;
    let read = work.get(&gateway, "resources/read", json!({"uri": "x-given:1"})).await;
    assert_eq!(read["contents"][0]["text"], "two");
    for other in &elsewhere {
        let error = other.fails(&gateway, "resources/read", json!({"uri": "x-given:1"})).await;
        assert_eq!(error.symbol(), Symbol::ResourceNotFound);
    }
    gateway.close().await;
}
