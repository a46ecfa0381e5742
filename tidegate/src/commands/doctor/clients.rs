//! Which clients could not use a server, and what to put in between.

use std::time::Duration;

use tidegate::protocol::Revision;
use tidegate_client::{ServerFacts, Target};
use url::Host;

use super::report::{Level, Report};

/// Some clients wait no longer than this for a server to start.
const PATIENCE: Duration = Duration::from_secs(10);

/// What would break. `other_era` says whether the server speaks the other era too, if that is known.
pub(super) fn check(report: &mut Report, target: &Target, facts: &ServerFacts, other_era: Option<bool>) {
    let between = "put Tidegate in between: tidegate connect TARGET speaks every revision";
    match (facts.revision.is_modern(), other_era) {
        (true, Some(false)) => report.add(
            Level::Warning,
            "",
            "it speaks only 2026-07-28: clients that know 2025-11-25 and earlier cannot use it",
            between,
        ),
        (false, Some(false)) => report.add(
            Level::Note,
            "",
            "it does not speak 2026-07-28: clients that know nothing else cannot use it",
            between,
        ),
        _ => {}
    }
    if facts.transport == "sse" {
        let what = "it has only the HTTP+SSE transport of 2024-11-05, which newer clients no longer know";
        report.add(Level::Warning, "", what, between);
    }
    if facts.revision < Revision::V2025_06_18 {
        let what = format!("{} has no structured results and no questions to the user", facts.revision);
        report.add(Level::Note, "", what, "update the SDK that the server is made with");
    }
    if facts.name().is_none() || facts.version().is_none() {
        let level = if facts.revision.is_modern() { Level::Note } else { Level::Warning };
        let what = "it does not say its name and version, which some clients insist on";
        report.add(level, "", what, "set both in serverInfo");
    }
    if report.connected_in.is_some_and(|time| time > PATIENCE) {
        let what = "it takes more than 10 s to start, and some clients do not wait that long";
        report.add(
            Level::Warning,
            "",
            what,
            "install it beforehand instead of at each start (npx, uvx, docker pull)",
        );
    }
    if let Target::Url(remote) = target
        && remote.url.scheme() == "http"
        && !is_here(remote.url.host())
    {
        let what = "the connection is not encrypted, so that others can read along and change what is said";
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
