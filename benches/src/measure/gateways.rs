//! Requests per second, latency and memory of gateways under load.

use std::time::Duration;

use anyhow::Result;
use tidegate_benches_common::core::Core;

use super::callgrind::Counts;
use super::throughput::{EXTRA_ROUNDS, Rounds, Subject, Throughput};
use crate::gateway::case::{GatewayCase, Setting};
use crate::gateway::running::{Fronted, Upstreams};
use crate::gateway::{Gateway, Kit};

/// One row of the table of gateways. What went wrong with one of them is part of the result.
pub(crate) struct Passed {
    pub(crate) case: GatewayCase,
    pub(crate) gateway: Gateway,
    pub(crate) seen: Result<Throughput, String>,
    pub(crate) counts: Option<Counts>,
}

/// Starts all gateways of a setting once and loads them in turn, case by case and round by round.
pub(crate) fn measure(
    kit: Kit<'_>,
    setting: Setting,
    cases: &[(GatewayCase, Vec<Gateway>)],
    rounds: &Rounds,
) -> Result<Vec<Passed>> {
    let upstreams = Upstreams::start(kit.binaries, setting.upstream)?;
    let mut started: Vec<(Gateway, Result<Fronted, String>)> = Vec::new();
    for &gateway in cases.iter().flat_map(|(_, gateways)| gateways) {
        if started.iter().all(|(there, _)| *there != gateway) {
            let fronted = Fronted::start(kit, gateway, setting, &upstreams, Core::Server, &[]);
            started.push((gateway, fronted.map_err(|error| format!("did not start: {error:#}"))));
        }
    }
    let mut rows = Vec::new();
    for (case, gateways) in cases {
        eprintln!("gateways   {case}");
        let wanted = started.iter_mut().filter(|(gateway, _)| gateways.contains(gateway));
        let runs =
            wanted.map(|(gateway, fronted)| Run::start(kit, *gateway, fronted, *case, rounds)).collect();
        rows.extend(take_turns(runs, rounds).into_iter().map(|(gateway, seen)| Passed {
            case: *case,
            gateway,
            seen,
            counts: None,
        }));
    }
    Ok(rows)
}

/// Round by round, so that a noisy neighbour does not hit only one of them.
pub(super) fn take_turns(mut runs: Vec<Run>, rounds: &Rounds) -> Vec<(Gateway, Result<Throughput, String>)> {
    for round in 0..rounds.count + EXTRA_ROUNDS {
        if round >= rounds.count && runs.iter().all(|run| run.is_calm(rounds.count)) {
            break;
        }
        runs.iter_mut().filter(|run| !run.gateway.is_slow()).for_each(|run| run.round(rounds));
    }
    let summary = |run: Run| {
        let seen = run.subject.and_then(|subject| subject.summary(rounds.count).map_err(said));
        (run.gateway, seen)
    };
    runs.into_iter().map(summary).collect()
}

/// A gateway in one case.
pub(super) struct Run {
    gateway: Gateway,
    subject: Result<Subject, String>,
}

impl Run {
    /// A slow one is measured at once and once only: it would take too long otherwise, and its server may close
    /// connections while it waits for its turn.
    pub(super) fn new(gateway: Gateway, subject: Result<Subject>, rounds: &Rounds) -> Self {
        let mut run = Self { gateway, subject: subject.map_err(said) };
        if gateway.is_slow() {
            run.round(rounds);
        }
        run
    }

    fn start(
        kit: Kit<'_>,
        gateway: Gateway,
        fronted: &mut Result<Fronted, String>,
        case: GatewayCase,
        rounds: &Rounds,
    ) -> Self {
        let mut connect = || {
            let fronted = fronted.as_mut().map_err(|why| anyhow::anyhow!("{why}"))?;
            let load = fronted.connect(kit.binaries, case)?;
            // For a slow one the first answers on each connection were enough.
            let warm_up = if gateway.is_slow() { Duration::ZERO } else { rounds.warm_up };
            Subject::new(fronted.pid()?, load, warm_up)
        };
        Self::new(gateway, connect(), rounds)
    }

    fn round(&mut self, rounds: &Rounds) {
        if let Ok(subject) = &mut self.subject
            && let Err(error) = subject.round(rounds.measured)
        {
            self.subject = Err(said(error));
        }
    }

    fn is_calm(&self, count: usize) -> bool {
        self.gateway.is_slow() || self.subject.as_ref().map_or(true, |subject| subject.calm_rounds() >= count)
    }
}

pub(super) fn said(error: anyhow::Error) -> String {
    format!("{error:#}")
}
