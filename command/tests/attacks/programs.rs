//! Programs that cannot live, and programs that will not die.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::rig::{Gateway, until};

fn config(script: &str) -> String {
    format!(
        "[servers.memory]\nbuiltin = \"memory\"\nprefix = \"\"\n\n\
         [servers.broken]\ncommand = \"sh\"\nargs = [\"-c\", '''{script}''']\n"
    )
}

#[test]
fn a_program_that_cannot_live_is_started_less_and_less_often() {
    let script = "echo start >> starts; echo \"Error: Cannot find module '/srv/inner/x.js'\" >&2; \
                  for n in 1 2 3 4 5; do echo \"    at Module.load $n\" >&2; done; echo 'Node.js v20.20.2' >&2; exit 1";
    let mut gateway = Gateway::start(&config(script));
    let starts =
        || std::fs::read_to_string(gateway.folder.path().join("starts")).unwrap_or_default().lines().count();
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(10) {
        gateway.answers_others();
        // Callers do not start it more often either, and nobody waits for it.
        let asked = Instant::now();
        let mut answer = gateway.call("broken_x", json!({}));
        // Its letters are left to chance.
        if let Some(data) = answer.pointer_mut("/error/data").and_then(|data| data.as_object_mut()) {
            data.remove("correlationId");
        }
        let answer = answer.to_string();
        assert!(asked.elapsed() < Duration::from_secs(5), "{answer}");
        assert!(answer.contains(" is down") || answer.contains(" is still starting"), "{answer}");
        assert!(!answer.contains("/srv/inner") && !answer.contains("sh"), "{answer}");
        std::thread::sleep(Duration::from_millis(100));
    }
    // Each attempt is two starts: some old servers end at a question that they do not know.
    let starts = starts();
    assert!((2..=12).contains(&starts), "{starts} starts in 10 s");
    let log = gateway.log();
    // Each call has a line of its own.
    let lines = log.lines().filter(|line| !line.contains(" MCP ")).count();
    assert!(lines < 40, "{lines} lines: {log}");
    let down = log.lines().find(|line| line.contains("not available: ")).unwrap_or_else(|| panic!("{log}"));
    assert!(down.contains("it wrote: Error: Cannot find module '/srv/inner/x.js'"), "{down}");
    assert_eq!(log.matches("at Module.load 3").count(), log.matches("at Module.load 4").count());
    assert!(log.matches("at Module.load 3").count() <= 2, "{log}");
    until("what came again is counted", || gateway.log().contains(" times)"));
    gateway.ends_cleanly();
}

#[test]
fn nothing_that_a_program_has_started_outlives_the_gateway() {
    let script = "setsid sleep 1000 >/dev/null 2>&1 & echo $! >> pids\n\
                  setsid sh -c \"sleep 1000 >/dev/null 2>&1 & echo \\$! >> pids\"\ntouch ready\ncat > /dev/null";
    let mut gateway = Gateway::start(&config(script));
    until("they were started", || gateway.folder.path().join("ready").exists());
    let pids = std::fs::read_to_string(gateway.folder.path().join("pids")).unwrap();
    let pids: Vec<u32> = pids.lines().map(|pid| pid.parse().unwrap()).collect();
    let lives = |pid: &u32| {
        std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
    };
    assert!(pids.len() >= 2 && pids.iter().all(lives), "{pids:?}");
    gateway.answers_others();
    gateway.ends_cleanly();
    until("all of them have ended", || !pids.iter().any(lives));
}
