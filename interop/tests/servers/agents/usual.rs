//! The agents that every change meets.

use super::agent::Agent;
use super::model::Wire::{Chat, Messages, Responses};
use super::programs::{claude_code, codex, python};
use crate::meeting::Over::{Http, Stdio};

#[tokio::test(flavor = "multi_thread")]
async fn claude_code_over_http() {
    Agent { name: "claude-code", over: Http, wire: Messages, streams: true }.run(claude_code).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn claude_code_over_stdio() {
    Agent { name: "claude-code-stdio", over: Stdio, wire: Messages, streams: true }.run(claude_code).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn codex_over_http() {
    Agent { name: "codex", over: Http, wire: Responses, streams: true }.run(codex).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn codex_over_stdio() {
    Agent { name: "codex-stdio", over: Stdio, wire: Responses, streams: true }.run(codex).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn crewai() {
    let agent = Agent { name: "crewai", over: Http, wire: Chat, streams: false };
    agent.run(|workspace| python(workspace, "crewai", &[])).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pydantic_ai() {
    let agent = Agent { name: "pydantic-ai", over: Http, wire: Messages, streams: false };
    agent.run(|workspace| python(workspace, "pydantic_ai", &["messages"])).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pydantic_ai_over_stdio() {
    let agent = Agent { name: "pydantic-ai-stdio", over: Stdio, wire: Responses, streams: false };
    agent.run(|workspace| python(workspace, "pydantic_ai", &["responses"])).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn autogen() {
    let agent = Agent { name: "autogen", over: Http, wire: Chat, streams: false };
    agent.run(|workspace| python(workspace, "autogen", &[])).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn langchain() {
    let agent = Agent { name: "langchain", over: Http, wire: Chat, streams: true };
    agent.run(|workspace| python(workspace, "langchain", &[])).await;
}
