//! What belongs to a caller belongs to its issuer, subject and tenant together, and is listed in ARCHITECTURE.md.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::json;
use tidegate_config::ServerSettings;
use tidegate_gateway::Gateway;
use tidegate_protocol::{Json, Method, Symbol};
use tidegate_server::{Cx, Elicit, Server, TaskSupport, Tool, ToolError};
use tidegate_service::{Call, InputRequired, Principal, Question, Reply};

use crate::rig::{Caller, PATIENCE, Served, local, modern, says, settings};

/// The root of the workspace.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The files that the table of ARCHITECTURE.md names.
fn listed() -> BTreeSet<String> {
    let page = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let (_, part) = page.split_once("## What is keyed by principal").expect("the part about principals");
    let part = part.split("\n## ").next().unwrap();
    let rows = part.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    rows.map(|(file, _)| file.to_owned()).collect()
}

/// What has a principal only for as long as a call or a request takes.
const PASSING: [&str; 10] = [
    "crates/edge/src/http/endpoint.rs",
    "crates/edge/src/http/handler.rs",
    "crates/edge/src/http/legacy_post.rs",
    "crates/edge/src/http/modern_post.rs",
    "crates/edge/src/http/page_site.rs",
    "crates/edge/src/http/post.rs",
    "crates/edge/src/legacy/handshake.rs",
    "crates/service/src/context.rs",
    "crates/service/src/events/call.rs",
    "crates/service/src/principal.rs",
];

/// The files that keep a principal in something that lives on.
fn keeping() -> BTreeSet<String> {
    fn visit(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            match path.is_dir() {
                true => visit(&path, found),
                false => found.push(path),
            }
        }
    }
    let root = root();
    let mut files = Vec::new();
    for folder in ["crates", "servers", "command/src", "tidegate/src"] {
        visit(&root.join(folder), &mut files);
    }
    let keeps = |line: &str| {
        let line = line.trim();
        let is_field = (line.ends_with(": Principal,") || line.ends_with("User(Principal),"))
            || line.contains("HashMap<Principal")
            || line.ends_with("identity: Identity,")
            || line.ends_with("owner: Principal },");
        is_field && !line.starts_with("//")
    };
    let mut keeping = BTreeSet::new();
    for file in files.iter().filter(|file| file.extension().is_some_and(|ending| ending == "rs")) {
        let name = file.strip_prefix(&root).unwrap().to_string_lossy().replace('\\', "/");
        if !name.contains("/src/") || name.contains("/tests") || PASSING.contains(&&*name) {
            continue;
        }
        let text = std::fs::read_to_string(file).unwrap();
        if text.lines().any(keeps) {
            keeping.insert(name);
        }
    }
    keeping
}

#[test]
fn everything_that_keeps_a_principal_is_listed() {
    assert_eq!(listed(), keeping(), "left: ARCHITECTURE.md; right: the sources");
}

/// Two people whom two issuers know by the same name.
fn namesakes() -> [Caller; 2] {
    ["https://id.example.com", "https://other.example.com"].map(|issuer| {
        let mut caller = modern();
        caller.0.principal = Principal::subject("ann").in_tenant("reef").issued_by(issuer);
        caller
    })
}

async fn gateway() -> (Gateway, Served) {
    let ask = Tool::new("ask").handler(|_: (), cx: Cx| async move {
        let schema = json!({"type": "object", "properties": {"who": {"type": "string"}}});
        cx.elicit(Elicit::form_schema("Who?", schema)).await.accepted()?;
        Ok::<_, ToolError>("thanks")
    });
    let remote = Server::new("r", "1").tool(ask);
    let served = Served::start(remote, tidegate_edge::Eras::Legacy).await;
    let here = Server::new("s", "1").tool(says("a", "a")).tool(says("b", "b"));
    let mut settings = settings([local("s", here), served.named("r")]);
    settings.tools.page_bytes = 1;
    let gateway = Gateway::start(settings).unwrap();
    gateway.settled(PATIENCE).await;
    (gateway, served)
}

#[tokio::test]
async fn a_cursor_is_its_principals() {
    let (gateway, _served) = gateway().await;
    let [ann, other] = namesakes();
    let cursor = ann.get(&gateway, "tools/list", json!({})).await["nextCursor"].clone();
    let refused = other.fails(&gateway, "tools/list", json!({"cursor": cursor})).await;
    assert_eq!(refused.symbol(), Symbol::InvalidCursor);
    ann.get(&gateway, "tools/list", json!({"cursor": cursor})).await;
    gateway.close().await;
}

#[tokio::test]
async fn a_parked_call_is_its_principals() {
    let (gateway, _served) = gateway().await;
    let [mut ann, mut other] = namesakes();
    for caller in [&mut ann, &mut other] {
        let all = json!({"elicitation": {"form": {}}});
        caller.0.capabilities = tidegate_protocol::ClientCapabilities::from_json(all.into());
    }
    let Reply::InputRequired(input) = ann.ask(&gateway, "tools/call", json!({"name": "r_ask"})).await else {
        panic!("it asks")
    };
    let answers: serde_json::Map<_, _> = input
        .questions
        .iter()
        .map(|question| (question.key.to_string(), json!({"action": "accept", "content": {"who": "x"}})))
        .collect();
    let again = json!({"name": "r_ask", "inputResponses": answers, "requestState": input.state.as_deref()});
    match other.ask(&gateway, "tools/call", again.clone()).await {
        Reply::Complete(result) => assert!(result.as_str().contains("\"isError\":true"), "{result}"),
        Reply::Error(error) => assert_eq!(error.symbol(), Symbol::StateRefused, "{error}"),
        other => panic!("{other:?}"),
    }
    let done = ann.get(&gateway, "tools/call", again).await;
    assert_eq!(done["content"][0]["text"], "thanks", "{done}");
    gateway.close().await;
}

/// A modern server that binds its request state to nobody.
fn trusting() -> ServerSettings {
    let answer = tower::service_fn(|call: Call| {
        let complete = |value: serde_json::Value| Reply::Complete(value.into());
        let reply = match (call.method.as_str(), call.params.str("requestState").as_deref()) {
            ("server/discover", _) => Reply::Complete(Json::trusted(crate::rig::discovery(json!({})))),
            ("tools/list", _) => {
                complete(json!({"tools": [{"name": "ask", "inputSchema": {"type": "object"}}]}))
            }
            ("tools/call", Some("open sesame")) => {
                complete(json!({"content": [{"type": "text", "text": "thanks"}]}))
            }
            ("tools/call", None) => Reply::InputRequired(InputRequired {
                questions: vec![Question {
                    key: "who".into(),
                    method: Method::ElicitCreate,
                    params:
                        json!({"message": "Who?", "requestedSchema": {"type": "object", "properties": {}}})
                            .into(),
                }],
                state: Some("open sesame".into()),
                original: None,
            }),
            _ => Reply::method_not_found(&call.method),
        };
        std::future::ready(Ok::<_, std::convert::Infallible>(reply))
    });
    crate::rig::door("t", answer)
}

#[tokio::test]
async fn a_request_state_that_a_server_binds_to_nobody_is_its_principals_where_callers_are_authenticated() {
    for is_authenticated in [true, false] {
        let mut settings = settings([trusting()]);
        settings.auth = is_authenticated.then(Default::default);
        let gateway = crate::rig::started(settings).await;
        let [ann, other] = namesakes().map(|mut caller| {
            let all = json!({"elicitation": {"form": {}}});
            caller.0.capabilities = tidegate_protocol::ClientCapabilities::from_json(all.into());
            caller
        });
        let ask = |more: &str| json!({"name": "t_ask", "arguments": {"more": more}});
        let Reply::InputRequired(input) = ann.ask(&gateway, "tools/call", ask("")).await else {
            panic!("it asks")
        };
        let again = |more: &str| {
            let mut params = ask(more);
            params["inputResponses"] = json!({"who": {"action": "accept", "content": {}}});
            params["requestState"] = json!(input.state.as_deref());
            params
        };
        assert_eq!(input.state.as_deref() == Some("open sesame"), !is_authenticated);
        if is_authenticated {
            for (caller, params) in
                [(&other, again("")), (&ann.at("research"), again("")), (&ann, again("x"))]
            {
                match caller.ask(&gateway, "tools/call", params).await {
                    Reply::Error(error) => assert!(
                        matches!(error.symbol(), Symbol::StateRefused | Symbol::ToolNotFound),
                        "{error}"
                    ),
                    reply => panic!("{reply:?}"),
                }
            }
        }
        let done = ann.get(&gateway, "tools/call", again("")).await;
        assert_eq!(done["content"][0]["text"], "thanks", "{done}");
        gateway.close().await;
    }
}

#[tokio::test]
async fn a_task_is_its_principals() {
    let long = || {
        Tool::new("long").task(TaskSupport::Required).handler(|_: (), _: Cx| async {
            std::future::pending::<()>().await;
            "never"
        })
    };
    let served = Served::start(Server::new("r", "1").tool(long()), tidegate_edge::Eras::Legacy).await;
    let gateway =
        crate::rig::gateway([local("s", Server::new("s", "1").tool(long())), served.named("r")]).await;
    let [mut ann, mut other] = namesakes();
    let all = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    for caller in [&mut ann, &mut other] {
        caller.0.capabilities = tidegate_protocol::ClientCapabilities::from_json(all.clone().into());
    }
    for tool in ["s_long", "r_long"] {
        let Reply::Task(task) = ann.ask(&gateway, "tools/call", json!({"name": tool})).await else {
            panic!("{tool} is a task")
        };
        let id = task.to::<serde_json::Value>().unwrap()["taskId"].clone();
        for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
            let refused = other.fails(&gateway, method, json!({"taskId": id, "inputResponses": {}})).await;
            assert_eq!(refused.symbol(), Symbol::TaskNotFound, "{tool}: {method}");
        }
        ann.get(&gateway, "tasks/get", json!({"taskId": id})).await;
    }
    gateway.close().await;
}

#[tokio::test]
async fn an_address_is_of_whom_it_was_given_to() {
    let server = |name: &'static str| {
        crate::rig::scripted(name, move |call| {
            let link = json!({"type": "resource_link", "uri": "x-given:1", "name": "given"});
            let result = match call.method.as_str() {
                "tools/list" => json!({"tools": [{"name": "give", "inputSchema": {"type": "object"}}]}),
                "tools/call" => json!({"content": [link]}),
                "resources/read" => json!({"contents": [{"uri": call.params.str("uri")?, "text": name}]}),
                _ => return None,
            };
            Some(result.to_string())
        })
    };
    let gateway = crate::rig::gateway([server("one"), server("two")]).await;
    let [ann, other] = namesakes();
    ann.get(&gateway, "tools/call", json!({"name": "one_give"})).await;
    let refused = other.fails(&gateway, "resources/read", json!({"uri": "x-given:1"})).await;
    assert_eq!(refused.symbol(), Symbol::ResourceNotFound);
    other.get(&gateway, "tools/call", json!({"name": "two_give"})).await;
    for (caller, whose) in [(&ann, "one"), (&other, "two")] {
        let read = caller.get(&gateway, "resources/read", json!({"uri": "x-given:1"})).await;
        assert_eq!(read["contents"][0]["text"], whose);
    }
    gateway.close().await;
}
