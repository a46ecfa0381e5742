//! `tidegate doctor`: looks at servers, says what is wrong with them, and how to mend it.
//!
//! `check` talks to a server, `lists` reads everything it offers, `tools` and `others` look for faults in that,
//! `clients` says who could not use it, `report` is what comes out.

mod check;
mod clients;
mod frameworks;
mod lists;
mod others;
mod report;
mod tools;

use std::sync::{Arc, Mutex};

use clap::Args;
use serde_json::json;
use tidegate_client::{ServersFile, well_known_files};
use tokio::task::JoinSet;

use super::display::Display;
use super::exit::Exit;
use super::failure::Failure;
use super::interrupt::Interrupt;
use super::output;
use super::target::{self, Common, Place, Words};
use crate::term::style::Paint;
use report::Report;

/// Check servers: what works, what does not, how to mend it.
///
/// Shows era, latency, capabilities, faults in what they offer, and which clients could not use them. Without TARGET, every server is checked that Claude Code, Claude Desktop, Cursor or VS Code knows of here.
#[derive(Args)]
#[command(
    override_usage = "tidegate doctor [OPTIONS] [TARGET]...\n       tidegate doctor [OPTIONS] -- COMMAND [ARG]...",
    after_help = super::exit::after_help()
)]
pub(crate) struct Doctor {
    #[command(flatten)]
    words: Words,
    #[command(flatten)]
    pub(crate) common: Common,
}

/// A report in the making: what is known so far is there whenever time is up.
pub(crate) type Shared = Arc<Mutex<Report>>;

pub(crate) async fn run(doctor: Doctor) -> Result<Exit, Failure> {
    let Doctor { words, common } = doctor;
    let wanted = wanted(words, &common)?;
    let display = Display::new(common.verbose);
    let interrupt = Interrupt::listen();
    display.waiting(&match wanted.len() {
        1 => "Checking 1 server".to_owned(),
        many => format!("Checking {many} servers"),
    });
    let reports = interrupt.or(async { Ok(all(wanted, &common).await) }).await;
    display.clear();
    let reports = reports?;
    let broken = reports.iter().any(Report::is_broken);
    if common.json {
        let reports: Vec<_> = reports.iter().map(Report::to_json).collect();
        output::text(&json!({"ok": !broken, "servers": reports}).to_string())?;
    } else {
        let (width, paint) = (crate::term::width(), Paint::stdout());
        let shown: Vec<_> = reports.iter().map(|report| report.show(width, paint)).collect();
        output::text(&shown.join("\n"))?;
    }
    Ok(if broken { Exit::ToolError } else { Exit::Fine })
}

/// What is to be checked: a server, or why there is none.
enum Wanted {
    Server(Place),
    Nothing(Report),
}

fn wanted(words: Words, common: &Common) -> Result<Vec<Wanted>, Failure> {
    let (names, command) = words.clone().each();
    if !command.is_empty() {
        let (place, rest) = words.split(common)?;
        super::nothing_more(rest)?;
        return Ok(vec![Wanted::Server(place)]);
    }
    if names.is_empty() {
        return known(common);
    }
    let mut wanted = Vec::new();
    for name in names {
        wanted.push(match target::find(&name, common).and_then(|place| common.applied(place)) {
            Ok(place) => Wanted::Server(place),
            Err(failure) => Wanted::Nothing(Report::failed(&name, &failure)),
        });
    }
    Ok(wanted)
}

/// All servers of the file that was given, else of the files of other programs.
fn known(common: &Common) -> Result<Vec<Wanted>, Failure> {
    let files = match common.config() {
        Some(file) => vec![file.to_owned()],
        None => well_known_files().into_iter().map(|(_, path)| path).filter(|path| path.is_file()).collect(),
    };
    let mut wanted = Vec::new();
    for path in files {
        let shown = path.display().to_string();
        let file = match ServersFile::load(&path) {
            Ok(file) => file,
            // Files like ~/.claude.json hold much else.
            Err(tidegate_client::ServersFileError::NoServers { .. }) if common.config().is_none() => continue,
            Err(error) => {
                wanted.push(Wanted::Nothing(Report::failed(&shown, &Failure::usage(error))));
                continue;
            }
        };
        for (name, entry) in file.entries() {
            wanted.push(match entry {
                Ok(entry) if entry.disabled => continue,
                Ok(entry) => {
                    let place =
                        Place { name: name.to_owned(), target: entry.target, file: Some(path.clone()) };
                    Wanted::Server(place)
                }
                Err(error) => Wanted::Nothing(Report::failed(name, &Failure::usage(error))),
            });
        }
    }
    if wanted.is_empty() {
        return Err(Failure::usage(
            "there are no servers to check: no mcpServers file of a known program names any",
        )
        .next("Name one: tidegate doctor TARGET, or a file: tidegate doctor --config FILE."));
    }
    Ok(wanted)
}

/// Checks all at the same time; the reports come in the order of the question.
async fn all(wanted: Vec<Wanted>, common: &Common) -> Vec<Report> {
    let mut checks = JoinSet::new();
    let mut reports = Vec::new();
    for (at, wanted) in wanted.into_iter().enumerate() {
        match wanted {
            Wanted::Nothing(report) => reports.push((at, report)),
            Wanted::Server(place) => {
                let common = common.clone();
                checks.spawn(async move { (at, check::server(place, &common).await) });
            }
        }
    }
    while let Some(done) = checks.join_next().await {
        match done {
            Ok(report) => reports.push(report),
            Err(error) => tracing::error!(%error, "a check broke"),
        }
    }
    reports.sort_by_key(|(at, _)| *at);
    reports.into_iter().map(|(_, report)| report).collect()
}
