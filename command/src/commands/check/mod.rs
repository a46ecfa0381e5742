//! `tidegate check`: what a configuration means, or what is wrong with it.

mod access;
mod explain;
mod issuers;
mod problems;
mod report;
mod watching;

use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use tidegate::service::secrets::mask;
use tidegate_config::{ConfigError, Settings};

use super::display::Display;
use super::exit::Exit;
use super::failure::Failure;
use super::inspect::{Inspection, inspect};
use super::interrupt::Interrupt;
use super::resolve::ResolvedServer;
use super::{configuration, jobs, output};
use access::Access;
use explain::Explain;

/// Check the configuration and show what it means.
///
/// Reads the file of keys and the certificate, too. With --connect, each server is also started, a few at a time and each for at most its start_timeout. Secrets are looked
/// up, but never shown.
#[derive(Args)]
#[command(after_help = AFTER)]
pub(crate) struct Check {
    /// A tidegate.toml, or an mcpServers file. [default: ./tidegate.toml, else the user's own]
    file: Option<PathBuf>,

    /// The same as FILE.
    #[arg(long, value_name = "FILE", conflicts_with = "file")]
    config: Option<PathBuf>,

    /// Also connect to each server and issuer, show what servers offer, and look for patterns that match no tool.
    #[arg(long)]
    connect: bool,

    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    explain: Box<Explain>,
}

const AFTER: &str = "\
Exit codes:
  0    the configuration can be used; there may be notes. With --call and the like: it is allowed
  1    a server will fail: its program was not found or, with --connect, it cannot be reached. With --call: it is refused
  2    the configuration, its file of keys or its certificate cannot be used
  130  cancelled (Ctrl-C)";

/// What came of connecting to each server, in the order of the configuration.
type States = Vec<Result<Inspection, Failure>>;

/// Everything there is to say about a configuration.
struct Checked {
    path: PathBuf,
    settings: Settings,
    /// `None` if nobody asked for it.
    states: Option<States>,
    /// What surely makes a server fail: its name, and a sentence.
    problems: Vec<(String, String)>,
    /// What has no effect.
    warnings: Vec<String>,
    /// Who may call, and over what.
    access: Access,
}

pub(crate) async fn run(check: Check) -> Result<Exit, Failure> {
    let path = configuration::existing(check.file.as_deref().or(check.config.as_deref()))?;
    let settings = match configuration::load(&path) {
        Ok(settings) => settings,
        Err(error) if check.json => {
            output::text(&mask(&broken(&error).to_string()))?;
            return Ok(Exit::Usage);
        }
        Err(error) => return Err(error.into()),
    };
    if let Some(question) = check.explain.question()? {
        return explain::run(&question, &settings, &path, check.json);
    }
    let mut unreachable = Vec::new();
    let states = match check.connect {
        true => {
            let interrupt = Interrupt::listen();
            let servers = settings.servers.iter().map(|server| ResolvedServer::configured(server, &path));
            let jobs = servers.map(|server| {
                let name = server.as_ref().map(|server| server.name.clone()).unwrap_or_default();
                (name, async move { inspect(&server?).await })
            });
            let (jobs, display) = (jobs.collect(), Display::new(0));
            let states = interrupt.or(async { Ok(jobs::run_all("Checking", jobs, &display).await) }).await;
            if let Some(auth) = &settings.auth {
                unreachable = interrupt.or(async { Ok(issuers::unreachable(auth).await) }).await?;
            }
            unreachable.extend(interrupt.or(async { Ok(watching::unreachable(&settings).await) }).await?);
            display.clear();
            let broke = || Err(Failure::new(Exit::Unavailable, "the attempt ended unexpectedly"));
            Some(states?.into_iter().map(|state| state.unwrap_or_else(broke)).collect::<States>())
        }
        false => None,
    };
    let problems = problems::programs(&settings);
    let mut access = Access::of(&settings);
    access.problems.extend(watching::problems(&settings));
    let mut warnings: Vec<String> =
        states.as_ref().map(|states| problems::unmatched(&settings, states)).unwrap_or_default();
    warnings.extend(access.warnings.iter().cloned());
    warnings.extend(watching::warnings(&settings));
    warnings.extend(unreachable);
    let checked = Checked { path, settings, states, problems, warnings, access };
    output::text(&match check.json {
        true => mask(&report::json(&checked).to_string()).into_owned(),
        false => report::text(&checked),
    })?;
    Ok(match (checked.access.problems.is_empty(), checked.is_well()) {
        (true, true) => Exit::Fine,
        (true, false) => Exit::ToolError,
        // Nobody would be served.
        (false, _) => Exit::Usage,
    })
}

impl Checked {
    fn is_well(&self) -> bool {
        self.access.problems.is_empty()
            && self.problems.is_empty()
            && self.states.iter().flatten().all(Result::is_ok)
    }
}

/// The problems of a configuration, for programs.
fn broken(error: &ConfigError) -> serde_json::Value {
    let problem = |problem: &tidegate_config::Problem| {
        json!({
            "line": problem.at.map(|(line, _)| line),
            "column": problem.at.map(|(_, column)| column),
            "field": problem.field,
            "message": problem.sentence,
        })
    };
    let problems: Vec<_> = error.problems().iter().map(problem).collect();
    json!({
        "file": error.file(), "ok": false, "errors": problems,
        "servers": [], "disabled": [], "warnings": [], "notes": [],
    })
}
