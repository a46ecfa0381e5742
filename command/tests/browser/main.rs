//! The page of the memory in a real browser: what it shows, and what it must not do. And pages of others, which may call
//! the gateway if they are listed.
//!
//! These need Chromium and its driver, so they run only when asked for: `cargo xtask browser`. [`site`] is the served
//! memory, [`driver`] the browser, [`http`] what both are spoken to with.
#![cfg(unix)]

mod driver;
mod http;
mod site;

mod edit;
mod graph;
mod origins;
mod time;
mod token;
