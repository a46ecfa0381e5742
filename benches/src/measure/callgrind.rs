//! Instructions and allocations per request, counted by callgrind.
//!
//! Each server is run twice with different numbers of requests, and the difference is divided, so that start-up,
//! handshake and shutdown cancel out. Unlike times, the counts hardly change on a busy machine. They are of user space
//! only, and callgrind counts `rep movsb`, with which the C library copies from 2 KB up, as one instruction per byte:
//! at 64 KB a copy weighs more here than on the clock.
//!
//! Allocations are read from the same profile, as calls of the C library's allocator. So the very binaries whose
//! throughput was measured are counted, without a counting allocator in them; a server with an allocator of its own
//! would need its names added to [`ALLOCATORS`].

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use crate::case::{Case, Payload};
use crate::load::Until;
use crate::pin::Core;
use crate::server::{Binaries, Running, Server};

const ALLOCATORS: [&str; 6] = ["malloc", "calloc", "realloc", "posix_memalign", "aligned_alloc", "memalign"];

/// Per request.
#[derive(Clone, Copy)]
pub(crate) struct Counts {
    pub(crate) instructions: f64,
    pub(crate) allocations: f64,
}

/// Why there will be no counts, if so.
pub(crate) fn available() -> Result<(), String> {
    let found = Command::new("valgrind").arg("--version").stdout(Stdio::null()).status();
    match found {
        Ok(status) if status.success() => Ok(()),
        _ => Err("valgrind is not installed".into()),
    }
}

pub(crate) fn measure(binaries: &Binaries, server: Server, case: Case, quick: bool) -> Result<Counts> {
    let (few, many) = match (case.payload, quick) {
        (Payload::Small, false) => (200, 1000),
        (Payload::Large, false) => (80, 240),
        (Payload::Small, true) => (100, 300),
        (Payload::Large, true) => (64, 128),
    };
    // Both at once: counts do not mind that the shorter run shares its core with the load generator.
    let (less, more) = std::thread::scope(|scope| {
        let less = scope.spawn(|| profile(binaries, server, case, few, Core::Load));
        let more = profile(binaries, server, case, many, Core::Server);
        (less.join().expect("the shorter run does not panic"), more)
    });
    let (less, more) = (less?, more?);
    let per_request = |less: u64, more: u64| (more as f64 - less as f64) / (many - few) as f64;
    Ok(Counts {
        instructions: per_request(less.instructions, more.instructions),
        allocations: per_request(less.allocations, more.allocations),
    })
}

fn profile(binaries: &Binaries, server: Server, case: Case, requests: u64, core: Core) -> Result<Totals> {
    let file = ProfileFile::new(requests);
    let wrapper = [
        OsString::from("valgrind"),
        "--tool=callgrind".into(),
        format!("--callgrind-out-file={}", file.0.display()).into(),
    ];
    let count = || -> Result<Totals> {
        let mut running = Running::start(binaries, server, case.transport, core, &wrapper)?;
        let mut load = running.connect(case)?;
        load.run(Until::requests(requests))?;
        // The load stays open meanwhile: whether pipes or sockets close first would only add noise.
        running.stop()?;
        drop(load);
        Totals::parse(&std::fs::read_to_string(&file.0).context("callgrind left no profile")?)
    };
    count().with_context(|| format!("{server} under callgrind, {case}"))
}

/// A temporary profile, removed when done with.
struct ProfileFile(PathBuf);

impl ProfileFile {
    fn new(requests: u64) -> Self {
        let name = format!("tidegate-bench-{}-{requests}.callgrind", std::process::id());
        Self(std::env::temp_dir().join(name))
    }
}

impl Drop for ProfileFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[derive(Debug, Default, PartialEq)]
struct Totals {
    instructions: u64,
    allocations: u64,
}

impl Totals {
    /// The callgrind format: `totals: N`; names compressed to `(id) name` once and `(id)` from then on; and after
    /// each `cfn=(callee)` a line `calls=COUNT POSITION`.
    fn parse(profile: &str) -> Result<Self> {
        let mut names: HashMap<&str, &str> = HashMap::new();
        let mut totals = Self::default();
        let mut allocates = false;
        for line in profile.lines() {
            if let Some(function) = line.strip_prefix("cfn=").or_else(|| line.strip_prefix("fn=")) {
                let (id, name) = function.split_once(' ').unwrap_or((function, ""));
                if !name.is_empty() {
                    names.insert(id, name);
                }
                let name = names.get(id).copied().unwrap_or_default();
                // A recursive call is written as name'2.
                let name = name.split('\'').next().unwrap_or_default();
                allocates = line.starts_with('c') && ALLOCATORS.contains(&name);
            } else if let Some(calls) = line.strip_prefix("calls=") {
                if allocates {
                    totals.allocations += calls.split(' ').next().unwrap_or_default().parse::<u64>()?;
                }
            } else if let Some(total) = line.strip_prefix("totals: ") {
                totals.instructions += total.trim().parse::<u64>()?;
            }
        }
        anyhow::ensure!(totals.instructions > 0, "no totals in the profile");
        Ok(totals)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_and_calls_of_the_allocator() {
        let profile = "events: Ir\n\nfn=(1) main\n5 10\ncfn=(2) malloc\ncalls=3 0\n5 30\ncfn=(3) work\ncalls=9 0\n6 40\n\
                       fn=(3)\n7 1\ncfn=(2)\ncalls=4 0\n7 8\ncfn=(4) realloc'2\ncalls=1 0\n7 8\n\ntotals: 1234\n";
        assert_eq!(Totals::parse(profile).unwrap(), Totals { instructions: 1234, allocations: 8 });
        Totals::parse("events: Ir\n").unwrap_err();
    }
}
