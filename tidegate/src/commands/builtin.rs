//! The servers that are part of the program.

use std::path::PathBuf;

use tidegate::demo;
use tidegate::protocol::{Error, Profile, Symbol};
use tidegate_client::{AppError, Target};
use tidegate_memory::Store;

use super::connection;

/// Where the memory is kept, if not in the usual place.
const MEMORY_FILE: &str = "TIDEGATE_MEMORY_FILE";

/// A server of the program, for the server `wanted_as` of the configuration. `errors` is for the demonstration server.
pub(crate) fn target(name: &str, wanted_as: &str, errors: Profile) -> Result<Target, AppError> {
    find(name, errors).map_err(|error| {
        let what = format!("server {wanted_as:?}: {}", error.message());
        connection::app_error(&Error::new(error.symbol(), what))
    })
}

fn find(name: &str, errors: Profile) -> Result<Target, Error> {
    match name {
        "demo" => Ok(Target::from_door(demo::server(errors))),
        "memory" => {
            let file = memory_file()?;
            let store = Store::open(&file).map_err(|fault| {
                let what = format!("the memory in {} cannot be used: {fault}", file.display());
                Error::new(Symbol::Unavailable, what)
            })?;
            Ok(Target::from_door(tidegate_memory::server(store)))
        }
        name => {
            let known = tidegate_config::BUILTINS.join(" and ");
            let what = format!("there is no built-in server {name:?}; there are {known}");
            Err(Error::new(Symbol::InvalidParams, what))
        }
    }
}

fn memory_file() -> Result<PathBuf, Error> {
    if let Some(file) = std::env::var_os(MEMORY_FILE).filter(|file| !file.is_empty()) {
        return Ok(file.into());
    }
    let folder = tidegate_config::usual_data_dir().ok_or_else(|| {
        let what = format!(
            "the home directory is not known; set HOME, or {MEMORY_FILE} to where the memory is kept"
        );
        Error::new(Symbol::InvalidParams, what)
    })?;
    Ok(folder.join("memory.db"))
}
