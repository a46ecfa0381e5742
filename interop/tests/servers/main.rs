//! Our client against servers that we did not write: the reference servers, and small servers on the SDKs of others.
//!
//! `cargo xtask servers` installs what they need into `target/interop` and runs this. `place` knows what is where,
//! `server` starts one, `meeting` is our client with what it observed, `vocabulary` is what all the small servers offer
//! and `scenarios` what is done with it, `life` is what happens when a server dies. The rest is servers: one module per
//! registry, because a machine may lack one.

mod life;
mod meeting;
mod place;
mod scenarios;
mod server;
mod vocabulary;

mod npm;
mod pypi;
mod rust;
