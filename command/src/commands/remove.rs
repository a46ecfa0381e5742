//! `tidegate remove`: a server that the gateway no longer has.

use std::path::PathBuf;

use clap::Args;
use tidegate_config::edit;

use super::failure::Failure;
use super::{configuration, output};
use crate::term::style::Paint;

/// Remove a server from the gateway's configuration.
#[derive(Args)]
pub(crate) struct Remove {
    /// The name of the server.
    name: String,

    /// The configuration to change. [default: ./tidegate.toml if it exists, else the user's]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

pub(crate) fn run(remove: &Remove) -> Result<(), Failure> {
    let path = configuration::existing(remove.config.as_deref())?;
    edit::remove(&path, &remove.name)?;
    let paint = Paint::stdout();
    output::text(&format!(
        "{} {} from {}",
        paint.good("Removed"),
        paint.name(&remove.name),
        paint.dim(path.display().to_string())
    ))
}
