//! How many files and connections the process may have open.

/// More are of no use: there are never that many connections.
#[cfg(unix)]
const ENOUGH: u64 = 65_536;

/// Raises the soft limit, which is often 1024, as far as the hard limit lets it. Processes that are started later inherit
/// it.
#[cfg(unix)]
pub(super) fn raise() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = maximum.map_or(ENOUGH, |most| most.min(ENOUGH));
    if current.is_none_or(|current| current >= wanted) {
        return;
    }
    match setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum }) {
        Ok(()) => tracing::debug!(from = current, to = wanted, "more files may be open at once"),
        Err(error) => tracing::debug!(%error, "the limit of open files stays as it is"),
    }
}

/// There is no such limit.
#[cfg(not(unix))]
pub(super) fn raise() {}
