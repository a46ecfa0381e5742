//! The transports from outside: bytes in, bytes out, with a stub behind the door.
//!
//! Nothing here needs the network except `disconnects`, and no test depends on how fast the machine is: everything
//! else runs on a paused clock, where waiting for something that never comes fails at once instead of hanging.

mod common;

mod bad_input;
mod disconnects;
mod guard;
mod http_sse;
mod leaks;
mod legacy_http;
mod lowering;
mod modern_http;
mod questions;
mod stdio;
mod stress;
mod tasks;
