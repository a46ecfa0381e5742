//! Keeps this process, which is the load generator, off the servers' core.

use std::process::{Command, Stdio};

use tidegate_benches_common::core::Core;

/// Moves this process to its core; what cannot be done becomes a note under the table.
pub(crate) fn pin_load_generator() -> Vec<String> {
    let done = Command::new("taskset")
        .args(["-a", "-c", "-p", Core::Load.number(), &std::process::id().to_string()])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if done {
        vec![]
    } else {
        vec!["no second core or no taskset: nothing is pinned, the times mean little".into()]
    }
}
