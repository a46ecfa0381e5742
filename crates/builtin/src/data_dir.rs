//! Where a server of the program keeps what is the user's.

use std::path::PathBuf;

use etcetera::BaseStrategy;

/// Where the program keeps what is the user's: `tidegate` in `$XDG_DATA_HOME`, in `~/.local/share`, or where else the
/// system has such things. `None` if the home directory is unknown.
pub fn data_dir() -> Option<PathBuf> {
    Some(etcetera::choose_base_strategy().ok()?.data_dir().join("tidegate"))
}
