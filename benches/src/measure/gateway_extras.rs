//! What is measured of gateways besides calls: long lists, memory without load and after many people, and start-up.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use tidegate_benches_common::core::Core;
use tidegate_benches_common::process;

use super::callgrind::Counts;
use super::gateways::{Run, said, take_turns};
use super::median;
use super::throughput::{Rounds, Subject, Throughput};
use crate::case::Payload;
use crate::gateway::case::{Era, GatewayCase, Setting, Upstream};
use crate::gateway::extra::Extra;
use crate::gateway::running::{Fronted, Upstreams};
use crate::gateway::{Gateway, Kit};
use crate::load::Until;
use crate::request::Ask;

/// Behind a gateway whose list is asked for: so many servers, with so many tools in all.
pub(crate) const LISTED: (usize, usize) = (50, 2_000);
/// Behind a gateway that is left alone.
const IDLE_SERVERS: usize = 10;
/// How long a gateway may take until its list is complete.
const PATIENCE: Duration = Duration::from_secs(60);

/// A long list, asked for again and again on one connection.
pub(crate) struct Listed {
    pub(crate) gateway: Gateway,
    /// Of the answer.
    pub(crate) bytes: usize,
    pub(crate) seen: Result<Throughput, String>,
    pub(crate) counts: Option<Counts>,
}

pub(crate) fn lists(kit: Kit<'_>, gateways: &[Gateway], rounds: &Rounds) -> Result<Vec<Listed>> {
    let upstreams = Upstreams::many(kit.binaries, LISTED.0)?;
    let mut bytes = Vec::new();
    let mut running = Vec::new();
    let mut runs = Vec::new();
    for &gateway in gateways {
        let mut start = || -> Result<_> {
            let (fronted, length) = full_list(kit, gateway, &upstreams, LISTED.1, Core::Server, &[])?;
            let load = fronted.ask(Era::Modern, 1, list_of(&fronted, LISTED.1)?)?;
            let subject = Subject::new(fronted.pid()?, load, rounds.warm_up)?;
            running.push(fronted);
            Ok((subject, length))
        };
        let (subject, length) = match start() {
            Ok((subject, length)) => (Ok(subject), length),
            Err(error) => (Err(error), 0),
        };
        runs.push(Run::new(gateway, subject, rounds));
        bytes.push(length);
    }
    let rows = take_turns(runs, rounds).into_iter().zip(bytes);
    Ok(rows.map(|((gateway, seen), bytes)| Listed { gateway, bytes, seen, counts: None }).collect())
}

/// A gateway that has so many tools in its list, and the length of that list.
pub(super) fn full_list(
    kit: Kit<'_>,
    gateway: Gateway,
    upstreams: &Upstreams,
    tools: usize,
    core: Core,
    wrapper: &[std::ffi::OsString],
) -> Result<(Fronted, usize)> {
    let mut fronted = Fronted::launch(kit, gateway, Era::Modern, upstreams, core, wrapper)?;
    let ask = list_of(&fronted, tools)?;
    let length = fronted.first_answer(Era::Modern, &ask, PATIENCE)?;
    Ok((fronted, length))
}

pub(super) fn list_of(fronted: &Fronted, tools: usize) -> Result<Ask> {
    Ok(Ask::tools(fronted.door()?.path, tools))
}

/// So many people call a gateway, each with a token of their own.
pub(crate) const PRINCIPALS: usize = 100_000;

/// What ours holds, in bytes, before and after that.
pub(crate) struct Principals {
    pub(crate) before: u64,
    pub(crate) after: u64,
}

/// Memory after each of them has called once.
pub(crate) fn principals(kit: Kit<'_>, settle: Duration) -> Result<Principals> {
    let upstreams = Upstreams::start(kit.binaries, Upstream::Http)?;
    let setting = Setting { upstream: Upstream::Http, era: Era::Modern };
    let gateway = Gateway::OursWith(Extra::NewTokens);
    let mut fronted = Fronted::start(kit, gateway, setting, &upstreams, Core::Server, &[])?;
    let case = GatewayCase { setting, connections: 16, payload: Payload::Small };
    let before = process::resident(fronted.pid()?)?;
    let mut load = fronted.connect(kit.binaries, case)?;
    let made = load.run(Until::requests(PRINCIPALS as u64))?.requests;
    anyhow::ensure!(made == PRINCIPALS as u64, "only {made} of {PRINCIPALS} called in time");
    std::thread::sleep(settle);
    Ok(Principals { before, after: process::resident(fronted.pid()?)? })
}

/// A gateway that nobody calls.
pub(crate) struct Idle {
    pub(crate) gateway: Gateway,
    pub(crate) resident: Result<u64, String>,
}

/// Memory with ten servers, some time after their tools were asked for once.
pub(crate) fn idle(kit: Kit<'_>, gateways: &[Gateway], settle: Duration) -> Result<Vec<Idle>> {
    let upstreams = Upstreams::many(kit.binaries, IDLE_SERVERS)?;
    let tools = IDLE_SERVERS * LISTED.1 / LISTED.0;
    let weigh = |gateway| -> Result<u64> {
        let (fronted, _) = full_list(kit, gateway, &upstreams, tools, Core::Server, &[])?;
        std::thread::sleep(settle);
        process::resident(fronted.pid()?)
    };
    Ok(gateways.iter().map(|&gateway| Idle { gateway, resident: weigh(gateway).map_err(said) }).collect())
}

/// From nothing to the first list.
pub(crate) struct StartUp {
    pub(crate) gateway: Gateway,
    pub(crate) what: &'static str,
    pub(crate) took: Result<Duration, String>,
}

/// From the start of the process to the first answer to `tools/list` that has the server's tools in it.
pub(crate) fn start_up(kit: Kit<'_>, gateways: &[Gateway], times: usize) -> Result<Vec<StartUp>> {
    let mut rows = Vec::new();
    for &gateway in gateways {
        let one: &[_] = match gateway {
            Gateway::Ours => &[Upstream::Http, Upstream::Stdio],
            Gateway::PythonMcpProxy | Gateway::Supergateway => &[Upstream::Stdio],
            _ => &[Upstream::Http],
        };
        let times = if gateway.is_slow() { 1 } else { times };
        let mut row = |what, upstreams: &Upstreams| {
            let took = first_list(kit, gateway, upstreams, times).map_err(said);
            rows.push(StartUp { gateway, what, took });
        };
        if gateway == Gateway::Ours {
            row("server in process", &Upstreams::demonstration());
        }
        for &upstream in one {
            let what = if upstream == Upstream::Http { "server over HTTP" } else { "server as child" };
            row(what, &Upstreams::start(kit.binaries, upstream)?);
        }
    }
    Ok(rows)
}

fn first_list(kit: Kit<'_>, gateway: Gateway, upstreams: &Upstreams, times: usize) -> Result<Duration> {
    let era = if gateway.peer().is_some() { Era::Legacy } else { Era::Modern };
    let mut seen = Vec::new();
    for _ in 0..times {
        let started = Instant::now();
        let mut fronted = Fronted::launch(kit, gateway, era, upstreams, Core::Server, &[])?;
        let ask = list_of(&fronted, 1)?;
        fronted.first_answer(era, &ask, PATIENCE).context("the first list")?;
        seen.push(started.elapsed());
    }
    Ok(median(&seen, |took| *took))
}
