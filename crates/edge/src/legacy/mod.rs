//! Legacy clients: everything that 2026-07-28 did away with, kept at the edge.
//!
//! A [`ClientSession`] is a client after its handshake. Its requests become modern calls that carry what the handshake said;
//! a reply that asks for input becomes server-to-client requests, and the call is made again with the answers.

mod answers;
mod batch;
mod changes;
mod client_session;
mod drive;
mod handshake;
mod tasks;

pub(crate) use batch::{Batch, drive_batch};
pub(crate) use changes::pass_on_changes;
pub(crate) use client_session::ClientSession;
pub(crate) use drive::{MessageSink, Response, drive, drive_as};
pub(crate) use handshake::{Hello, handshake, revive};
