//! Calls per second, latency and CPU time of the clients.

use std::time::Duration;

use anyhow::Result;
use tidegate_benches_common::figures::Figures;

use super::throughput::{DISTURBED, EXTRA_ROUNDS, Rounds};
use super::{callgrind, median};
use crate::binaries::Binaries;
use crate::case::Case;
use crate::client::{self, Callee, Client, Stages};

/// One row of the table of clients.
pub(crate) struct Called {
    pub(crate) case: Case,
    pub(crate) client: Client,
    pub(crate) calls: Calls,
    pub(crate) counts: Option<callgrind::Counts>,
}

/// Medians over the rounds.
pub(crate) struct Calls {
    pub(crate) per_second: f64,
    pub(crate) p50: Duration,
    pub(crate) p99: Duration,
    /// CPU time per call of the client, and of the server that it called.
    pub(crate) client_cpu: Duration,
    pub(crate) server_cpu: Duration,
    /// Share of the client's or the server's core, whichever is more, that went to somebody else.
    pub(crate) disturbed: f64,
}

/// Runs all clients of a case in turn, round by round, against the same server.
pub(crate) fn measure(
    binaries: &Binaries,
    clients: &[Client],
    case: Case,
    rounds: &Rounds,
) -> Result<Vec<Called>> {
    let callee = Callee::start(binaries, case.transport)?;
    let stages = Stages { warm_up: rounds.warm_up, measured: rounds.measured };
    let mut seen: Vec<Vec<Figures>> = clients.iter().map(|_| Vec::new()).collect();
    for round in 0..rounds.count + EXTRA_ROUNDS {
        if round >= rounds.count && seen.iter().all(|figures| calm_rounds(figures) >= rounds.count) {
            break;
        }
        for (&client, seen) in clients.iter().zip(&mut seen) {
            seen.push(client::round(binaries, client, case, &callee, stages)?);
        }
    }
    let row = |(&client, mut seen): (&Client, Vec<Figures>)| {
        seen.sort_by(|a, b| a.disturbed.total_cmp(&b.disturbed));
        seen.truncate(rounds.count);
        Called { case, client, calls: summary(&seen), counts: None }
    };
    Ok(clients.iter().zip(seen).map(row).collect())
}

fn calm_rounds(seen: &[Figures]) -> usize {
    seen.iter().filter(|figures| figures.disturbed <= DISTURBED).count()
}

fn summary(seen: &[Figures]) -> Calls {
    Calls {
        per_second: median(seen, Figures::per_second),
        p50: median(seen, |figures| figures.p50),
        p99: median(seen, |figures| figures.p99),
        client_cpu: median(seen, |figures| figures.per_call(figures.client_cpu)),
        server_cpu: median(seen, |figures| figures.per_call(figures.server_cpu)),
        disturbed: median(seen, |figures| figures.disturbed),
    }
}
