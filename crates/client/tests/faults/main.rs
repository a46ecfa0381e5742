//! The client against a server that misbehaves: it crashes, hangs, garbles, floods, refuses and forgets.
//!
//! [`rig`] puts a client and such a server together, over stdio and HTTP and in both eras, and looks afterwards for what
//! is left over. What the server does wrong is in the name of the tool that is called, or in the way it is started.
//!
//! No test asserts how fast anything is; the bounds are there so that nothing hangs.
#![cfg(target_os = "linux")]

mod http_server;
mod rig;
mod stdio_server;
mod wire;

mod answers;
mod closing;
mod crashes;
mod floods;
mod garbage;
mod hangs;
mod health;
mod memory;
mod old_transport;
mod questions;
mod sessions;
mod starts;
mod statuses;
mod streams;

/// Not a test: what the server processes of the tests run. They are this very program, started again.
#[test]
fn server() {
    stdio_server::run_if_asked();
}
