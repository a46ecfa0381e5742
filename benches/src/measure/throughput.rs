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
    /// Share of that core that anybody used, such as the server behind a gateway.
    pub(crate) load_core_busy: f64,
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
    let mut running = Vec::new();
    for &server in servers {
        let mut start = || -> Result<_> {
            let mut started = Running::start(binaries, server, case.transport, Core::Server, &[])?;
            let load = started.connect(case)?;
            let subject = Subject::new(started.pid(), load, rounds.warm_up)?;
            running.push(started);
            Ok(subject)
        };
        subjects.push(start().with_context(|| format!("{server}, {case}"))?);
    }
    for round in 0..rounds.count + EXTRA_ROUNDS {
        if round >= rounds.count && subjects.iter().all(|subject| subject.calm_rounds() >= rounds.count) {
            break;
        }
        for (subject, server) in subjects.iter_mut().zip(servers) {
            subject.round(rounds.measured).with_context(|| format!("{server}, {case}"))?;
        }
    }
    let row = |(subject, &server): (Subject, &Server)| Ok((server, subject.summary(rounds.count)?));
    subjects.into_iter().zip(servers).map(row).collect()
}

/// A process under load.
pub(super) struct Subject {
    pid: u32,
    load: Box<dyn Load>,
    seen: Vec<Round>,
}

struct Round {
    per_second: f64,
    p50: Duration,
    p99: Duration,
    cpu_per_request: Duration,
    client_busy: f64,
    load_core_busy: f64,
    disturbed: f64,
}

impl Subject {
    pub(super) fn new(pid: u32, mut load: Box<dyn Load>, warm_up: Duration) -> Result<Self> {
        load.run(Until::elapsed(warm_up))?;
        Ok(Self { pid, load, seen: Vec::new() })
    }

    pub(super) fn round(&mut self, measured: Duration) -> Result<()> {
        let clocks = || -> Result<_> {
            let core = process::core_time(Core::Server.number())?;
            let load_core = process::core_time(Core::Load.number())?;
            Ok((process::cpu_time(self.pid)?, process::cpu_time(std::process::id())?, core, load_core))
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
            load_core_busy: share(after.3.saturating_sub(before.3)),
            disturbed: share(others),
        });
        Ok(())
    }

    pub(super) fn calm_rounds(&self) -> usize {
        self.seen.iter().filter(|round| round.disturbed <= DISTURBED).count()
    }

    /// Medians over the calmest rounds, so many of them.
    pub(super) fn summary(mut self, count: usize) -> Result<Throughput> {
        self.seen.sort_by(|a, b| a.disturbed.total_cmp(&b.disturbed));
        self.seen.truncate(count);
        Ok(Throughput {
            per_second: median(&self.seen, |round| round.per_second),
            p50: median(&self.seen, |round| round.p50),
            p99: median(&self.seen, |round| round.p99),
            cpu_per_request: median(&self.seen, |round| round.cpu_per_request),
            client_busy: median(&self.seen, |round| round.client_busy),
            load_core_busy: median(&self.seen, |round| round.load_core_busy),
            disturbed: median(&self.seen, |round| round.disturbed),
            resident: process::resident(self.pid)?,
        })
    }
}
