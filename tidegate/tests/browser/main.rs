//! The page of the memory in a real browser: what it shows, and what it must not do.
//!
//! These need Chromium and its driver, so they run only when asked for: `cargo xtask browser`. [`site`] is the served
//! memory, [`driver`] the browser, [`http`] what both are spoken to with.
#![cfg(unix)]

mod driver;
mod http;
mod site;

mod graph;
mod time;
mod token;
