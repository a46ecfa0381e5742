//! `tidegate check`: what a configuration means, or what is wrong with it.

mod connect;
mod report;

use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use tidegate_config::{Config, ConfigError};

use super::exit::Exit;
use super::failure::Failure;
use super::interrupt::Interrupt;
use super::{configuration, output};

/// Check the gateway's configuration, and say what it means.
///
/// Secrets are looked up, but never shown.
#[derive(Args)]
#[command(after_help = super::exit::HELP)]
pub(crate) struct Check {
    /// A tidegate.toml, or the mcpServers file of another program. [default: ./tidegate.toml, else that of the user]
    file: Option<PathBuf>,

    /// The same as FILE.
    #[arg(long, value_name = "FILE", conflicts_with = "file")]
    config: Option<PathBuf>,

    /// Also connect to each server, for at most 10 seconds, and say what it offers.
    #[arg(long)]
    connect: bool,

    /// JSON for programs instead of text for people.
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) async fn run(check: Check) -> Result<Exit, Failure> {
    let path = configuration::existing(check.file.as_deref().or(check.config.as_deref()))?;
    let settings = match Config::load(&path, &configuration::environment) {
        Ok(settings) => settings,
        Err(error) if check.json => {
            output::text(&broken(&error).to_string())?;
            return Ok(Exit::Usage);
        }
        Err(error) => return Err(error.into()),
    };
    let states = match check.connect {
        true => {
            let interrupt = Interrupt::listen();
            Some(interrupt.or(async { Ok(connect::all(&settings).await) }).await?)
        }
        false => None,
    };
    let text = match check.json {
        true => report::json(&path, &settings, states.as_deref()).to_string(),
        false => report::text(&path, &settings, states.as_deref()),
    };
    output::text(&text)?;
    let all_well = states.iter().flatten().all(Result::is_ok);
    Ok(if all_well { Exit::Fine } else { Exit::ToolError })
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
    json!({"file": error.file(), "ok": false, "problems": problems})
}
