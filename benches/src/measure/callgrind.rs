//! Instructions and allocations per request, counted by callgrind.
//!
//! Each program is run twice with different numbers of requests, and the difference is divided, so that start-up,
//! handshake and shutdown cancel out. Unlike times, the counts hardly change on a busy machine. They are of user space
//! only, and callgrind counts `rep movsb`, with which the C library copies from 2 KB up, as one instruction per byte:
//! at 64 KB a copy weighs more here than on the clock.
//!
//! Allocations are read from the same profile, as calls of the C library's allocator. So the very binaries whose
//! throughput was measured are counted, without a counting allocator in them; a program with an allocator of its own
//! would need its names added to [`ALLOCATORS`].
//!
//! Of a client and the server that it starts only the client is counted: callgrind does not follow children.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result};
use tidegate_benches_common::core::Core;

use super::gateway_extras;
use crate::binaries::Binaries;
use crate::case::{Case, Payload};
use crate::client::program::{self, Length};
use crate::client::{Callee, Client};
use crate::gateway::case::{Era, GatewayCase};
use crate::gateway::running::{Fronted, Upstreams};
use crate::gateway::{Gateway, Kit};
use crate::load::Until;
use crate::server::{Running, Server};

const ALLOCATORS: [&str; 9] = [
    "malloc",
    "calloc",
    "realloc",
    "posix_memalign",
    "aligned_alloc",
    "memalign",
    // Of mimalloc, which the gateway uses.
    "mi_malloc_aligned",
    "mi_zalloc_aligned",
    "mi_realloc_aligned",
];

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

/// Counts what a server does for a request.
pub(crate) fn of_server(binaries: &Binaries, server: Server, case: Case, quick: bool) -> Result<Counts> {
    difference(sizes(case.payload, quick), |requests, core| {
        profile(|wrapper| {
            let mut running = Running::start(binaries, server, case.transport, core, wrapper)?;
            let mut load = running.connect(case)?;
            load.run(Until::requests(requests))?;
            // The load stays open meanwhile: whether pipes or sockets close first would only add noise.
            running.stop()?;
            drop(load);
            Ok(())
        })
        .with_context(|| format!("{server} under callgrind, {case}"))
    })
}

/// Counts what a gateway does for a request that it passes on.
pub(crate) fn of_gateway(kit: Kit<'_>, gateway: Gateway, case: GatewayCase, quick: bool) -> Result<Counts> {
    difference(sizes(case.payload, quick), |requests, core| {
        profile(|wrapper| {
            let upstreams = Upstreams::start(kit.binaries, case.setting.upstream)?;
            let mut fronted = Fronted::start(kit, gateway, case.setting, &upstreams, core, wrapper)?;
            let mut load = fronted.connect(kit.binaries, case)?;
            load.run(Until::requests(requests))?;
            fronted.stop()?;
            drop(load);
            Ok(())
        })
        .with_context(|| format!("{gateway} under callgrind, {case}"))
    })
}

/// Counts what a gateway does for a long list.
pub(crate) fn of_list(kit: Kit<'_>, gateway: Gateway) -> Result<Counts> {
    // One that makes each list anew takes minutes for more.
    let lists = if gateway == Gateway::McpProxy { [1, 3] } else { [10, 60] };
    let (servers, tools) = gateway_extras::LISTED;
    difference(lists, |lists, core| {
        profile(|wrapper| {
            let upstreams = Upstreams::many(kit.binaries, servers)?;
            let (fronted, _) = gateway_extras::full_list(kit, gateway, &upstreams, tools, core, wrapper)?;
            let mut load = fronted.ask(Era::Modern, 1, gateway_extras::list_of(&fronted, tools)?)?;
            load.run(Until::requests(lists))?;
            fronted.stop()?;
            drop(load);
            Ok(())
        })
        .with_context(|| format!("{gateway} under callgrind, lists"))
    })
}

/// How many requests the shorter and the longer run make.
fn sizes(payload: Payload, quick: bool) -> [u64; 2] {
    match (payload, quick) {
        (Payload::Small, false) => [200, 1000],
        (Payload::Large, false) => [80, 240],
        (Payload::Small, true) => [100, 300],
        (Payload::Large, true) => [64, 128],
    }
}

/// Counts what a client does for a call; `None` for one that runs in this process.
pub(crate) fn of_client(
    binaries: &Binaries,
    client: Client,
    case: Case,
    quick: bool,
) -> Result<Option<Counts>> {
    let Some(program) = client.program() else { return Ok(None) };
    let callee = Callee::start(binaries, case.transport)?;
    let calls = if quick { [100, 300] } else { [500, 2500] };
    let counts = difference(calls, |calls, _| {
        let length = Length::Calls(calls);
        profile(|wrapper| program::run(binaries, program, case, &callee, length, wrapper).map(drop))
            .with_context(|| format!("the client {client} under callgrind, {case}"))
    })?;
    Ok(Some(counts))
}

/// Both at once: counts do not mind that the shorter run shares its core with the load generator.
fn difference([few, many]: [u64; 2], profile: impl Fn(u64, Core) -> Result<Totals> + Sync) -> Result<Counts> {
    let (less, more) = std::thread::scope(|scope| {
        let less = scope.spawn(|| profile(few, Core::Load));
        let more = profile(many, Core::Server);
        (less.join().expect("the shorter run does not panic"), more)
    });
    let (less, more) = (less?, more?);
    let per_request = |less: u64, more: u64| (more as f64 - less as f64) / (many - few) as f64;
    Ok(Counts {
        instructions: per_request(less.instructions, more.instructions),
        allocations: per_request(less.allocations, more.allocations),
    })
}

/// What was counted while something ran under the given wrapper.
fn profile(run: impl FnOnce(&[OsString]) -> Result<()>) -> Result<Totals> {
    let file = ProfileFile::new();
    let wrapper = [
        OsString::from("valgrind"),
        "--quiet".into(),
        "--tool=callgrind".into(),
        format!("--callgrind-out-file={}", file.0.display()).into(),
    ];
    run(&wrapper)?;
    Totals::parse(&std::fs::read_to_string(&file.0).context("callgrind left no profile")?)
}

/// A temporary profile, removed when done with.
struct ProfileFile(PathBuf);

impl ProfileFile {
    fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("tidegate-bench-{}-{count}.callgrind", std::process::id());
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
