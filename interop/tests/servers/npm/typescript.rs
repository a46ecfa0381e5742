//! Version 2 of the official TypeScript SDK. (The reference servers run on version 1.)

use tidegate_client::{Client, EraChoice};
use tidegate_protocol::Revision;

use crate::meeting::{Over, soon};
use crate::server::{Program, Serving};
use crate::vocabulary::{UnknownTool, Way, speaks};
use crate::{lifecycle, paths};

const NO_LIE: (&str, &str) = ("broken output schema", "the SDK checks results before it sends them");

fn way(over: Over, era: EraChoice, revision: Revision) -> Way {
    let installed = paths::npm().display().to_string();
    Way {
        name: "typescript-sdk",
        program: Program::new(paths::node(), &[&paths::own("node/typescript_sdk.mjs"), over.name()])
            .env("TIDEGATE_NODE_MODULES", installed),
        over,
        era,
        revision,
        door: false,
        unknown_tool: UnknownTool::Error,
        without: &[NO_LIE],
    }
}

fn modern(over: Over) -> Way {
    way(over, EraChoice::Auto, Revision::V2026_07_28)
}

fn legacy(over: Over) -> Way {
    way(over, EraChoice::Legacy, Revision::V2025_11_25)
}

const STATELESS: &str = "it keeps no sessions for legacy clients, so it cannot ask or tell them anything";
const UNRELATED: &str = "without sessions, a notification has nothing to do with any call";

speaks! {
    stdio_modern => modern(Over::Stdio);
    http_modern => modern(Over::Http);
    /// A server that speaks nothing older.
    stdio_modern_only => modern(Over::Stdio).arg("modern");
    http_modern_only => modern(Over::Http).arg("modern");
    stdio_legacy => legacy(Over::Stdio);
    http_legacy => legacy(Over::Http).without(&[
        NO_LIE,
        ("elicitation", STATELESS),
        ("sampling", STATELESS),
        ("roots", STATELESS),
        ("cancellation", UNRELATED),
        ("list changes", STATELESS),
        ("resource changes", STATELESS),
    ]);
    stdio_legacy_behind_a_door => legacy(Over::Stdio).behind_a_door();
    http_modern_behind_a_door => modern(Over::Http).behind_a_door();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_era_that_the_server_does_not_speak() {
    for over in [Over::Stdio, Over::Http] {
        let modern = way(over, EraChoice::Legacy, Revision::V2025_11_25).program.arg("modern");
        let serving = (over == Over::Http).then(|| Serving::start(&modern));
        let target = serving.as_ref().map_or_else(|| modern.target(), |serving| serving.target("").into());
        let builder =
            Client::builder(target).expect("a target").configure(|options| options.era = EraChoice::Legacy);
        let error = soon("connecting", builder.connect()).await.expect_err("it speaks no legacy");
        assert_eq!(error.code, "E203", "{over:?}: {error:?}");
        assert!(error.message.contains("2025-11-25"), "it says what will not do: {error}");
    }
}

/// A server of both eras stays with the one that it shook hands in.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_starts_slowly() {
    let env = [("TIDEGATE_NODE_MODULES", paths::npm().display().to_string())];
    let script = paths::own("node/typescript_sdk.mjs");
    for words in ["stdio", "stdio modern"] {
        lifecycle::starts_slowly(&format!("'{}' '{script}' {words}", paths::node()), &env).await;
    }
}
