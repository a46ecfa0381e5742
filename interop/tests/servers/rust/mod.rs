//! rmcp, the official Rust SDK.

mod failures;

use tidegate_client::EraChoice;
use tidegate_protocol::Revision;

use crate::meeting::Over;
use crate::server::Program;
use crate::vocabulary::{UnknownTool, Way, speak};

fn program(over: Over) -> Program {
    Program::new(env!("CARGO_BIN_EXE_rmcp-server"), &[over.name()])
}

fn way(over: Over, era: EraChoice, revision: Revision) -> Way {
    Way {
        name: "rmcp",
        program: program(over),
        over,
        era,
        revision,
        door: false,
        unknown_tool: UnknownTool::Error,
        without: &[],
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn stdio_modern() {
    speak(way(Over::Stdio, EraChoice::Auto, Revision::V2026_07_28)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn http_modern() {
    speak(way(Over::Http, EraChoice::Auto, Revision::V2026_07_28)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn stdio_legacy() {
    speak(way(Over::Stdio, EraChoice::Legacy, Revision::V2025_11_25)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn http_legacy() {
    speak(way(Over::Http, EraChoice::Legacy, Revision::V2025_11_25)).await;
}

/// A server that knows no other era is found out.
#[tokio::test(flavor = "multi_thread")]
async fn stdio_legacy_found() {
    let mut way = way(Over::Stdio, EraChoice::Auto, Revision::V2025_11_25);
    way.program = way.program.arg("legacy");
    speak(way).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn http_legacy_found() {
    let mut way = way(Over::Http, EraChoice::Auto, Revision::V2025_11_25);
    way.program = way.program.arg("legacy");
    speak(way).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn stdio_modern_behind_a_door() {
    speak(way(Over::Stdio, EraChoice::Auto, Revision::V2026_07_28).behind_a_door()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn http_modern_behind_a_door() {
    speak(way(Over::Http, EraChoice::Auto, Revision::V2026_07_28).behind_a_door()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn stdio_legacy_behind_a_door() {
    speak(way(Over::Stdio, EraChoice::Legacy, Revision::V2025_11_25).behind_a_door()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn http_legacy_behind_a_door() {
    let without = &[("log", "rmcp writes it to the side stream, where it belongs to no caller")];
    speak(Way { without, ..way(Over::Http, EraChoice::Legacy, Revision::V2025_11_25).behind_a_door() }).await;
}
