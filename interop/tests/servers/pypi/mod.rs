//! Servers on the SDKs from PyPI: the official one, and FastMCP.

use tidegate_client::EraChoice;
use tidegate_protocol::Revision;

use crate::meeting::Over;
use crate::paths;
use crate::server::Program;
use crate::vocabulary::{UnknownTool, Way, speak};

const NO_SUBSCRIBE: (&str, &str) = ("resource changes", "it has no resources/subscribe");
const NO_LISTEN: (&str, &str) = ("list changes", "it has no subscriptions/listen");
const NO_LIE: (&str, &str) = ("broken output schema", "the SDK checks results before it sends them");

fn way(name: &'static str, over: Over, era: EraChoice, revision: Revision) -> Way {
    let (script, unknown_tool) = match name {
        "fastmcp" => ("python/fast_mcp.py", UnknownTool::Result),
        _ => ("python/python_sdk.py", UnknownTool::Result),
    };
    Way {
        name,
        program: Program::new(paths::python(), &[&paths::own(script), over.name()])
            .env("PYTHONDONTWRITEBYTECODE", "1"),
        over,
        era,
        revision,
        door: false,
        unknown_tool,
        without: &[],
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sdk_stdio_modern() {
    let way = way("python-sdk", Over::Stdio, EraChoice::Auto, Revision::V2026_07_28);
    speak(Way { without: &[NO_LIE], ..way }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sdk_http_modern() {
    let way = way("python-sdk", Over::Http, EraChoice::Auto, Revision::V2026_07_28);
    speak(Way { without: &[NO_LIE], ..way }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sdk_stdio_legacy() {
    let way = way("python-sdk", Over::Stdio, EraChoice::Legacy, Revision::V2025_11_25);
    speak(Way { without: &[NO_LIE, NO_SUBSCRIBE], ..way }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sdk_http_legacy() {
    let way = way("python-sdk", Over::Http, EraChoice::Legacy, Revision::V2025_11_25);
    speak(Way { without: &[NO_LIE, NO_SUBSCRIBE], ..way }).await;
}

/// The oldest transport, which a client has to find out.
#[tokio::test(flavor = "multi_thread")]
async fn sdk_sse() {
    let way = way("python-sdk", Over::Sse, EraChoice::Auto, Revision::V2025_11_25);
    speak(Way { without: &[NO_LIE, NO_SUBSCRIBE], ..way }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fastmcp_stdio_modern() {
    let way = way("fastmcp", Over::Stdio, EraChoice::Auto, Revision::V2026_07_28);
    speak(Way { without: &[NO_LISTEN, NO_SUBSCRIBE], ..way }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fastmcp_http_modern() {
    let way = way("fastmcp", Over::Http, EraChoice::Auto, Revision::V2026_07_28);
    speak(Way { without: &[NO_LISTEN, NO_SUBSCRIBE], ..way }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fastmcp_stdio_legacy() {
    let way = way("fastmcp", Over::Stdio, EraChoice::Legacy, Revision::V2025_11_25);
    speak(Way { without: &[NO_SUBSCRIBE], ..way }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fastmcp_http_legacy() {
    let way = way("fastmcp", Over::Http, EraChoice::Legacy, Revision::V2025_11_25);
    speak(Way { without: &[NO_SUBSCRIBE], ..way }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fastmcp_sse() {
    let way = way("fastmcp", Over::Sse, EraChoice::Auto, Revision::V2025_11_25);
    speak(Way { without: &[NO_SUBSCRIBE], ..way }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sdk_http_legacy_behind_a_door() {
    let way = way("python-sdk", Over::Http, EraChoice::Legacy, Revision::V2025_11_25).behind_a_door();
    speak(Way { without: &[NO_LIE, NO_SUBSCRIBE], ..way }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fastmcp_sse_behind_a_door() {
    let way = way("fastmcp", Over::Sse, EraChoice::Auto, Revision::V2025_11_25).behind_a_door();
    speak(Way { without: &[NO_SUBSCRIBE], ..way }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fastmcp_stdio_modern_behind_a_door() {
    let way = way("fastmcp", Over::Stdio, EraChoice::Auto, Revision::V2026_07_28).behind_a_door();
    speak(Way { without: &[NO_LISTEN, NO_SUBSCRIBE], ..way }).await;
}
