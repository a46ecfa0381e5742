//! The `tidegate` command as its users meet it: the built program, its output, its exit codes, its signals.
//!
//! [`rig`] runs it. The servers are the program itself (`tidegate serve`), one in this process ([`server`]) for what the
//! demonstration server does not do, and a shell script ([`rig::CANNED`]) for what no server of ours would do.
//!
//! No test asserts how fast anything is; the bounds are there so that nothing hangs.
#![cfg(unix)]

mod rig;
mod server;

mod add;
mod authentication;
mod backup;
mod calls;
mod check;
mod clients;
mod config;
mod connect;
mod doctor;
mod errors;
mod interrupts;
mod keys;
mod lists;
mod login;
mod memory;
mod model;
mod names;
mod pin;
mod restarts;
mod serve;
mod snapshots;
mod terminal;
mod warm;
