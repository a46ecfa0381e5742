//! The figures that the project wants its gateway to reach.

use super::Gateway;
use super::case::{Era, GatewayCase, Setting, Upstream};
use super::extra::Extra;
use crate::case::Payload;
use crate::measure::Gateways;
use crate::measure::gateway_extras::PRINCIPALS;
use crate::measure::throughput::{DISTURBED, Throughput};
use crate::table::{duration, megabytes, thousands};

/// A copy costs one instruction a byte at most, as callgrind counts; writing JSON costs many.
const COPIED: f64 = 2.0;
const IDLE: u64 = 15_000_000;
/// What it may cost to know who calls, of what a call costs otherwise, to see what happens, and everything together.
const EXTRAS: [(Extra, f64); 4] =
    [(Extra::Key, 1.05), (Extra::Token, 1.05), (Extra::Telemetry, 1.10), (Extra::Everything, 1.15)];
/// And which part of the throughput is left then.
const WITH_EVERYTHING: f64 = 0.85;
const WITH_PRINCIPALS: u64 = 200_000_000;
const START_UP_MS: u128 = 50;

/// All that this run can say: the verdict, and why.
pub(crate) fn verdicts(all: &Gateways) -> Vec<(&'static str, String)> {
    let mut out = Vec::new();
    for setting in Setting::ALL {
        for case in setting.cases(false) {
            out.extend(instructions(all, case));
            out.extend(throughput(all, case));
            out.extend(added(all, case));
            for (extra, most) in EXTRAS {
                out.extend(extra_instructions(all, extra, most, case));
            }
            out.extend(all_together(all, case));
        }
    }
    out.extend(list(all));
    let idle = all.idle.iter().find(|idle| idle.gateway == Gateway::Ours);
    if let Some(&Ok(bytes)) = idle.map(|idle| &idle.resident) {
        let line = format!("idle with ten servers: {}, less than {}", megabytes(bytes), megabytes(IDLE));
        out.push(met(bytes < IDLE, line));
    }
    if let Some(Ok(weighed)) = &all.principals {
        let count = thousands(PRINCIPALS as f64);
        let line = format!(
            "after {count} principals: {}, less than {}",
            megabytes(weighed.after),
            megabytes(WITH_PRINCIPALS)
        );
        out.push(met(weighed.after < WITH_PRINCIPALS, line));
    }
    let start = all.start_up.iter().find(|start| start.gateway == Gateway::Ours);
    if let Some(&Ok(took)) = start.map(|start| &start.took) {
        let line = format!("start-up to the first list: {}, less than {START_UP_MS} ms", duration(took));
        out.push(met(took.as_millis() < START_UP_MS, line));
    }
    out
}

fn met(met: bool, why: String) -> (&'static str, String) {
    (if met { "met" } else { "missed" }, format!("gateway {why}"))
}

/// Of rates and times: unsure when others used the core.
fn unless_disturbed(
    verdict: (&'static str, String),
    ours: &Throughput,
    peer: &Throughput,
) -> (&'static str, String) {
    if ours.disturbed.max(peer.disturbed) <= DISTURBED {
        return verdict;
    }
    let by_cpu = peer.cpu_per_request.as_secs_f64() / ours.cpu_per_request.as_secs_f64();
    ("unsure", format!("{} (others used the core; by CPU time {by_cpu:.2})", verdict.1))
}

fn instructions(all: &Gateways, case: GatewayCase) -> Option<(&'static str, String)> {
    let ours = all.row(Gateway::Ours, case)?.counts?;
    let floor = all.row(Gateway::FloorProxy, case)?.counts?;
    let seen = ours.instructions / floor.instructions;
    Some(met(seen <= 2.0, format!("{case}: {seen:.2} times the instructions of floor-proxy, at most 2")))
}

/// What is known from an earlier call costs next to nothing, and neither does what only looks.
fn extra_instructions(
    all: &Gateways,
    extra: Extra,
    most: f64,
    case: GatewayCase,
) -> Option<(&'static str, String)> {
    let gateway = Gateway::OursWith(extra);
    let (with, without) = (all.row(gateway, case)?.counts?, all.row(Gateway::Ours, case)?.counts?);
    let seen = with.instructions / without.instructions;
    let line = format!("{case}: {gateway} {seen:.3} times the instructions of ours, at most {most}");
    Some(met(seen <= most, line))
}

fn all_together(all: &Gateways, case: GatewayCase) -> Option<(&'static str, String)> {
    let gateway = Gateway::OursWith(Extra::Everything);
    let (with, without) = (all.load(gateway, case)?, all.load(Gateway::Ours, case)?);
    let seen = with.per_second / without.per_second;
    let line =
        format!("{case}: {gateway} {seen:.2} times the throughput of ours, at least {WITH_EVERYTHING}");
    Some(unless_disturbed(met(seen >= WITH_EVERYTHING, line), with, without))
}

fn throughput(all: &Gateways, case: GatewayCase) -> Option<(&'static str, String)> {
    let (peer, factor) = match case.setting.upstream {
        Upstream::Http => (Gateway::FloorProxy, 0.8),
        Upstream::Stdio => (Gateway::McpProxy, 3.0),
    };
    let (ours, theirs) = (all.load(Gateway::Ours, case)?, all.load(peer, case)?);
    let seen = ours.per_second / theirs.per_second;
    let line = format!("{case}: {seen:.2} times the throughput of {peer}, at least {factor}");
    Some(unless_disturbed(met(seen >= factor, line), ours, theirs))
}

fn added(all: &Gateways, case: GatewayCase) -> Option<(&'static str, String)> {
    if case.connections != 16 || case.payload != Payload::Small {
        return None;
    }
    let direct = all.load(Gateway::Direct, case)?.p50;
    let (ours, theirs) = (all.load(Gateway::Ours, case)?, all.load(Gateway::McpProxy, case)?);
    let [our, their] = [ours, theirs].map(|load| load.p50.as_secs_f64() - direct.as_secs_f64());
    let seen = our / their;
    let line = format!("{case}: {seen:.2} times the added p50 of mcp-proxy, at most 0.5");
    Some(unless_disturbed(met(seen <= 0.5, line), ours, theirs))
}

/// Not building JSON again shows in what a byte costs.
fn list(all: &Gateways) -> Option<(&'static str, String)> {
    let ours = all.list(Gateway::Ours)?;
    let counts = ours.counts?;
    let each = counts.instructions / ours.bytes as f64;
    let line = format!(
        "list: {} instructions for {} bytes, {each:.2} a byte, at most {COPIED} if no JSON is built",
        thousands(counts.instructions),
        thousands(ours.bytes as f64),
    );
    Some(met(each <= COPIED, line))
}

/// What callgrind looks at: enough connections that requests share system calls as they do under load. A smoke check
/// makes do with one case.
pub(crate) fn is_counted(case: GatewayCase, quick: bool) -> bool {
    let Setting { upstream, era } = case.setting;
    let first = upstream == Upstream::Http && era == Era::Modern && case.payload == Payload::Small;
    case.connections == 16 && (first || !quick)
}
