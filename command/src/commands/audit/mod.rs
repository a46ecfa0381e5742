//! `tidegate audit`: whether the audit trail is as it was written, and what is in it.

mod search;
mod times;
mod verify;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use super::configuration;
use super::exit::Exit;
use super::failure::Failure;
use crate::term::clean;

/// Verify and search the audit trail: who called what.
///
/// The gateway writes it when the configuration has a section [audit].
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Audit {
    #[command(subcommand)]
    action: Action,
}

const EXAMPLES: &str = "\
Examples:
  tidegate audit verify                            whether a record was changed or removed
  tidegate audit verify --expect 12:9f86d081...    compared with a head that you noted elsewhere
  tidegate audit search --subject ann --since 1h
  tidegate audit search --tool github_merge --args '{\"pull\": 7}' --json";

#[derive(Subcommand)]
enum Action {
    Verify(verify::Verify),
    Search(Box<search::Search>),
}

/// Where the trail is.
#[derive(Args)]
struct Place {
    /// The file of the trail; files beside it that were put aside belong to it [default: file of [audit] in the configuration]
    file: Option<PathBuf>,

    /// The configuration [default: ./tidegate.toml, else the user's own]
    #[arg(long, value_name = "FILE", conflicts_with = "file")]
    config: Option<PathBuf>,
}

impl Place {
    /// The file of the trail, which is there.
    fn find(&self) -> Result<PathBuf, Failure> {
        let path = match &self.file {
            Some(path) => path.clone(),
            None => self.configured()?,
        };
        let files = tidegate_audit::files(&path).map_err(|error| unreadable(&path, &error))?;
        match files.is_empty() {
            true => Err(Failure::usage(format!("there is no audit trail at {}", shown(&path)))
                .advise("It begins when tidegate serve runs with [audit] in its configuration.")),
            false => Ok(path),
        }
    }

    fn configured(&self) -> Result<PathBuf, Failure> {
        let config = configuration::existing(self.config.as_deref())?;
        let settings = configuration::load_unserved(&config)?;
        let file = settings.audit.and_then(|audit| audit.file);
        file.map(|file| file.path).ok_or_else(|| {
            Failure::usage(format!("{} names no file for an audit trail", shown(&config))).advise(
                "Add file = \"audit.jsonl\" below [audit], or name a file: tidegate audit verify FILE",
            )
        })
    }
}

fn shown(path: &Path) -> String {
    clean::line(&path.display().to_string())
}

fn unreadable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::usage(format!("the audit trail {} cannot be read: {error}", shown(path)))
}

impl Audit {
    /// Whether programs read the output.
    pub(crate) fn is_json(&self) -> bool {
        match &self.action {
            Action::Verify(verify) => verify.json,
            Action::Search(search) => search.json,
        }
    }
}

pub(crate) fn run(audit: Audit) -> Result<Exit, Failure> {
    match audit.action {
        Action::Verify(verify) => verify::run(&verify),
        Action::Search(search) => search::run(&search),
    }
}
