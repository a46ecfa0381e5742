//! `kill -9` at random moments: what was acknowledged is there, and nothing is there by half.
//!
//! `KILL_ROUNDS=200 cargo test -p tidegate-memory --test memory kill` runs as many rounds as are asked for.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;
use tidegate_memory::server;

use crate::rig::{Folder, ask, on_postgres, open};

/// How many entities one change makes.
const TOGETHER: usize = 5;
/// Tells the child where to write, and from which number on.
const FILE: &str = "TIDEGATE_KILL_FILE";
const FROM: &str = "TIDEGATE_KILL_FROM";

fn name(change: usize, entity: usize) -> String {
    format!("change {change} entity {entity}")
}

/// Not a test of its own: the process that is killed. It writes without end and says what was acknowledged.
#[test]
#[ignore = "nothing_acknowledged_is_lost starts it and kills it"]
fn the_process_that_is_killed() {
    let (file, from) = (std::env::var(FILE).unwrap(), std::env::var(FROM).unwrap());
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let memory = server(open(&file));
        let mut out = std::io::stdout();
        for change in from.parse::<usize>().unwrap().. {
            let entities: Vec<_> = (0..TOGETHER)
                .map(|n| json!({"name": name(change, n), "entityType": "t", "observations": ["one", "two"]}))
                .collect();
            ask(&memory, "create_entities", json!({"entities": entities})).await;
            writeln!(out, "\nack {change}").unwrap();
            out.flush().unwrap();
        }
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_acknowledged_is_lost() {
    let rounds = std::env::var("KILL_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(if on_postgres() {
        8
    } else {
        20
    });
    let folder = Folder::new();
    let file = folder.place();
    let (mut next, mut acknowledged, mut slowest) = (0, 0, Duration::ZERO);
    for round in 0..rounds {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "kill::the_process_that_is_killed", "--nocapture", "--ignored"])
            .env(FILE, &file)
            .env(FROM, next.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        // From the first acknowledgement on, so that there is something to lose.
        let patience = Duration::from_micros(fastrand::u64(0..30_000));
        let mut last = None;
        let mut deadline = None;
        for line in lines {
            let Ok(line) = line else { break };
            if let Some(change) = line.strip_prefix("ack ").and_then(|n| n.parse::<usize>().ok()) {
                last = Some(change);
                acknowledged += 1;
                let until = *deadline.get_or_insert_with(|| Instant::now() + patience);
                if Instant::now() >= until {
                    // What is written to the pipe already is still read.
                    let _ = child.kill();
                }
            }
        }
        let _ = child.wait();
        let last = last.unwrap_or_else(|| panic!("round {round}: nothing was acknowledged"));
        let opening = Instant::now();
        let memory = server(open(&file));
        let known = count(&memory, last).await;
        slowest = slowest.max(opening.elapsed());
        assert_eq!(known, TOGETHER, "round {round}: change {last} was acknowledged");
        // The one after it was perhaps made and not acknowledged; all of it or nothing.
        let after = count(&memory, last + 1).await;
        assert!(
            after == 0 || after == TOGETHER,
            "round {round}: change {} is there by half: {after}",
            last + 1
        );
        next = if after == 0 { last + 1 } else { last + 2 };
    }
    let memory = server(open(&file));
    for change in 0..next {
        assert_eq!(count(&memory, change).await, TOGETHER, "change {change}");
    }
    eprintln!("{rounds} rounds, {acknowledged} acknowledged, opened and read within {slowest:?}");
}

/// How many entities of a change are known, each of them whole.
async fn count(memory: &tidegate_server::ServerDoor, change: usize) -> usize {
    let names: Vec<_> = (0..TOGETHER).map(|n| name(change, n)).collect();
    let graph = ask(memory, "open_nodes", json!({"names": names})).await;
    let entities = graph["entities"].as_array().unwrap();
    for entity in entities {
        assert_eq!(entity["observations"], json!(["one", "two"]), "{entity}");
    }
    entities.len()
}
