//! `tidegate discover`: what a server says about itself.

use clap::Args;
use serde_json::{Value, json};
use tidegate::protocol::Era;
use tidegate_client::ServerInfo;

use super::connection::{Session, with_session};
use super::display::Display;
use super::failure::Failure;
use super::output;
use super::target::{ConnectionArgs, TargetArgs};
use crate::term::style::Paint;
use crate::term::table::Table;
use crate::term::wrap::indented;
use crate::term::{clean, width};

/// Show a server's version, transport, capabilities and instructions.
#[derive(Args)]
#[command(
    override_usage = "tidegate discover [OPTIONS] TARGET\n       tidegate discover [OPTIONS] -- COMMAND [ARG]...",
    after_help = super::exit::after_help()
)]
pub(crate) struct Discover {
    #[command(flatten)]
    words: TargetArgs,
    #[command(flatten)]
    pub(crate) common: ConnectionArgs,
}

pub(crate) async fn run(discover: Discover) -> Result<(), Failure> {
    let Discover { words, common } = discover;
    let (server, rest) = words.split(&common)?;
    super::nothing_more(rest)?;
    with_session(&server, &common, async |session: &Session, _: &Display| {
        let facts = &session.facts;
        if common.json { output::text(&to_json(facts).to_string()) } else { output::text(&shown(facts)) }
    })
    .await
}

/// The era as people call it.
pub(crate) fn era(facts: &ServerInfo) -> &'static str {
    match facts.era() {
        Era::Legacy => "legacy",
        Era::Modern => "modern",
    }
}

/// What a server is called: its own name and version.
pub(crate) fn called(facts: &ServerInfo) -> String {
    let parts = [facts.name(), facts.version()];
    clean::line(&parts.into_iter().flatten().collect::<Vec<_>>().join(" "))
}

/// The capabilities in one line: `tools (listChanged), logging`.
pub(crate) fn capabilities(facts: &ServerInfo) -> Vec<String> {
    let Ok(Value::Object(all)) = facts.capabilities.to::<Value>() else { return Vec::new() };
    let on = |value: &Value| !matches!(value, Value::Bool(false) | Value::Null);
    let named = |(name, value): (&String, &Value)| {
        let inner = value.as_object().into_iter().flatten().filter(|(_, value)| on(value));
        let inner: Vec<&str> = inner.map(|(name, _)| name.as_str()).collect();
        let inner = if inner.is_empty() { String::new() } else { format!(" ({})", inner.join(", ")) };
        clean::line(&format!("{name}{inner}"))
    };
    all.iter().filter(|(_, value)| on(value)).map(named).collect()
}

fn to_json(facts: &ServerInfo) -> Value {
    let value = |json: Option<&tidegate::Json>| json.and_then(|json| json.to::<Value>().ok());
    json!({
        "era": era(facts),
        "revision": facts.revision.as_str(),
        "supportedVersions": facts.supported,
        "transport": facts.transport,
        "serverInfo": value(facts.info.as_ref()),
        "capabilities": value(Some(&facts.capabilities)),
        "instructions": facts.instructions,
    })
}

fn shown(facts: &ServerInfo) -> String {
    let paint = Paint::stdout();
    let mut table = Table::new(&["", ""]);
    let info: Value = facts.info.as_ref().and_then(|info| info.to().ok()).unwrap_or_default();
    let title = info.get("title").and_then(Value::as_str).unwrap_or_default();
    let called = called(facts);
    let name = if title.is_empty() { called } else { format!("{called} ({title})") };
    table.row(["Server", if name.is_empty() { "(not reported)" } else { &name }]);
    table.row(["Era", era(facts)]);
    table.row(["Version", facts.revision.as_str()]);
    if facts.supported.len() > 1 {
        table.row(["Supports", &facts.supported.join(", ")]);
    }
    table.row(["Transport", facts.transport]);
    let capabilities = capabilities(facts);
    let none = capabilities.is_empty();
    table.row(["Capabilities", if none { "(none)".to_owned() } else { capabilities.join(", ") }.as_str()]);
    let mut shown = table.show(width(), paint);
    if let Some(instructions) = &facts.instructions {
        let instructions = indented(&clean::text(instructions), "  ", width());
        shown.push_str(&format!("{}\n{instructions}\n", paint.name("Instructions")));
    }
    shown
}
