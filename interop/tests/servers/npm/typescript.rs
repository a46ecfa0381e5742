//! Version 2 of the official TypeScript SDK. (The reference servers run on version 1.)

use tidegate_client::{Client, EraChoice};
use tidegate_protocol::Revision;

use crate::meeting::{Over, soon};
use crate::server::{Program, Serving};
use crate::vocabulary::{UnknownTool, Way, speak};
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

#[tokio::test(flavor = "multi_thread")]
async fn stdio_modern() {
    speak(way(Over::Stdio, EraChoice::Auto, Revision::V2026_07_28)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn http_modern() {
    speak(way(Over::Http, EraChoice::Auto, Revision::V2026_07_28)).await;
}

/// A server that speaks nothing older.
#[tokio::test(flavor = "multi_thread")]
async fn stdio_modern_only() {
    let mut way = way(Over::Stdio, EraChoice::Auto, Revision::V2026_07_28);
    way.program = way.program.arg("modern");
    speak(way).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn http_modern_only() {
    let mut way = way(Over::Http, EraChoice::Auto, Revision::V2026_07_28);
    way.program = way.program.arg("modern");
    speak(way).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn stdio_legacy() {
    speak(way(Over::Stdio, EraChoice::Legacy, Revision::V2025_11_25)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn http_legacy() {
    let way = way(Over::Http, EraChoice::Legacy, Revision::V2025_11_25);
    let stateless = "it keeps no sessions for legacy clients, so it cannot ask or tell them anything";
    let unrelated = "without sessions, a notification has nothing to do with any call";
    let without = vec![
        NO_LIE,
        ("elicitation", stateless),
        ("sampling", stateless),
        ("roots", stateless),
        ("cancellation", unrelated),
        ("list changes", stateless),
        ("resource changes", stateless),
    ];
    speak(Way { without: without.leak(), ..way }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn stdio_legacy_behind_a_door() {
    speak(way(Over::Stdio, EraChoice::Legacy, Revision::V2025_11_25).behind_a_door()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn http_modern_behind_a_door() {
    speak(way(Over::Http, EraChoice::Auto, Revision::V2026_07_28).behind_a_door()).await;
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
