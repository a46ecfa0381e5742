//! The transports from outside: bytes in, bytes out, with a stub behind the door.
//!
//! No test depends on how fast the machine is. All but `connections`, `disconnects`, `peers` and `tls` (real connections) and `stress` (several threads)
//! run on a paused clock, where waiting for something that never comes fails at once instead of hanging.

mod common;

mod bad_input;
mod bounds;
mod call_ids;
mod connections;
mod cors;
mod disconnects;
mod endpoints;
mod extensions;
mod guard;
mod handlers;
mod http_sse;
mod leaks;
mod legacy_http;
mod legacy_sessions;
mod legacy_streams;
mod lowering;
mod modern_http;
mod notices;
mod pages;
mod peers;
mod questions;
mod restarts;
mod stdio;
mod stress;
mod tasks;
#[cfg(feature = "tls")]
mod tls;
