//! The attribute macros, seen through the door: what they make is listed, called, filled in and read.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tidegate::protocol::{Limits, Method, Params, Symbol};
use tidegate::{
    Call, Completing, Context, Cx, Door, Error, Json, PromptMessage, Reply, ResourceContents, Revision,
    Server, ServerDoor, Structured, ToolError, Vars, prompt, resource, tool,
};

/// One call, and the result object without what is the same in all of them.
async fn answer(server: &ServerDoor, method: Method, params: Value) -> Result<Value, Error> {
    answer_to(Context::local(), server, method, params).await
}

async fn answer_to(
    from: Context,
    server: &ServerDoor,
    method: Method,
    params: Value,
) -> Result<Value, Error> {
    let params = Params::parse(&Json::from(params), &Limits::default()).expect("good parameters");
    let Ok(reply) = server.answer(Call::new(method, params, from)).await;
    match reply {
        Reply::Complete(json) => {
            let mut result: Value = json.to().expect("good JSON");
            for same in ["resultType", "_meta", "ttlMs", "cacheScope"] {
                result.as_object_mut().expect("an object").remove(same);
            }
            Ok(result)
        }
        Reply::Error(error) => Err(error),
        other => panic!("unexpected: {other:?}"),
    }
}

/// What a tool says, and whether that is a failure.
async fn call(server: &ServerDoor, name: &str, arguments: Value) -> (String, bool) {
    let result =
        answer(server, Method::ToolsCall, json!({"name": name, "arguments": arguments})).await.expect(name);
    let text = result["content"][0]["text"].as_str().unwrap_or_default().to_owned();
    (text, result["isError"] == json!(true))
}

async fn said(server: &ServerDoor, name: &str, arguments: Value) -> String {
    let (text, failed) = call(server, name, arguments).await;
    assert!(!failed, "{text}");
    text
}

async fn refused(server: &ServerDoor, name: &str, arguments: Value) -> String {
    let (text, failed) = call(server, name, arguments).await;
    assert!(failed, "{text}");
    text
}

/// A list as text that does not depend on how maps are ordered.
async fn listed(server: &ServerDoor, method: Method) -> String {
    let mut list = answer(server, method, json!({})).await.expect("a list");
    list.sort_all_objects();
    serde_json::to_string_pretty(&list).expect("JSON")
}

mod tools {
    use super::*;

    /// Adds two numbers.
    ///
    /// Not more than two.
    #[tool(title = "Sum", read_only, idempotent, open_world = false)]
    async fn add(
        /// The first number
        a: f64,
        /// The second number,
        /// one unless given
        #[default = 1.0]
        b: f64,
    ) -> String {
        (a + b).to_string()
    }

    #[tokio::test]
    async fn a_function_is_a_tool() {
        let server = Server::new("test", "1").tool(add()).build();
        insta::assert_snapshot!(listed(&server, Method::ToolsList).await);
        assert_eq!(said(&server, "add", json!({"a": 1, "b": 2.5})).await, "3.5");
        assert_eq!(said(&server, "add", json!({"a": 1})).await, "2");
    }

    #[tokio::test]
    async fn arguments_that_do_not_fit_are_named() {
        let server = Server::new("test", "1").tool(add()).build();
        for (arguments, sentence) in [
            (json!({}), "a is required"),
            (json!({"a": "one"}), "a: \"one\" is not of type \"number\""),
            (json!({"a": 1, "c": 2}), "unknown argument \"c\"; the arguments are \"a\", \"b\""),
        ] {
            let told = refused(&server, "add", arguments).await;
            assert!(told.contains(sentence), "{told:?} lacks {sentence:?}");
        }
    }

    #[derive(serde::Deserialize, schemars::JsonSchema)]
    #[serde(rename_all = "lowercase")]
    enum Order {
        Newest,
        Oldest,
    }

    fn ten() -> u32 {
        10
    }

    /// Every kind of parameter.
    #[tool(name = "search_all", description = "Finds things", header(limit = "Limit"))]
    #[allow(clippy::unused_async)]
    pub(crate) async fn search(
        cx: Cx,
        r#type: String,
        /// Where to look
        #[header = "Region"]
        region: Option<String>,
        #[default(ten())]
        #[schemars(range(min = 1, max = 100))]
        mut limit: u32,
        #[default] offset: u32,
        #[default = "en"] language: String,
        #[default(vec!["a".to_owned()])] tags: Vec<String>,
        #[serde(rename = "sortBy")] order: Option<Order>,
        filter: Option<serde_json::Value>,
    ) -> String {
        assert!(!cx.is_cancelled());
        limit += 1;
        let order = match order {
            None => "any",
            Some(Order::Newest) => "newest",
            Some(Order::Oldest) => "oldest",
        };
        let filter = filter.unwrap_or(Value::Null);
        format!("{type} {region:?} {limit} {offset} {language} {tags:?} {order} {filter}")
    }

    #[tokio::test]
    async fn parameters_of_every_kind() {
        let server = Server::new("test", "1").tool(search()).build();
        insta::assert_snapshot!(listed(&server, Method::ToolsList).await);
        for (arguments, expected) in [
            (json!({"type": "x"}), r#"x None 11 0 en ["a"] any null"#),
            (
                json!({"type": "x", "region": "eu", "limit": 1, "offset": 2, "language": "de", "tags": [],
                       "sortBy": "oldest", "filter": {"k": [1]}}),
                r#"x Some("eu") 2 2 de [] oldest {"k":[1]}"#,
            ),
            (json!({"type": "x", "region": null, "sortBy": "newest"}), r#"x None 11 0 en ["a"] newest null"#),
        ] {
            assert_eq!(said(&server, "search_all", arguments).await, expected);
        }
        assert!(refused(&server, "search_all", json!({"type": "x", "limit": 0})).await.contains("limit"));
        assert!(
            refused(&server, "search_all", json!({"type": "x", "sortBy": "best"})).await.contains("sortBy")
        );
    }

    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Point {
        /// How far to the right
        x: i32,
        y: i32,
    }

    #[derive(serde::Serialize, schemars::JsonSchema)]
    struct Length {
        squared: i32,
    }

    /// Takes a whole struct and returns one
    #[tool]
    fn length(#[args] Point { x, y }: Point) -> Result<Structured<Length>, ToolError> {
        if x > 1000 {
            return Err("x is too far away".into());
        }
        Ok(Structured(Length { squared: x * x + y * y }))
    }

    #[tokio::test]
    async fn whole_structs_and_functions_that_do_not_wait() {
        let server = Server::new("test", "1").tool(length()).build();
        insta::assert_snapshot!(listed(&server, Method::ToolsList).await);
        let params = json!({"name": "length", "arguments": {"x": 3, "y": 4}});
        let result = answer(&server, Method::ToolsCall, params).await.unwrap();
        assert_eq!(result["structuredContent"], json!({"squared": 25}));
        assert!(refused(&server, "length", json!({"x": 3000, "y": 4})).await.contains("x is too far away"));
    }

    #[tool(destructive, timeout = "20ms", alias = "old_slow", alias = "older_slow")]
    async fn slow() {
        tokio::time::sleep(Duration::from_secs(60)).await;
    }

    #[tool(task = "optional", asks_first, timeout = Duration::from_secs(5))]
    async fn background(cx: &Cx) -> &'static str {
        cx.detach().await;
        "done"
    }

    #[tokio::test]
    async fn options_without_arguments() {
        let server = Server::new("test", "1").tool(slow()).tool(background()).build();
        insta::assert_snapshot!(listed(&server, Method::ToolsList).await);
        for name in ["slow", "old_slow", "older_slow"] {
            assert!(refused(&server, name, json!({})).await.contains("did not finish"), "{name}");
        }
        assert!(
            refused(&server, "slow", json!({"x": 1}))
                .await
                .contains("unknown argument \"x\"; there are no arguments")
        );
        assert_eq!(said(&server, "background", json!({})).await, "done");
        let mut from = Context::local();
        from.revision = Revision::V2025_11_25;
        let tools = answer_to(from, &server, Method::ToolsList, json!({})).await.unwrap();
        assert_eq!(tools["tools"][1]["execution"], json!({"taskSupport": "optional"}));
    }

    /// Counts its calls
    #[tool]
    pub fn count(#[state] counter: Arc<AtomicU32>, by: u32) -> String {
        (counter.fetch_add(by, Ordering::Relaxed) + by).to_string()
    }

    #[tokio::test]
    async fn state_is_shared() {
        let counter = Arc::new(AtomicU32::new(40));
        let server = Server::new("test", "1").tool(count(counter.clone())).build();
        assert_eq!(said(&server, "count", json!({"by": 1})).await, "41");
        assert_eq!(said(&server, "count", json!({"by": 1})).await, "42");
        assert_eq!(counter.load(Ordering::Relaxed), 42);
    }
}

mod prompts {
    use super::*;

    async fn people(typed: Completing, _cx: Cx) -> Vec<String> {
        typed.filter(["Ann", "Bob"])
    }

    /// Greets somebody
    #[prompt(title = "Greeting")]
    async fn greet(
        /// Who is greeted
        #[complete = people]
        name: String,
        #[complete = ["formal", "casual"]] style: Option<String>,
        times: Option<u8>,
        #[default = 'x'] mark: char,
    ) -> Vec<PromptMessage> {
        let style = style.unwrap_or_else(|| "plain".into());
        let times = times.unwrap_or(1);
        vec![PromptMessage::user(format!("Greet {name}, {style}, {times} times {mark}"))]
    }

    #[prompt(name = "fail")]
    fn broken(cx: &Cx) -> Result<String, String> {
        Err(format!("cannot, {}", cx.is_cancelled()))
    }

    fn server() -> ServerDoor {
        Server::new("test", "1").prompt(greet()).prompt(broken()).build()
    }

    async fn get(arguments: Value) -> Result<Value, Error> {
        answer(&server(), Method::PromptsGet, json!({"name": "greet", "arguments": arguments})).await
    }

    #[tokio::test]
    async fn a_function_is_a_prompt() {
        insta::assert_snapshot!(listed(&server(), Method::PromptsList).await);
        for (arguments, expected) in [
            (json!({"name": "Ann"}), "Greet Ann, plain, 1 times x"),
            (
                json!({"name": "Ann", "style": "formal", "times": "3", "mark": "!"}),
                "Greet Ann, formal, 3 times !",
            ),
        ] {
            let filled = get(arguments).await.unwrap();
            assert_eq!(
                filled["messages"],
                json!([{"role": "user", "content": {"type": "text", "text": expected}}])
            );
            assert_eq!(filled["description"], "Greets somebody");
        }
    }

    #[tokio::test]
    async fn arguments_that_do_not_fit_are_named() {
        for (arguments, sentence) in [
            (json!({}), "missing required argument: name"),
            (json!({"name": "Ann", "times": "many"}), "argument \"times\": invalid digit"),
            (json!({"name": "Ann", "times": "300"}), "argument \"times\": number too large"),
        ] {
            let error = get(arguments).await.unwrap_err();
            assert_eq!(error.symbol(), Symbol::InvalidParams);
            assert!(error.message().contains(sentence), "{:?} lacks {sentence:?}", error.message());
        }
        let error = answer(&server(), Method::PromptsGet, json!({"name": "fail"})).await.unwrap_err();
        assert_eq!(error.message(), "cannot, false");
    }

    #[tokio::test]
    async fn completions_come_from_functions_and_lists() {
        for (argument, typed, expected) in [
            ("name", "a", json!(["Ann"])),
            ("style", "", json!(["formal", "casual"])),
            ("times", "", json!([])),
        ] {
            let params = json!({
                "ref": {"type": "ref/prompt", "name": "greet"},
                "argument": {"name": argument, "value": typed},
            });
            let result = answer(&server(), Method::Complete, params).await.unwrap();
            assert_eq!(result["completion"]["values"], expected, "{argument}");
        }
    }
}

mod resources {
    use super::*;

    /// What time it is
    #[resource(uri = "clock://now", name = "now", title = "Now", mime_type = "text/plain")]
    async fn now(#[state] time: &'static str) -> String {
        time.into()
    }

    /// A memo by its number
    #[resource(uri = "memo://{id}{?lang,version}", mime_type = "text/markdown")]
    async fn memo(
        #[complete = ["1", "2"]] id: u32,
        lang: Option<String>,
        #[default = 7] version: u8,
    ) -> Result<String, ToolError> {
        if id == 0 {
            return Err("memos start at 1".into());
        }
        Ok(format!("{id} {lang:?} {version}"))
    }

    #[resource(uri = "file:///{+dir}/list{/path*}")]
    fn files(dir: String, path: Vec<String>, vars: Vars, _cx: Cx) -> ResourceContents {
        ResourceContents::text(vars.uri().to_uppercase(), format!("{dir} {path:?}"))
    }

    fn server() -> ServerDoor {
        Server::new("test", "1")
            .resource(now("noon"))
            .resource_template(memo())
            .resource_template(files())
            .build()
    }

    async fn read(uri: &str) -> Result<Value, Error> {
        answer(&server(), Method::ResourcesRead, json!({"uri": uri})).await
    }

    #[tokio::test]
    async fn functions_are_resources_and_templates() {
        insta::assert_snapshot!(listed(&server(), Method::ResourcesList).await);
        insta::assert_snapshot!(listed(&server(), Method::ResourcesTemplatesList).await);
        for (uri, expected) in [
            ("clock://now", json!({"uri": "clock://now", "mimeType": "text/plain", "text": "noon"})),
            ("memo://3", json!({"uri": "memo://3", "mimeType": "text/markdown", "text": "3 None 7"})),
            (
                "memo://3?lang=de&version=8",
                json!({"uri": "memo://3?lang=de&version=8", "mimeType": "text/markdown", "text": "3 Some(\"de\") 8"}),
            ),
            ("file:///a/b/list/c/d", json!({"uri": "FILE:///A/B/LIST/C/D", "text": "a/b [\"c\", \"d\"]"})),
        ] {
            assert_eq!(read(uri).await.unwrap()["contents"], json!([expected]), "{uri}");
        }
    }

    #[tokio::test]
    async fn a_uri_that_does_not_read_is_the_uri_of_nothing() {
        for uri in ["memo://three", "memo://3?version=300", "memo://"] {
            assert_eq!(read(uri).await.unwrap_err().symbol(), Symbol::ResourceNotFound, "{uri}");
        }
        assert_eq!(read("memo://0").await.unwrap_err().message(), "memos start at 1");
    }

    #[tokio::test]
    async fn variables_are_completed() {
        let params = json!({
            "ref": {"type": "ref/resource", "uri": "memo://{id}{?lang,version}"},
            "argument": {"name": "id", "value": ""},
        });
        let result = answer(&server(), Method::Complete, params).await.unwrap();
        assert_eq!(result["completion"]["values"], json!(["1", "2"]));
    }
}

#[derive(serde::Serialize, tidegate::schemars::JsonSchema)]
struct Forecast {
    /// Degrees
    warmest: i32,
}

/// A type of the author's own
#[tool]
async fn forecast() -> Forecast {
    Forecast { warmest: 21 }
}

/// The same, or a failure
#[tool]
fn forecast_or_not(cx: &Cx, fails: bool) -> Result<Forecast, ToolError> {
    let _ = cx;
    if fails { Err("no forecast".into()) } else { Ok(Forecast { warmest: 3 }) }
}

type Said = Result<String, ToolError>;

/// What is a result under another name stays one
#[tool]
async fn said_under_another_name() -> Said {
    Ok("plain".to_owned())
}

#[tokio::test]
async fn any_type_that_can_be_described_is_a_result() {
    let wrapped = tidegate::Tool::new("wrapped")
        .handler_structured(|_: (), _: Cx| async { Ok::<_, ToolError>(Forecast { warmest: 5 }) });
    let server = Server::new("weather", "1")
        .tool(forecast())
        .tool(forecast_or_not())
        .tool(said_under_another_name())
        .tool(wrapped)
        .build();
    let listed = answer(&server, Method::ToolsList, json!({})).await.unwrap();
    let schema = json!({"type": "object", "required": ["warmest"],
        "properties": {"warmest": {"type": "integer", "description": "Degrees"}}});
    let schemas: Vec<Value> = (0..4).map(|at| listed["tools"][at]["outputSchema"].clone()).collect();
    assert_eq!(schemas, [schema.clone(), schema.clone(), Value::Null, schema]);
    let result = async |name: &str, arguments: Value| {
        answer(&server, Method::ToolsCall, json!({"name": name, "arguments": arguments})).await.unwrap()
    };
    for (name, arguments, warmest) in [
        ("forecast", json!({}), 21),
        ("forecast_or_not", json!({"fails": false}), 3),
        ("wrapped", json!({}), 5),
    ] {
        let text = json!([{"type": "text", "text": format!("{{\"warmest\":{warmest}}}")}]);
        let wanted = json!({"content": text, "structuredContent": {"warmest": warmest}});
        assert_eq!(result(name, arguments).await, wanted);
    }
    assert_eq!(refused(&server, "forecast_or_not", json!({"fails": true})).await, "no forecast");
    assert_eq!(said(&server, "said_under_another_name", json!({})).await, "plain");
}
