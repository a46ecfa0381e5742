//! [`Ancestry`]: which configurations are served by the gateways that started each other to get here.
//!
//! A configuration can have the gateway itself among its servers, for example after it was imported from an assistant
//! that uses it. Without this, gateways would start each other without end.

use std::path::{Path, PathBuf};

use tidegate_client::Command;

use crate::commands::failure::Failure;

/// The variable in which a gateway tells the processes that it starts.
const SERVING: &str = "TIDEGATE_SERVING";

/// The configurations that are being served, this one included.
pub(super) struct Ancestry(Option<String>);

impl Ancestry {
    /// With the configuration that is about to be served. One that is being served already is refused.
    pub(super) fn with(file: Option<&Path>) -> Result<Ancestry, Failure> {
        let before = std::env::var_os(SERVING).unwrap_or_default();
        let Some(file) = file else { return Ok(Ancestry(before.into_string().ok())) };
        let this = file.canonicalize().unwrap_or_else(|_| file.to_owned());
        let mut all: Vec<PathBuf> = std::env::split_paths(&before).collect();
        if all.contains(&this) {
            let what = format!(
                "{} is what the gateway serves that started this one: the gateway is among its own servers",
                file.display()
            );
            return Err(Failure::usage(what).next(
                "Take it out with tidegate remove NAME, or give it another configuration with --config.",
            ));
        }
        all.push(this);
        // A path that cannot be told is not, and then a loop ends only where hops are counted.
        Ok(Ancestry(std::env::join_paths(all).ok().and_then(|all| all.into_string().ok())))
    }

    /// A program that knows.
    pub(super) fn tell(&self, mut command: Command) -> Command {
        if let Some(all) = &self.0 {
            command.env.insert(SERVING.to_owned(), all.clone());
        }
        command
    }
}
