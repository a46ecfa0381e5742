//! The agents that every change meets.

use super::desk::Agent;
use super::model::Wire::{Chat, Messages, Responses};
use super::programs::{claude_code, codex, python};
use crate::meeting::Over::{Http, Stdio};

#[tokio::test(flavor = "multi_thread")]
async fn claude_code_over_http() {
    Agent { name: "claude-code", over: Http, wire: Messages, streams: true, program: claude_code }
        .run()
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn claude_code_over_stdio() {
    Agent { name: "claude-code-stdio", over: Stdio, wire: Messages, streams: true, program: claude_code }
        .run()
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn codex_over_http() {
    Agent { name: "codex", over: Http, wire: Responses, streams: true, program: codex }.run().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn codex_over_stdio() {
    Agent { name: "codex-stdio", over: Stdio, wire: Responses, streams: true, program: codex }.run().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn crewai() {
    let program = |desk: &_| python(desk, "crewai", &[]).env("CREWAI_DISABLE_TELEMETRY", "true");
    Agent { name: "crewai", over: Http, wire: Chat, streams: false, program }.run().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pydantic_ai() {
    let program = |desk: &_| python(desk, "pydantic_ai", &["messages"]);
    Agent { name: "pydantic-ai", over: Http, wire: Messages, streams: false, program }.run().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pydantic_ai_over_stdio() {
    let program = |desk: &_| python(desk, "pydantic_ai", &["responses"]);
    Agent { name: "pydantic-ai-stdio", over: Stdio, wire: Responses, streams: false, program }.run().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn autogen() {
    let program = |desk: &_| python(desk, "autogen", &[]);
    Agent { name: "autogen", over: Http, wire: Chat, streams: false, program }.run().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn langchain() {
    let program = |desk: &_| python(desk, "langchain", &[]);
    Agent { name: "langchain", over: Http, wire: Chat, streams: true, program }.run().await;
}
