//! Servers that we did not write: the reference servers, and small servers on the SDKs of others. Our client meets them,
//! and clients that we did not write meet them through our gateway.
//!
//! `cargo xtask servers` installs what they need into `target/interop` and runs this. `paths` knows what is where,
//! `server` starts one, `meeting` is our client with what it observed, `vocabulary` is what all the small servers offer
//! and `scenarios` what is done with it, `lifecycle` is what happens when a server dies and `restart` what
//! happens when the gateway does. Then come the servers, one module per
//! registry, because a machine may lack one; and `matrix`, with all of them at once behind the gateway. `state` is what servers
//! remember between calls there, `identity` who calls, `telemetry` what a collector is told, and `metrics` what Prometheus reads.

mod gateway;
mod lifecycle;
mod meeting;
mod paths;
mod restart;
mod scenarios;
mod server;
mod vocabulary;

mod agents;
mod identity;
mod matrix;
mod metrics;
mod npm;
mod pypi;
mod rust;
mod state;
mod telemetry;
