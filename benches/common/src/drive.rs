//! Makes the calls: as many tasks as calls are to be in flight, each with one at a time.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use tokio::task::JoinSet;

use crate::clocks::Clocks;
use crate::figures::Figures;
use crate::plan::{Plan, Until};
use crate::process;

/// A run that takes longer than all that was asked for and this has failed.
const PATIENCE: Duration = Duration::from_secs(30);

/// Room for the latencies of so many calls is there from the start, so that it is not allocated while calls are made.
const ROOM: usize = 1 << 18;

/// Does what the plan says. `call` makes one call of the echo tool and [checks](check) what it said.
pub async fn run<F, C>(plan: &Plan, revision: &str, call: F) -> Result<Figures>
where
    F: Fn() -> C + Clone + Send + 'static,
    C: Future<Output = Result<()>> + Send + 'static,
{
    let [warm_up, measured] = plan.stages();
    let server = match plan.server_pid {
        Some(pid) => pid,
        None => process::only_child().context("looking for the server that was started")?,
    };
    let patience = warm_up.elapsed + measured.elapsed + PATIENCE;
    tokio::time::timeout(patience, async {
        call().await.context("the first call")?;
        load(plan.in_flight, warm_up, &call).await?;
        let before = Clocks::read(server)?;
        let (elapsed, mut latencies) = load(plan.in_flight, measured, &call).await?;
        let spent = Clocks::read(server)?.since(&before);
        anyhow::ensure!(!latencies.is_empty(), "not one call was answered");
        latencies.sort_unstable();
        Ok(Figures::new(revision, elapsed, &latencies, &spent))
    })
    .await
    .with_context(|| format!("not done after {patience:?}"))?
}

/// Whether the echo tool said what it should.
pub fn check(said: Option<&str>) -> Result<()> {
    anyhow::ensure!(said == Some(crate::MESSAGE), "no echo: {said:?}");
    Ok(())
}

/// How long it took, and the latencies in no order.
async fn load<F, C>(in_flight: usize, until: Until, call: &F) -> Result<(Duration, Vec<u32>)>
where
    F: Fn() -> C + Clone + Send + 'static,
    C: Future<Output = Result<()>> + Send + 'static,
{
    let begun = Arc::new(AtomicU64::new(0));
    let started = Instant::now();
    let mut tasks = JoinSet::new();
    for _ in 0..in_flight {
        let (call, begun) = (call.clone(), begun.clone());
        tasks.spawn(async move {
            let mut latencies = Vec::with_capacity(ROOM / in_flight);
            let mut now = Instant::now();
            while now - started < until.elapsed && begun.fetch_add(1, Ordering::Relaxed) < until.calls {
                call().await?;
                let before = std::mem::replace(&mut now, Instant::now());
                latencies.push((now - before).as_nanos().min(u32::MAX.into()) as u32);
            }
            anyhow::Ok(latencies)
        });
    }
    let mut latencies = Vec::new();
    while let Some(done) = tasks.join_next().await {
        latencies.append(&mut done??);
    }
    Ok((started.elapsed(), latencies))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn as_many_calls_as_asked_for() {
        let made = Arc::new(AtomicU64::new(0));
        let call = {
            let made = made.clone();
            move || {
                made.fetch_add(1, Ordering::Relaxed);
                async { Ok(()) }
            }
        };
        let until = Until { elapsed: Duration::from_secs(60), calls: 100 };
        let (_, latencies) = load(7, until, &call).await.unwrap();
        assert_eq!((latencies.len(), made.load(Ordering::Relaxed)), (100, 100));
        assert!(load(7, Until::default(), &call).await.unwrap().1.is_empty());
    }

    #[tokio::test]
    async fn a_wrong_answer_ends_it() {
        let until = Until { elapsed: Duration::from_secs(60), calls: 100 };
        load(2, until, &|| async { check(Some("something else")) }).await.unwrap_err();
        check(Some(crate::MESSAGE)).unwrap();
    }
}
