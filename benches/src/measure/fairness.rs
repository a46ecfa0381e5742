//! What a quiet tenant notices of another one that floods the same server: latency alone and beside the flood.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use tidegate_benches_common::core::Core;

use crate::credentials::Credentials;
use crate::gateway::case::Era;
use crate::gateway::running::{Fronted, Upstreams};
use crate::gateway::{Gateway, Kit};
use crate::load::{Load, Until};
use crate::request::Ask;

/// How many calls of the tool run at once, for all tenants together.
pub(crate) const PLACES: usize = 8;
/// How many calls of the other tenant there are at any time.
pub(crate) const FLOOD: usize = 256;
/// How long each call takes, in milliseconds.
pub(crate) const CALL_MS: u64 = 10;
/// How long a gateway may take to answer for the first time.
const PATIENCE: Duration = Duration::from_secs(60);

/// Latencies: half of the calls stayed below the first, 99 of 100 below the second.
#[derive(Clone, Copy)]
pub(crate) struct Latency {
    pub(crate) p50: Duration,
    pub(crate) p99: Duration,
}

/// What both of them saw.
pub(crate) struct Fairness {
    pub(crate) alone: Latency,
    pub(crate) beside: Latency,
    pub(crate) flood: Latency,
}

/// The quiet tenant makes so many calls, one after the other: alone, and while the other one floods.
pub(crate) fn measure(kit: Kit<'_>, calls: u64) -> Result<Fairness> {
    let gateway = Gateway::OursWithTenants;
    let upstreams = Upstreams::demonstration();
    let mut fronted = Fronted::launch(kit, gateway, Era::Modern, &upstreams, Core::Server, &[])?;
    let door = fronted.door()?.clone();
    let keys = door.credentials.clone().context("there are no keys")?;
    let ask = |tenant: u64| {
        let key = Credentials::one(keys.of(tenant).to_owned());
        Ask::count(door.path, door.tool).with_credentials(Some(Arc::new(key)))
    };
    fronted.first_answer(Era::Modern, &ask(0), PATIENCE)?;
    let mut quiet = fronted.ask(Era::Modern, 1, ask(0))?;
    let mut flood = fronted.ask(Era::Modern, FLOOD, ask(1))?;

    let alone = latency(&mut *quiet, Until::requests(calls))?;
    let is_over = AtomicBool::new(false);
    let (beside, flood) = thread::scope(|scope| {
        let flooding = scope.spawn(|| -> Result<Latency> {
            let mut last = None;
            // Ended by the quiet one, which makes a fixed number of calls in bounded time.
            while !is_over.load(Ordering::Relaxed) {
                last = Some(latency(&mut *flood, Until::elapsed(Duration::from_secs(2)))?);
            }
            last.context("there was no flood")
        });
        // The flood is there when the first of its calls have waited for others.
        thread::sleep(Duration::from_millis(500));
        let beside = latency(&mut *quiet, Until::requests(calls));
        is_over.store(true, Ordering::Relaxed);
        (beside, flooding.join())
    });
    let flood = flood.map_err(|_| anyhow::anyhow!("the flood panicked"))??;
    Ok(Fairness { alone, beside: beside?, flood })
}

fn latency(load: &mut dyn Load, until: Until) -> Result<Latency> {
    let sample = load.run(until)?;
    Ok(Latency { p50: sample.percentile(0.5), p99: sample.percentile(0.99) })
}
