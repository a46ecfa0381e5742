//! What belongs to a caller belongs to its issuer, subject and tenant together, and is listed in ARCHITECTURE.md.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::json;
use tidegate_gateway::Gateway;
use tidegate_protocol::Symbol;
use tidegate_server::{Cx, Elicit, Server, Tool, ToolError};
use tidegate_service::{Principal, Reply};

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
const PASSING: [&str; 7] = [
    "crates/edge/src/http/legacy_post.rs",
    "crates/edge/src/http/modern_post.rs",
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
