//! Process groups: signals to all of a family, and whether any of it still lives. On Linux the family includes those who
//! have left the group (see [`descendants`](super::descendants)).
//!
//! Elsewhere than on Unix there is no such thing, and a group is its leader alone.

use tokio::process::{Child, Command};

/// What a group is asked to do.
#[derive(Debug, Clone, Copy)]
pub(super) enum Ask {
    /// End properly.
    Terminate,
    /// Be gone.
    Kill,
}

#[cfg(unix)]
pub(super) use unix::Group;

#[cfg(unix)]
mod unix {
    use rustix::process::{Pid, Signal, WaitOptions, kill_process_group, test_kill_process_group, waitpgid};

    use super::{Ask, Child, Command};
    #[cfg(target_os = "linux")]
    use crate::transport::stdio::descendants::{self, Descendants};

    /// A process group, by its number: the process id of its leader. The system keeps that for it as long as it has a
    /// process, so that a signal hits nobody else.
    pub(in super::super) struct Group {
        id: Option<Pid>,
        #[cfg(target_os = "linux")]
        descendants: Descendants,
    }

    impl Group {
        /// Makes the process that is going to start the leader of a new group.
        pub(in super::super) fn found(command: &mut Command) -> Group {
            command.process_group(0);
            #[cfg(target_os = "linux")]
            let descendants = Descendants::new();
            #[cfg(target_os = "linux")]
            command.env(descendants::VARIABLE, descendants.value());
            Group {
                id: None,
                #[cfg(target_os = "linux")]
                descendants,
            }
        }

        /// The process has started.
        pub(in super::super) fn is_led_by(&mut self, id: Option<u32>) {
            self.id = id.and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        }

        pub(in super::super) fn signal(&mut self, ask: Ask, _: &mut Child) {
            let Some(group) = self.id else { return };
            let signal = match ask {
                Ask::Terminate => Signal::TERM,
                Ask::Kill => Signal::KILL,
            };
            // That there is no such group is the good case: everybody has ended already.
            if let Err(e) = kill_process_group(group, signal)
                && e != rustix::io::Errno::SRCH
            {
                tracing::debug!(?group, ?ask, error = %e, "cannot signal a process group");
            }
            #[cfg(target_os = "linux")]
            self.descendants.signal(signal, group);
        }

        /// Whether anybody of the group still lives, or has left it and does. Only when the leader is over and collected.
        pub(in super::super) fn lives(&mut self) -> bool {
            let Some(group) = self.id else { return false };
            // Where we are the init of a container, orphans become our children, and ours to collect.
            while let Ok(Some(_)) = waitpgid(group, WaitOptions::NOHANG) {}
            if test_kill_process_group(group).is_ok() && !all_dead(group) {
                return true;
            }
            #[cfg(target_os = "linux")]
            return self.descendants.lives();
            #[cfg(not(target_os = "linux"))]
            false
        }
    }

    /// Whether all that is left of a group is dead and waits to be collected by an init that is slow, or none at all.
    /// `false` where that cannot be told.
    #[cfg(target_os = "linux")]
    fn all_dead(group: Pid) -> bool {
        let group = group.as_raw_nonzero().to_string();
        let Ok(processes) = std::fs::read_dir("/proc") else { return false };
        let mut states = processes.flatten().filter_map(|process| {
            process.file_name().to_str()?.parse::<u32>().ok()?;
            let stat = std::fs::read_to_string(process.path().join("stat")).ok()?;
            // `12 (a name) S 1 <group> …`
            let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
            let state = fields.next()?.to_owned();
            (fields.nth(1)? == group).then_some(state)
        });
        states.all(|state| state == "Z" || state == "X")
    }

    #[cfg(not(target_os = "linux"))]
    fn all_dead(_: Pid) -> bool {
        false
    }
}

#[cfg(not(unix))]
pub(super) struct Group;

#[cfg(not(unix))]
impl Group {
    pub(super) fn found(_: &mut Command) -> Group {
        Group
    }

    pub(super) fn is_led_by(&mut self, _: Option<u32>) {}

    pub(super) fn signal(&mut self, _: Ask, leader: &mut Child) {
        // There is no polite way that every program understands.
        let _ = leader.start_kill();
    }

    pub(super) fn lives(&mut self) -> bool {
        false
    }
}
