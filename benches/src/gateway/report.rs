//! The tables of gateways.

use std::fmt::Write;
use std::time::Duration;

use super::Gateway;
use super::extra::Extra;
use crate::measure::fairness::{CALL_MS, FLOOD, PLACES};
use crate::measure::gateway_extras::{LISTED, Listed, PRINCIPALS};
use crate::measure::gateways::Passed;
use crate::measure::throughput::DISTURBED;
use crate::measure::{Gateways, Results};
use crate::table::{align, counted, duration, megabytes, most, thousands};

const CALLS: [&str; 11] = [
    "case",
    "gateway",
    "req/s",
    "p50",
    "p99",
    "added p50",
    "added p99",
    "CPU/req",
    "instr/req",
    "alloc/req",
    "resident",
];
const LISTS: [&str; 8] =
    ["tools/list", "gateway", "lists/s", "p50", "bytes", "instr/list", "instr/byte", "alloc/list"];

pub(crate) fn render(results: &Results) -> String {
    let gateways = &results.gateways;
    let mut out = String::new();
    let mut failures = Vec::new();
    if !gateways.rows.is_empty() {
        let _ = writeln!(out, "gateways in front of the floor; added: more than direct\n");
        let rows: Vec<_> = gateways.rows.iter().map(|row| cells(gateways, row, &mut failures)).collect();
        out.push_str(&align(CALLS, &rows));
    }
    if !gateways.lists.is_empty() {
        let rows: Vec<_> = gateways.lists.iter().map(|row| list_cells(row, &mut failures)).collect();
        out.push_str(&align(LISTS, &rows));
    }
    for idle in &gateways.idle {
        match &idle.resident {
            Ok(bytes) => {
                let _ =
                    writeln!(out, "idle with ten servers, {}: {} resident", idle.gateway, megabytes(*bytes));
            }
            Err(why) => failures.push(failure("idle with ten servers", idle.gateway, why)),
        }
    }
    for row in &gateways.start_up {
        let what = format!("start-up to the first list, {}", row.what);
        match &row.took {
            Ok(took) => {
                let _ = writeln!(out, "{what}, {}: {}", row.gateway, duration(*took));
            }
            Err(why) => failures.push(failure(&what, row.gateway, why)),
        }
    }
    match &gateways.principals {
        Some(Ok(weighed)) => {
            let [before, after] = [weighed.before, weighed.after].map(megabytes);
            let count = thousands(PRINCIPALS as f64);
            let _ = writeln!(out, "after {count} principals, ours: {after} resident ({before} before)");
        }
        Some(Err(why)) => failures.push(failure("principals", Gateway::OursWith(Extra::NewTokens), why)),
        None => {}
    }
    match &gateways.fairness {
        Some(Ok(fairness)) => {
            let [alone, beside, flood] = [&fairness.alone, &fairness.beside, &fairness.flood]
                .map(|seen| format!("p50 {}, p99 {}", duration(seen.p50), duration(seen.p99)));
            let _ = writeln!(
                out,
                "a tool of {CALL_MS} ms, {PLACES} calls at once; a quiet tenant alone: {alone}; beside {FLOOD} calls of another \
                 tenant: {beside} (the other's: {flood})"
            );
        }
        Some(Err(why)) => failures.push(failure("fairness", Gateway::OursWithTenants, why)),
        None => {}
    }
    let seen: Vec<_> = gateways.rows.iter().filter_map(|row| Some((row, row.seen.as_ref().ok()?))).collect();
    if let Some(((row, _), share)) = most(&seen, |(_, load)| load.load_core_busy) {
        let _ = writeln!(
            out,
            "the core of load and upstream: at most {share:.0} % busy ({} {})",
            row.gateway, row.case
        );
    }
    if let Some(((row, _), share)) = most(&seen, |(_, load)| load.disturbed)
        && share > DISTURBED * 100.0
    {
        let _ = writeln!(
            out,
            "others took up to {share:.0} % of the gateways' core ({} {}): times and rates suffer, counts do not",
            row.gateway, row.case
        );
    }
    failures.dedup();
    failures.extend(gateways.notes.iter().cloned());
    for line in failures {
        let _ = writeln!(out, "{line}");
    }
    out
}

fn failure(what: &str, gateway: Gateway, why: &str) -> String {
    format!("{gateway}, {what}: {why}")
}

fn cells(all: &Gateways, row: &Passed, failures: &mut Vec<String>) -> [String; 11] {
    let mut cells = [const { String::new() }; 11].map(|_| "-".to_owned());
    cells[0] = row.case.to_string();
    cells[1] = row.gateway.to_string();
    let load = match &row.seen {
        Ok(load) => load,
        Err(why) => {
            failures.push(failure(&row.case.to_string(), row.gateway, why));
            cells[2] = "failed, see below".into();
            return cells;
        }
    };
    cells[2] = rate(load.per_second);
    cells[3] = duration(load.p50);
    cells[4] = duration(load.p99);
    if let Some(direct) = all.load(Gateway::Direct, row.case).filter(|_| row.gateway != Gateway::Direct) {
        cells[5] = added(load.p50, direct.p50);
        cells[6] = added(load.p99, direct.p99);
    }
    cells[7] = duration(load.cpu_per_request);
    [cells[8], cells[9]] = counted(row.counts);
    cells[10] = megabytes(load.resident);
    cells
}

/// The slowest answer less than once a second.
fn rate(per_second: f64) -> String {
    if per_second < 10.0 { format!("{per_second:.1}") } else { thousands(per_second) }
}

/// Below zero when there is nothing to see but noise.
fn added(through: Duration, direct: Duration) -> String {
    match through.checked_sub(direct) {
        Some(more) => duration(more),
        None => format!("-{}", duration(direct - through)),
    }
}

fn list_cells(row: &Listed, failures: &mut Vec<String>) -> [String; 8] {
    let (servers, tools) = LISTED;
    let what = format!("{} tools of {servers} servers", thousands(tools as f64));
    let mut cells = [const { String::new() }; 8].map(|_| "-".to_owned());
    cells[1] = row.gateway.to_string();
    match &row.seen {
        Ok(load) => {
            cells[2] = rate(load.per_second);
            cells[3] = duration(load.p50);
            cells[4] = thousands(row.bytes as f64);
        }
        Err(why) => {
            failures.push(failure(&what, row.gateway, why));
            cells[2] = "failed, see below".into();
        }
    }
    cells[0] = what;
    [cells[5], cells[7]] = counted(row.counts);
    if let Some(counts) = row.counts {
        cells[6] = format!("{:.2}", counts.instructions / row.bytes as f64);
    }
    cells
}
