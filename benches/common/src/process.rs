//! What the kernel knows about a process.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};

/// CPU time that all threads of the process have used.
///
/// From `schedstat`, which counts nanoseconds; `stat` counts in ticks of 10 ms and is too coarse for short rounds.
pub fn cpu_time(pid: u32) -> Result<Duration> {
    let mut total = 0;
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        // A thread may end between the listing and the reading.
        let Ok(line) = fs::read_to_string(task?.path().join("schedstat")) else { continue };
        total += line.split(' ').next().context("schedstat")?.parse::<u64>()?;
    }
    Ok(Duration::from_nanos(total))
}

/// Time that the core has spent on processes, or that the hypervisor took from it.
///
/// In ticks of 10 ms, which is enough to tell whether somebody else was there.
pub fn core_time(core: &str) -> Result<Duration> {
    let stat = fs::read_to_string("/proc/stat")?;
    let line =
        stat.lines().find_map(|line| line.strip_prefix(&format!("cpu{core} "))).context("no such core")?;
    let ticks = line.split_whitespace().map(str::parse).collect::<Result<Vec<u64>, _>>()?;
    // user, nice, system, idle, iowait, irq, softirq, steal
    let busy: u64 = [0, 1, 2, 7].iter().filter_map(|&column| ticks.get(column)).sum();
    Ok(Duration::from_millis(busy * 10))
}

/// Resident memory in bytes.
pub fn resident(pid: u32) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("VmRSS")?;
    let kilobytes: u64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kilobytes * 1024)
}

/// The one child of this process.
pub fn only_child() -> Result<u32> {
    let this = std::process::id().to_string();
    let mut children = Vec::new();
    for process in fs::read_dir("/proc")? {
        let process = process?;
        let Some(pid) = process.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        // A process may end between the listing and the reading.
        let Ok(stat) = fs::read_to_string(process.path().join("stat")) else { continue };
        // `12 (a name) S <parent> …`
        let parent = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_ascii_whitespace().nth(1));
        if parent == Some(&this) {
            children.push(pid);
        }
    }
    match *children {
        [child] => Ok(child),
        ref others => anyhow::bail!("one child was expected, not {}", others.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_memory_and_uses_time() {
        let pid = std::process::id();
        assert!(resident(pid).unwrap() > 100_000);
        let before = cpu_time(pid).unwrap();
        std::hint::black_box((0..20_000_000_u64).fold(0, |sum, n| sum ^ std::hint::black_box(n)));
        assert!(cpu_time(pid).unwrap() > before);
    }

    #[test]
    fn a_child_is_found() {
        let mut child = std::process::Command::new("sleep").arg("30").spawn().unwrap();
        let found = only_child();
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(found.unwrap(), child.id());
        only_child().unwrap_err();
    }
}
