//! Ratios between the servers, and the figures that the project wants to reach.

use std::fmt::Write;

use crate::case::{Case, Payload, Transport};
use crate::measure::throughput::DISTURBED;
use crate::measure::{Measured, Results};
use crate::server::Server;
use crate::table::{megabytes, thousands};

pub(crate) fn render(results: &Results) -> String {
    let mut out = String::new();
    ratios(results, &mut out);
    let verdicts: Vec<_> = all().iter().filter_map(|wanted| wanted.judge(results)).collect();
    if !verdicts.is_empty() {
        let _ = writeln!(out, "\nwanted");
    }
    for (verdict, line) in verdicts {
        let _ = writeln!(out, "  {verdict:<6}  {line}");
    }
    out
}

fn ratios(results: &Results, out: &mut String) {
    for (peer, heading) in [(Server::Floor, "ours against the floor"), (Server::Rmcp, "ours against rmcp")] {
        let mut lines = String::new();
        for case in Case::all() {
            let (Some(ours), Some(peer)) = (results.row(Server::Ours, case), results.row(peer, case)) else {
                continue;
            };
            let _ = write!(lines, "  {:<20}", case.to_string());
            let _ = write!(lines, "  throughput x{:.2}", ours.load.per_second / peer.load.per_second);
            // Steadier than throughput when others use the machine too.
            let cpu = ours.load.cpu_per_request.as_secs_f64() / peer.load.cpu_per_request.as_secs_f64();
            let _ = write!(lines, "  CPU time x{cpu:.2}");
            if let Some(ratio) = instruction_ratio(ours, peer) {
                let _ = write!(lines, "  instructions x{ratio:.2}");
            }
            lines.push('\n');
        }
        if !lines.is_empty() {
            let _ = write!(out, "\n{heading}\n{lines}");
        }
    }
}

fn instruction_ratio(ours: &Measured, peer: &Measured) -> Option<f64> {
    Some(ours.counts?.instructions / peer.counts?.instructions)
}

/// One wanted figure.
enum Wanted {
    InstructionsAtMost(Case, f64),
    AllocationsAtMost(Case, f64),
    ThroughputAtLeast(Case, f64, Server),
    InstructionsAgainstAtMost(Case, f64, Server),
    IdleSessionsBelow(u64),
}

fn all() -> Vec<Wanted> {
    use Payload::{Large, Small};
    use Transport::{ModernHttp, Stdio};
    use Wanted::*;

    let case = |transport, concurrency, payload| Case { transport, concurrency, payload };
    vec![
        InstructionsAtMost(case(ModernHttp, 16, Small), 40_000.0),
        AllocationsAtMost(case(ModernHttp, 16, Small), 40.0),
        ThroughputAtLeast(case(ModernHttp, 16, Small), 0.6, Server::Floor),
        ThroughputAtLeast(case(ModernHttp, 64, Small), 0.6, Server::Floor),
        ThroughputAtLeast(case(ModernHttp, 16, Small), 3.0, Server::Rmcp),
        ThroughputAtLeast(case(ModernHttp, 64, Small), 4.0, Server::Rmcp),
        ThroughputAtLeast(case(Stdio, 64, Small), 3.0, Server::Rmcp),
        InstructionsAgainstAtMost(case(ModernHttp, 16, Large), 1.5, Server::Floor),
        IdleSessionsBelow(100_000_000),
    ]
}

impl Wanted {
    /// The verdict and why; `None` when this run did not measure it.
    fn judge(&self, results: &Results) -> Option<(&'static str, String)> {
        let (met, why) = self.compare(results)?;
        if let Self::ThroughputAtLeast(case, _, peer) = *self {
            let (ours, peer) = (&results.row(Server::Ours, case)?.load, &results.row(peer, case)?.load);
            if ours.disturbed.max(peer.disturbed) > DISTURBED {
                let by_cpu = peer.cpu_per_request.as_secs_f64() / ours.cpu_per_request.as_secs_f64();
                return Some(("unsure", format!("{why} (others used the core; by CPU time {by_cpu:.2})")));
            }
        }
        Some((if met { "met" } else { "missed" }, why))
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
                let seen = instruction_ratio(ours(case)?, results.row(peer, case)?)?;
                (
                    seen <= factor,
                    format!("{case}: {seen:.2} times the instructions of {peer}, at most {factor}"),
                )
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
