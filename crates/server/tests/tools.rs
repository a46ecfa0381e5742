//! Tools: schemas, arguments, results, errors.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::{Client, error_code, text_of};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tidegate_protocol::{Capability, Profile, Revision, Symbol};
use tidegate_server::{
    Content, Cx, Icon, ResourceContents, ResourceLink, Server, ServerDoor, Structured, Tool, ToolError,
    ToolResult,
};

#[derive(Deserialize, JsonSchema)]
struct Add {
    /// The first number.
    a: f64,
    /// The second number.
    b: f64,
}

#[derive(Serialize, JsonSchema)]
struct Sum {
    total: f64,
}

#[derive(Deserialize, JsonSchema)]
struct Echo {
    text: String,
}

fn add() -> Tool {
    Tool::new("add").title("Add").description("Adds two numbers").read_only().handler(
        |args: Add, _cx: Cx| async move { Ok::<_, ToolError>(Structured(Sum { total: args.a + args.b })) },
    )
}

fn one(tool: Tool) -> ServerDoor {
    Server::new("calc", "1.0.0").tool(tool).build()
}

#[tokio::test]
async fn a_typed_tool_in_both_eras() {
    let door = one(add());
    let call = r#"{"name":"add","arguments":{"a":1,"b":2}}"#;
    insta::assert_snapshot!(
        Client::modern(&door).text("tools/call", call).await,
        @r#"{"resultType":"complete","content":[{"type":"text","text":"{\"total\":3.0}"}],"structuredContent":{"total":3.0},"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"calc","version":"1.0.0"}}}"#
    );
    insta::assert_snapshot!(
        Client::legacy(&door).text("tools/call", call).await,
        @r#"{"content":[{"type":"text","text":"{\"total\":3.0}"}],"structuredContent":{"total":3.0}}"#
    );
}

#[tokio::test]
async fn the_list_in_both_eras() {
    let door = one(add().icon(Icon::new("https://x/i.png")).meta("x/y", 1).idempotent());
    let definition = json!({
        "name": "add", "title": "Add", "description": "Adds two numbers",
        "icons": [{"src": "https://x/i.png"}],
        "inputSchema": {
            "type": "object",
            "properties": {
                "a": {"type": "number", "description": "The first number."},
                "b": {"type": "number", "description": "The second number."},
            },
            "required": ["a", "b"],
        },
        "outputSchema": {"type": "object", "properties": {"total": {"type": "number"}}, "required": ["total"]},
        "annotations": {"readOnlyHint": true, "idempotentHint": true},
        "_meta": {"x/y": 1},
    });
    assert_eq!(
        Client::modern(&door).request("tools/list", json!({})).await,
        json!({
            "resultType": "complete", "tools": [definition], "ttlMs": 0, "cacheScope": "private",
            "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "calc", "version": "1.0.0"}},
        })
    );
    assert_eq!(Client::legacy(&door).request("tools/list", json!({})).await, json!({"tools": [definition]}));
}

#[tokio::test]
async fn bad_arguments_are_a_result_that_names_field_and_reason() {
    let door = one(add());
    let result = Client::modern(&door).tool("add", json!({"a": "x"})).await;
    assert_eq!(result["isError"], true);
    assert_eq!(
        text_of(&result),
        Some(r#"Invalid arguments for add: a: "x" is not of type "number"; b is required"#)
    );
    let machine = &result["_meta"]["dev.tidegate/error"];
    assert_eq!(machine["symbol"], "VALIDATION_ERROR");
    assert_eq!(
        machine["data"],
        json!([{"field": "a", "reason": "\"x\" is not of type \"number\""}, {"field": "b", "reason": "is required"}])
    );
    assert!(result.get("structuredContent").is_none(), "the tool has an output schema that this would break");
    for revision in Revision::ALL {
        let result = Client::modern(&door).revision(revision).tool("add", json!({})).await;
        assert_eq!(result["isError"], true, "{revision}");
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Page {
    first_item: i64,
    sizes: Option<Vec<Size>>,
    extra: Option<serde_json::Map<String, Value>>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Size {
    item_count: u32,
}

fn page() -> Tool {
    Tool::new("page").handler(|args: Page, _cx: Cx| async move {
        let sizes: Vec<u32> = args.sizes.unwrap_or_default().iter().map(|size| size.item_count).collect();
        format!("{} {sizes:?} {}", args.first_item, Value::from(args.extra.unwrap_or_default()))
    })
}

#[tokio::test]
async fn whole_numbers_may_be_written_with_a_point() {
    let door = one(page());
    let client = Client::modern(&door);
    let text = client.tool_text("page", json!({"firstItem": 1.0, "sizes": [{"itemCount": 2e3}]})).await;
    assert_eq!(text, "1 [2000] {}");
    let text = client.tool_text("page", json!({"firstItem": -1794829265457.0})).await;
    assert_eq!(text, "-1794829265457 [] {}");
    // What needs no help stays as it came.
    let text = client.tool_text("page", json!({"firstItem": 1, "extra": {"x": 1.0}})).await;
    assert_eq!(text, r#"1 [] {"x":1.0}"#);
}

#[tokio::test]
async fn numbers_that_do_not_fit_are_told_by_field_and_range() {
    let door = one(page());
    let client = Client::modern(&door);
    let range = "must be a whole number from -9223372036854775808 to 9223372036854775807";
    for number in ["1e300", "1180591620717411303424", "-1e19"] {
        let call = format!(r#"{{"name":"page","arguments":{{"firstItem":{number}}}}}"#);
        let result: Value = serde_json::from_str(&client.text("tools/call", &call).await).unwrap();
        assert_eq!(result["isError"], true);
        let told = format!("Invalid arguments for page: firstItem: {range}");
        assert_eq!(text_of(&result), Some(told.as_str()), "{number}");
        let machine = &result["_meta"]["dev.tidegate/error"];
        assert_eq!(machine["symbol"], "VALIDATION_ERROR");
        assert_eq!(machine["data"], json!([{"field": "firstItem", "reason": range}]));
    }
    let text =
        client.tool_text("page", json!({"firstItem": 1, "sizes": [{"itemCount": 4294967296_u64}]})).await;
    assert_eq!(
        text,
        "Invalid arguments for page: sizes[0].itemCount: must be a whole number from 0 to 4294967295"
    );
}

#[tokio::test]
async fn names_in_any_spelling_are_understood_where_a_tool_says_so() {
    let otherwise = json!({"first_item": 1.0, "sizes": [{"item_count": 2}], "extra": {"first_item": 3}});
    let door = one(page());
    let refused = Client::modern(&door).tool_text("page", otherwise.clone()).await;
    assert!(refused.contains("firstItem is required"), "{refused}");
    let door = one(page().any_case());
    let client = Client::modern(&door);
    assert_eq!(client.tool_text("page", otherwise).await, r#"1 [2] {"first_item":3}"#);
    assert_eq!(client.tool_text("page", json!({"firstItem": 1, "first_item": 2})).await, "1 [] {}");
    let wrong = client.tool_text("page", json!({"first_item": 1e300})).await;
    assert!(wrong.contains("firstItem: must be a whole number"), "{wrong}");
    let list = client.request("tools/list", json!({})).await;
    let names: Vec<_> = list["tools"][0]["inputSchema"]["properties"].as_object().unwrap().keys().collect();
    assert_eq!(names.len(), 3, "one spelling is listed: {names:?}");
}

#[tokio::test]
async fn bad_params_are_protocol_errors() {
    let ran = Arc::new(AtomicBool::new(false));
    let flag = ran.clone();
    let door = one(Tool::raw("any", json!({"type": "object"})).handler_raw(move |_: Value, _cx: Cx| {
        flag.store(true, Ordering::Relaxed);
        async {}
    }));
    let client = Client::modern(&door);
    for params in [
        r#"{}"#,
        r#"{"name":7}"#,
        r#"{"name":"any","arguments":[]}"#,
        r#"{"name":"any","arguments":null}"#,
        r#"{"name":"any","arguments":{"a":{"b":1,"b":2}}}"#,
        r#"{"name":"any","arguments":{"a":"\ud800"}}"#,
    ] {
        let result: Value = serde_json::from_str(&client.text("tools/call", params).await).unwrap();
        assert_eq!(error_code(&result), Some(-32602), "{params}: {result}");
    }
    assert!(!ran.load(Ordering::Relaxed));
    assert_eq!(client.tool("any", json!({})).await["content"], json!([]));
}

#[tokio::test]
async fn unknown_tools_are_answered_with_the_nearest_names_one_may_see() {
    let plain = |name: &str| Tool::new(name).handler(|(), _cx: Cx| async {});
    let mut server =
        Server::new("s", "1").tool(plain("secret_search").visible(|p| p.subject.as_deref() == Some("ann")));
    for i in 0..30 {
        server = server.tool(plain(&format!("tool_{i}")));
    }
    let door = server.tool(plain("species_search").alias("gbif_species_search")).build();
    let client = Client::modern(&door);
    let result = client.tool("species_serch", json!({})).await;
    assert_eq!(result["error"]["code"], -32602);
    assert_eq!(result["error"]["message"], "Unknown tool: species_serch");
    let names = result["error"]["data"]["availableTools"].as_array().unwrap();
    assert_eq!((names.len(), &names[0]), (20, &json!("species_search")));
    assert!(!names.contains(&json!("secret_search")));
    assert_eq!(result["error"]["data"]["symbol"], "TOOL_NOT_FOUND");

    let hidden = client.tool("secret_search", json!({})).await;
    assert_eq!(hidden["error"]["message"], "Unknown tool: secret_search");
    let listed = client.request("tools/list", json!({})).await;
    assert_eq!(listed["tools"].as_array().unwrap().len(), 31);
    let ann = client.clone().named("ann");
    assert_eq!(ann.request("tools/list", json!({})).await["tools"].as_array().unwrap().len(), 32);
    assert!(ann.tool("secret_search", json!({})).await.get("error").is_none());

    assert!(
        client.tool("gbif_species_search", json!({})).await.get("error").is_none(),
        "an alias can be called"
    );
    assert!(!listed.to_string().contains("gbif_species_search"), "and is not listed");
}

#[tokio::test]
async fn profiles_speak_as_their_clients_expect() {
    let server = |profile| {
        let tool = Tool::new("t").handler(|(), _cx: Cx| async {
            Err::<(), _>(ToolError::protocol(tidegate_protocol::Error::new(
                Symbol::TenantNotFound,
                "No tenant",
            )))
        });
        Server::new("s", "1").tool(tool).error_profile(profile).build()
    };
    let gbif = Client::modern(&server(Profile::Gbif)).tool("x", json!({})).await;
    assert_eq!((text_of(&gbif), &gbif["isError"]), (Some("Unknown tool: x"), &json!(true)));
    assert_eq!(gbif["structuredContent"]["code"], -32000);
    assert_eq!(gbif["structuredContent"]["data"]["availableTools"], json!(["t"]));
    let percolate = Client::modern(&server(Profile::Percolate)).tool("t", json!({})).await;
    assert_eq!(percolate["error"]["code"], -32602, "modern clients find the number in the data");
    let data = &percolate["error"]["data"];
    assert_eq!((&data["originalCode"], &data["symbol"]), (&json!(-32000), &json!("TENANT_NOT_FOUND")));
    let percolate = Client::legacy(&server(Profile::Percolate)).tool("t", json!({})).await;
    assert_eq!(percolate["error"]["code"], -32000);
    let strict = Client::modern(&server(Profile::Strict)).tool("t", json!({})).await;
    assert_eq!(strict["error"]["code"], -32602);
}

#[tokio::test]
async fn without_arguments() {
    let door = one(Tool::new("now").handler(|(), _cx: Cx| async { "noon" }));
    let client = Client::modern(&door);
    assert_eq!(text_of(&client.request("tools/call", json!({"name": "now"})).await), Some("noon"));
    assert_eq!(client.tool_text("now", json!({})).await, "noon");
    let refused = client.tool("now", json!({"x": 1})).await;
    assert_eq!(
        text_of(&refused),
        Some("Invalid arguments for now: unknown argument \"x\"; there are no arguments")
    );
    let schema = &client.request("tools/list", json!({})).await["tools"][0]["inputSchema"];
    assert_eq!(*schema, json!({"type": "object", "properties": {}, "additionalProperties": false}));
}

#[tokio::test]
async fn unknown_arguments_are_named_with_the_nearest_and_some_are_ignored() {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    #[serde(rename_all = "camelCase", deny_unknown_fields)]
    struct Look {
        entity_name: String,
    }
    let tool = Tool::new("look").any_case().ignores("user_id").ignores("entity_name");
    let door = one(tool.handler(|args: Look, _cx: Cx| async move { args.entity_name }));
    let client = Client::modern(&door);
    for (arguments, said) in [
        (json!({"entity_name": "Ann", "userId": 5, "user_id": null}), "Ann"),
        (
            json!({"entityName": "Ann", "name": "Ann"}),
            "Invalid arguments for look: unknown argument \"name\"; did you mean \"entityName\"?",
        ),
        (
            json!({"entityName": "Ann", "other": 1}),
            "Invalid arguments for look: unknown argument \"other\"; the arguments are \"entityName\"",
        ),
    ] {
        assert_eq!(text_of(&client.tool("look", arguments).await), Some(said));
    }
    let schema = &client.request("tools/list", json!({})).await["tools"][0]["inputSchema"];
    assert_eq!(schema["properties"].as_object().unwrap().len(), 1, "{schema}");
}

#[tokio::test]
async fn everything_a_tool_can_return() {
    let door = Server::new("s", "1")
        .tool(Tool::new("unit").handler(|(), _cx: Cx| async {}))
        .tool(Tool::new("str").handler(|(), _cx: Cx| async { "a" }))
        .tool(Tool::new("string").handler(|args: Echo, _cx: Cx| async move { args.text }))
        .tool(Tool::new("content").handler(|(), _cx: Cx| async { Content::image("AAEC", "image/png") }))
        .tool(Tool::new("contents").handler(|(), _cx: Cx| async {
            vec![
                Content::link(ResourceLink::new("x:1", "one")),
                Content::resource(ResourceContents::text("x:2", "two")),
                Content::audio("AA==", "audio/wav"),
            ]
        }))
        .tool(Tool::new("result").handler(|(), _cx: Cx| async {
            ToolResult::text("t").structured(json!([1])).meta("k", "v").with_error(true)
        }))
        .tool(Tool::new("list").handler(|(), _cx: Cx| async { Structured(vec![1, 2]) }))
        .build();
    let client = Client::legacy(&door);
    for (tool, arguments, want) in [
        ("unit", json!({}), json!({"content": []})),
        ("str", json!({}), json!({"content": [{"type": "text", "text": "a"}]})),
        ("string", json!({"text": "q\"\n"}), json!({"content": [{"type": "text", "text": "q\"\n"}]})),
        (
            "content",
            json!({}),
            json!({"content": [{"type": "image", "data": "AAEC", "mimeType": "image/png"}]}),
        ),
        (
            "contents",
            json!({}),
            json!({"content": [
                {"type": "resource_link", "uri": "x:1", "name": "one"},
                {"type": "resource", "resource": {"uri": "x:2", "text": "two"}},
                {"type": "audio", "data": "AA==", "mimeType": "audio/wav"},
            ]}),
        ),
        (
            "result",
            json!({}),
            json!({
                "content": [{"type": "text", "text": "t"}], "structuredContent": [1], "isError": true, "_meta": {"k": "v"},
            }),
        ),
        (
            "list",
            json!({}),
            json!({"content": [{"type": "text", "text": "[1,2]"}], "structuredContent": [1, 2]}),
        ),
    ] {
        assert_eq!(client.tool(tool, arguments).await, want, "{tool}");
    }
}

#[tokio::test]
async fn untyped_arguments_are_an_object_all_the_same() {
    let door = one(Tool::new("any").handler(|args: Value, _cx: Cx| async move { args.to_string() }));
    let client = Client::modern(&door);
    assert_eq!(
        client.request("tools/list", json!({})).await["tools"][0]["inputSchema"],
        json!({"type": "object", "properties": {}})
    );
    assert_eq!(client.tool_text("any", json!({"x": [1]})).await, r#"{"x":[1]}"#);
}

#[tokio::test]
async fn failures_are_results_that_the_model_can_read() {
    let door = Server::new("s", "1")
        .tool(Tool::new("plain").handler(|(), _cx: Cx| async { Err::<(), _>("No such city") }))
        .tool(Tool::new("coded").handler(|(), _cx: Cx| async {
            Err::<(), _>(ToolError::coded("NOT_FOUND", "No such node", Some(json!({"id": 1}))))
        }))
        .tool(Tool::new("hidden").handler(|(), _cx: Cx| async {
            let inner = std::io::Error::other("password=hunter2");
            Err::<(), _>(ToolError::from_error(inner))
        }))
        .tool(Tool::new("limited").handler(|(), _cx: Cx| async {
            Err::<(), _>(ToolError::new(Symbol::RateLimited, "Try again in 5 s"))
        }))
        .tool(Tool::new("refused").handler(|(), _cx: Cx| async {
            Err::<(), _>(ToolError::protocol(tidegate_protocol::Error::new(Symbol::Internal, "broken")))
        }))
        .tool(Tool::new("needs").handler(|(), cx: Cx| async move { cx.require(Capability::Sampling) }))
        .error_profile(Profile::Gbif)
        .build();
    let client = Client::modern(&door);

    let plain = client.tool("plain", json!({})).await;
    assert_eq!((text_of(&plain), &plain["isError"]), (Some("No such city"), &json!(true)));
    assert_eq!(plain["structuredContent"]["symbol"], "TOOL_EXECUTION_ERROR");
    assert_eq!(plain["structuredContent"]["code"], -32001, "the number of the profile");
    assert_eq!(plain["structuredContent"]["retryable"], false);
    assert_eq!(plain["structuredContent"], plain["_meta"]["dev.tidegate/error"]);

    assert_eq!(client.tool_text("coded", json!({})).await, r#"NOT_FOUND: No such node ({"id":1})"#);
    let hidden = client.tool("hidden", json!({})).await;
    assert_eq!(text_of(&hidden), Some("Operation failed"));
    assert!(!hidden.to_string().contains("hunter2"));
    assert_eq!(client.tool("limited", json!({})).await["structuredContent"]["retryable"], true);
    let refused = &client.tool("refused", json!({})).await["error"];
    assert_eq!((&refused["code"], &refused["message"]), (&json!(-32603), &json!("broken")));
    assert!(refused["data"]["correlationId"].is_string(), "{refused}");
    let needs = client.tool("needs", json!({})).await;
    assert_eq!(needs["error"]["code"], -32021);
    assert_eq!(needs["error"]["data"]["requiredCapabilities"], json!({"sampling": {}}));
}

#[tokio::test]
async fn a_result_that_breaks_its_schema_is_an_internal_error() {
    let door = one(Tool::new("liar")
        .output_schema(json!({"type": "object", "required": ["x"]}))
        .handler(|(), _cx: Cx| async { ToolResult::text("t").structured(json!({"secret": 1})) }));
    let result = Client::modern(&door).tool("liar", json!({})).await;
    let id = &result["error"]["data"]["correlationId"];
    let told = json!({"code": -32603, "message": "Internal error", "data": {"correlationId": id}});
    assert_eq!(result["error"], told);
}

#[tokio::test]
async fn a_panic_is_that_callers_error_and_nothing_else() {
    let door = Server::new("s", "1")
        .tool(Tool::new("boom").handler(|(), _cx: Cx| async {
            if true {
                panic!("boom")
            }
        }))
        .tool(Tool::new("fine").handler(|(), _cx: Cx| async { "fine" }))
        .build();
    let client = Client::modern(&door);
    assert_eq!(client.tool("boom", json!({})).await["error"]["code"], -32603);
    assert_eq!(client.tool_text("fine", json!({})).await, "fine");
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_takes_too_long_is_stopped() {
    let door = one(Tool::new("slow").timeout(Duration::from_secs(2)).handler(|(), _cx: Cx| async {
        tokio::time::sleep(Duration::from_secs(30)).await;
    }));
    let before = tokio::time::Instant::now();
    let result = Client::modern(&door).tool("slow", json!({})).await;
    assert_eq!(before.elapsed().as_secs(), 2);
    assert_eq!(text_of(&result), Some("slow did not finish within 2.0 s and was stopped"));
    assert_eq!(result["structuredContent"]["symbol"], "TIMEOUT_ERROR");
}

#[tokio::test(start_paused = true)]
async fn cancelling_stops_the_work() {
    struct Stopped(Arc<AtomicBool>);
    impl Drop for Stopped {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let stopped = Arc::new(AtomicBool::new(false));
    let flag = stopped.clone();
    let door = one(Tool::new("slow").handler(move |(), _cx: Cx| {
        let guard = Stopped(flag.clone());
        async move {
            tokio::time::sleep(Duration::from_secs(30)).await;
            drop(guard);
        }
    }));
    let mut client = Client::modern(&door);
    let token = client.context().cancel.clone();
    let call = tokio::spawn(async move { client.tool("slow", json!({})).await });
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!stopped.load(Ordering::Relaxed));
    token.cancel();
    call.await.unwrap();
    assert!(stopped.load(Ordering::Relaxed));
}

#[derive(Deserialize, JsonSchema)]
struct Regional {
    #[schemars(extend("x-mcp-header" = "Region"))]
    region: String,
}

#[tokio::test]
async fn mirrored_headers_are_checked_where_there_are_headers() {
    let door = one(Tool::new("query").handler(|args: Regional, _cx: Cx| async move { args.region }));
    let client = Client::modern(&door);
    assert_eq!(client.tool_text("query", json!({"region": "eu"})).await, "eu", "no transport with headers");
    let agreeing = client.clone().headers(&[("mcp-param-region", "eu")]);
    assert_eq!(agreeing.tool_text("query", json!({"region": "eu"})).await, "eu");
    for headers in [&[][..], &[("mcp-param-region", "us")]] {
        let refused = client.clone().headers(headers).tool("query", json!({"region": "eu"})).await;
        assert_eq!(refused["error"]["code"], -32020, "{headers:?}");
    }
    let listed = client.request("tools/list", json!({})).await;
    assert_eq!(listed["tools"][0]["inputSchema"]["properties"]["region"]["x-mcp-header"], "Region");
}

#[test]
fn what_is_wrong_with_a_tool_is_said_when_the_server_is_built() {
    let handler = |tool: Tool| tool.handler_raw(|_: Value, _cx: Cx| async {});
    let raw = |schema: Value| handler(Tool::raw("t", schema));
    let plain = |name: &str| Tool::new(name).handler(|(), _cx: Cx| async {});
    for (tools, sentence) in [
        (vec![plain("a"), plain("a")], "tool \"a\": there is already a tool named \"a\""),
        (vec![plain("a"), plain("b").alias("a")], "tool \"b\": there is already a tool named \"a\""),
        (vec![plain("a b")], "tool \"a b\": a tool's name"),
        (vec![plain("")], "tool \"\": a tool's name"),
        (vec![Tool::new("a")], "tool \"a\": it has no handler"),
        (vec![raw(json!({"type": "string"}))], "must be of type \"object\""),
        (vec![raw(json!({"type": "object", "properties": 7}))], "tool \"t\": input: the schema is not valid"),
        (
            vec![raw(json!({"$schema": "https://x/y", "type": "object"}))],
            "dialect \"https://x/y\" is not supported",
        ),
        (
            vec![raw(
                json!({"type": "object", "properties": {"p": {"type": "number", "x-mcp-header": "P"}}}),
            )],
            "property \"p\": x-mcp-header needs type",
        ),
        (
            vec![handler(Tool::raw("t", json!({"type": "object"})).output_schema(json!({"type": 7})))],
            "output: ",
        ),
    ] {
        let server = tools.into_iter().fold(Server::new("s", "1"), Server::tool);
        let error = server.try_build().expect_err(sentence).to_string();
        assert!(error.contains(sentence), "{error:?} lacks {sentence:?}");
    }
}

#[tokio::test]
async fn raw_schemas_reach_the_client_as_they_were_written() {
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"address": {"$anchor": "addressDef", "type": "object", "properties": {"city": {"type": "string"}}}},
        "properties": {"address": {"$ref": "#/$defs/address"}, "phone": {"type": "string"}},
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["address"]}]}],
        "if": {"required": ["phone"]}, "then": {"required": ["phone"]}, "else": {"required": ["address"]},
        "additionalProperties": false,
    });
    let door =
        one(Tool::raw("t", schema.clone())
            .handler_raw(|args: Value, _cx: Cx| async move { args.to_string() }));
    let client = Client::modern(&door);
    assert_eq!(client.request("tools/list", json!({})).await["tools"][0]["inputSchema"], schema);
    assert_eq!(client.tool_text("t", json!({"phone": "1"})).await, r#"{"phone":"1"}"#);
    assert_eq!(client.tool("t", json!({})).await["isError"], true);
    assert_eq!(
        client.tool("t", json!({"address": {"city": 7}})).await["isError"],
        true,
        "references are followed"
    );
}
