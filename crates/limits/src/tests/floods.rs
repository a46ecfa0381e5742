//! Very many tenants, users and runs: memory has a bound, and nobody gets past a limit by being many.

use std::fmt::Write;

use tidegate_config::{LimitScopes, RateUnit::Hour, RunSettings};

use super::*;
use crate::keyed::KeyMaker;
use crate::{CounterKey, Counters, MemoryCounters, Taken};

const ONCE: Rate = Rate { calls: 1, per: Hour };

fn key(keys: &KeyMaker, name: &str) -> CounterKey {
    CounterKey::new(7, keys.hash([Some(name)]))
}

#[tokio::test(start_paused = true)]
async fn a_million_users() {
    let (counters, keys) = (MemoryCounters::new(), KeyMaker::new());
    let mut name = String::new();
    let mut passed = 0u32;
    for number in 0..1_000_000 {
        name.clear();
        write!(name, "user{number}").unwrap();
        passed += u32::from(matches!(counters.take(&[(key(&keys, &name), ONCE)]), Taken::All));
    }
    assert!(counters.len() <= 65_536 + 1, "{}", counters.len());
    assert!(passed <= 65_536 + 1, "those who found no room shared one count: {passed}");
    // Whoever was there keeps its count.
    assert!(matches!(counters.take(&[(key(&keys, "user0"), ONCE)]), Taken::AllBefore(0, _)));
    // Those whose time is over make room.
    tokio::time::advance(Duration::from_secs(2 * 3600 + 1)).await;
    let newcomers =
        (0..1000).map(|number| counters.take(&[(key(&keys, &format!("newcomer{number}")), ONCE)]));
    let found_room = newcomers.filter(|taken| matches!(taken, Taken::All)).count();
    assert!(found_room > 900, "{found_room}");
    assert!(counters.len() <= 65_536 + 1);
}

#[tokio::test(start_paused = true)]
async fn a_bucket_that_is_full_again_is_as_good_as_a_new_one() {
    // Room for one key in each part of the map: what is dropped must not have been in use.
    let (counters, keys) = (MemoryCounters::with_room_for(1), KeyMaker::new());
    let rate = Rate { calls: 3, per: Hour };
    let mut taken = std::collections::HashMap::new();
    for round in 0..200 {
        for name in ["a", "b", "c", "d", "e"] {
            if let Taken::All = counters.take(&[(key(&keys, name), rate)]) {
                *taken.entry(name).or_insert(0u32) += 1;
            }
        }
        let hours = round / 60 + 1;
        assert!(taken.values().all(|count| *count <= 3 * (hours + 1)), "{taken:?}");
        tokio::time::advance(Duration::from_secs(60)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn very_many_queues() {
    let rig = Rig::of(LimitScopes { user: concurrent(1, 0), ..LimitScopes::default() });
    for number in 0..100_000 {
        drop(rig.pass(&call(&format!("reef/user{number}"))));
    }
    assert!(rig.store.gates.len() <= 65_536, "{}", rig.store.gates.len());
    let held: Vec<_> =
        (0..80_000).filter_map(|number| rig.enter(&call(&format!("reef/u{number}"))).ok()).collect();
    assert!(held.len() <= 65_536 + 1 && rig.store.gates.len() <= 65_536 + 1, "{}", held.len());
    assert_eq!(rig.store.queues().len(), 100);
    drop(held);
    assert_eq!(rig.store.queues(), []);
}

#[tokio::test(start_paused = true)]
async fn very_many_runs() {
    let run = RunSettings { calls: Some(1), repeats: Some(1), ..RunSettings::default() };
    let settings = LimitSettings { scopes: LimitScopes::default(), rules: Vec::new(), run: Some(run) };
    let rig = Rig::new(&settings);
    for number in 0..25_000 {
        rig.done(&call(&format!("reef/user{number}"))).unwrap();
    }
    assert!(rig.store.runs.len() <= 16_384, "{}", rig.store.runs.len());
    rig.refused(&call("reef/user24999"));
    // One that is under way is forgotten last.
    let busy = rig.pass(&call("busy"));
    for number in 0..25_000 {
        rig.done(&call(&format!("tide/user{number}"))).unwrap();
    }
    rig.refused(&call("busy"));
    drop(busy);
}

#[tokio::test(start_paused = true)]
async fn very_many_calls_of_one_run() {
    let run = RunSettings { repeats: Some(1), ..RunSettings::default() };
    let settings = LimitSettings { scopes: LimitScopes::default(), rules: Vec::new(), run: Some(run) };
    let rig = Rig::new(&settings);
    let numbered = |n: u32| call_with("ann", &format!(r#"{{"name":"x","arguments":{{"n":{n}}}}}"#));
    for number in 0..1000 {
        rig.done(&numbered(number)).unwrap();
    }
    rig.refused(&numbered(999));
    rig.refused(&numbered(999 - 255));
    rig.done(&numbered(0)).unwrap(); // it was so long ago
}
