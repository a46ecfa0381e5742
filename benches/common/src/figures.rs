//! [`Figures`]: what a client program reports.

use std::io::Write;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::clocks::Clocks;
use crate::percentile;

/// What a client saw, without its warm-up.
#[derive(Debug, Serialize, Deserialize)]
pub struct Figures {
    /// The revision of the protocol that was spoken.
    pub revision: String,
    /// How many calls were answered, each with the text that was sent.
    pub calls: u64,
    /// How long that took.
    pub elapsed: Duration,
    /// Half of the calls were faster.
    pub p50: Duration,
    /// One call in a hundred was slower.
    pub p99: Duration,
    /// CPU time of the client.
    pub client_cpu: Duration,
    /// CPU time of the server meanwhile.
    pub server_cpu: Duration,
    /// Share of the client's or the server's core, whichever is more, that went to somebody else.
    pub disturbed: f64,
}

impl Figures {
    /// From the latencies of all calls, in ascending order, and what was spent on them.
    pub fn new(revision: &str, elapsed: Duration, latencies: &[u32], spent: &Clocks) -> Figures {
        Figures {
            revision: revision.to_owned(),
            calls: latencies.len() as u64,
            elapsed,
            p50: Duration::from_nanos(percentile(latencies, 0.5).into()),
            p99: Duration::from_nanos(percentile(latencies, 0.99).into()),
            client_cpu: spent.client,
            server_cpu: spent.server,
            disturbed: spent.others().as_secs_f64() / elapsed.as_secs_f64(),
        }
    }

    /// Tells the benchmark.
    pub fn print(&self) -> Result<()> {
        let mut out = std::io::stdout().lock();
        writeln!(out, "{}", serde_json::to_string(self)?)?;
        Ok(out.flush()?)
    }

    /// Reads what a client program has printed.
    pub fn read(printed: &str) -> Result<Figures> {
        serde_json::from_str(printed.trim())
            .with_context(|| format!("not the figures of a client program: {printed:?}"))
    }

    /// Calls per second.
    pub fn per_second(&self) -> f64 {
        self.calls as f64 / self.elapsed.as_secs_f64()
    }

    /// A total as a part of it for each call.
    pub fn per_call(&self, total: Duration) -> Duration {
        total.div_f64(self.calls as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_there_and_back() {
        let [client, server, client_core, server_core] = [1, 500, 1001, 600].map(Duration::from_millis);
        let spent = Clocks { client, server, client_core, server_core };
        let figures = Figures::new("2026-07-28", Duration::from_secs(2), &[20_000; 100], &spent);
        let line = serde_json::to_string(&figures).unwrap();
        assert!(!line.contains('\n'));
        let read = Figures::read(&line).unwrap();
        assert_eq!(read.per_call(read.client_cpu), Duration::from_micros(10));
        assert!((read.per_second() - 50.0).abs() < f64::EPSILON);
        assert!((read.disturbed - 0.5).abs() < f64::EPSILON);
        assert_eq!((read.p50, read.p99), (Duration::from_micros(20), Duration::from_micros(20)));
        Figures::read("connecting failed").unwrap_err();
    }
}
