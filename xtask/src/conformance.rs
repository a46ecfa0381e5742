//! `cargo xtask conformance`: both legs of the official suite against the fixtures, and the MCP Inspector after them; with
//! `--gateway`, the server leg through the gateway.

use anyhow::{Result, bail};

use crate::fixture::{self, Fixture};
use crate::gateway::{Pairing, Table, Upstream};
use crate::inspector;
use crate::leg::Leg;
use crate::npm::Tools;
use crate::suite::{self, Subject};

/// The revisions that have a requirement set, with the era they belong to.
const REVISIONS: [(&str, Era); 2] = [("2025-11-25", Era::Legacy), ("2026-07-28", Era::Modern)];

/// How many failed scenarios the closing sentence names; the tables above it have all.
const NAMED_FAILURES: usize = 8;

/// Which eras the fixture server speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Era {
    /// Both on one endpoint.
    #[default]
    Both,
    /// Revisions with a handshake.
    Legacy,
    /// Revisions without.
    Modern,
}

impl Era {
    /// As the fixture server and the inspector spell it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Both => "both",
            Self::Legacy => "legacy",
            Self::Modern => "modern",
        }
    }

    /// Whether a server of this era answers clients of the other.
    pub(crate) fn includes(self, other: Self) -> bool {
        self == Self::Both || self == other
    }

    fn parse(name: &str) -> Result<Self> {
        match name {
            "both" => Ok(Self::Both),
            "legacy" => Ok(Self::Legacy),
            "modern" => Ok(Self::Modern),
            other => bail!("`{other}` is no era; there are both, legacy and modern"),
        }
    }
}

/// What to run, and against what.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    leg: Option<Leg>,
    url: Option<String>,
    era: Era,
    /// The era that was asked for.
    only_era: Option<Era>,
    scenario: Option<String>,
    revision: Option<String>,
    /// Through the gateway, in every pairing.
    gateway: bool,
}

impl Options {
    fn parse(args: &[String]) -> Result<Self> {
        let mut options = Self::default();
        let mut era = None;
        let mut args = args.iter();
        while let Some(name) = args.next() {
            if name == "--gateway" {
                options.gateway = true;
                continue;
            }
            let Some(value) = args.next() else { bail!("`{name}` needs a value, or is unknown") };
            match name.as_str() {
                "--leg" => options.leg = Some(Leg::parse(value)?),
                "--url" => options.url = Some(value.clone()),
                "--era" => era = Some(Era::parse(value)?),
                "--scenario" => options.scenario = Some(value.clone()),
                "--requirements" => options.revision = Some(value.clone()),
                other => bail!("`cargo xtask conformance` does not know `{other}`"),
            }
        }
        if era.is_some() && options.url.is_some() {
            bail!("--era is for the server that we start; one at --url speaks what it speaks");
        }
        if options.leg == Some(Leg::Client) && options.url.is_some() {
            bail!("--url is for the server leg; in the client leg the suite is the server");
        }
        if options.gateway && (options.url.is_some() || options.leg == Some(Leg::Client)) {
            bail!(
                "--gateway puts our own gateway in front of our own server: there is no --url and no client leg"
            );
        }
        options.only_era = era;
        options.era = era.unwrap_or_default();
        if options.revisions().is_empty() {
            bail!(
                "nothing to run: requirement sets are 2025-11-25 (legacy) and 2026-07-28 (modern), the era is {}",
                options.era.name()
            );
        }
        Ok(options)
    }

    /// Everything through the gateway.
    pub(crate) fn gateway() -> Self {
        Self { gateway: true, ..Self::default() }
    }

    /// The requirement sets that are asked for and that the server can meet.
    fn revisions(&self) -> Vec<&'static str> {
        let wanted = |revision: &str| self.revision.as_deref().is_none_or(|only| only == revision);
        REVISIONS
            .iter()
            // Behind the gateway a server of one era answers clients of both.
            .filter(|(revision, era)| wanted(revision) && (self.gateway || self.era.includes(*era)))
            .map(|(revision, _)| *revision)
            .collect()
    }

    /// The legs that are asked for.
    fn legs(&self) -> Vec<Leg> {
        let only = if self.url.is_some() { Some(Leg::Server) } else { self.leg };
        Leg::ALL.into_iter().filter(|leg| only.is_none_or(|only| only == *leg)).collect()
    }

    /// What a leg is to test.
    fn subject(&self, leg: Leg) -> Result<Subject> {
        Ok(match (leg, &self.url) {
            (Leg::Client, _) => Subject::Client(fixture::build(leg)?),
            (Leg::Server, Some(url)) => Subject::Remote(url.clone()),
            (Leg::Server, None) => Subject::Server(Fixture::start(self.era)?),
        })
    }

    /// Whether this is a run of everything, and so includes the inspector.
    fn is_complete(&self) -> bool {
        self.leg.is_none() && self.url.is_none() && self.scenario.is_none() && self.revision.is_none()
    }
}

/// The command.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let options = Options::parse(args)?;
    if options.gateway {
        return through_gateway(&options);
    }
    suites(&options)?;
    if options.is_complete() {
        inspector::run(options.era)?;
    }
    Ok(())
}

/// The suite alone: every requirement set is run and reported before any failure counts.
pub(crate) fn suites(options: &Options) -> Result<()> {
    let tools = Tools::install()?;
    let (mut ran, mut failures) = (0, Vec::new());
    for leg in options.legs() {
        let subject = options.subject(leg)?;
        for revision in options.revisions() {
            let outcome = suite::run(&tools, &subject, revision, options.scenario.as_deref())?;
            ran += outcome.ran;
            let described = |scenario| format!("{scenario} ({} {revision})", leg.name());
            failures.extend(outcome.failures.into_iter().map(described));
        }
    }
    if ran == 0 {
        bail!("no scenario of that name in {}", options.revisions().join(" or "));
    }
    if !failures.is_empty() {
        let named = failures[..failures.len().min(NAMED_FAILURES)].join(", ");
        let more = if failures.len() > NAMED_FAILURES { " and others" } else { "" };
        bail!("{} of {ran} conformance scenarios failed: {named}{more}", failures.len());
    }
    Ok(())
}

/// The server leg through the gateway: every requirement set in front of servers of every era, over both transports.
pub(crate) fn through_gateway(options: &Options) -> Result<()> {
    let tools = Tools::install()?;
    let mut table = Table::default();
    for era in [Era::Legacy, Era::Modern, Era::Both] {
        if options.only_era.is_some_and(|only| only != era) {
            continue;
        }
        for upstream in Upstream::ALL {
            let subject = Subject::Gateway(Pairing::start(era, upstream)?);
            for revision in options.revisions() {
                let outcome = suite::run(&tools, &subject, revision, options.scenario.as_deref())?;
                table.add(revision, era, upstream, outcome);
            }
        }
    }
    table.print();
    table.verdict()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options> {
        Options::parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn the_era_chooses_the_requirement_sets() {
        for (line, revisions) in [
            ("", &["2025-11-25", "2026-07-28"][..]),
            ("--era legacy", &["2025-11-25"]),
            ("--era modern", &["2026-07-28"]),
            ("--requirements 2026-07-28", &["2026-07-28"]),
            ("--url http://localhost:1/mcp --scenario ping", &["2025-11-25", "2026-07-28"]),
            ("--gateway --era legacy", &["2025-11-25", "2026-07-28"]),
        ] {
            assert_eq!(parse(line).expect(line).revisions(), revisions, "{line}");
        }
    }

    #[test]
    fn both_legs_are_run_unless_one_is_asked_for() {
        for (line, legs) in [
            ("", &[Leg::Server, Leg::Client][..]),
            ("--leg client", &[Leg::Client]),
            ("--leg server --era modern", &[Leg::Server]),
            ("--url http://localhost:1/mcp", &[Leg::Server]),
        ] {
            assert_eq!(parse(line).expect(line).legs(), legs, "{line}");
        }
    }

    #[test]
    fn contradictions_are_refused() {
        for line in [
            "--era modern --requirements 2025-11-25",
            "--url x --era modern",
            "--url x --leg client",
            "--leg middle",
            "--requirements 2024-11-05",
            "--era",
            "--x y",
            "--gateway --url x",
            "--gateway --leg client",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
