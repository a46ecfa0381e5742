//! `tidegate doctor`: looks at servers, says what is wrong with them, and how to fix it.
//!
//! `targets` says which, `check` talks to one, `lists` reads everything it offers, `tools` and `entries` look for faults in that,
//! `clients` says who could not use it, `report` is what comes out.

mod check;
mod clients;
mod entries;
mod frameworks;
mod lists;
mod report;
mod starts;
mod targets;
mod tools;

use std::sync::{Arc, Mutex};

use clap::Args;
use serde_json::json;
use tidegate::service::secrets::mask;

use self::report::Report;
use self::starts::Starts;
use self::targets::CheckTarget;
use super::display::Display;
use super::exit::Exit;
use super::failure::Failure;
use super::interrupt::Interrupt;
use super::target::{ConnectionArgs, TargetArgs};
use super::{jobs, output};
use crate::term::style::Paint;

/// Diagnose servers: what works, what does not, and how to fix it.
///
/// Shows era, latency, capabilities, faults in tools and schemas, and which clients cannot use a server. Without TARGET, checks
/// the servers of tidegate.toml and those of your editors and assistants; those of files in this directory, such as .mcp.json,
/// only after you agree. A few servers are started at a time, each for at most its start_timeout.
#[derive(Args)]
#[command(
    override_usage = "tidegate doctor [OPTIONS] [TARGET]...\n       tidegate doctor [OPTIONS] -- COMMAND [ARG]...",
    after_help = super::exit::after_help()
)]
pub(crate) struct Doctor {
    #[command(flatten)]
    words: TargetArgs,
    #[command(flatten)]
    pub(crate) common: ConnectionArgs,
}

/// A report in the making: what is known so far is there whenever time is up.
pub(crate) type SharedReport = Arc<Mutex<Report>>;

pub(crate) async fn run(doctor: Doctor) -> Result<Exit, Failure> {
    let Doctor { words, common } = doctor;
    let targets = targets::targets(words, &common)?;
    let display = Display::new(common.verbose);
    let interrupt = Interrupt::listen();
    let reports = interrupt.or(async { Ok(all(targets, &common, &display).await) }).await;
    display.clear();
    let reports = reports?;
    let broken = reports.iter().any(Report::is_broken);
    if common.json {
        let reports: Vec<_> = reports.iter().map(Report::to_json).collect();
        output::text(&mask(&json!({"ok": !broken, "servers": reports}).to_string()))?;
    } else {
        let (width, paint) = (crate::term::width(), Paint::stdout());
        let shown: Vec<_> = reports.iter().map(|report| report.show(width, paint)).collect();
        output::text(&format!("{}\n{}", shown.join("\n"), report::summary(&reports, paint)))?;
    }
    Ok(if broken { Exit::ToolError } else { Exit::Fine })
}

/// Checks all of them, a few at a time; the reports come in the order of the question.
async fn all(targets: Vec<CheckTarget>, common: &ConnectionArgs, display: &Display) -> Vec<Report> {
    let (mut reports, mut jobs, mut at) = (Vec::new(), Vec::new(), Vec::new());
    let starts = Starts::default();
    for target in targets {
        match target {
            CheckTarget::Unchecked(report) => reports.push(*report),
            CheckTarget::Server(server) => {
                let (common, starts) = (common.clone(), starts.clone());
                at.push(reports.len());
                reports.push(Report { name: server.name.clone(), ..Report::default() });
                jobs.push((
                    server.name.clone(),
                    async move { check::server(*server, &common, &starts).await },
                ));
            }
        }
    }
    for (at, report) in at.into_iter().zip(jobs::run_all("Checking", jobs, display).await) {
        match report {
            Some(report) => reports[at] = report,
            None => {
                let failure = Failure::new(Exit::Unavailable, "the check ended unexpectedly");
                reports[at].failure("", &failure);
            }
        }
    }
    reports
}
