//! [`Ancestry`]: which configurations are served by the gateways that started each other to get here.
//!
//! A configuration can have the gateway itself among its servers, for example after it was imported from an assistant
//! that uses it. Without this, gateways would start each other without end.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tidegate_client::Command;

use crate::commands::failure::Failure;

/// The variable in which a gateway tells the processes that it starts.
const SERVING: &str = "TIDEGATE_SERVING";

/// The configurations that are being served, this one included. Clones are handles on the same.
#[derive(Clone)]
pub(super) struct Ancestry(Arc<Mutex<Option<String>>>);

impl Ancestry {
    /// With the configuration that is about to be served. One that is being served already is refused.
    pub(super) fn with(file: Option<&Path>) -> Result<Ancestry, Failure> {
        let before = std::env::var_os(SERVING).unwrap_or_default();
        let ancestry = Ancestry(Arc::new(Mutex::new(before.into_string().ok())));
        if let Some(file) = file {
            ancestry.adopt(file).map_err(|what| {
                Failure::usage(what).advise(
                    "Remove it with tidegate remove NAME, or serve another configuration with --config.",
                )
            })?;
        }
        Ok(ancestry)
    }

    /// This configuration is about to be served, too. One that is being served already is refused.
    pub(super) fn adopt(&self, file: &Path) -> Result<(), String> {
        let before = std::env::var_os(SERVING).unwrap_or_default();
        let this = file.canonicalize().unwrap_or_else(|_| file.to_owned());
        let mut all: Vec<PathBuf> = std::env::split_paths(&before).collect();
        if all.contains(&this) {
            return Err(format!(
                "{} is served by the gateway that started this one: the gateway is among its own servers",
                file.display()
            ));
        }
        all.push(this);
        // A path that cannot be told is not, and then a loop ends only where hops are counted.
        *self.all() = std::env::join_paths(all).ok().and_then(|all| all.into_string().ok());
        Ok(())
    }

    fn all(&self) -> MutexGuard<'_, Option<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A program that knows.
    pub(super) fn tell(&self, mut command: Command) -> Command {
        if let Some(all) = &*self.all() {
            command.env.insert(SERVING.to_owned(), all.clone());
        }
        command
    }
}
