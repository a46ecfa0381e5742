//! Tool search from end to end: what is listed, what is found, and that a call through `call_tool` is the call itself.

#[path = "gateway/rig.rs"]
#[allow(dead_code)] // each test program uses its own part
mod rig;

use serde_json::{Map, Value, json};
use tidegate_client::{Client, ElicitAnswer, Handlers};
use tidegate_config::{Patterns, ToolMode};
use tidegate_edge::Eras;
use tidegate_gateway::{Gateway, ServerSettings, Settings};
use tidegate_protocol::{ClientCapabilities, Json, Method};
use tidegate_server::{Cx, Elicit, Server, Tool, ToolError, schemars};
use tidegate_service::Reply;

use rig::*;

fn searching(servers: impl IntoIterator<Item = ServerSettings>, favourites: &[&str]) -> Settings {
    let mut settings = settings(servers);
    settings.tools.mode = ToolMode::Search;
    settings.tools.favourites = Patterns::new(favourites.iter().copied()).unwrap();
    settings
}

fn described(name: &str, description: &str) -> Tool {
    let text = format!("{name} was called");
    Tool::new(name).description(description).handler(move |_: (), _: Cx| std::future::ready(text.clone()))
}

fn forge() -> Server {
    Server::new("forge", "1")
        .tool(described("create_issue", "Opens a new issue"))
        .tool(described("list_issues", "Lists the issues of a repository"))
        .tool(described("merge", "Lands a pull request"))
}

fn clock() -> Server {
    Server::new("clock", "1").tool(described("now", "Tells the time"))
}

async fn search(caller: &Caller, gateway: &Gateway, arguments: Value) -> Value {
    caller.get(gateway, "tools/call", json!({"name": "search_tools", "arguments": arguments})).await
}

fn names(result: &Value) -> Vec<String> {
    keys(&result["structuredContent"])
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().expect("a text")
}

#[tokio::test]
async fn the_list_has_the_own_tools_and_favourites_and_everything_can_be_called() {
    let gateway =
        started(searching([local("forge", forge()), local("clock", clock())], &["clock_*", "*_merge"])).await;
    for caller in [modern(), legacy()] {
        let listed = caller.list(&gateway, "tools/list").await;
        assert_eq!(listed, ["search_tools", "call_tool", "forge_merge", "clock_now"]);
        assert_eq!(
            caller.call(&gateway, "forge_create_issue").await,
            ("create_issue was called".to_owned(), false)
        );
        let through = json!({"name": "call_tool", "arguments": {"name": "forge_create_issue"}});
        let result = caller.get(&gateway, "tools/call", through).await;
        assert_eq!(text(&result), "create_issue was called");
        let batch = json!({"calls": [{"name": "call_tool", "arguments": {"name": "clock_now"}}]});
        let result = caller.get(&gateway, "tools/call_batch", batch).await;
        assert_eq!(text(&result["results"][0]["result"]), "now was called");
    }
}

#[tokio::test]
async fn what_is_found_is_told_to_models_and_to_programs() {
    let servers = || [local("forge", forge()), local("clock", clock())];
    let (gateway, open) = (started(searching(servers(), &[])).await, gateway(servers()).await);
    for caller in [modern(), legacy()] {
        let result = search(&caller, &gateway, json!({"query": "creating issues"})).await;
        assert_eq!(names(&result), ["forge_create_issue", "forge_list_issues"]);
        assert_eq!(result["structuredContent"]["total"], 2);
        assert_eq!(result.get("resultType").is_some(), caller.0.revision.is_modern());
        let said = text(&result);
        for part in
            ["## forge_create_issue", "Opens a new issue", "Server: forge", "Input schema: {\"", "call_tool"]
        {
            assert!(said.contains(part), "{part} is missing in {said}");
        }
        // To the byte as it would be listed.
        let Reply::Complete(listed) = caller.ask(&open, "tools/list", json!({})).await else { panic!() };
        let query = json!({"name": "search_tools", "arguments": {"query": "land a request"}});
        let Reply::Complete(found) = caller.ask(&gateway, "tools/call", query).await else { panic!() };
        let whole = json_of(&listed, "tools")
            .into_iter()
            .find(|tool| tool.as_str().contains("\"forge_merge\""))
            .unwrap();
        assert!(
            found.as_str().contains(&format!("\"structuredContent\":{{\"tools\":[{whole}],\"total\":1}}")),
            "{found}"
        );
    }
}

fn json_of(list: &Json, member: &str) -> Vec<Json> {
    tidegate_protocol::Object::of(list).unwrap().json(member).unwrap().elements().unwrap()
}

#[tokio::test]
async fn looking_around() {
    let gateway = started(searching([local("forge", forge()), local("clock", clock())], &[])).await;
    let caller = modern();
    let result = search(&caller, &gateway, json!({"query": ""})).await;
    let servers = json!([{"name": "forge", "tools": 3}, {"name": "clock", "tools": 1}]);
    assert_eq!(result["structuredContent"], json!({"tools": [], "total": 4, "servers": servers}));
    assert!(text(&result).contains("- forge: 3 tools\n- clock: 1 tool"), "{}", text(&result));

    let result = search(&caller, &gateway, json!({"query": "", "server": "forge", "limit": 2})).await;
    assert_eq!(names(&result), ["forge_create_issue", "forge_list_issues"]);
    assert_eq!(result["structuredContent"]["total"], 3);
    let result = search(&caller, &gateway, json!({"query": "issue", "server": "clock"})).await;
    assert_eq!(result["structuredContent"], json!({"tools": [], "total": 0}));
    assert!(text(&result).contains("No tools that match \"issue\""), "{}", text(&result));

    for (arguments, want) in [
        (
            json!({"query": "x", "server": "nobody"}),
            "no server is named \"nobody\"; the servers are forge, clock",
        ),
        (json!({"query": "x", "limit": 0}), "\"limit\" must be an integer from 1 to 50"),
        (json!({"query": 7}), "\"query\" must be a string"),
    ] {
        let result = search(&caller, &gateway, arguments).await;
        assert_eq!(result["isError"], true);
        assert!(text(&result).contains(want), "{}", text(&result));
    }
}

#[tokio::test]
async fn results_fit_the_output_schema_for_clients_of_both_eras() {
    let gateway = started(searching([local("forge", forge())], &[])).await;
    for eras in [Eras::Modern, Eras::Legacy] {
        let (address, _stop) = serve(gateway.clone(), eras, ([127, 0, 0, 1], 0).into()).await;
        let client = Client::connect(format!("http://{address}/mcp").as_str()).await.unwrap();
        let tools = client.tools().await.unwrap();
        assert_eq!(tools.iter().map(|tool| tool.name()).collect::<Vec<_>>(), ["search_tools", "call_tool"]);
        assert!(tools[0].is_read_only() && !tools[1].is_read_only());
        for query in ["issue", "", "nothing of the kind"] {
            let result =
                client.call("search_tools", json!({"query": query})).validate_output().await.unwrap();
            assert!(!result.is_error(), "{query}: {}", result.json());
            assert!(result.structured().is_some_and(|found| found["total"].is_u64()), "{}", result.json());
        }
        client.close().await;
    }
}

#[tokio::test]
async fn everything_else_of_a_call_stays_as_it_is() {
    let echo = scripted("s", |call| match call.method {
        Method::ToolsList => Some(json!({"tools": [{"name": "echo", "inputSchema": {}}]}).to_string()),
        Method::ToolsCall => {
            let text = Json::string(call.params.object().as_str());
            Some(format!(
                r#"{{"resultType":"complete","content":[{{"type":"text","text":{text}}}],"odd" : 1.0}}"#
            ))
        }
        _ => None,
    });
    let gateway = started(searching([echo], &[])).await;
    let params = json!({
        "name": "call_tool", "arguments": {"name": "s_echo", "arguments": {"a": [1.50, "ü"]}},
        "_meta": {"progressToken": "p", "example.com/x": 1}, "requestState": "state", "inputResponses": {"q": {}},
        "task": {"ttl": 1},
    });
    let Reply::Complete(result) = modern().ask(&gateway, "tools/call", params).await else { panic!() };
    assert!(result.as_str().ends_with(r#""odd" : 1.0}"#), "the result passes as it is: {result}");
    let result: Value = result.to().unwrap();
    let got: Value = serde_json::from_str(text(&result)).unwrap();
    assert_eq!(
        got,
        json!({
            "name": "echo", "arguments": {"a": [1.50, "ü"]}, "_meta": {"progressToken": "p", "example.com/x": 1},
            "requestState": "state", "inputResponses": {"q": {}}, "task": {"ttl": 1},
        })
    );
}

#[tokio::test]
async fn names_that_nobody_has_are_answered_with_near_ones() {
    let gateway = started(searching([local("forge", forge())], &[])).await;
    for (arguments, want) in [
        (json!({"name": "call_tool"}), "call_tool cannot call itself"),
        (json!({}), "\"name\" must be a string"),
        (json!({"name": "forge_merge", "arguments": "{}"}), "\"arguments\" must be an object"),
    ] {
        for caller in [modern(), legacy()] {
            let params = json!({"name": "call_tool", "arguments": arguments});
            let result = caller.get(&gateway, "tools/call", params).await;
            assert_eq!(result["isError"], true, "the model can put it right");
            assert!(text(&result).contains(want), "{want}: {}", text(&result));
        }
    }
    for (name, want) in [
        ("forge_create_isue", "Unknown tool: forge_create_isue. Did you mean forge_create_issue"),
        ("qqqq", "Unknown tool: qqqq. Find tools by what they do with search_tools"),
    ] {
        for caller in [modern(), legacy()] {
            let params = json!({"name": "call_tool", "arguments": {"name": name}});
            let wrapped = caller.fails(&gateway, "tools/call", params).await;
            assert!(wrapped.message().starts_with(want), "{wrapped}");
            let direct = caller.fails(&gateway, "tools/call", json!({"name": name})).await;
            assert_eq!(direct.message(), format!("Unknown tool: {name}"));
            for error in [wrapped, direct] {
                let error: Value = error.to_json(caller.0.revision).to().unwrap();
                assert_eq!(
                    (&error["code"], &error["data"]["symbol"]),
                    (&json!(-32602), &json!("TOOL_NOT_FOUND"))
                );
                let tools = error["data"]["availableTools"].as_array().unwrap();
                assert!(tools.contains(&json!("forge_create_issue")), "listed or not: {error}");
                assert!(tools.contains(&json!("search_tools")), "{error}");
            }
        }
    }
    let params =
        json!({"name": "call_tool", "arguments": {"name": "search_tools", "arguments": {"query": "merge"}}});
    let result = modern().get(&gateway, "tools/call", params).await;
    assert_eq!(names(&result), ["forge_merge"]);
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Answer {
    word: String,
}

/// A tool that asks twice, the second time about the first answer.
fn inquisitive() -> Server {
    let ask = Tool::new("ask").description("Asks twice").handler(|args: Answer, cx: Cx| async move {
        let first = cx.elicit(Elicit::<Answer>::form("First?").key("first")).await.accepted()?;
        let question = format!("After {}?", first.word);
        let second = cx.elicit(Elicit::<Answer>::form(question).key("second")).await.accepted()?;
        Ok::<_, ToolError>(format!("{} {} {}", args.word, first.word, second.word))
    });
    Server::new("curious", "1").tool(ask)
}

#[tokio::test]
async fn questions_go_back_and_forth_through_call_tool() {
    let old = Served::start(inquisitive(), Eras::Legacy).await;
    let servers = [local("here", inquisitive()), old.named("old")];
    let gateway = started(searching(servers, &[])).await;
    for server in ["here", "old"] {
        for mut caller in [modern(), legacy()] {
            caller.0.capabilities =
                ClientCapabilities::from_json(json!({"elicitation": {"form": {}}}).into());
            let arguments = json!({"name": format!("{server}_ask"), "arguments": {"word": "zero"}});
            let mut params = json!({"name": "call_tool", "arguments": arguments});
            let mut asked = Vec::new();
            let result = loop {
                let input = match caller.ask(&gateway, "tools/call", params.clone()).await {
                    Reply::InputRequired(input) => input,
                    Reply::Complete(result) => break result.to::<Value>().unwrap(),
                    other => panic!("{server}: {other:?}"),
                };
                let word = ["one", "two"][asked.len()];
                let answer = json!({"action": "accept", "content": {"word": word}});
                let answers: Map<_, _> = input
                    .questions
                    .iter()
                    .map(|question| (question.key.to_string(), answer.clone()))
                    .collect();
                asked.extend(input.questions.iter().map(|question| {
                    question.params.to::<Value>().unwrap()["message"].as_str().unwrap().to_owned()
                }));
                params["inputResponses"] = answers.into();
                params["requestState"] = input.state.as_deref().into();
            };
            assert_eq!(asked, [format!("[{server}] First?"), format!("[{server}] After one?")]);
            assert_eq!(text(&result), "zero one two", "{server}");
        }
    }
}

#[tokio::test]
async fn clients_of_both_eras_answer_the_questions_of_a_tool_behind_call_tool() {
    let gateway = started(searching([local("here", inquisitive())], &[])).await;
    for eras in [Eras::Modern, Eras::Legacy] {
        let (address, _stop) = serve(gateway.clone(), eras, ([127, 0, 0, 1], 0).into()).await;
        let handlers = Handlers::new().on_elicit(false, |question| async move {
            let word = if question.message == "[here] First?" { "one" } else { "two" };
            ElicitAnswer::Accept([("word".to_owned(), word.into())].into_iter().collect())
        });
        let builder = Client::builder(format!("http://{address}/mcp").as_str()).unwrap().handlers(handlers);
        let client = builder.lazy().unwrap();
        let arguments = json!({"name": "here_ask", "arguments": {"word": "zero"}});
        let result = in_time("the answer", client.call("call_tool", arguments).into_future()).await.unwrap();
        assert_eq!(result.text(), "zero one two");
        client.close().await;
    }
}

#[tokio::test]
async fn thousands_of_tools_are_found_one_by_one() {
    let verbs =
        ["create", "list", "update", "delete", "archive", "export", "approve", "watch", "sync", "lock"];
    let things: Vec<String> = (0..200).map(|i| format!("thing{i}")).collect();
    let tools: Vec<Value> = verbs
        .iter()
        .flat_map(|verb| things.iter().map(move |thing| (verb, thing)))
        .map(|(verb, thing)| {
            let schema = json!({"type": "object", "properties": {"id": {"description": format!("Which {thing}")}}});
            json!({"name": format!("{verb}_{thing}"), "description": format!("Can {verb} a {thing}"), "inputSchema": schema})
        })
        .collect();
    let page = json!({"tools": tools}).to_string();
    let server = scripted("big", move |call| (call.method == Method::ToolsList).then(|| page.clone()));
    let gateway = started(searching([server], &[])).await;
    let caller = modern();
    assert_eq!(caller.list(&gateway, "tools/list").await, ["search_tools", "call_tool"]);
    for (query, first) in [
        ("archive thing137", "big_archive_thing137"),
        ("approving thing9", "big_approve_thing9"),
        ("exprot thing42", "big_export_thing42"),
        ("big_sync_thing0", "big_sync_thing0"),
    ] {
        let result = search(&caller, &gateway, json!({"query": query})).await;
        assert_eq!(names(&result)[0], first, "{query}");
        assert_eq!(names(&result).len(), 10);
    }
    let result = search(&caller, &gateway, json!({"query": ""})).await;
    assert_eq!(result["structuredContent"]["total"], 2000);
}

#[tokio::test]
async fn a_server_cannot_take_the_names_of_the_own_tools() {
    let greedy = || {
        let mut server = local(
            "greedy",
            Server::new("greedy", "1").tool(says("search_tools", "mine")).tool(says("call_tool", "mine")),
        );
        server.prefix = String::new();
        server.seal()
    };
    let gateway = started(searching([greedy()], &["*"])).await;
    let caller = modern();
    let listed = caller.list(&gateway, "tools/list").await;
    assert_eq!(listed, ["search_tools", "call_tool", "greedy_search_tools", "greedy_call_tool"]);
    for name in &listed[2..] {
        assert_eq!(caller.call(&gateway, name).await, ("mine".to_owned(), false));
    }
    assert!(search(&caller, &gateway, json!({"query": "say"})).await["structuredContent"]["total"] == 2);
    assert!(
        gateway.reports().iter().any(|report| report.contains("already used by \"tidegate\"")),
        "{:?}",
        gateway.reports()
    );

    // Where they are not searched for, there are no such names.
    let open = started(settings([greedy()])).await;
    let mut listed = caller.list(&open, "tools/list").await;
    listed.sort();
    assert_eq!(listed, ["call_tool", "search_tools"]);
    assert_eq!(caller.call(&open, "search_tools").await, ("mine".to_owned(), false));
}

#[tokio::test]
async fn what_changes_behind_is_found_and_the_list_stays() {
    let server = forge().dynamic().build();
    let handle = server.handle();
    let gateway = started(searching([door("forge", server)], &[])).await;
    let caller = modern();
    let finds = async |query: &str| names(&search(&caller, &gateway, json!({"query": query})).await);
    assert!(finds("teleport").await.is_empty());
    handle.add_tool(described("teleport", "Moves things at once")).unwrap();
    until("the new tool", async || finds("teleport").await == ["forge_teleport"]).await;
    handle.remove_tool("merge");
    until("the tool to go", async || finds("merge").await.is_empty()).await;
    assert_eq!(caller.list(&gateway, "tools/list").await, ["search_tools", "call_tool"]);
    let call = json!({"name": "call_tool", "arguments": {"name": "forge_teleport"}});
    assert_eq!(text(&caller.get(&gateway, "tools/call", call).await), "teleport was called");
}
