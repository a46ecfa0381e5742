//! Endpoints: a token, a session and everything sealed are for one of them, and so is what can be seen there.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::http::until;
use crate::rig::{ANN, AUTH, Caller, Gateway, SERVERS, command};

const ENDPOINTS: &str = r#"
[tools]
page_bytes = 1024
[endpoints.research]
servers = ["demo"]
instructions = "Only for research."
[endpoints.archive]
tools = ["search_nodes", "open_nodes"]
prompts = []
resources = []
audience = "urn:reef:archive"
[endpoints.finder]
servers = ["demo"]
mode = "search"
"#;

/// What the demonstration server has.
const DEMO: [&str; 4] = ["demo_echo", "demo_add", "demo_count", "demo_greet"];

fn start() -> Gateway {
    Gateway::start(ENDPOINTS)
}

/// A token of Ann's with these audiences.
fn token_for(gateway: &Gateway, audiences: &[String]) -> String {
    gateway.token("", ANN, |claims| claims["aud"] = json!(audiences))
}

/// The names of all tools that are listed, page by page.
fn tools(caller: &Caller) -> Vec<String> {
    let (mut all, mut params) = (Vec::new(), json!({}));
    loop {
        let page = caller.modern("tools/list", params).json();
        all.extend(names(&page, "tools"));
        match page["result"]["nextCursor"].as_str() {
            Some(cursor) => params = json!({"cursor": cursor}),
            None => return all,
        }
    }
}

fn names(list: &Value, member: &str) -> Vec<String> {
    let items = list["result"][member].as_array().into_iter().flatten();
    items.map(|item| item["name"].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn a_token_is_for_one_endpoint() {
    let gateway = start();
    let audiences = [gateway.url(""), gateway.url("research"), "urn:reef:archive".to_owned()];
    let paths = ["/mcp", "/research/mcp", "/archive/mcp"];
    for (own, audience) in audiences.iter().enumerate() {
        let token = token_for(&gateway, std::slice::from_ref(audience));
        for (at, path) in paths.iter().enumerate() {
            let answer = gateway.with_token(&token).at(path).modern("tools/list", json!({}));
            let expected = if own == at { 200 } else { 401 };
            assert_eq!(answer.status, expected, "{audience} at {path}: {answer:?}");
        }
    }
    // Where an audience is written, the URL is none.
    let by_url = token_for(&gateway, &[gateway.url("archive")]);
    assert_eq!(gateway.with_token(&by_url).at("/archive/mcp").modern("tools/list", json!({})).status, 401);
}

#[test]
fn a_session_is_for_one_endpoint() {
    let gateway = start();
    // One token that is good at both, so that nothing but the endpoint differs.
    let both = gateway.with_token(&token_for(&gateway, &[gateway.url(""), gateway.url("research")]));
    let there = both.clone().at("/research/mcp");
    let session = both.session();
    assert_eq!(there.in_session(&session, "tools/list", json!({})).status, 404);
    assert_eq!(there.stream(&session, &[]).status(), 404);
    assert_eq!(there.end(&session).status, 404);
    assert!(both.in_session(&session, "tools/list", json!({})).is_fine());
}

#[test]
fn what_is_sealed_is_for_one_endpoint() {
    let gateway = start();
    let both = gateway.with_token(&token_for(&gateway, &[gateway.url(""), gateway.url("research")]));
    let there = both.clone().at("/research/mcp");
    let cursor = both.modern("tools/list", json!({})).json()["result"]["nextCursor"].clone();
    assert!(cursor.is_string(), "the list has pages");
    assert!(!there.modern("tools/list", json!({"cursor": cursor})).is_fine());
    assert!(both.modern("tools/list", json!({"cursor": cursor})).is_fine());

    let asked = both.call("demo_greet", json!({})).json()["result"].clone();
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let again = json!({"name": "demo_greet", "arguments": {}, "requestState": asked["requestState"],
        "inputResponses": {"name": {"action": "accept", "content": {"name": "Ann"}}}});
    let refused = there.modern("tools/call", again.clone());
    assert!(!refused.body.contains("Hello, Ann!"), "{refused:?}");
    let greeted = both.modern("tools/call", again);
    assert!(greeted.body.contains("Hello, Ann!"), "{greeted:?}");
}

#[test]
fn what_is_not_selected_is_not_there() {
    let gateway = start();
    let research = gateway.at_endpoint("research", ANN);
    assert_eq!(tools(&research), DEMO);
    let said = research.modern("server/discover", json!({})).json();
    assert!(
        said["result"]["instructions"].as_str().unwrap_or_default().contains("Only for research."),
        "{said}"
    );

    // By no way in: what is not there is unknown, as if it did not exist anywhere.
    let arguments = json!({"query": "pearl"});
    let unknown = research.call("no_such_tool", arguments.clone()).json();
    let hidden = research.call("search_nodes", arguments.clone()).json();
    let error_of = |answer: &Value| {
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        (answer["error"]["code"].clone(), message.replace("no_such_tool", "X").replace("search_nodes", "X"))
    };
    assert!(!hidden.to_string().contains("open_nodes"), "nothing like it is suggested: {hidden}");
    assert_eq!(error_of(&hidden), error_of(&unknown));
    let batch = json!({"calls": [{"name": "search_nodes", "arguments": arguments}]});
    let batched = research.modern("tools/call_batch", batch);
    assert!(!batched.body.contains("\"entities\""), "{batched:?}");
    for (method, params) in [
        ("resources/read", json!({"uri": "memory://knowledge-graph"})),
        (
            "prompts/get",
            json!({"name": "init-project", "arguments": {"projectName": "x", "description": "y"}}),
        ),
        (
            "completion/complete",
            json!({"ref": {"type": "ref/prompt", "name": "analyze-document"},
            "argument": {"name": "document", "value": ""}}),
        ),
    ] {
        let answer = research.modern(method, params);
        assert!(!answer.is_fine(), "{method}: {answer:?}");
    }
    for (method, member) in [
        ("resources/list", "resources"),
        ("resources/templates/list", "resourceTemplates"),
        ("prompts/list", "prompts"),
    ] {
        let answer = research.modern(method, json!({}));
        assert!(
            !answer.body.contains("memory://") && !answer.body.contains("init-project"),
            "{method}: {answer:?}"
        );
        assert!(answer.json()["result"][member].is_array(), "{method}: {answer:?}");
    }
    let archive =
        gateway.with_token(&token_for(&gateway, &["urn:reef:archive".to_owned()])).at("/archive/mcp");
    assert_eq!(tools(&archive), ["search_nodes", "open_nodes"]);
    assert!(!archive.modern("resources/read", json!({"uri": "memory://knowledge-graph"})).is_fine());
    assert!(archive.call("search_nodes", json!({"query": "pearl"})).is_fine());
}

#[test]
fn searching_finds_only_what_is_selected() {
    let gateway = start();
    let finder = gateway.at_endpoint("finder", ANN);
    assert_eq!(tools(&finder), ["search_tools", "call_tool"]);
    let found = finder.call("search_tools", json!({"query": "search nodes of the memory graph"}));
    assert!(found.is_fine() && !found.body.contains("search_nodes\""), "{found:?}");
    let through = |name: &str, arguments: Value| {
        finder.call("call_tool", json!({"name": name, "arguments": arguments}))
    };
    assert!(through("demo_echo", json!({"message": "found"})).body.contains("found"));
    assert!(!through("search_nodes", json!({"query": "pearl"})).is_fine());
    // What needs a scope needs it by this way, too.
    let refused = through("demo_add", json!({"a": 1, "b": 2}));
    assert!(!refused.is_fine(), "{refused:?}");
}

#[test]
fn stdio_is_the_local_user_at_the_endpoint_it_names() {
    let (folder, _issuers) =
        Gateway::folder(&format!("{}\n{SERVERS}{AUTH}", ENDPOINTS.replace("page_bytes = 1024", "")));
    let talk = |arguments: &[&str]| {
        let mut command = command(folder.path());
        command.args(["serve", "--stdio"]).args(arguments);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "tests", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {}});
        let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}});
        writeln!(child.stdin.take().unwrap(), "{list}").unwrap();
        child.wait_with_output().unwrap()
    };
    // On a busy machine the list may be asked for before its servers have started.
    let mut listed = Vec::new();
    until("its tools are listed", || {
        let done = talk(&["--endpoint", "research"]);
        let out = String::from_utf8_lossy(&done.stdout).into_owned();
        let page: Value = serde_json::from_str(out.lines().next().unwrap_or_default()).unwrap_or_default();
        listed = names(&page, "tools");
        !listed.is_empty()
    });
    assert_eq!(listed, DEMO);
    let unknown = talk(&["--endpoint", "nowhere"]);
    assert!(!unknown.status.success());
    let said = String::from_utf8_lossy(&unknown.stderr).into_owned();
    assert!(said.contains("nowhere") && said.contains("research"), "{said}");
}

/// Asks an agent whose model is the caller's own, which wants this tool to be called.
fn ask(caller: &Caller, agent: &str, tool: &str, arguments: &Value) -> Value {
    let question = json!({"name": "ask_agent", "arguments": {"agent_uri": agent, "prompt": "Do it."}});
    let asked = caller.modern("tools/call", question.clone()).json()["result"].clone();
    let wanted = json!({"tool": tool, "arguments": arguments}).to_string();
    let said = json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": wanted}});
    let keys = asked["inputRequests"].as_object().into_iter().flatten();
    let answers: serde_json::Map<String, Value> = keys.map(|(key, _)| (key.clone(), said.clone())).collect();
    assert!(!answers.is_empty(), "{asked}");
    let mut again = question;
    again["requestState"] = asked["requestState"].clone();
    again["inputResponses"] = answers.into();
    caller.modern("tools/call", again).json()
}

#[test]
fn an_agent_reaches_what_whoever_asked_it_could_reach() {
    let gateway = Gateway::start(
        "[endpoints.agents]\ntools = [\"ask_agent\", \"create_agent\", \"search_nodes\"]\nresources = []\n",
    );
    let (there, here) = (gateway.at_endpoint("agents", ANN), gateway.as_user(ANN));
    let agent = json!({"agent_name": "clerk", "description": "You write things down.",
        "output_schema": {"type": "object"}, "tools": ["create_entities", "search_nodes"]});
    let made = there.call("create_agent", agent).json();
    assert_ne!(made["result"]["isError"], true, "{made}");
    let entity =
        |name: &str| json!({"entities": [{"name": name, "entityType": "thing", "observations": ["seen"]}]});
    let known = |name: &str| {
        let opened = here.call("open_nodes", json!({"names": [name]}));
        opened.body.contains("thing")
    };
    // At the endpoint the caller has no such tool, and the agent has none either.
    ask(&there, "clerk", "create_entities", &entity("Smuggled"));
    assert!(!known("Smuggled"));
    // Where it has, the same agent has it, too.
    ask(&here, "clerk", "create_entities", &entity("Declared"));
    assert!(known("Declared"));
}
