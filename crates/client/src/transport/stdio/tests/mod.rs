//! Real processes: shell scripts as servers.

mod endings;
mod messages;

use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, test_kill_process};
use tidegate_protocol::{Error, Id, Limits, Message};
use tokio::sync::mpsc;

use super::{Child, ChildSettings, StderrLog};
use crate::target::Command;
use crate::transport::inbox::Inbox;

/// Writes down what comes, in short: `=id result`, `?id method`, `!method params`, `spoiled id why`, `closed why`.
struct Record(mpsc::UnboundedSender<String>);

impl Inbox for Record {
    fn message(&self, message: Message, on: Option<&Id>) {
        assert!(on.is_none());
        let _ = self.0.send(match message {
            Message::Request(r) => format!("?{} {}", r.id, r.method.as_str()),
            Message::Notification(n) => format!("!{} {}", n.method.as_str(), n.params.as_str()),
            Message::Response(r) => format!("={} {}", r.id, r.result),
            Message::Failure(f) => format!("={:?} {}", f.id, f.error),
        });
    }

    fn spoiled(&self, id: Option<&Id>, why: Error) {
        let _ = self.0.send(format!("spoiled {id:?} {why:?}"));
    }

    fn closed(&self, why: Error, _: Option<u64>) {
        let _ = self.0.send(format!("closed {why}"));
    }
}

struct Events(mpsc::UnboundedReceiver<String>);

impl Events {
    async fn next(&mut self) -> String {
        let next = tokio::time::timeout(Duration::from_secs(20), self.0.recv()).await;
        next.expect("nothing came").expect("the inbox is gone")
    }

    /// What is left when nobody can deliver anything any more.
    async fn rest(&mut self) -> Vec<String> {
        let mut rest = Vec::new();
        while let Ok(Some(event)) = tokio::time::timeout(Duration::from_secs(20), self.0.recv()).await {
            rest.push(event);
        }
        rest
    }
}

fn command(script: &str) -> Command {
    Command { program: "sh".to_owned(), args: vec!["-c".to_owned(), script.to_owned()], ..Command::default() }
}

fn settings() -> ChildSettings {
    ChildSettings { grace: Duration::from_millis(300), ..ChildSettings::default() }
}

fn log() -> StderrLog {
    StderrLog::new("test".into())
}

fn start(script: &str, settings: &ChildSettings) -> (Child, Events) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let child = Child::spawn("test", &command(script), settings, &log(), Arc::new(Record(sender)))
        .expect("sh starts");
    (child, Events(receiver))
}

/// A line of a script that tells a process id.
fn tell(pid: &str) -> String {
    format!(r#"echo '{{"jsonrpc":"2.0","method":"pid","params":{{"pid":'{pid}'}}}}'"#)
}

async fn told(events: &mut Events) -> u32 {
    let event = events.next().await;
    let number = event.strip_prefix(r#"!pid {"pid":"#).and_then(|rest| rest.strip_suffix('}'));
    number.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("no process id in {event}"))
}

/// Whether there is such a process, even if it is dead and only waits to be collected.
fn exists(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).expect("a process id");
    test_kill_process(pid).is_ok()
}

/// Whether there is such a process and it lives. Collecting grandchildren is the system's business, not ours.
fn lives(pid: u32) -> bool {
    let dead = std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| stat.contains(") Z "));
    exists(pid) && !dead
}

async fn soon_dead(pid: u32) {
    for _ in 0..1_000 {
        if !lives(pid) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("process {pid} still lives");
}
