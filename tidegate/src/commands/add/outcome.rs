//! What came of trying a server that was just added.

use std::path::Path;

use tidegate_client::Target;

use crate::commands::display::Display;
use crate::commands::exit::Exit;
use crate::commands::failure::Failure;
use crate::commands::find::{Gateway, Place};
use crate::commands::interrupt::Interrupt;
use crate::commands::output;
use crate::commands::reach::{Reached, reach};
use crate::term::style::Paint;

/// What came of it.
pub(super) enum Outcome {
    /// Nobody asked for an attempt. These variables are not set.
    NotTried(Vec<String>),
    /// It cannot work yet: these variables are not set.
    Unset(Vec<String>),
    /// Something about the configuration is wrong.
    Unusable(Failure),
    Works(Box<Reached>),
    Fails(Place, Box<Failure>),
}

/// Starts the server once, as the configuration says.
pub(super) async fn attempt(name: &str, path: &Path) -> Outcome {
    let place = Gateway::load(path).and_then(|gateway| gateway.entry(name));
    let place = match place {
        Ok(place) => place,
        Err(failure) => return Outcome::Unusable(failure),
    };
    let (display, interrupt) = (Display::new(0), Interrupt::listen());
    display.waiting(&match &place.target {
        Target::Command(_) => format!("Starting {name}"),
        _ => format!("Connecting to {name}"),
    });
    let reached = interrupt.or(reach(&place)).await;
    display.clear();
    match reached {
        Ok(reached) => Outcome::Works(Box::new(reached)),
        Err(failure) => Outcome::Fails(place, Box::new(failure)),
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
                    output::note(&format!("note: {}", not_set(&unset)));
                }
                Ok(Exit::Fine)
            }
            Outcome::Unset(unset) => {
                output::text(&format!("{saved}. It was not tried: {}", not_set(&unset)))?;
                let env = path.with_file_name(".env");
                output::note(&format!(
                    "  Set {} in the environment of the gateway or in {}, then run: tidegate check --connect",
                    if unset.len() == 1 { "it" } else { "them" },
                    env.display()
                ));
                Ok(Exit::Fine)
            }
            Outcome::Unusable(failure) => {
                output::text(&format!("{saved}. It was not tried, because the configuration has problems"))?;
                Err(failure)
            }
            Outcome::Works(reached) => {
                let saved = paint.dim(format!("(saved in {file})"));
                output::text(&format!("{added}: {} {saved}", reached.offers()))?;
                Ok(Exit::Fine)
            }
            Outcome::Fails(_, failure) if failure.exit == Exit::Cancelled => {
                output::text(&format!("{saved}; trying it was cancelled"))?;
                Ok(Exit::Cancelled)
            }
            Outcome::Fails(place, failure) => {
                output::text(&format!("{added}, but {}", what_failed(&place, &failure)))?;
                if let Some(advice) = failure.advice().filter(|_| failure.exit != Exit::Unavailable) {
                    output::note(&format!("  {advice}"));
                }
                output::note(&format!(
                    "  It is saved in {file}. Fix it there, or remove it with: tidegate remove {name}"
                ));
                failure.show_last_words();
                Ok(if failure.exit == Exit::LoginNeeded { Exit::LoginNeeded } else { Exit::Unavailable })
            }
        }
    }
}

fn what_failed(place: &Place, failure: &Failure) -> String {
    match (failure.exit, &place.target) {
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

fn not_set(names: &[String]) -> String {
    match names {
        [only] => format!("the environment variable {only} is not set"),
        [first @ .., last] => {
            format!("the environment variables {} and {last} are not set", first.join(", "))
        }
        [] => String::new(),
    }
}
