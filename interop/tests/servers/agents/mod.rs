//! Real agents: assistants and agent frameworks of others, whole and unchanged, with a scripted model, in front of our
//! gateway.
//!
//! Each is told where its [model](model) is and where its tools are: a `tidegate serve` that mounts the memory and a legacy
//! server of others which keeps its state in its process. The model follows a [script](script): it wants to be offered every
//! tool of the gateway, calls some, and wants to see in the next request what they returned.
//!
//! `cargo xtask agents` installs them into `target/interop/agents` and runs [`usual`] and [`repeats`]; with `--all` also [`wider`].

mod agent;
mod model;
mod programs;
mod repeats;
mod script;
mod usual;
mod wider;

/// What the model is called, where an agent does not insist on a name that it knows.
pub(crate) const MODEL: &str = "scripted";
