//! Ctrl-C: the server learns of it, everything is closed, and the exit code is 130.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::rig::{Folder, Running, command, until, with_canned};
use crate::server;

#[test]
fn a_cancelled_call_is_cancelled_at_the_server() {
    let (url, seen) = server::start();
    for (nth, era) in ["legacy", "modern"].into_iter().enumerate() {
        let folder = Folder::new();
        let mut call = command(folder.path());
        call.args(["call", &url, "slow", "--era", era]);
        let running = Running::start(call);
        until(|| seen.started.load(Ordering::SeqCst) == nth + 1);
        assert_eq!(seen.dropped.load(Ordering::SeqCst), nth);
        running.signal("INT");
        let done = running.wait().exits(130);
        assert_eq!((&*done.out, &*done.err), ("", "cancelled\n"), "{era}");
        until(|| seen.dropped.load(Ordering::SeqCst) == nth + 1);
    }
}

#[test]
fn the_same_over_stdio() {
    for signal in ["INT", "TERM"] {
        let folder = Folder::new();
        let seen = folder.path().join("seen").display().to_string();
        let tools = r#"[{"name":"t","inputSchema":{"type":"object"}}]"#;
        let mut call = command(folder.path());
        call.args(with_canned(&["call", "t"], &[("SEEN", &seen), ("TOOLS", tools)]));
        let running = Running::start(call);
        until(|| folder.read("seen") == "called\n");
        running.signal(signal);
        running.wait().exits(130);
        assert_eq!(folder.read("seen"), "called\ncancelled\n");
    }
}

#[test]
fn the_second_one_ends_it_at_once() {
    // A server that neither starts nor listens to signals; it ends by itself after a while.
    let script = "trap '' TERM; exec 0<&-; echo ready > here; n=0; while [ $n -lt 20 ]; do sleep 1; n=$((n + 1)); done";
    let folder = Folder::new();
    let mut tools = command(folder.path());
    tools.args(["tools", "--", "sh", "-c", script]);
    let running = Running::start(tools);
    until(|| folder.read("here").ends_with('\n'));
    running.signal("INT");
    std::thread::sleep(Duration::from_millis(300));
    running.signal("INT");
    running.wait().exits(130);
}

#[test]
fn nothing_is_left_running() {
    let folder = Folder::new();
    let script = "echo $$ > pid; sleep 600";
    let mut tools = command(folder.path());
    tools.args(["tools", "--", "sh", "-c", script]);
    let running = Running::start(tools);
    until(|| folder.read("pid").ends_with('\n'));
    running.signal("INT");
    running.wait().exits(130);
    let pid = folder.read("pid").trim().to_owned();
    let alive = || std::process::Command::new("kill").args(["-0", &pid]).output().unwrap().status.success();
    until(|| !alive());
}
