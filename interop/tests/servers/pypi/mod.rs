//! Servers on the SDKs from PyPI: the official one, and FastMCP.

use tidegate_client::EraChoice;
use tidegate_protocol::Revision;

use crate::meeting::Over;
use crate::paths;
use crate::server::Program;
use crate::vocabulary::{UnknownTool, Way, speaks};

const NO_SUBSCRIBE: (&str, &str) = ("resource changes", "it has no resources/subscribe");
const NO_LISTEN: (&str, &str) = ("list changes", "it has no subscriptions/listen");
const NO_LIE: (&str, &str) = ("broken output schema", "the SDK checks results before it sends them");

fn way(name: &'static str, over: Over, era: EraChoice, revision: Revision) -> Way {
    let (script, unknown_tool) = match name {
        FASTMCP => ("python/fast_mcp.py", UnknownTool::Result),
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

fn modern(name: &'static str, over: Over) -> Way {
    way(name, over, EraChoice::Auto, Revision::V2026_07_28)
}

fn legacy(name: &'static str, over: Over) -> Way {
    way(name, over, EraChoice::Legacy, Revision::V2025_11_25)
}

/// The oldest transport, which our client has to find out.
fn sse(name: &'static str) -> Way {
    way(name, Over::Sse, EraChoice::Auto, Revision::V2025_11_25)
}

const SDK: &str = "python-sdk";
const FASTMCP: &str = "fastmcp";

speaks! {
    sdk_stdio_modern => modern(SDK, Over::Stdio).without(&[NO_LIE]);
    sdk_http_modern => modern(SDK, Over::Http).without(&[NO_LIE]);
    sdk_stdio_legacy => legacy(SDK, Over::Stdio).without(&[NO_LIE, NO_SUBSCRIBE]);
    sdk_http_legacy => legacy(SDK, Over::Http).without(&[NO_LIE, NO_SUBSCRIBE]);
    sdk_sse => sse(SDK).without(&[NO_LIE, NO_SUBSCRIBE]);
    fastmcp_stdio_modern => modern(FASTMCP, Over::Stdio).without(&[NO_LISTEN, NO_SUBSCRIBE]);
    fastmcp_http_modern => modern(FASTMCP, Over::Http).without(&[NO_LISTEN, NO_SUBSCRIBE]);
    fastmcp_stdio_legacy => legacy(FASTMCP, Over::Stdio).without(&[NO_SUBSCRIBE]);
    fastmcp_http_legacy => legacy(FASTMCP, Over::Http).without(&[NO_SUBSCRIBE]);
    fastmcp_sse => sse(FASTMCP).without(&[NO_SUBSCRIBE]);
    sdk_http_legacy_behind_a_door => legacy(SDK, Over::Http).behind_a_door().without(&[NO_LIE, NO_SUBSCRIBE]);
    fastmcp_sse_behind_a_door => sse(FASTMCP).behind_a_door().without(&[NO_SUBSCRIBE]);
    fastmcp_stdio_modern_behind_a_door =>
        modern(FASTMCP, Over::Stdio).behind_a_door().without(&[NO_LISTEN, NO_SUBSCRIBE]);
}
