//! The tables: one of servers, one of clients.

use std::fmt::Write;
use std::time::Duration;

use crate::measure::callgrind::Counts;
use crate::measure::clients::Called;
use crate::measure::throughput::DISTURBED;
use crate::measure::{Measured, Results};
use crate::request::MODERN;

const SERVERS: [&str; 9] =
    ["case", "server", "req/s", "p50", "p99", "CPU/req", "instr/req", "alloc/req", "resident"];
const CLIENTS: [&str; 9] =
    ["case", "client", "calls/s", "p50", "p99", "CPU/call", "instr/call", "alloc/call", "server's CPU"];

pub(crate) fn render(results: &Results) -> String {
    let mut out = String::new();
    if !results.rows.is_empty() {
        let rows: Vec<_> = results.rows.iter().map(cells).collect();
        out.push_str(&align(SERVERS, &rows));
    }
    if !results.clients.is_empty() {
        let rows: Vec<_> = results.clients.iter().map(client_cells).collect();
        let _ = writeln!(out, "clients of our echo server, {MODERN}\n");
        out.push_str(&align(CLIENTS, &rows));
    }
    for idle in &results.sessions {
        let each = idle.after.saturating_sub(idle.before) / idle.sessions as u64;
        let _ = writeln!(
            out,
            "{} idle legacy sessions, {}: {} resident before, {} after, {} bytes each",
            thousands(idle.sessions as f64),
            idle.server,
            megabytes(idle.before),
            megabytes(idle.after),
            thousands(each as f64),
        );
    }
    if let Some((row, share)) = most(&results.rows, |row| row.load.client_busy) {
        let _ = writeln!(
            out,
            "load generator: at most {share:.0} % of its core busy ({} {})",
            row.server, row.case
        );
    }
    let disturbed = most(&results.rows, |row| row.load.disturbed);
    if let Some((row, share)) = disturbed.filter(|(row, _)| row.load.disturbed > DISTURBED) {
        let _ = writeln!(
            out,
            "others took up to {share:.0} % of the servers' core ({} {}): times and rates suffer, counts do not",
            row.server, row.case
        );
    }
    let disturbed = most(&results.clients, |row| row.calls.disturbed);
    if let Some((row, share)) = disturbed.filter(|(row, _)| row.calls.disturbed > DISTURBED) {
        let _ = writeln!(
            out,
            "others took up to {share:.0} % of a core from a client or its server ({} client {})",
            row.client, row.case
        );
    }
    for note in &results.notes {
        let _ = writeln!(out, "{note}");
    }
    out
}

/// The row with the largest share, and that share in percent.
pub(crate) fn most<R>(rows: &[R], share: impl Fn(&R) -> f64) -> Option<(&R, f64)> {
    let row = rows.iter().max_by(|a, b| share(a).total_cmp(&share(b)))?;
    Some((row, share(row) * 100.0))
}

fn cells(row: &Measured) -> [String; 9] {
    let [instructions, allocations] = counted(row.counts);
    [
        row.case.to_string(),
        row.server.to_string(),
        thousands(row.load.per_second),
        duration(row.load.p50),
        duration(row.load.p99),
        duration(row.load.cpu_per_request),
        instructions,
        allocations,
        megabytes(row.load.resident),
    ]
}

fn client_cells(row: &Called) -> [String; 9] {
    let [instructions, allocations] = counted(row.counts);
    [
        row.case.to_string(),
        row.client.to_string(),
        thousands(row.calls.per_second),
        duration(row.calls.p50),
        duration(row.calls.p99),
        duration(row.calls.client_cpu),
        instructions,
        allocations,
        duration(row.calls.server_cpu),
    ]
}

pub(crate) fn counted(counts: Option<Counts>) -> [String; 2] {
    match counts {
        Some(counts) => [thousands(counts.instructions), format!("{:.1}", counts.allocations)],
        None => ["-".into(), "-".into()],
    }
}

/// Text to the left, numbers to the right, an empty line between cases.
pub(crate) fn align<const COLUMNS: usize>(headings: [&str; COLUMNS], rows: &[[String; COLUMNS]]) -> String {
    let mut widths = headings.map(str::len);
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |cells: &[String; COLUMNS]| {
        let padded = cells.iter().zip(widths).enumerate().map(|(column, (cell, width))| {
            if column < 2 { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    };
    let mut out = line(&headings.map(str::to_owned));
    let mut previous = "";
    for row in rows {
        if row[0] != previous {
            out.push('\n');
            previous = &row[0];
        }
        out.push_str(&line(row));
    }
    out.push('\n');
    out
}

pub(crate) fn thousands(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        let left = digits.len() - index;
        if index > 0 && left.is_multiple_of(3) && digit != '-' && !out.ends_with('-') {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

pub(crate) fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

pub(crate) fn duration(duration: Duration) -> String {
    let micros = duration.as_secs_f64() * 1e6;
    if micros < 10_000.0 { format!("{micros:.1} us") } else { format!("{:.1} ms", micros / 1000.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        for (value, text) in [(0.0, "0"), (999.0, "999"), (1000.0, "1,000"), (1234567.4, "1,234,567")] {
            assert_eq!(thousands(value), text);
        }
    }
}
