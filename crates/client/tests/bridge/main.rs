//! Callers of one era in front of a server of the other: calls that stop in the middle to ask, tasks, and whose session
//! is whose.

mod broadcast;
mod logs;
mod mixed;
mod notices;
mod parked;
mod pipe;
mod questions;
mod rig;
mod sessions;
mod tasks;

/// Not a test: what the server processes of the tests run. They are this very program, started again.
#[test]
fn stdio_server() {
    tasks::run_if_asked();
    notices::run_if_asked();
}
