//! What callers are told when something fails: names that do not exist, numbers that are a server's own, and numbers that
//! modern callers must never see.

use serde_json::{Value, json};
use tidegate_client::ErrorProfile;
use tidegate_protocol::{Error, Profile, Symbol};
use tidegate_server::{Cx, Prompt, PromptArgs, Server, Tool, ToolError};
use tidegate_service::{Call, Reply};

use crate::raw::{ODD, Raw};
use crate::rig::*;

/// An error as the caller gets it.
async fn failed(caller: &Caller, door: &impl tidegate_service::Door, method: &str, params: Value) -> Value {
    caller.fails(door, method, params).await.to_json(caller.0.revision).to().unwrap()
}

#[tokio::test]
async fn an_unknown_tool_is_answered_with_the_nearest_names() {
    let tools = ["get_weather", "get_time", "echo"];
    let server = tools.into_iter().fold(Server::new("s", "1"), |server, name| server.tool(says(name, "")));
    let server = server.prompt(Prompt::new("greet").handler(|_: PromptArgs, _: Cx| async { Ok("Hello") }));
    let many = (0..50).fold(Server::new("m", "1"), |server, n| server.tool(says(&format!("t{n}"), "")));
    let mut denied = local("many", many);
    denied.deny = tidegate_config::Patterns::new(["t1*"]).unwrap();
    let gateway = gateway([local("s", server), denied.seal()]).await;
    for caller in [modern(), legacy()] {
        let error = failed(&caller, &gateway, "tools/call", json!({"name": "s_get_wether"})).await;
        assert_eq!(
            (&error["code"], &error["message"]),
            (&json!(-32602), &json!("Unknown tool: s_get_wether"))
        );
        assert_eq!(error["data"]["symbol"], "TOOL_NOT_FOUND");
        let near = error["data"]["availableTools"].as_array().unwrap();
        assert_eq!((near.len(), &near[0]), (20, &json!("s_get_weather")));
        let error = failed(&caller, &gateway, "tools/call", json!({"name": "many_t11"})).await;
        let near = error["data"]["availableTools"].to_string();
        assert!(
            near.contains("\"many_t2\"") && !near.contains("many_t1"),
            "what cannot be called is no help: {near}"
        );
        let error = failed(&caller, &gateway, "prompts/get", json!({"name": "s_great"})).await;
        let id = &error["data"]["correlationId"];
        assert_eq!(
            error,
            json!({"code": -32602, "message": "Unknown prompt: s_great",
                "data": {"availablePrompts": ["s_greet"], "correlationId": id, "symbol": "PROMPT_NOT_FOUND"}})
        );
        // A batch says the same of one of its calls.
        let calls = json!({"calls": [{"name": "s_echo"}, {"name": "s_ecco"}]});
        let results = caller.get(&gateway, "tools/call_batch", calls).await;
        let error = &results["results"][1]["error"];
        assert_eq!((&error["code"], &error["message"]), (&json!(-32602), &json!("Unknown tool: s_ecco")));
        assert_eq!(error["data"]["symbol"], "TOOL_NOT_FOUND");
        assert_eq!(error["data"]["availableTools"][0], "s_echo");
    }
    gateway.close().await;
}

/// Calls a tool that fails with this number.
async fn fails_with(caller: &Caller, gateway: &tidegate_gateway::Gateway, code: i64) -> String {
    let params = json!({"name": "s_fail", "arguments": {"code": code}});
    without_id(caller.fails(gateway, "tools/call", params).await.to_json(caller.0.revision).as_str())
}

/// An error without the id of its call, which each one has.
fn without_id(error: &str) -> String {
    let (before, id) = error.split_once(r#","correlationId":""#).expect("an id");
    before.to_owned() + id.split_once('"').unwrap().1
}

/// What stands between the code and the data of such an error.
fn extra() -> String {
    format!(r#""extra":{{{ODD}}},"message":"o\u0064d""#)
}

#[tokio::test]
async fn numbers_that_are_gone_never_reach_modern_callers() {
    let extra = extra();
    for raw in [Raw::http(true).await, Raw::http(false).await, Raw::stdio(true), Raw::stdio(false)] {
        let gateway = gateway([raw.settings.clone()]).await;
        for (code, symbol) in [(-32002, "INTERNAL_ERROR"), (-32042, "URL_ELICITATION_REQUIRED")] {
            let error = fails_with(&modern(), &gateway, code).await;
            let data = format!(r#"{{{ODD},"originalCode":{code},"symbol":"{symbol}"}}"#);
            assert_eq!(error, format!(r#"{{"code":-32603,{extra},"data":{data}}}"#));
            let untouched = format!(r#"{{"code":{code},{extra},"data":{{{ODD}}}}}"#);
            assert_eq!(fails_with(&legacy(), &gateway, code).await, untouched);
            let calls = json!({"calls": [{"name": "s_fail", "arguments": {"code": code}}]});
            let Reply::Complete(results) = modern().ask(&gateway, "tools/call_batch", calls).await else {
                panic!()
            };
            assert!(results.as_str().contains(r#""error":{"code":-32603,"#), "{results}");
        }
        // All others pass.
        for caller in [modern(), legacy()] {
            let untouched = format!(r#"{{"code":-32001,{extra},"data":{{{ODD}}}}}"#);
            assert_eq!(fails_with(&caller, &gateway, -32001).await, untouched);
        }
        gateway.close().await;
    }
}

#[tokio::test]
async fn numbers_of_a_servers_own_are_understood_and_stay_in_the_data() {
    let extra = extra();
    for raw in [Raw::http(true).await, Raw::http(false).await] {
        let mut settings = raw.settings.clone();
        settings.options.profile = ErrorProfile::Gbif;
        let gateway = gateway([settings.seal()]).await;
        for caller in [modern(), legacy()] {
            for (number, code, symbol) in [
                (-32001, -32603, "TOOL_EXECUTION_ERROR"),
                (-32002, -32602, "VALIDATION_ERROR"),
                (-32003, -32603, "RATE_LIMIT_ERROR"),
            ] {
                let error = fails_with(&caller, &gateway, number).await;
                let data = format!(r#"{{{ODD},"originalCode":{number},"symbol":"{symbol}"}}"#);
                assert_eq!(error, format!(r#"{{"code":{code},{extra},"data":{data}}}"#), "the rest stays");
            }
            // What is in no table of that server is what it always was.
            let untouched = format!(r#"{{"code":-31999,{extra},"data":{{{ODD}}}}}"#);
            assert_eq!(fails_with(&caller, &gateway, -31999).await, untouched);
        }
        // The number says that the service behind the tool is down: enough of them open the breaker.
        for _ in 0..5 {
            fails_with(&modern(), &gateway, -32004).await;
        }
        let (text, failed) = modern().call(&gateway, "s_chat").await;
        assert!(failed && text.contains("circuit"), "{text}");
        gateway.close().await;
    }
}

/// A server that fails with the numbers of the Percolate server.
fn percolate(profile: Profile) -> Server {
    let missing = |_: (), _: Cx| async {
        Err::<String, _>(ToolError::protocol(Error::new(Symbol::TenantNotFound, "No such tenant")))
    };
    Server::new("p", "1").error_profile(profile).tool(Tool::new("find").handler(missing))
}

#[tokio::test]
async fn servers_of_this_process_have_numbers_in_the_data_for_modern_callers() {
    let gateway = gateway([local("p", percolate(Profile::Percolate))]).await;
    let error = failed(&modern(), &gateway, "tools/call", json!({"name": "p_find"})).await;
    let id = &error["data"]["correlationId"];
    assert_eq!(
        error,
        json!({"code": -32602, "message": "No such tenant",
            "data": {"correlationId": id, "originalCode": -32000, "symbol": "TENANT_NOT_FOUND"}})
    );
    let error = failed(&legacy(), &gateway, "tools/call", json!({"name": "p_find"})).await;
    let data = json!({"correlationId": error["data"]["correlationId"]});
    assert_eq!(error, json!({"code": -32000, "message": "No such tenant", "data": data}));
    gateway.close().await;
}

#[tokio::test]
async fn clients_find_the_numbers_they_know_in_the_gateways_own_errors() {
    let servers = || {
        let gone = at("gone", ([127, 0, 0, 1], 1).into());
        let listing = |call: &Call| {
            let tools = json!({"tools": [{"name": "t", "inputSchema": {}}]});
            (call.method.as_str() == "tools/list").then(|| tools.to_string())
        };
        [gone, scripted("s", listing)]
    };
    let with = async |errors: Profile| {
        let mut settings = settings(servers());
        settings.errors = errors;
        started(settings).await
    };
    let unknown = json!({"name": "nope"});
    // As the GBIF server has it: a result.
    let gbif = with(Profile::Gbif).await;
    for caller in [modern(), legacy()] {
        let result = caller.get(&gbif, "tools/call", unknown.clone()).await;
        assert_eq!(
            (&result["isError"], &result["structuredContent"]["code"]),
            (&json!(true), &json!(-32000))
        );
        let machine = &result["_meta"]["dev.tidegate/error"];
        assert_eq!((&machine["code"], &machine["symbol"]), (&json!(-32000), &json!("TOOL_NOT_FOUND")));
        assert!(machine["data"]["availableTools"].as_array().unwrap().contains(&json!("s_t")), "{machine}");
    }
    gbif.close().await;
    // A number of the Percolate server is where legacy clients look for it, and in the data for the others.
    let percolate = with(Profile::Percolate).await;
    for caller in [modern(), legacy()] {
        let error = failed(&caller, &percolate, "tools/call", unknown.clone()).await;
        assert_eq!(error["code"], -32602, "it has no number for this");
    }
    percolate.close().await;
    let standard = with(Profile::Strict).await;
    let Reply::Error(error) = modern().ask(&standard, "tools/call", unknown).await else { panic!() };
    assert_eq!(error.symbol(), Symbol::ToolNotFound);
    standard.close().await;
}
