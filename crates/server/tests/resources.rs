//! Resources and templates: listing, reading, not finding.

mod common;

use std::time::Duration;

use common::{Client, error_code};
use serde_json::json;
use tidegate_protocol::Revision;
use tidegate_server::{
    CacheHint, Cx, Resource, ResourceContents, ResourceTemplate, Role, Scope, Server, ServerDoor, ToolError,
    Vars,
};

fn door() -> ServerDoor {
    Server::new("s", "1")
        .resource(
            Resource::text("memo://hello", "hello", "Hello, world").title("Hello").audience([Role::User]),
        )
        .resource(
            Resource::blob("memo://bytes", "bytes", "image/png", [1, 2, 3])
                .cache(CacheHint { ttl: Duration::from_secs(60), scope: Scope::Public }),
        )
        .resource(
            Resource::new("memo://broken", "broken")
                .reader(|_cx: Cx| async { Err::<&str, _>(ToolError::from("The disk is full")) }),
        )
        .resource_template(
            ResourceTemplate::new("memo://{id}/text", "memo")
                .mime_type("text/markdown")
                .description("A memo")
                .reader(|vars: Vars, _cx: Cx| async move {
                    Ok(format!("# {}", vars.get("id").unwrap_or_default()))
                }),
        )
        .resource_template(ResourceTemplate::new("memo://{+path}", "anything").reader(
            |vars: Vars, _cx: Cx| async move {
                Ok(vec![
                    ResourceContents::text(vars.uri(), "one").mime_type("text/x"),
                    ResourceContents::text("memo://other", "two"),
                ])
            },
        ))
        .build()
}

#[tokio::test]
async fn listed_in_order_of_registration() {
    let door = door();
    let client = Client::legacy(&door);
    assert_eq!(
        client.request("resources/list", json!({})).await,
        json!({"resources": [
            {
                "uri": "memo://hello", "name": "hello", "title": "Hello", "mimeType": "text/plain",
                "annotations": {"audience": ["user"]}, "size": 12,
            },
            {"uri": "memo://bytes", "name": "bytes", "mimeType": "image/png", "size": 3},
            {"uri": "memo://broken", "name": "broken"},
        ]})
    );
    assert_eq!(
        client.request("resources/templates/list", json!({})).await,
        json!({"resourceTemplates": [
            {"uriTemplate": "memo://{id}/text", "name": "memo", "description": "A memo", "mimeType": "text/markdown"},
            {"uriTemplate": "memo://{+path}", "name": "anything"},
        ]})
    );
}

#[tokio::test]
async fn read_in_both_eras() {
    let door = door();
    insta::assert_snapshot!(
        Client::modern(&door).text("resources/read", r#"{"uri":"memo://hello"}"#).await,
        @r#"{"resultType":"complete","contents":[{"uri":"memo://hello","mimeType":"text/plain","text":"Hello, world"}],"ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}}"#
    );
    insta::assert_snapshot!(
        Client::legacy(&door).text("resources/read", r#"{"uri":"memo://hello"}"#).await,
        @r#"{"contents":[{"uri":"memo://hello","mimeType":"text/plain","text":"Hello, world"}]}"#
    );
    let bytes = Client::modern(&door).request("resources/read", json!({"uri": "memo://bytes"})).await;
    assert_eq!(bytes["contents"][0]["blob"], "AQID");
    assert_eq!((&bytes["ttlMs"], &bytes["cacheScope"]), (&json!(60000), &json!("public")));
}

#[tokio::test]
async fn exact_uris_first_then_templates_in_order() {
    let door = door();
    let client = Client::legacy(&door);
    let read = |uri: &'static str| {
        let client = client.clone();
        async move { client.request("resources/read", json!({"uri": uri})).await["contents"].clone() }
    };
    assert_eq!(
        read("memo://a%20b/text").await,
        json!([{"uri": "memo://a%20b/text", "mimeType": "text/markdown", "text": "# a b"}])
    );
    assert_eq!(
        read("memo://x/y/z").await,
        json!([
            {"uri": "memo://x/y/z", "mimeType": "text/x", "text": "one"},
            {"uri": "memo://other", "text": "two"},
        ])
    );
}

#[tokio::test]
async fn not_found_has_the_code_of_the_revision() {
    let door = door();
    for (revision, code) in [(Revision::V2026_07_28, -32602), (Revision::V2025_11_25, -32002)] {
        let client = Client::modern(&door).revision(revision);
        let result = client.request("resources/read", json!({"uri": "other://x"})).await;
        assert_eq!(error_code(&result), Some(code));
        assert_eq!(result["error"]["data"]["uri"], "other://x");
    }
    let client = Client::modern(&door);
    assert_eq!(error_code(&client.request("resources/read", json!({})).await), Some(-32602));
    let broken = client.request("resources/read", json!({"uri": "memo://broken"})).await;
    let (broken, id) = (&broken["error"], &broken["error"]["data"]["correlationId"]);
    assert_eq!(
        *broken,
        json!({"code": -32603, "message": "The disk is full", "data": {"correlationId": id}})
    );
    assert!(id.is_string(), "the id under which the log has more about it: {broken}");
}

#[test]
fn what_is_wrong_is_said_when_the_server_is_built() {
    let template = |text: &str| ResourceTemplate::new(text, "t").reader(|_: Vars, _cx: Cx| async { Ok("") });
    for (server, sentence) in [
        (Server::new("s", "1").resource(Resource::text("no uri", "x", "")), "is not a URI"),
        (Server::new("s", "1").resource(Resource::new("x:1", "x")), "neither contents nor a reader"),
        (
            Server::new("s", "1")
                .resource(Resource::text("x:1", "x", ""))
                .resource(Resource::text("x:1", "x", "")),
            "already one at that URI",
        ),
        (
            Server::new("s", "1").resource_template(template("x:{unclosed")),
            "resource template \"x:{unclosed\"",
        ),
        (Server::new("s", "1").resource_template(ResourceTemplate::new("x:{a}", "t")), "it has no reader"),
        (
            Server::new("s", "1").resource_template(
                template("x:{a}")
                    .complete("b", |_: tidegate_server::Completing, _cx: Cx| async { Vec::<String>::new() }),
            ),
            "completes \"b\"",
        ),
    ] {
        let error = server.try_build().expect_err(sentence).to_string();
        assert!(error.contains(sentence), "{error:?} lacks {sentence:?}");
    }
}

#[tokio::test]
async fn an_address_that_is_none_is_told_what_is_wrong_with_it() {
    let door = Server::new("s", "1")
        .resource_template(
            ResourceTemplate::new("memo://notes/{id}", "note").reader(|_: Vars, _cx: Cx| async { Ok("") }),
        )
        .build();
    for (uri, why) in [
        ("memo://nothing", "Resource not found: memo://nothing"),
        (
            "nothing",
            "Resource not found: nothing: it is not a URI, because it does not begin with a scheme such as \"file:\"",
        ),
        (
            "memo://a%zz",
            "Resource not found: memo://a%zz: \"%zz\" is not a valid escape; a percent sign is written %25 in a URI",
        ),
        (
            "memo://100%",
            "Resource not found: memo://100%: \"%\" is not a valid escape; a percent sign is written %25 in a URI",
        ),
        ("memo://a b", "Resource not found: memo://a b: ' ' is written %20 in a URI"),
        ("memo://notes/", "Resource not found: memo://notes/: memo://notes/{id} is incomplete so"),
        (
            "memo://notes/a/b",
            "Resource not found: memo://notes/a/b: it does not fit memo://notes/{id}; what stands for a variable has / ? # as %2F %3F %23",
        ),
    ] {
        for (client, code) in [(Client::modern(&door), -32602), (Client::legacy(&door), -32002)] {
            let result = client.request("resources/read", json!({"uri": uri})).await;
            assert_eq!(result["error"]["message"], why);
            assert_eq!((error_code(&result), &result["error"]["data"]["uri"]), (Some(code), &json!(uri)));
        }
    }
    let found = Client::modern(&door).request("resources/read", json!({"uri": "memo://notes/a%2Fb"})).await;
    assert!(found.get("contents").is_some(), "{found}");
}
