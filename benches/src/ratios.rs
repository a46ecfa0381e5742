//! How this project compares with the others, case by case.

use std::fmt::Write;
use std::time::Duration;

use crate::case::Case;
use crate::client::Client;
use crate::measure::callgrind::Counts;
use crate::measure::clients::Called;
use crate::measure::{Measured, Results};
use crate::server::Server;

pub(crate) fn render(results: &Results) -> String {
    let mut out = String::new();
    for (peer, heading) in [(Server::Floor, "ours against the floor"), (Server::Rmcp, "ours against rmcp")] {
        let pair = |case| Some([results.row(Server::Ours, case)?.into(), results.row(peer, case)?.into()]);
        section(&mut out, heading, Case::all(), pair);
    }
    for (peer, whose) in [(Client::Floor, "the floor"), (Client::Rmcp, "rmcp's")] {
        let pair =
            |case| Some([results.client(Client::Ours, case)?.into(), results.client(peer, case)?.into()]);
        section(&mut out, &format!("our client against {whose}"), Case::of_clients(), pair);
    }
    out
}

/// What can be compared.
struct Figures {
    per_second: f64,
    cpu: Duration,
    counts: Option<Counts>,
}

impl From<&Measured> for Figures {
    fn from(row: &Measured) -> Self {
        Self { per_second: row.load.per_second, cpu: row.load.cpu_per_request, counts: row.counts }
    }
}

impl From<&Called> for Figures {
    fn from(row: &Called) -> Self {
        Self { per_second: row.calls.per_second, cpu: row.calls.client_cpu, counts: row.counts }
    }
}

/// A line for each case in which there is a pair: ours and the other.
fn section(out: &mut String, heading: &str, cases: Vec<Case>, pair: impl Fn(Case) -> Option<[Figures; 2]>) {
    let mut lines = String::new();
    for case in cases {
        let Some([ours, peer]) = pair(case) else { continue };
        let _ = write!(lines, "  {:<20}", case.to_string());
        let _ = write!(lines, "  throughput x{:.2}", ours.per_second / peer.per_second);
        // Steadier than throughput when others use the machine too.
        let _ = write!(lines, "  CPU time x{:.2}", ours.cpu.as_secs_f64() / peer.cpu.as_secs_f64());
        if let Some(ratio) = of_instructions(ours.counts, peer.counts) {
            let _ = write!(lines, "  instructions x{ratio:.2}");
        }
        lines.push('\n');
    }
    if !lines.is_empty() {
        let _ = write!(out, "\n{heading}\n{lines}");
    }
}

pub(crate) fn of_instructions(ours: Option<Counts>, peer: Option<Counts>) -> Option<f64> {
    Some(ours?.instructions / peer?.instructions)
}
