//! Who may do what behind `tidegate serve`: the examples of docs/policy.md and what goes wrong with policies, with the built program.
//!
//! [`page`] reads the examples, [`upstream`] has servers for them. `examples` asks `tidegate check --as` and a running gateway about each of
//! their cases; `mistakes` has policies that are none, `decisions` what becomes of one elsewhere: in the trail, over stdio, behind side doors.
#![cfg(unix)]

#[path = "../identity/http.rs"]
#[allow(dead_code)]
mod http;
#[path = "../identity/issuer.rs"]
#[allow(dead_code)]
mod issuer;
#[path = "../identity/message_server.rs"]
mod message_server;
#[path = "../identity/rig.rs"]
#[allow(dead_code)]
mod rig;

mod page;
mod upstream;

mod changes;
mod decisions;
mod examples;
mod mistakes;
