//! Legacy clients: everything that 2026-07-28 did away with, kept at the edge.
//!
//! A [`Peer`] is a client after its handshake. Its requests become modern calls that carry what the handshake said;
//! a reply that asks for input becomes server-to-client requests, and the call is made again with the answers.

mod answers;
mod batch;
mod drive;
mod handshake;
mod peer;
mod pump;
mod tasks;

pub(crate) use batch::{Batch, drive_batch};
pub(crate) use drive::{Lane, drive};
pub(crate) use handshake::{Hello, handshake, revive};
pub(crate) use peer::Peer;
pub(crate) use pump::pump;
