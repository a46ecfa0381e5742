//! Descendants: whatever a child has started, wherever that has gone. A program can leave its process group (`setsid`, a daemon that
//! forks twice), but it takes its environment along, and so does all that it starts.
//!
//! Only Linux lets us look for that.

use std::fs;

use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, waitpid};

/// The variable by which the descendants of a child is found. Its value is the mark of the child, after that of the child that we
/// are ourselves, if we are one: whoever ends us finds our children too.
pub(super) const VARIABLE: &str = "TIDEGATE_CHILD";

/// The descendants of one child.
pub(super) struct Descendants {
    mark: String,
    /// Those that were found, living or dead.
    found: Vec<Descendant>,
}

/// A process, told from a later one with the same number by when it was started.
struct Descendant {
    pid: Pid,
    started: String,
}

impl Descendants {
    pub(super) fn new() -> Descendants {
        Descendants {
            mark: format!("{:032x}", u128::from_le_bytes(tidegate_service::random())),
            found: Vec::new(),
        }
    }

    /// What the child has in [`VARIABLE`].
    pub(super) fn value(&self) -> String {
        match std::env::var(VARIABLE) {
            Ok(ours) => format!("{ours}/{}", self.mark),
            Err(_) => self.mark.clone(),
        }
    }

    /// Looks for those that live. The dead have no environment.
    fn look(&mut self) {
        let Ok(processes) = fs::read_dir("/proc") else { return };
        self.found.clear();
        for process in processes.flatten() {
            let pid = process.file_name().to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw);
            // Those of other users cannot be read, and are none of ours.
            let (Some(pid), Ok(environment)) = (pid, fs::read(process.path().join("environ"))) else {
                continue;
            };
            if memchr::memmem::find(&environment, self.mark.as_bytes()).is_none() || pid == getpid() {
                continue;
            }
            if let Some(stat) = Stat::of(pid) {
                self.found.push(Descendant { pid, started: stat.started });
            }
        }
    }

    /// Sends a signal to all but the leader of the group, which is somebody else's to end.
    pub(super) fn signal(&mut self, signal: Signal, leader: Pid) {
        self.look();
        for found in self.found.iter().filter(|found| found.pid != leader) {
            // That it has ended in the meantime is the good case.
            let _ = kill_process(found.pid, signal);
        }
    }

    /// Whether any of them lives.
    pub(super) fn lives(&mut self) -> bool {
        // Where we are the init of a container, orphans become our children, and ours to collect. Only those are, that were
        // found here: others have somebody who waits for them.
        for Descendant { pid, started } in &self.found {
            let stat = Stat::of(*pid);
            if stat.is_some_and(|stat| stat.is_dead && stat.is_ours && stat.started == *started) {
                let _ = waitpid(Some(*pid), WaitOptions::NOHANG);
            }
        }
        self.look();
        !self.found.is_empty()
    }
}

/// What the system says of a process: `12 (a name) S <parent> …`.
struct Stat {
    is_dead: bool,
    is_ours: bool,
    started: String,
}

impl Stat {
    fn of(pid: Pid) -> Option<Stat> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
        let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
        let state = fields.next()?;
        let parent: i32 = fields.next()?.parse().ok()?;
        Some(Stat {
            is_dead: state == "Z" || state == "X",
            is_ours: Some(getpid()) == Pid::from_raw(parent),
            // The 22nd field of all.
            started: fields.nth(17)?.to_owned(),
        })
    }
}
