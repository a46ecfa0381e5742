//! Envelopes made of parts that the bytes choose. `cargo +nightly fuzz run envelope`
#![no_main]

#[path = "../../crates/protocol/tests/fuzz_bodies/mod.rs"]
#[allow(dead_code, reason = "each target runs one of the bodies")]
mod fuzz_bodies;

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_bodies::envelope(data));
