//! [`Reach`]: the tools that an agent gets at, and how they are called.
//!
//! Tools are looked for behind the door that the memory was given, where those of all servers are, and then among the
//! memory's own. What is called is called in the name of whoever asked the agent.

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tidegate_protocol::{Json, Limits, Method, Params};
use tidegate_server::{Cx, Server, ServerDoor};
use tidegate_service::{Call, Context, Door, Reply};

use super::agentlet::Named;
use super::models::{ANSWER, Offer};
use crate::Recall;

/// How deep agents may ask agents.
pub(crate) const DEPTH: u64 = 3;
/// Where a call says how deep it is.
const DEPTH_META: &str = "dev.tidegate/agent-depth";
/// How many pages of a list of tools are read.
const PAGES: usize = 50;
/// How much of a result is shown to the model, in bytes.
const SHOWN: usize = 16 * 1024;
/// What the memory itself is called by those who name a server with each tool.
const HERE: [&str; 6] = ["percolate", "default", "local", "memory", "tidegate", "tidegate-memory"];

/// Where agents look for tools.
#[derive(Clone)]
pub(crate) struct Reach {
    pub(crate) recall: Recall,
    /// The memory's own tools, made when they are first needed.
    own: Arc<OnceLock<ServerDoor>>,
}

/// A tool that an agent gets at.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Tool {
    /// As it is offered to the model.
    pub(crate) offer: Offer,
    /// What it is called where it is.
    name: String,
    /// Whether it is one of the memory's own.
    own: bool,
    /// Whether it only reads.
    reads: bool,
}

/// What a tool gave.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Given {
    pub(crate) text: String,
    pub(crate) failed: bool,
}

impl Given {
    pub(crate) fn failed(text: impl Into<String>) -> Given {
        Given { text: text.into(), failed: true }
    }
}

/// How deep in agents that ask agents a call is.
pub(crate) fn depth(cx: &Cx) -> u64 {
    let said = cx.meta().and_then(|meta| meta.json(DEPTH_META)?.to::<u64>().ok());
    said.unwrap_or_default()
}

impl Reach {
    pub(crate) fn new(recall: &Recall) -> Reach {
        Reach { recall: recall.clone(), own: Arc::default() }
    }

    /// The memory's own tools, behind a door of their own. That agents can be asked there, too, is what makes this a
    /// chain: each link is made when it is needed, and [`DEPTH`] ends it.
    fn own(&self) -> &ServerDoor {
        self.own.get_or_init(|| {
            let server = Server::new("tidegate-memory", env!("CARGO_PKG_VERSION"));
            let server = crate::tools::add(server, &self.recall);
            let server = crate::documents::add(server, &self.recall);
            super::ask::add(server, &self.recall).build()
        })
    }

    /// The tools that are named, and the names of those that are not there.
    pub(crate) async fn tools(&self, cx: &Cx, until: Instant, named: &[Named]) -> (Vec<Tool>, Vec<String>) {
        let (mut tools, mut missing, mut taken) =
            (Vec::new(), Vec::new(), HashSet::from([ANSWER.to_owned()]));
        if named.is_empty() {
            return (tools, missing);
        }
        let outside = match &self.recall.options.tools {
            Some(door) => list(door, cx, until).await,
            None => Vec::new(),
        };
        let inside = list(self.own(), cx, until).await;
        for wanted in named {
            let names = names(wanted);
            let find = |listed: &[Value]| {
                names.iter().find_map(|name| listed.iter().find(|tool| tool["name"] == **name).cloned())
            };
            let here = || Some((find(&inside)?, true)).filter(|_| is_here(wanted));
            let Some((tool, own)) = find(&outside).map(|tool| (tool, false)).or_else(here) else {
                missing.push(names[0].clone());
                continue;
            };
            let name = tool["name"].as_str().unwrap_or_default().to_owned();
            if tools.iter().any(|known: &Tool| known.name == name && known.own == own) {
                continue;
            }
            let mut description = tool["description"].as_str().unwrap_or_default().to_owned();
            if let Some(usage) = &wanted.usage {
                description.push_str(&format!("\nUse it {usage}"));
            }
            let offer = Offer {
                name: alias(&name, &mut taken),
                description,
                input_schema: tool.get("inputSchema").cloned().unwrap_or_else(|| json!({"type": "object"})),
            };
            let reads = tool["annotations"]["readOnlyHint"] == true;
            tools.push(Tool { offer, name, own, reads });
        }
        (tools, missing)
    }

    /// Calls a tool. Whatever goes wrong is told to the model, which may know what to do about it.
    pub(crate) async fn call(&self, cx: &Cx, until: Instant, tool: &Tool, arguments: Value) -> Given {
        let params = json!({
            "name": tool.name, "arguments": arguments, "_meta": {DEPTH_META: depth(cx) + 1},
        });
        let reply = match (&self.recall.options.tools, tool.own) {
            (Some(door), false) => answer(door, Method::ToolsCall, params, cx, until).await,
            _ => answer(self.own(), Method::ToolsCall, params, cx, until).await,
        };
        match reply {
            Reply::Complete(result) => given(&result),
            Reply::Error(error) => Given::failed(error.message().to_owned()),
            Reply::InputRequired(_) => Given::failed("The tool asks for input, which agents cannot give"),
            Reply::Task(_) => Given::failed("The tool goes on as a task, which agents cannot wait for"),
            Reply::Subscription(_) => Given::failed("The tool gave no result"),
        }
    }
}

/// Whether a tool may be one of the memory's own.
fn is_here(named: &Named) -> bool {
    named.mcp_server.as_deref().is_none_or(|server| HERE.contains(&server.to_lowercase().as_str()))
}

/// What a tool may be called, the likeliest first.
fn names(named: &Named) -> Vec<String> {
    let plain = named.tool_name.clone();
    match named.mcp_server.as_deref() {
        Some(server) if is_here(named) => vec![plain.clone(), format!("{server}_{plain}")],
        Some(server) => vec![format!("{server}_{plain}"), plain],
        None => vec![plain],
    }
}

/// The name as models take it, and no other tool has it.
fn alias(name: &str, taken: &mut HashSet<String>) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let base: String = name.chars().map(|c| if fits(c) { c } else { '_' }).take(60).collect();
    let mut alias = base.clone();
    for n in 2.. {
        if taken.insert(alias.clone()) {
            break;
        }
        alias = format!("{base}_{n}");
    }
    alias
}

async fn answer<D: Door>(door: &D, method: Method, params: Value, cx: &Cx, until: Instant) -> Reply {
    let mut context = Context::local();
    context.correlation = cx.correlation_id();
    context.principal = cx.principal().clone();
    context.client_info = cx.client_info().cloned();
    context.deadline = Some(until);
    // Whoever stops waiting for the agent stops what it has begun.
    let _stop = context.cancel.clone().drop_guard();
    let params = match Params::parse(&Json::from(params), &Limits::default()) {
        Ok(params) => params,
        Err(fault) => return Reply::Error(tidegate_protocol::Error::invalid_params(fault)),
    };
    match door.answer(Call::new(method, params, context)).await {
        Ok(reply) => reply,
        Err(never) => match never {},
    }
}

/// All tools behind a door, as far as it says.
async fn list<D: Door>(door: &D, cx: &Cx, until: Instant) -> Vec<Value> {
    let (mut tools, mut params) = (Vec::new(), json!({}));
    for _ in 0..PAGES {
        let Reply::Complete(page) = answer(door, Method::ToolsList, params, cx, until).await else { break };
        let mut page: Value = page.to().unwrap_or_default();
        if let Some(Value::Array(more)) = page.get_mut("tools").map(Value::take) {
            tools.extend(more);
        }
        let Some(next) = page["nextCursor"].as_str() else { break };
        params = json!({"cursor": next});
    }
    tools
}

/// What a result says, in words.
fn given(result: &Json) -> Given {
    let result: Value = result.to().unwrap_or_default();
    let blocks = result["content"].as_array().into_iter().flatten();
    let texts: Vec<&str> = blocks.filter_map(|block| block["text"].as_str()).collect();
    let text = match (texts.is_empty(), result.get("structuredContent")) {
        (true, Some(structured)) => structured.to_string(),
        (true, None) => "(nothing that can be read)".to_owned(),
        (false, _) => texts.join("\n"),
    };
    Given { text: cut(text), failed: result["isError"] == true }
}

/// The text, as much of it as is shown.
fn cut(mut text: String) -> String {
    if text.len() > SHOWN {
        let end = (0..=SHOWN).rev().find(|&at| text.is_char_boundary(at)).unwrap_or_default();
        let left = text.len() - end;
        text.truncate(end);
        text.push_str(&format!("\n(cut here: {left} more bytes. Ask for less at a time)"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_what_models_take() {
        let mut taken = HashSet::from([ANSWER.to_owned()]);
        assert_eq!(alias("a.b/c", &mut taken), "a_b_c");
        assert_eq!(alias("a_b_c", &mut taken), "a_b_c_2");
        assert_eq!(alias("answer", &mut taken), "answer_2");
        assert_eq!(alias(&"x".repeat(100), &mut taken).len(), 60);
    }

    #[test]
    fn long_results_are_cut_between_characters() {
        let text = cut("ä".repeat(SHOWN));
        assert!(text.len() < SHOWN + 100 && text.contains("more bytes"));
        assert_eq!(cut("short".into()), "short");
    }
}
