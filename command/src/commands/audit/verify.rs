//! `tidegate audit verify`.

use std::path::Path;

use clap::Args;
use serde_json::{Value, json};
use tidegate_audit::verify::{Damage, Head, Mark, Report, verify};

use super::{Place, shown, unreadable};
use crate::commands::exit::Exit;
use crate::commands::failure::Failure;
use crate::commands::output;
use crate::term::clean;
use crate::term::style::Paint;

/// Say whether the trail is as it was written and, if not, which records are not
///
/// Reads the file and those that were put aside, oldest first. What it cannot notice is a whole trail that somebody wrote anew, with its head:
/// note the head elsewhere and compare with --expect, or send records to a syslog server, too.
#[derive(Args)]
#[command(after_help = AFTER)]
pub(super) struct Verify {
    #[command(flatten)]
    place: Place,

    /// The head of an earlier time, as this command showed it: that record must still be the same
    #[arg(long, value_name = "SEQ:HASH")]
    expect: Option<Head>,

    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

const AFTER: &str = "\
Exit codes:
  0    everything is as it was written
  1    records were changed, removed, moved or added
  2    there is no trail, or it cannot be read";

pub(super) fn run(arguments: &Verify) -> Result<Exit, Failure> {
    let path = arguments.place.find()?;
    let report = verify(&path, arguments.expect).map_err(|error| unreadable(&path, &error))?;
    output::text(&match arguments.json {
        true => to_json(&path, &report).to_string(),
        false => to_text(&path, &report),
    })?;
    Ok(if report.is_sound() { Exit::Fine } else { Exit::ToolError })
}

fn to_text(path: &Path, report: &Report) -> String {
    let (paint, path) = (Paint::stdout(), shown(path));
    let mut out = String::new();
    for damage in &report.damage {
        out.push_str(&format!("{} {}\n", paint.bad("damage:"), clean::line(&damage.to_string())));
    }
    if report.unlisted > 0 {
        out.push_str(&format!("{} and {} more\n", paint.bad("damage:"), report.unlisted));
    }
    for note in &report.notes {
        out.push_str(&format!("{} {}\n", paint.warning("note:"), clean::line(note)));
    }
    let state = match report.is_sound() {
        true => paint.good("sound"),
        false => paint.bad("damaged"),
    };
    let files = match report.files.len() {
        0 | 1 => String::new(),
        many => format!(", in {many} files"),
    };
    out.push_str(&format!("{path} is {state}: {}{files}\n", extent(report)));
    if let Some(head) = &report.head {
        out.push_str(&format!("Head: {head}\n"));
    }
    out
}

/// How many records there are, and from when to when.
fn extent(report: &Report) -> String {
    match (&report.first, &report.last) {
        (Some(first), Some(last)) => {
            let count = match report.records {
                1 => "1 record".to_owned(),
                count => format!("{count} records"),
            };
            let (from, to) = (clean::line(&first.time), clean::line(&last.time));
            format!("{count}, {} to {}, from {from} to {to}", first.seq, last.seq)
        }
        _ => "no records".to_owned(),
    }
}

fn to_json(path: &Path, report: &Report) -> Value {
    let mark = |mark: &Mark| json!({"seq": mark.seq, "time": mark.time});
    let damage = |damage: &Damage| {
        json!({
            "file": damage.file,
            "line": damage.line,
            "seq": damage.seq,
            "to": damage.what.to(),
            "what": damage.what.as_str(),
            "message": damage.to_string(),
        })
    };
    json!({
        "file": path,
        "ok": report.is_sound(),
        "records": report.records,
        "first": report.first.as_ref().map(mark),
        "last": report.last.as_ref().map(mark),
        "head": report.head.map(|head| head.to_string()),
        "files": report.files,
        "damage": report.damage.iter().map(damage).collect::<Vec<_>>(),
        "unlisted": report.unlisted,
        "notes": report.notes,
    })
}
