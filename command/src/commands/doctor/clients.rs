//! Which clients cannot use a server, and what to put in between.

use std::time::Duration;

use tidegate::protocol::Feature;
use tidegate_client::{ServerInfo, Target};
use url::Host;

use super::report::{Level, Report};
use crate::commands::resolve::ResolvedServer;

/// Some clients wait no longer than this for a server to start.
const PATIENCE: Duration = Duration::from_secs(10);

/// What would break. `other_era` says whether the server speaks the other era too, if that is known.
pub(super) fn check(
    report: &mut Report,
    server: &ResolvedServer,
    facts: &ServerInfo,
    other_era: Option<bool>,
) {
    let target = &server.target;
    let between = "put Tidegate in between: tidegate connect TARGET supports every version";
    // Behind the gateway, where the servers of tidegate.toml are, every client can use it.
    let is_direct = server.settings.is_none();
    match (facts.revision.is_modern(), other_era.filter(|_| is_direct)) {
        (true, Some(false)) => report.add(
            Level::Warning,
            "",
            "supports only 2026-07-28: clients for 2025-11-25 and earlier cannot use it",
            between,
        ),
        (false, Some(false)) => report.add(
            Level::Note,
            "",
            "does not support 2026-07-28: clients that require it cannot use the server",
            between,
        ),
        _ => {}
    }
    if facts.transport == "sse" && is_direct {
        let what = "supports only the HTTP+SSE transport of 2024-11-05, which newer clients have dropped";
        report.add(Level::Warning, "", what, between);
    }
    if !facts.revision.allows(Feature::StructuredContent) {
        let what = format!("{} has neither structured results nor elicitation", facts.revision);
        report.add(Level::Note, "", what, "update the server's SDK");
    }
    if facts.name().is_none() || facts.version().is_none() {
        let level = if facts.revision.is_modern() { Level::Note } else { Level::Warning };
        let what = "does not report its name and version, which some clients require";
        report.add(level, "", what, "set both in serverInfo");
    }
    if report.connected_in.is_some_and(|time| time > PATIENCE) {
        // A machine that starts several at once is slow with each of them, which is not their fault.
        let (level, what, fix) = match report.started_alone {
            true => (
                Level::Warning,
                "takes more than 10s to start, and some clients do not wait that long",
                "install it once instead of at every start (npx, uvx, docker pull)",
            ),
            false => (
                Level::Note,
                "took more than 10s to start, while other servers were starting",
                "to measure it alone, run tidegate doctor with this server only",
            ),
        };
        report.add(level, "", what, fix);
    }
    if let Target::Url(remote) = target
        && remote.url.scheme() == "http"
        && !is_here(remote.url.host())
    {
        let what = "the connection is not encrypted: others can read and change the traffic";
        report.add(Level::Warning, "", what, "use https");
    }
}

fn is_here(host: Option<Host<&str>>) -> bool {
    match host {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    }
}
