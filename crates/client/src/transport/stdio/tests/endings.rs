//! Every way in which a child ends, and that nothing is left of it.

use std::time::Instant;

use super::*;
use crate::transport::MessageChannel;

#[tokio::test]
async fn the_exit_is_told_with_the_last_words() {
    for (script, want) in [
        ("echo first >&2; printf 'no key\\n\\n' >&2; exit 3", "exited with status 3; it wrote: no key"),
        ("exit 0", "exited with status 0"),
        ("kill -KILL $$", "was killed by signal 9 (SIGKILL)"),
        ("exec >&-; exit 4", "exited with status 4"),
        ("echo why >&2; exec >&-; exec sleep 1000", "closed its output while still running; it wrote: why"),
    ] {
        let (child, mut events) = start(script, &settings());
        assert_eq!(events.rest().await, [format!(r#"closed the server process "test" {want}"#)], "{script}");
        assert!(!child.is_open());
        let refused = child.send(b"{}").unwrap_err();
        assert!(refused.is_unexecuted(), "{refused}");
        child.close().await;
        assert!(!exists(child.id().unwrap()));
    }
}

#[tokio::test]
async fn a_closed_input_is_noticed_and_ends_it() {
    let script = format!("exec <&-; {}; exec sleep 1000", tell("$$"));
    let (child, mut events) = start(&script, &settings());
    let pid = told(&mut events).await;
    // Another test that is just starting a process may hold the pipe open for a moment.
    while child.send(b"{}").is_ok() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let closed = events.rest().await;
    assert_eq!(closed, [r#"closed the server process "test" closed its input while still running"#]);
    assert!(child.send(b"{}").unwrap_err().is_unexecuted() && !child.is_open());
    assert!(!exists(pid));
}

#[tokio::test]
async fn everything_is_delivered_before_the_end() {
    let script =
        r#"i=0; while [ $i -lt 300 ]; do i=$((i+1)); echo '{"jsonrpc":"2.0","id":'$i',"result":{}}'; done"#;
    let (_child, mut events) = start(script, &settings());
    let all = events.rest().await;
    assert_eq!(all.len(), 301);
    assert_eq!(all[299], "=300 {}");
    assert!(all[300].starts_with("closed"));
}

#[tokio::test]
async fn a_polite_child_may_finish() {
    let script = r#"read -r line; cat; echo '{"jsonrpc":"2.0","method":"bye"}'"#;
    let (child, mut events) = start(script, &settings());
    child.send(b"{}").unwrap();
    child.close().await;
    let closed = r#"closed the connection to the server process "test" was closed"#;
    assert_eq!(events.rest().await, ["!bye {}", closed]);
}

#[tokio::test]
async fn a_stubborn_child_is_killed_after_two_graces() {
    let script = format!("trap '' TERM; {}; while :; do sleep 1; done", tell("$$"));
    let (child, mut events) = start(&script, &settings());
    let pid = told(&mut events).await;
    let started = Instant::now();
    child.close().await;
    assert!(started.elapsed() >= 2 * settings().grace);
    assert!(!exists(pid));
    assert_eq!(events.rest().await.len(), 1);
}

/// Scripts with a process behind the one that was started, and how they end: by themselves or not.
const FAMILIES: [(&str, bool); 4] = [
    ("sleep 1000 & TELL; wait", false),
    ("(trap '' TERM; sleep 1000) & TELL; wait", false),
    ("sleep 1000 & TELL; exit 0", true),
    ("(trap '' TERM; sleep 1000) </dev/null >/dev/null 2>&1 & TELL; exit 0", true),
];

#[tokio::test]
async fn grandchildren_are_gone_after_close() {
    for (script, _) in FAMILIES {
        let (child, mut events) = start(&script.replace("TELL", &tell("$!")), &settings());
        let pid = told(&mut events).await;
        child.close().await;
        assert!(!lives(pid) && !exists(child.id().unwrap()), "{script}");
        assert_eq!(events.rest().await.len(), 1);
    }
}

#[tokio::test]
async fn grandchildren_are_gone_after_drop() {
    for (script, _) in FAMILIES {
        let (child, mut events) = start(&script.replace("TELL", &tell("$!")), &settings());
        let (pid, leader) = (told(&mut events).await, child.id().unwrap());
        drop(child);
        soon_dead(pid).await;
        soon_dead(leader).await;
        assert_eq!(events.rest().await.len(), 1);
    }
}

#[tokio::test]
async fn grandchildren_are_gone_after_an_exit() {
    for (script, _) in FAMILIES.iter().filter(|(_, exits)| *exits) {
        let (_child, mut events) = start(&script.replace("TELL", &tell("$!")), &settings());
        let pid = told(&mut events).await;
        assert_eq!(events.rest().await, [r#"closed the server process "test" exited with status 0"#]);
        soon_dead(pid).await;
    }
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn whoever_left_the_group_with_the_streams_holds_nothing_up() {
    let (child, mut events) = start("setsid sleep 30 & exit 0", &settings());
    assert_eq!(events.next().await, r#"closed the server process "test" exited with status 0"#);
    let started = Instant::now();
    child.close().await;
    assert!(started.elapsed() < Duration::from_secs(20));
    assert!(events.rest().await.is_empty());
}

/// A server that starts one process that leaves its group, and one that is nobody's child any more.
#[cfg(target_os = "linux")]
fn with_runaways() -> String {
    format!(
        "setsid sleep 1000 >/dev/null 2>&1 & {}; pid=$(setsid sh -c 'sleep 1000 >/dev/null 2>&1 & echo $!'); {}; \
         cat >/dev/null",
        tell("$!"),
        tell("$pid")
    )
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn whoever_left_the_group_is_ended_too() {
    let (child, mut events) = start(&with_runaways(), &settings());
    let (left, orphan) = (told(&mut events).await, told(&mut events).await);
    let (other, mut others) = start(&with_runaways(), &settings());
    let others = [told(&mut others).await, told(&mut others).await];
    assert!(lives(left) && lives(orphan));
    child.close().await;
    assert!(!lives(left) && !lives(orphan), "close waits for it");
    assert!(others.iter().all(|pid| lives(*pid)), "those of other children stay");
    other.close().await;
    assert!(!others.iter().any(|pid| lives(*pid)));
}

#[cfg(target_os = "linux")]
#[test]
fn whoever_left_the_group_does_not_survive_the_runtime() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (_child, mut events) = runtime.block_on(async { start(&with_runaways(), &settings()) });
    let pids = runtime.block_on(async { [told(&mut events).await, told(&mut events).await] });
    drop(runtime);
    for _ in 0..1_000 {
        if !pids.iter().any(|pid| lives(*pid)) {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("one of {pids:?} still lives");
}

#[tokio::test]
async fn a_flood_on_standard_error_does_not_stop_it() {
    let script = r#"
        i=0; while [ $i -lt 40 ]; do i=$((i+1)); printf '%010000d\n' 0 >&2; done
        echo '{"jsonrpc":"2.0","id":1,"result":{}}'; echo end >&2
    "#;
    let (_child, mut events) = start(script, &settings());
    assert_eq!(events.next().await, "=1 {}");
    let closed = r#"closed the server process "test" exited with status 0; it wrote: end"#;
    assert_eq!(events.rest().await, [closed]);
}

#[test]
fn nothing_survives_the_runtime() {
    for threads in [None, Some(2)] {
        let mut builder = match threads {
            None => tokio::runtime::Builder::new_current_thread(),
            Some(_) => tokio::runtime::Builder::new_multi_thread(),
        };
        let runtime = builder.enable_all().build().unwrap();
        let (child, pid, mut events) = runtime.block_on(async {
            let script = format!("trap '' TERM; sleep 1000 & {}; wait", tell("$!"));
            let (child, mut events) = start(&script, &ChildSettings::default());
            let pid = told(&mut events).await;
            (child, pid, events)
        });
        drop(runtime);
        assert!(!exists(child.id().unwrap()), "the leader is dead and collected");
        assert!(!child.is_open() && child.send(b"{}").is_err());
        let check = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        check.block_on(async {
            soon_dead(pid).await;
            assert_eq!(events.rest().await.len(), 1);
            // Nobody is left to do it, so this does not wait either.
            child.close().await;
        });
    }
}
