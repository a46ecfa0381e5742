//! The `tidegate` command under attack: what a single caller, a server or a file can do to everybody else.
//!
//! Each test starts the built program ([`rig`]), does one kind of harm within fixed bounds, and then asks the same three
//! questions: did the process stay small, were others answered meanwhile, does it end cleanly on SIGTERM? The bounds
//! on time are wide, because they are there to tell an answer from a hang.
#![cfg(target_os = "linux")]

mod http;
mod rig;

mod batches;
mod broken_memory;
mod buffers;
mod connections;
mod foreign_text;
mod handshakes;
mod lists;
mod programs;
mod schema_bomb;
mod slow_readers;
mod tenants;
