//! How changes are shown, to people and to programs.

use std::path::Path;

use serde_json::{Value, json};
use tidegate::protocol::Object;

use super::changes::Change;
use super::tools::ServerTools;
use crate::term::clean;
use crate::term::style::Paint;

/// For people: server by server, with what is different. New tools in full only if that is asked for.
pub(super) fn text(changes: &[Change], listed: &[ServerTools], full: bool) -> String {
    let paint = Paint::stdout();
    if changes.is_empty() {
        let known: Vec<usize> = listed.iter().filter_map(|it| Some(it.tools.as_ref().ok()?.len())).collect();
        let (tools, servers) = (counted(known.iter().sum(), "tool"), counted(known.len(), "server"));
        return format!("No changes since the last approval ({tools}, {servers}).");
    }
    let mut out = String::new();
    let mut server = None;
    for change in changes {
        if server != Some(&change.server) {
            server = Some(&change.server);
            out.push_str(&format!("{}\n", paint.bold(clean::line(&change.server))));
        }
        let name = paint.name(clean::line(&change.tool));
        let said = match change.kind() {
            "new" if !full => format!("{}      {name}  {}", paint.good("new"), summary(change)),
            "new" => format!("{}      {name}", paint.good("new")),
            "changed" => format!("{}  {name}", paint.warning("changed")),
            _ => format!("{}     {name}", paint.bad("gone")),
        };
        out.push_str(&format!("  {}\n", said.trim_end()));
        if change.kind() == "changed" || change.kind() == "new" && full {
            for line in change.diff().lines() {
                let painted = match line.as_bytes().first() {
                    Some(b'+') => paint.good(line),
                    Some(b'-') => paint.bad(line),
                    Some(b'@') => paint.dim(line),
                    _ => line.to_owned(),
                };
                out.push_str(&format!("    {painted}\n"));
            }
        }
    }
    out
}

/// The first words of what a new tool says of itself.
fn summary(change: &Change) -> String {
    const MOST: usize = 80;
    let definition = change.now.as_ref().and_then(|pin| Object::of(pin.definition()));
    let description = definition.and_then(|it| it.str("description").map(|text| clean::first_line(&text)));
    let description = description.unwrap_or_default();
    match description.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &description[..end]),
        None => description,
    }
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// For programs.
pub(super) fn json(file: &Path, changes: &[Change], listed: &[ServerTools], approved: bool) -> Value {
    let change = |change: &Change| {
        json!({
            "server": change.server,
            "tool": change.tool,
            "change": change.kind(),
            "approved": change.before.as_ref().map(|pin| pin.digest()),
            "now": change.now.as_ref().map(|pin| pin.digest()),
            "diff": change.diff(),
        })
    };
    let failure = |it: &ServerTools| {
        Some(json!({"server": it.server, "error": it.tools.as_ref().err()?.to_json()["error"]}))
    };
    json!({
        "lockFile": file,
        "changes": changes.iter().map(change).collect::<Vec<_>>(),
        "failures": listed.iter().filter_map(failure).collect::<Vec<_>>(),
        "written": approved,
    })
}
