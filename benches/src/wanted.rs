//! The figures that the project wants to reach.

use std::fmt::Write;

use crate::case::{Case, Payload, Transport};
use crate::client::Client;
use crate::gateway;
use crate::measure::Results;
use crate::measure::throughput::DISTURBED;
use crate::ratios;
use crate::server::Server;
use crate::table::{megabytes, thousands};

pub(crate) fn render(results: &Results) -> String {
    let mut out = String::new();
    let mut verdicts: Vec<_> = all().iter().filter_map(|wanted| wanted.judge(results)).collect();
    verdicts.extend(gateway::wanted::verdicts(&results.gateways));
    if !verdicts.is_empty() {
        let _ = writeln!(out, "\nwanted");
    }
    for (verdict, line) in verdicts {
        let _ = writeln!(out, "  {verdict:<6}  {line}");
    }
    out
}

/// One wanted figure.
enum Wanted {
    InstructionsAtMost(Case, f64),
    AllocationsAtMost(Case, f64),
    ThroughputAtLeast(Case, f64, Server),
    InstructionsAgainstAtMost(Case, f64, Server),
    IdleSessionsBelow(u64),
    ClientCallsAtLeast(Case, f64),
}

fn all() -> Vec<Wanted> {
    use Payload::{Large, Small};
    use Transport::{ModernHttp, Stdio};
    use Wanted::*;

    let case = |transport, concurrency, payload| Case { transport, concurrency, payload };
    let mut all = vec![
        InstructionsAtMost(case(ModernHttp, 16, Small), 40_000.0),
        AllocationsAtMost(case(ModernHttp, 16, Small), 40.0),
        ThroughputAtLeast(case(ModernHttp, 16, Small), 0.6, Server::Floor),
        ThroughputAtLeast(case(ModernHttp, 64, Small), 0.6, Server::Floor),
        ThroughputAtLeast(case(ModernHttp, 16, Small), 3.0, Server::Rmcp),
        ThroughputAtLeast(case(ModernHttp, 64, Small), 4.0, Server::Rmcp),
        ThroughputAtLeast(case(Stdio, 64, Small), 3.0, Server::Rmcp),
        InstructionsAgainstAtMost(case(ModernHttp, 16, Large), 1.5, Server::Floor),
        IdleSessionsBelow(100_000_000),
    ];
    all.extend(Case::of_clients().into_iter().map(|case| ClientCallsAtLeast(case, 2.0)));
    all
}

impl Wanted {
    /// The verdict and why; `None` when this run did not measure it.
    fn judge(&self, results: &Results) -> Option<(&'static str, String)> {
        let (met, why) = self.compare(results)?;
        if let Some((disturbed, by_cpu)) = self.doubt(results)
            && disturbed > DISTURBED
        {
            return Some(("unsure", format!("{why} (others used the core; by CPU time {by_cpu:.2})")));
        }
        Some((if met { "met" } else { "missed" }, why))
    }

    /// Of a rate: how much others disturbed it, and the ratio that the CPU time shows instead.
    fn doubt(&self, results: &Results) -> Option<(f64, f64)> {
        let (disturbed, [peer, ours]) = match *self {
            Self::ThroughputAtLeast(case, _, peer) => {
                let (ours, peer) = (&results.row(Server::Ours, case)?.load, &results.row(peer, case)?.load);
                (ours.disturbed.max(peer.disturbed), [peer.cpu_per_request, ours.cpu_per_request])
            }
            Self::ClientCallsAtLeast(case, _) => {
                let ours = &results.client(Client::Ours, case)?.calls;
                let peer = &results.client(Client::Rmcp, case)?.calls;
                (ours.disturbed.max(peer.disturbed), [peer.client_cpu, ours.client_cpu])
            }
            _ => return None,
        };
        Some((disturbed, peer.as_secs_f64() / ours.as_secs_f64()))
    }

    fn compare(&self, results: &Results) -> Option<(bool, String)> {
        let ours = |case| results.row(Server::Ours, case);
        Some(match *self {
            Self::InstructionsAtMost(case, limit) => {
                let seen = ours(case)?.counts?.instructions;
                let (seen_text, limit_text) = (thousands(seen), thousands(limit));
                (seen <= limit, format!("{case}: {seen_text} instructions a request, at most {limit_text}"))
            }
            Self::AllocationsAtMost(case, limit) => {
                let seen = ours(case)?.counts?.allocations;
                (seen <= limit, format!("{case}: {seen:.1} allocations a request, at most {limit}"))
            }
            Self::ThroughputAtLeast(case, factor, peer) => {
                let seen = ours(case)?.load.per_second / results.row(peer, case)?.load.per_second;
                (
                    seen >= factor,
                    format!("{case}: {seen:.2} times the throughput of {peer}, at least {factor}"),
                )
            }
            Self::InstructionsAgainstAtMost(case, factor, peer) => {
                let seen = ratios::of_instructions(ours(case)?.counts, results.row(peer, case)?.counts)?;
                (
                    seen <= factor,
                    format!("{case}: {seen:.2} times the instructions of {peer}, at most {factor}"),
                )
            }
            Self::ClientCallsAtLeast(case, factor) => {
                let (ours, peer) = (results.client(Client::Ours, case)?, results.client(Client::Rmcp, case)?);
                let seen = ours.calls.per_second / peer.calls.per_second;
                let line =
                    format!("client {case}: {seen:.2} times the calls of rmcp's client, at least {factor}");
                (seen >= factor, line)
            }
            Self::IdleSessionsBelow(limit) => {
                let idle = results.sessions.iter().find(|idle| idle.server == Server::Ours)?;
                let (count, seen) = (thousands(idle.sessions as f64), megabytes(idle.after));
                let met = idle.after < limit;
                (
                    met,
                    format!("{count} idle legacy sessions: {seen} resident, less than {}", megabytes(limit)),
                )
            }
        })
    }
}
