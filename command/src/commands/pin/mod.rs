//! `tidegate pin`: approving the definitions of tools.

mod changes;
mod report;
mod tools;

use std::io::{BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use tidegate_config::PinMode;
use tidegate_gateway::{Lock, LockError};

use super::display::Display;
use super::exit::Exit;
use super::failure::Failure;
use super::interrupt::Interrupt;
use super::{configuration, output};
use changes::{Change, Selection};

/// Approve the tools of the configured servers as they are now.
///
/// Shows what was added, changed or removed since the last approval, asks, and writes the lock file. With pin = "locked" or
/// "first-use" under [tools] in the configuration, the gateway hides tools that differ from it.
#[derive(Args)]
#[command(after_help = format!("With --check, exit code 1 means that something differs.\n\n{}", super::exit::HELP))]
pub(crate) struct Pin {
    /// Only this server, or only this tool of it, by the server's own name. [default: everything]
    #[arg(value_name = "SERVER[/TOOL]")]
    which: Vec<String>,

    /// The configuration. [default: ./tidegate.toml, else the user's own]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Approve without asking.
    #[arg(long, short, conflicts_with_all = ["diff", "check"])]
    yes: bool,

    /// Only show the differences, new tools in full, and approve nothing.
    #[arg(long)]
    diff: bool,

    /// For CI: the same, and exit with 1 if anything differs.
    #[arg(long)]
    check: bool,

    /// Print JSON, and do not ask.
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) async fn run(pin: Pin) -> Result<Exit, Failure> {
    let interrupt = Interrupt::listen();
    interrupt.or(work(&pin)).await
}

async fn work(pin: &Pin) -> Result<Exit, Failure> {
    let path = configuration::existing(pin.config.as_deref())?;
    let settings = configuration::load_unserved(&path)?;
    let file = &settings.tools.lock_file;
    let lock = Lock::load(file)?;
    let selection = Selection::read(&pin.which, &settings, &lock)?;
    let display = Display::new(0);
    let listed = tools::list_all(&settings, &path, &selection, &display).await;
    let changes = changes::between(&lock, &listed, &selection);
    selection.check(&listed, &lock)?;
    let full = pin.diff || pin.check;
    if pin.json {
        let approved = pin.yes && !changes.is_empty();
        if approved {
            approve(file, &changes)?;
        }
        output::text(&report::json(file, &changes, &listed, approved).to_string())?;
    } else {
        output::text(&report::text(&changes, &listed, full))?;
        if !changes.is_empty() && !full {
            if !pin.yes && !agreed(changes.len()).await? {
                output::note("Nothing was approved.");
                return Ok(Exit::ToolError);
            }
            approve(file, &changes)?;
            output::note(&format!("Wrote {}", file.display()));
        }
        if settings.tools.pin == PinMode::Off && !full {
            output::note(&format!(
                "note: {} has no effect yet: set pin = \"locked\" under [tools] in {}",
                file.display(),
                path.display()
            ));
        }
    }
    for failure in listed.iter().filter_map(|server| server.tools.as_ref().err()) {
        failure.show();
    }
    let failed = listed.iter().find_map(|server| server.tools.as_ref().err());
    Ok(match failed {
        Some(failure) => failure.exit,
        None if pin.check && !changes.is_empty() => Exit::ToolError,
        None => Exit::Fine,
    })
}

/// Writes exactly what was shown.
fn approve(file: &Path, changes: &[Change]) -> Result<(), Failure> {
    Lock::update(file, |lock| {
        for change in changes {
            match &change.now {
                Some(now) => lock.set(&change.server, &change.tool, now.clone()),
                None => lock.remove(&change.server, &change.tool),
            }
        }
    })?;
    Ok(())
}

/// Asks the person at the terminal.
async fn agreed(count: usize) -> Result<bool, Failure> {
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        let what = "nothing was approved: there is no terminal to ask on";
        return Err(Failure::usage(what)
            .advise("Approve with --yes, or only show the differences with --diff or --check."));
    }
    let ask = move || {
        let what = if count == 1 { "this change".to_owned() } else { format!("these {count} changes") };
        let mut out = std::io::stderr().lock();
        let _ = write!(out, "Approve {what}? [y/N] ").and_then(|()| out.flush());
        let mut answer = String::new();
        let _ = std::io::stdin().lock().read_line(&mut answer);
        matches!(answer.trim().to_lowercase().as_str(), "y" | "yes")
    };
    // Whoever reads waits for as long as it takes; a signal ends the process.
    Ok(tokio::task::spawn_blocking(ask).await.unwrap_or(false))
}

impl From<LockError> for Failure {
    fn from(error: LockError) -> Failure {
        Failure::usage(&error)
    }
}
