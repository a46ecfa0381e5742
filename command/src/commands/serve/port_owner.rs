//! Which process listens on a port, as far as this user may know.

use std::fmt;

/// A process.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) name: String,
    pub(super) pid: u32,
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (pid {})", self.name, self.pid)
    }
}

/// The process that listens on a port: who has open one of the sockets that do.
#[cfg(target_os = "linux")]
pub(super) fn of(port: u16) -> Option<Owner> {
    let tables =
        ["/proc/net/tcp", "/proc/net/tcp6"].map(|table| std::fs::read_to_string(table).unwrap_or_default());
    let sockets: Vec<String> = tables
        .iter()
        .flat_map(|table| table.lines().filter_map(|line| listening(line, port)))
        .map(|inode| format!("socket:[{inode}]"))
        .collect();
    if sockets.is_empty() {
        return None;
    }
    let processes = std::fs::read_dir("/proc").ok()?.flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let pid = pids.into_iter().find(|pid| {
        // Those of others cannot be read.
        let open = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        open.filter_map(|file| std::fs::read_link(file.path()).ok())
            .any(|file| file.to_str().is_some_and(|file| sockets.iter().any(|socket| socket == file)))
    })?;
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    Some(Owner { name: tidegate_protocol::text::line(&name), pid })
}

/// Elsewhere nobody knows.
#[cfg(not(target_os = "linux"))]
pub(super) fn of(_: u16) -> Option<Owner> {
    None
}

/// The inode of a socket that listens on a port, from a line of `/proc/net/tcp`:
/// `0: 0100007F:223D 00000000:0000 0A 00000000:00000000 00:00000000 00000000 1000 0 4711 …`
#[cfg(any(target_os = "linux", test))]
fn listening(line: &str, port: u16) -> Option<&str> {
    const LISTENING: &str = "0A";
    let mut words = line.split_whitespace();
    let local = words.nth(1)?;
    let state = words.nth(1)?;
    let inode = words.nth(5)?;
    let (_, hex) = local.rsplit_once(':')?;
    let is_it = state == LISTENING && u16::from_str_radix(hex, 16) == Ok(port);
    is_it.then_some(inode)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_table() {
        let line = "   0: 0100007F:223D 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4711 1 0";
        assert_eq!(listening(line, 8765), Some("4711"));
        assert_eq!(listening(line, 8766), None);
        assert_eq!(listening(&line.replace(" 0A ", " 01 "), 8765), None);
        assert_eq!(listening("  sl  local_address rem_address   st tx_queue", 8765), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_process_is_found() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let owner = of(listener.local_addr().unwrap().port()).unwrap();
        assert_eq!(owner.pid, std::process::id());
        assert!(!owner.name.is_empty());
    }
}
