//! What came of trying a server that was just added.

use std::path::Path;

use tidegate_client::Target;
use tidegate_config::{DisabledServer, missing_note};

use crate::commands::display::Display;
use crate::commands::exit::Exit;
use crate::commands::failure::Failure;
use crate::commands::inspect::{Inspection, inspect};
use crate::commands::interrupt::Interrupt;
use crate::commands::output;
use crate::commands::resolve::{GatewayConfig, ResolvedServer};
use crate::term::clean;
use crate::term::style::Paint;

/// What came of it.
pub(super) enum Outcome {
    /// Nobody asked for an attempt. These variables are not set.
    NotTried(Vec<String>),
    /// It cannot work yet: variables are not set, or files are missing.
    Disabled(Box<DisabledServer>),
    /// Something about the configuration is wrong.
    Unusable(Failure),
    Works(Box<Inspection>),
    Fails(Box<ResolvedServer>, Failure),
}

/// Starts the server once, as the configuration says.
pub(super) async fn attempt(name: &str, path: &Path) -> Outcome {
    let gateway = match GatewayConfig::load(path) {
        Ok(gateway) => gateway,
        Err(failure) => return Outcome::Unusable(failure),
    };
    if let Some(disabled) = gateway.settings.disabled.iter().find(|server| server.name == name) {
        return Outcome::Disabled(Box::new(disabled.clone()));
    }
    let server = match gateway.entry(name) {
        Ok(server) => server,
        Err(failure) => return Outcome::Unusable(failure),
    };
    let (display, interrupt) = (Display::new(0), Interrupt::listen());
    display.waiting(&match &server.target {
        Target::Command(_) => format!("Starting {name}"),
        _ => format!("Connecting to {name}"),
    });
    let inspected = interrupt.or(inspect(&server)).await;
    display.clear();
    match inspected {
        Ok(inspected) => Outcome::Works(Box::new(inspected)),
        Err(failure) => Outcome::Fails(Box::new(server), failure),
    }
}

impl Outcome {
    /// Says so.
    pub(super) fn show(self, name: &str, path: &Path) -> Result<Exit, Failure> {
        let paint = Paint::stdout();
        let added = format!("{} {}", paint.good("Added"), paint.name(name));
        let file = path.display();
        let saved = format!("{added} to {}", paint.dim(file.to_string()));
        match self {
            Outcome::NotTried(unset) => {
                output::text(&saved)?;
                if !unset.is_empty() {
                    output::note(&format!("note: {}", missing_note(name, &unset, path)));
                }
                Ok(Exit::Fine)
            }
            Outcome::Disabled(server) => {
                output::text(&format!("{saved}. It was not tried: {}", clean::line(&server.reason)))?;
                output::note(&format!(
                    "  {} Then run: tidegate check --connect",
                    clean::line(&server.advice)
                ));
                Ok(Exit::Fine)
            }
            Outcome::Unusable(failure) => {
                output::text(&format!("{saved}. It was not tried, because the configuration has problems"))?;
                Err(failure)
            }
            Outcome::Works(inspected) => {
                let saved = paint.dim(format!("(saved in {file})"));
                output::text(&format!("{added}: {} {saved}", inspected.offers()))?;
                Ok(Exit::Fine)
            }
            Outcome::Fails(_, failure) if failure.exit == Exit::Cancelled => {
                output::text(&format!("{saved}; trying it was cancelled"))?;
                Ok(Exit::Cancelled)
            }
            Outcome::Fails(server, failure) => {
                output::text(&format!("{added}, but {}", what_failed(&server, &failure)))?;
                if let Some(advice) = failure.advice().filter(|_| failure.exit != Exit::Unavailable) {
                    output::note(&format!("  {advice}"));
                }
                output::note(&format!(
                    "  It is saved in {file}. Fix it there, or remove it with: tidegate remove {name}"
                ));
                failure.show_stderr();
                Ok(if failure.exit == Exit::LoginNeeded { Exit::LoginNeeded } else { Exit::Unavailable })
            }
        }
    }
}

fn what_failed(server: &ResolvedServer, failure: &Failure) -> String {
    match (failure.exit, &server.target) {
        (Exit::LoginNeeded, Target::Url(remote)) => {
            let mut url = remote.url.clone();
            url.set_query(None);
            format!("it requires a login. Run: tidegate login {url}")
        }
        (Exit::TimedOut, _) => format!("it is not ready: {}", failure.line()),
        (Exit::Unavailable, Target::Command(_)) => format!("it did not start: {}", failure.line()),
        (Exit::Unavailable, Target::Url(_)) => format!("it cannot be reached: {}", failure.line()),
        _ => format!("it does not work: {}", failure.line()),
    }
}
