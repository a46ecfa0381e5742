//! How many files and connections this process may have open.

use anyhow::{Result, ensure};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the soft limit, which is often 1024, as far as it is needed.
pub(crate) fn raise(wanted: u64) -> Result<()> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_none_or(|current| current >= wanted) {
        return Ok(());
    }
    ensure!(
        maximum.is_none_or(|most| most >= wanted),
        "{wanted} files must be open at once, and {maximum:?} may be: raise the hard limit (ulimit -Hn)"
    );
    Ok(setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum })?)
}
