//! rmcp, the official Rust SDK.

mod failures;

use tidegate_client::EraChoice;
use tidegate_protocol::Revision;

use crate::meeting::Over;
use crate::server::Program;
use crate::vocabulary::{UnknownTool, Way, speaks};

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

fn modern(over: Over) -> Way {
    way(over, EraChoice::Auto, Revision::V2026_07_28)
}

fn legacy(over: Over) -> Way {
    way(over, EraChoice::Legacy, Revision::V2025_11_25)
}

/// A server that knows no other era, which our client has to find out.
fn only_legacy(over: Over) -> Way {
    way(over, EraChoice::Auto, Revision::V2025_11_25).arg("legacy")
}

speaks! {
    stdio_modern => modern(Over::Stdio);
    http_modern => modern(Over::Http);
    stdio_legacy => legacy(Over::Stdio);
    http_legacy => legacy(Over::Http);
    stdio_legacy_found => only_legacy(Over::Stdio);
    http_legacy_found => only_legacy(Over::Http);
    stdio_modern_behind_a_door => modern(Over::Stdio).behind_a_door();
    http_modern_behind_a_door => modern(Over::Http).behind_a_door();
    stdio_legacy_behind_a_door => legacy(Over::Stdio).behind_a_door();
    http_legacy_behind_a_door => legacy(Over::Http)
        .behind_a_door()
        .without(&[("log", "rmcp writes it to the side stream, where it belongs to no caller")]);
}
