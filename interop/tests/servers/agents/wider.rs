//! Many more agents, for whoever asks for them.

use super::agent::Agent;
use super::model::Wire::{self, Chat, Gemini};
use super::programs::{self, javascript, python};
use crate::meeting::Over::Http;
use crate::server::Program;
use crate::{paths, restart};

#[tokio::test(flavor = "multi_thread")]
async fn copilot() {
    Agent { name: "copilot", over: Http, wire: Chat, streams: true }.run(programs::copilot).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn gemini_cli() {
    Agent { name: "gemini-cli", over: Http, wire: Gemini, streams: true }.run(programs::gemini_cli).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn qwen_code() {
    Agent { name: "qwen-code", over: Http, wire: Chat, streams: true }.run(programs::qwen_code).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn opencode() {
    Agent { name: "opencode", over: Http, wire: Chat, streams: true }.run(programs::opencode).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn continue_cli() {
    Agent { name: "continue-cli", over: Http, wire: Chat, streams: true }.run(programs::continue_cli).await;
}

/// Agno never opens another session.
#[tokio::test(flavor = "multi_thread")]
async fn agno_goes_on_after_kill_9() {
    let program = Program::new(paths::agent_python("agno"), &[&paths::agent("python/agno_restart.py")]);
    restart::go_on_after_kill_9([restart::Client { name: "agno", program, subscribes: false }]).await;
}

/// Frameworks that a script in Python uses, all over HTTP.
macro_rules! from_pypi {
    ($($name:ident $wire:ident $streams:literal;)*) => {$(
        #[tokio::test(flavor = "multi_thread")]
        async fn $name() {
            let agent = Agent { name: stringify!($name), over: Http, wire: Wire::$wire, streams: $streams };
            agent.run(|workspace| python(workspace, stringify!($name), &[])).await;
        }
    )*};
}

from_pypi! {
    ag2 Chat false;
    agent_framework Chat false;
    agno Chat false;
    dspy Chat false;
    google_adk Gemini false;
    haystack Chat false;
    llama_index Chat true;
    mcp_use Chat false;
    openai_agents Responses false;
    semantic_kernel Chat false;
    smolagents Chat false;
    strands Chat true;
}

/// Frameworks that a script in JavaScript uses, all over HTTP.
macro_rules! from_npm {
    ($($name:ident $wire:ident $streams:literal;)*) => {$(
        #[tokio::test(flavor = "multi_thread")]
        async fn $name() {
            let agent = Agent { name: stringify!($name), over: Http, wire: Wire::$wire, streams: $streams };
            agent.run(|workspace| javascript(workspace, stringify!($name))).await;
        }
    )*};
}

from_npm! {
    ai_sdk Chat true;
    langchain_js Chat false;
    mastra Chat false;
    openai_agents_js Responses false;
}
