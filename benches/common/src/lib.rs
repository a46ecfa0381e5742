//! What the benchmark and the client programs that it starts have in common.
//!
//! A client program is a few lines around an MCP client library: it reads its [`plan`], connects, and lets [`drive`]
//! make the calls. What was seen goes back to the benchmark as one line of JSON, the [`figures`]. All client programs
//! have this in common, so that they differ in nothing but the library. [`process`], [`clocks`] and [`core`] are about
//! time and cores, for both sides.

pub mod clocks;
pub mod core;
pub mod drive;
pub mod figures;
pub mod plan;
pub mod process;

/// What is said to the echo tool by client programs.
pub const MESSAGE: &str = "the quick brown fox jumps over a";

/// The latency that this share of the calls stayed below, in nanoseconds; `sorted` ascending.
pub fn percentile(sorted: &[u32], share: f64) -> u32 {
    let index = ((sorted.len() as f64 * share) as usize).min(sorted.len().saturating_sub(1));
    sorted.get(index).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles() {
        let sorted: Vec<u32> = (1..=100).collect();
        for (share, latency) in [(0.5, 51), (0.99, 100), (1.0, 100)] {
            assert_eq!(percentile(&sorted, share), latency);
        }
        assert_eq!(percentile(&[], 0.5), 0);
    }
}
