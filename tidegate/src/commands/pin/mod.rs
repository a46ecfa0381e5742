//! `tidegate pin`: approving the definitions of tools.

mod changes;
mod listed;
mod shown;

use std::io::{BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use tidegate_config::{Config, PinMode};
use tidegate_gateway::{Lock, LockError};

use super::exit::Exit;
use super::failure::Failure;
use super::interrupt::Interrupt;
use super::{configuration, output};
use changes::{Change, Wanted};

/// Approve the tools of the configured servers as they are now.
///
/// Shows what is new, has changed or is gone since the last time, asks, and writes the lock file. With pin = "locked"
/// or "first-use" under [tools] in the configuration, the gateway withholds tools that differ from it.
#[derive(Args)]
#[command(after_help = format!("With --check, 1 means that something differs.\n\n{}", super::exit::HELP))]
pub(crate) struct Pin {
    /// Only this server, or only this tool of a server, by the server's own name for it. [default: everything]
    #[arg(value_name = "SERVER[/TOOL]")]
    which: Vec<String>,

    /// The configuration. [default: ./tidegate.toml, else that of the user]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Approve without asking.
    #[arg(long, short, conflicts_with_all = ["diff", "check"])]
    yes: bool,

    /// Only show what is different, new tools in full, and approve nothing.
    #[arg(long)]
    diff: bool,

    /// For CI: the same, and end with 1 if anything is different.
    #[arg(long)]
    check: bool,

    /// JSON for programs instead of text for people. Nobody is asked.
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) async fn run(pin: Pin) -> Result<Exit, Failure> {
    let interrupt = Interrupt::listen();
    interrupt.or(work(&pin)).await
}

async fn work(pin: &Pin) -> Result<Exit, Failure> {
    let path = configuration::existing(pin.config.as_deref())?;
    let settings = Config::load(&path, &configuration::environment)?;
    let file = &settings.tools.lock_file;
    let lock = Lock::load(file)?;
    let wanted = Wanted::read(&pin.which, &settings, &lock)?;
    let listed = listed::all(&settings, &wanted).await;
    let changes = changes::between(&lock, &listed, &wanted);
    wanted.check(&listed, &lock)?;
    let full = pin.diff || pin.check;
    if pin.json {
        let approved = pin.yes && !changes.is_empty();
        if approved {
            approve(file, &changes)?;
        }
        output::text(&shown::json(file, &changes, &listed, approved).to_string())?;
    } else {
        output::text(&shown::text(&changes, &listed, full))?;
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
                "note: {} has no effect yet: put pin = \"locked\" under [tools] in {}",
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
        let what = "nothing was approved, because there is nobody to ask";
        return Err(Failure::usage(what).next("Approve it with --yes, or only look with --diff or --check."));
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
