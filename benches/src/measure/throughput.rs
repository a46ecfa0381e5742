//! Requests per second, latency, CPU time and resident memory under load.

use std::time::Duration;

use anyhow::{Context, Result};
use tidegate_benches_common::core::Core;
use tidegate_benches_common::process;

use super::median;
use crate::binaries::Binaries;
use crate::case::Case;
use crate::load::{Load, Until};
use crate::server::{Running, Server};

/// A round in which others took more than this share of the servers' core is not a good one...
pub(crate) const DISTURBED: f64 = 0.1;
/// ...and so many more are tried in its place. All servers or clients get them, so that the comparison stays even.
pub(crate) const EXTRA_ROUNDS: usize = 2;

/// How long each server is loaded in one case.
pub(crate) struct Rounds {
    pub(crate) count: usize,
    pub(crate) warm_up: Duration,
    pub(crate) measured: Duration,
}

/// Medians over the rounds.
pub(crate) struct Throughput {
    pub(crate) per_second: f64,
    pub(crate) p50: Duration,
    pub(crate) p99: Duration,
    pub(crate) cpu_per_request: Duration,
    /// Bytes, after the last round.
    pub(crate) resident: u64,
    /// Share of its core that the load generator used; near 1 means that it was the bottleneck.
    pub(crate) client_busy: f64,
    /// Share of the servers' core that went to somebody else.
    pub(crate) disturbed: f64,
}

/// Loads all servers of a case in turn, round by round, so that a noisy neighbour does not hit only one of them.
pub(crate) fn measure(
    binaries: &Binaries,
    servers: &[Server],
    case: Case,
    rounds: &Rounds,
) -> Result<Vec<(Server, Throughput)>> {
    let mut subjects = Vec::new();
    for &server in servers {
        let start = || -> Result<_> {
            let mut running = Running::start(binaries, server, case.transport, Core::Server, &[])?;
            let mut load = running.connect(case)?;
            load.run(Until::elapsed(rounds.warm_up))?;
            Ok((running, load))
        };
        let (running, load) = start().with_context(|| format!("{server}, {case}"))?;
        subjects.push(Subject { server, running, load, seen: Vec::new() });
    }
    for round in 0..rounds.count + EXTRA_ROUNDS {
        if round >= rounds.count && subjects.iter().all(|subject| subject.calm_rounds() >= rounds.count) {
            break;
        }
        for subject in &mut subjects {
            subject.round(rounds.measured).with_context(|| format!("{}, {case}", subject.server))?;
        }
    }
    subjects.iter_mut().for_each(|subject| subject.keep_calmest(rounds.count));
    subjects.into_iter().map(|subject| Ok((subject.server, subject.summary()?))).collect()
}

struct Subject {
    server: Server,
    running: Running,
    load: Box<dyn Load>,
    seen: Vec<Round>,
}

struct Round {
    per_second: f64,
    p50: Duration,
    p99: Duration,
    cpu_per_request: Duration,
    client_busy: f64,
    disturbed: f64,
}

impl Subject {
    fn round(&mut self, measured: Duration) -> Result<()> {
        let clocks = || -> Result<_> {
            let core = process::core_time(Core::Server.number())?;
            Ok((process::cpu_time(self.running.pid())?, process::cpu_time(std::process::id())?, core))
        };
        let before = clocks()?;
        let sample = self.load.run(Until::elapsed(measured))?;
        let after = clocks()?;
        anyhow::ensure!(sample.requests > 0, "not one request was answered");

        let server = after.0.saturating_sub(before.0);
        let client = after.1.saturating_sub(before.1);
        let others = after.2.saturating_sub(before.2).saturating_sub(server);
        let share = |time: Duration| time.as_secs_f64() / sample.elapsed.as_secs_f64();
        self.seen.push(Round {
            per_second: sample.per_second(),
            p50: sample.percentile(0.5),
            p99: sample.percentile(0.99),
            cpu_per_request: server.div_f64(sample.requests as f64),
            client_busy: share(client),
            disturbed: share(others),
        });
        Ok(())
    }

    fn calm_rounds(&self) -> usize {
        self.seen.iter().filter(|round| round.disturbed <= DISTURBED).count()
    }

    fn keep_calmest(&mut self, count: usize) {
        self.seen.sort_by(|a, b| a.disturbed.total_cmp(&b.disturbed));
        self.seen.truncate(count);
    }

    fn summary(self) -> Result<Throughput> {
        Ok(Throughput {
            per_second: median(&self.seen, |round| round.per_second),
            p50: median(&self.seen, |round| round.p50),
            p99: median(&self.seen, |round| round.p99),
            cpu_per_request: median(&self.seen, |round| round.cpu_per_request),
            client_busy: median(&self.seen, |round| round.client_busy),
            disturbed: median(&self.seen, |round| round.disturbed),
            resident: process::resident(self.running.pid())?,
        })
    }
}
