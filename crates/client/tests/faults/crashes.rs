//! Servers that end in the middle of things.

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tidegate_protocol::Symbol;
use tidegate_service::layers::RetryPolicy;

use crate::rig::*;

#[test]
fn a_crash_in_the_middle_of_a_call_is_told_with_its_reason_and_the_next_call_works() {
    every(STDIO, async |rig| {
        let client = rig.client().await;
        let error = fails(&client, "crash", json!({"code": 7}), "exited with status 7").await;
        assert_eq!(error.symbol, Symbol::Unavailable);
        works(&client).await;
        assert_eq!((rig.count("call crash"), rig.count("call echo"), rig.count("start")), (1, 1, 2));
    });
}

#[test]
fn a_connection_that_breaks_in_the_middle_of_a_call() {
    every(HTTP, async |rig| {
        let client = rig.client_with(|o| o.retry.max_retries = 3).await;
        for (tool, sentence) in
            [("crash", "closed the connection"), ("crash_half", "in the middle of its answer")]
        {
            let error = fails(&client, tool, json!({}), sentence).await;
            assert_eq!(error.symbol, Symbol::Unavailable);
            works(&client).await;
            assert_eq!(
                rig.count(&format!("call {tool}")),
                1,
                "what may have been executed is not called again"
            );
        }
    });
}

#[test]
fn every_call_in_flight_hears_of_a_crash() {
    every(STDIO, async |rig| {
        let client = rig.client().await;
        let hanging = (0..20).map(|_| call_within(&client, "hang", json!({}), Duration::from_secs(10)));
        let all = futures_util::future::join_all(hanging);
        let crash = async {
            rig.until_seen("call hang", 20).await;
            call(&client, "crash", json!({"code": 9})).await
        };
        let (all, crash) = tokio::join!(all, crash);
        for error in all.into_iter().chain([crash]) {
            assert!(error.expect_err("an error").message.contains("exited with status 9"));
        }
        assert_eq!(rig.count("call hang"), 20);
    });
}

fn signal(rig: &Rig, signal: Signal) {
    for pid in rig.processes() {
        let id = Pid::from_raw(pid.try_into().expect("a process id")).expect("a process id");
        kill_process(id, signal).expect("it lives");
        // It stops when it is next looked at, and may take what comes until then.
        let stopped =
            || std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|s| s.contains(") T "));
        while signal == Signal::STOP && !stopped() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

fn again() -> RetryPolicy {
    RetryPolicy { base: Duration::from_millis(50), ..RetryPolicy::default() }
}

#[test]
fn calls_right_after_a_crash_are_made_again() {
    every(STDIO, async |rig| {
        let client = rig.client_with(|o| o.retry = again()).await;
        for round in 0..5 {
            works(&client).await;
            let processes = rig.processes();
            signal(rig, Signal::KILL);
            // Without giving the client a chance to notice first. The last of its threads may still take what comes.
            let threads =
                |pid: &u32| std::fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
            while !rig.processes().is_empty() || processes.iter().any(|pid| threads(pid) > 1) {
                std::thread::sleep(Duration::from_millis(1));
            }
            // One goes straight into the pipe, the others wait for their turn.
            futures_util::future::join_all((0..10).map(|_| works(&client))).await;
            assert_eq!(rig.count("call echo"), 11 * (round + 1), "each was executed once");
        }
    });
}

#[test]
fn what_a_server_never_read_is_made_again() {
    every(STDIO, async |rig| {
        let client = rig.client_with(|o| o.retry = again()).await;
        works(&client).await;
        signal(rig, Signal::STOP);
        let calls = futures_util::future::join_all((0..10).map(|_| works(&client)));
        let crash = async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            signal(rig, Signal::KILL);
        };
        tokio::join!(calls, crash);
        assert_eq!((rig.count("call echo"), rig.count("start")), (11, 2), "each was executed once");
    });
}

#[test]
fn what_a_server_has_read_is_not_made_again() {
    every(STDIO, async |rig| {
        let client = rig.client_with(|o| o.retry = again()).await;
        let hanging = call_within(&client, "hang", json!({}), Duration::from_secs(10));
        let crash = async {
            rig.until_seen("call hang", 1).await;
            signal(rig, Signal::STOP);
            // This one it never sees.
            let unread = works(&client);
            let crash = async {
                tokio::time::sleep(Duration::from_millis(300)).await;
                signal(rig, Signal::KILL);
            };
            tokio::join!(unread, crash);
        };
        let (hung, ()) = tokio::join!(hanging, crash);
        assert!(hung.expect_err("an error").message.contains("was killed"));
        assert_eq!((rig.count("call hang"), rig.count("call echo")), (1, 1));
    });
}

#[test]
fn a_server_that_cannot_start_is_not_started_all_the_time() {
    every_started(STDIO, "crash", async |rig| {
        let client = rig.lazy(|_| {});
        let mut refused = 0;
        for _ in 0..50 {
            let error = fails(&client, "echo", json!({}), "exited with status 3").await;
            assert!(error.message.contains("no configuration"), "its last words are told: {error}");
            refused += usize::from(error.retry_after.is_some());
        }
        assert!(refused >= 40, "{refused} calls were refused");
        assert!(rig.count("start") < 20, "{:?}", rig.seen());
        assert_eq!(rig.count("call"), 0);
    });
}

#[test]
fn a_server_that_crashes_at_every_call_is_not_started_all_the_time() {
    every_started(STDIO, "crash_after_handshake", async |rig| {
        let client = rig.client().await;
        let mut refused = 0;
        for _ in 0..50 {
            let error =
                call_within(&client, "echo", json!({}), Duration::from_secs(8)).await.expect_err("an error");
            assert!(error.message.contains("exited with status 4"), "{error}");
            refused += usize::from(error.retry_after.is_some());
        }
        assert!(
            refused >= 40,
            "{refused} calls were refused, the server was started {} times",
            rig.count("start")
        );
        assert!(rig.count("start") < 10, "{:?}", rig.seen());
    });
}

#[test]
fn closing_the_output_is_the_end() {
    every(STDIO, async |rig| {
        let client = rig.client().await;
        let error = fails(&client, "close_output", json!({}), "closed its output while still running").await;
        assert_eq!(error.symbol, Symbol::Unavailable);
        works(&client).await;
        assert_eq!((rig.count("call close_output"), rig.count("start")), (1, 2));
    });
}

#[test]
fn closing_the_input_is_the_end() {
    every(STDIO, async |rig| {
        let client = rig.client().await;
        assert_eq!(call(&client, "close_input", json!({})).await.expect("an answer"), "closed");
        // The next message finds out. Nobody knows better before.
        let error = call(&client, "echo", json!({})).await;
        if let Err(error) = error {
            assert_eq!(error.symbol, Symbol::Unavailable, "{error}");
        }
        works(&client).await;
        assert_eq!(rig.count("start"), 2);
    });
}

#[test]
fn a_process_that_will_not_end_is_ended() {
    every_started(STDIO, "stubborn", async |rig| {
        let client = rig.client().await;
        works(&client).await;
        assert_eq!(rig.processes().len(), 1);
        bounded(Duration::from_secs(10), client.close()).await;
        assert!(rig.processes().is_empty());
    });
}
