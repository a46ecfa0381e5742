//! A header value, and the checks that read it. `cargo +nightly fuzz run header`
#![no_main]

#[path = "../../crates/protocol/tests/fuzz_bodies/mod.rs"]
#[allow(dead_code, reason = "each target runs one of the bodies")]
mod fuzz_bodies;

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_bodies::header(data));
