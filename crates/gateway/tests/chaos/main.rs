//! Twenty servers that are killed, hang, talk nonsense and come back, under load, behind one gateway.
//!
//! Every call must get exactly one answer, the right one or an error; nobody may see what was meant for another; every
//! server must come back by itself; and nothing may be left over. `CHAOS_SECONDS=60` makes it long, `CHAOS_SEED` repeats a
//! run. How long servers took to come back is printed and not asserted: that depends on the machine.
#![cfg(target_os = "linux")]
#![allow(clippy::print_stdout, reason = "what was measured is for whoever reads the log")]

mod callers;
mod faults;
mod leftovers;
mod upstream;

use std::sync::Arc;
use std::time::{Duration, Instant};

use tidegate_gateway::{Gateway, Health, Settings};

use callers::{Caller, Tally};
use upstream::Upstream;

/// How many servers there are.
const SERVERS: usize = 20;
/// How many callers of each era there are.
const CALLERS: usize = 4;
/// How long something may take that must happen, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(60);

/// Not a test: what the server processes of the test run. They are this very program, started again.
#[test]
fn server() {
    upstream::process::run_if_asked();
}

#[test]
fn chaos() {
    let seed = std::env::var("CHAOS_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
        .unwrap_or_else(fastrand::get_seed);
    let seconds = std::env::var("CHAOS_SECONDS").ok().and_then(|s| s.parse().ok()).unwrap_or(10);
    println!("seed {seed}, {seconds} s");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(run(seed, Duration::from_secs(seconds)));
}

async fn run(seed: u64, length: Duration) {
    let mut random = fastrand::Rng::with_seed(seed);
    let upstreams: Vec<Arc<Upstream>> = (0..SERVERS).map(Upstream::start).collect();
    let mut settings = Settings::default();
    settings.servers = upstreams.iter().map(|upstream| upstream.settings()).collect();
    settings.drain = Duration::from_secs(5);
    let gateway = Gateway::start(settings).unwrap();
    let before = leftovers::tasks();
    let url = callers::serve(&gateway).await;
    all_ready(&gateway).await;
    callers::everything_works(&url).await;
    let memory = leftovers::memory();

    let tally = Arc::new(Tally::default());
    let callers: Vec<Caller> = (0..2 * CALLERS)
        .map(|n| Caller::start(n, n.is_multiple_of(2), &url, random.fork(), tally.clone()))
        .collect();
    let begun = Instant::now();
    while begun.elapsed() < length {
        let upstream = &upstreams[random.usize(..upstreams.len())];
        upstream.trouble(&mut random);
        tokio::time::sleep(Duration::from_millis(random.u64(50..250))).await;
    }
    for upstream in &upstreams {
        upstream.healed().await;
    }
    all_ready(&gateway).await;
    println!("back after at most {:?}", faults::slowest_return(&upstreams, &gateway).await);

    // Whatever was wrong before, now everything works.
    for caller in &callers {
        caller.stop().await;
    }
    tokio::time::sleep(2 * upstream::OPEN_FOR).await;
    callers::everything_works(&url).await;
    tally.print();
    tally.check();

    gateway.close().await;
    drop(gateway);
    for upstream in &upstreams {
        upstream.stop();
    }
    leftovers::no_process_is_left().await;
    leftovers::tasks_are_back_to(before).await;
    leftovers::memory_is_back_to(memory);
}

/// Waits until every server answers.
async fn all_ready(gateway: &Gateway) {
    let ready = async {
        while !gateway.status().iter().all(|server| server.health == Health::Ready) {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    if tokio::time::timeout(PATIENCE, ready).await.is_err() {
        let down: Vec<_> =
            gateway.status().into_iter().filter(|server| server.health != Health::Ready).collect();
        panic!("not back: {down:#?}");
    }
}
