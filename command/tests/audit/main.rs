//! The audit trail as its operators meet it: the built program writes it, verifies it and searches it.
//!
//! [`rig`] is the program with `[auth]` and `[audit]`, in a folder that outlives it.
#![cfg(unix)]

#[path = "../identity/http.rs"]
#[allow(dead_code)]
mod http;
mod rig;

mod evidence;
mod places;
mod restarts;
