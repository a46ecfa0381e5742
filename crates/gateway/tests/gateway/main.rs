//! The gateway from end to end: servers of both eras behind it, in this process, on loopback and as processes, and
//! callers of both eras in front of it.
//!
//! No test asserts how fast anything is; the bounds are there so that nothing hangs.

mod callers;
mod raw;
mod rig;
mod world;

mod addresses;
mod allowed;
mod breaker;
mod bytes;
mod changes;
mod endpoints;
mod eras;
mod errors;
mod faults;
mod front;
mod handshake;
mod hops;
mod limits;
mod logs;
mod operations;
mod own;
mod policy;
mod principals;
mod reload;
mod retries;
mod routing;
mod schemas;
mod sealing;
mod skills;
mod tasks;
mod times;
mod union;
mod upstream;
mod views;

/// Not a test: what the server processes of the tests run. They are this very program, started again.
#[test]
fn server() {
    world::run_if_asked();
}
