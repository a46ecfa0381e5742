//! An agent that goes round in circles: its model wants the same call again and again, until it is told by the gateway
//! (`[limits.run]`) that the answer will not change.

use std::fs;

use serde_json::json;

use super::agent::{Workspace, work};
use super::model::{Answer, Asked, Model};
use super::programs::python;
use super::script::{bare, is};
use crate::gateway::Gateway;
use crate::meeting::Over;
use crate::paths;

/// A tool of a server that counts in its process how often it was called.
const TOOL: &str = "thinking_sequentialthinking";
/// How often it may be called with the same arguments.
const REPEATS: usize = 5;
/// What the gateway says then.
const TOLD: &str = "You have called thinking_sequentialthinking with these arguments 5 times in this run; the answer will \
                    not change. Use what you already have, change the arguments, or stop.";
/// What the model says when it has understood.
const UNDERSTOOD: &str = "I will stop thinking the same thought.";
/// How often the model would try: it is as stubborn as agents let it be.
const STUBBORN: usize = 20;

/// The same thought, until it is told off; then another one, and then it is done.
fn answer(asked: &Asked) -> Answer {
    let Some(tool) = asked.tools.iter().find(|offered| is(offered, TOOL)) else {
        return Answer::Text("Tides".to_owned());
    };
    let thought = |thought: &str| {
        let arguments = json!({
            "thought": thought, "thoughtNumber": 1, "totalThoughts": 1, "nextThoughtNeeded": true,
            "needsMoreThoughts": false, "isRevision": false, "revisesThought": 1, "branchFromThought": 1,
            "branchId": "ebb",
        });
        Answer::Call { tool: tool.clone(), arguments }
    };
    match asked.results.iter().position(|result| is_told(result)) {
        None if asked.results.len() < STUBBORN => thought("The same again"),
        Some(at) if at + 1 == asked.results.len() => thought("Another one"),
        _ => Answer::Text(UNDERSTOOD.to_owned()),
    }
}

fn is_told(result: &str) -> bool {
    bare(result).contains(&bare(TOLD))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_repeats_itself_is_told_and_ends() {
    let home = paths::scratch("agents/repeats");
    let server = "@modelcontextprotocol/server-sequential-thinking/dist/index.js";
    let config = format!(
        "state_dir = false\n[servers.thinking]\ncommand = {}\n[limits]\ntenant = false\n[limits.run]\nrepeats = {REPEATS}\n",
        json!(paths::agent_node("npm-usual", server)),
    );
    let path = home.join("tidegate.toml");
    fs::write(&path, config).expect("a writable target directory");
    let gateway = Gateway::start(&path).await;
    let model = Model::start(answer).await;
    let (url, command) = (gateway.url.clone(), Vec::new());
    let workspace = Workspace { home, model: model.url.clone(), over: Over::Http, url, command };
    let said = work("repeats", &workspace, &python(&workspace, "pydantic_ai", &["messages"])).await;
    gateway.stop().await;

    let said = said.expect("it ends well");
    assert!(said.contains(UNDERSTOOD), "it ended without what the model said last: {said}");
    let asked = model.asked().into_iter().map(|(_, _, asked)| asked);
    let last = asked.max_by_key(|asked| asked.results.len()).expect("it asked its model");
    assert_eq!(last.results.len(), REPEATS + 2, "{:?}", last.results);
    // Each call that reached the server is one more in its history: five, none for the one that was refused, and a sixth.
    let length = |count: usize| format!("thoughtHistoryLength:{count}");
    for (at, result) in last.results.iter().enumerate() {
        match at {
            REPEATS => assert!(is_told(result), "call {}: {result}", at + 1),
            _ => {
                let count = if at < REPEATS { at + 1 } else { REPEATS + 1 };
                assert!(bare(result).contains(&length(count)), "call {}: {result}", at + 1);
            }
        }
    }
}
