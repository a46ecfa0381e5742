//! `tidegate doctor`: looks at servers, says what is wrong with them, and how to fix it.
//!
//! `known` says which, `check` talks to one, `lists` reads everything it offers, `tools` and `others` look for faults in that,
//! `clients` says who could not use it, `report` is what comes out.

mod check;
mod clients;
mod frameworks;
mod known;
mod lists;
mod others;
mod report;
mod starts;
mod tools;

use std::sync::{Arc, Mutex};

use clap::Args;
use serde_json::json;
use tidegate::service::secrets::mask;

use self::known::Wanted;
use self::report::Report;
use self::starts::Starts;
use super::display::Display;
use super::exit::Exit;
use super::failure::Failure;
use super::interrupt::Interrupt;
use super::target::{Common, Words};
use super::{output, several};
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
    words: Words,
    #[command(flatten)]
    pub(crate) common: Common,
}

/// A report in the making: what is known so far is there whenever time is up.
pub(crate) type Shared = Arc<Mutex<Report>>;

pub(crate) async fn run(doctor: Doctor) -> Result<Exit, Failure> {
    let Doctor { words, common } = doctor;
    let wanted = known::wanted(words, &common)?;
    let display = Display::new(common.verbose);
    let interrupt = Interrupt::listen();
    let reports = interrupt.or(async { Ok(all(wanted, &common, &display).await) }).await;
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
async fn all(wanted: Vec<Wanted>, common: &Common, display: &Display) -> Vec<Report> {
    let (mut reports, mut jobs, mut at) = (Vec::new(), Vec::new(), Vec::new());
    let starts = Starts::default();
    for wanted in wanted {
        match wanted {
            Wanted::Nothing(report) => reports.push(*report),
            Wanted::Server(place) => {
                let (common, starts) = (common.clone(), starts.clone());
                at.push(reports.len());
                reports.push(Report { name: place.name.clone(), ..Report::default() });
                jobs.push((place.name.clone(), async move { check::server(*place, &common, &starts).await }));
            }
        }
    }
    for (at, report) in at.into_iter().zip(several::each("Checking", jobs, display).await) {
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
