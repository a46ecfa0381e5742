//! The gateway in front of the fixture server: starting both, and the table of all pairings.

use std::fs;

use anyhow::{Context as _, Result, bail};

use crate::conformance::Era;
use crate::fixture::{self, Fixture};
use crate::leg::Leg;
use crate::shell;
use crate::suite::Outcome;

/// How the gateway reaches the fixture server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Upstream {
    /// Over Streamable HTTP.
    Http,
    /// As a child process.
    Stdio,
}

impl Upstream {
    pub(crate) const ALL: [Upstream; 2] = [Upstream::Http, Upstream::Stdio];

    fn name(self) -> &'static str {
        match self {
            Upstream::Http => "http",
            Upstream::Stdio => "stdio",
        }
    }
}

/// A gateway with the fixture server behind it, and nothing else.
pub(crate) struct Pairing {
    era: Era,
    upstream: Upstream,
    gateway: Fixture,
    /// The fixture server, where it is not a child of the gateway.
    _server: Option<Fixture>,
}

impl Pairing {
    /// Starts both.
    pub(crate) fn start(era: Era, upstream: Upstream) -> Result<Pairing> {
        let (server, entry) = match upstream {
            Upstream::Http => {
                let server = Fixture::start(era)?;
                let entry = format!("url = {:?}", server.url());
                (Some(server), entry)
            }
            Upstream::Stdio => {
                let program = fixture::build(Leg::Server)?;
                (None, format!("command = [{:?}, \"--stdio\", \"--era\", {:?}]", program, era.name()))
            }
        };
        let file = shell::conformance_dir()?.join("tidegate.toml");
        let text = format!("state_dir = false\n\n[servers.fixture]\n{entry}\nprefix = \"\"\n");
        fs::write(&file, text).with_context(|| format!("writing {}", file.display()))?;
        let gateway = Fixture::spawn(
            &fixture::program("tidegate")?,
            &["serve".as_ref(), "--config".as_ref(), file.as_ref()],
        )?;
        Ok(Pairing { era, upstream, gateway, _server: server })
    }

    pub(crate) fn name(&self) -> String {
        format!("gateway-{}-{}", self.era.name(), self.upstream.name())
    }

    pub(crate) fn url(&self) -> String {
        self.gateway.url()
    }

    /// Unscored scenarios that need not pass here: those of the tasks extension in front of a legacy server. They expect that
    /// tools become tasks at the server's choice, and that a client without the extension is refused where a task is
    /// required. A server of 2025-11-25 makes a task only when it is asked for one; the gateway asks only where it must, and
    /// waits for the task when the client does not know any.
    pub(crate) fn allows(&self, scenario: &str) -> bool {
        self.era == Era::Legacy && scenario.starts_with("tasks-")
    }
}

/// What came of all pairings.
#[derive(Default)]
pub(crate) struct Table(Vec<Row>);

struct Row {
    revision: String,
    era: Era,
    upstream: Upstream,
    outcome: Outcome,
}

impl Table {
    pub(crate) fn add(&mut self, revision: &str, era: Era, upstream: Upstream, outcome: Outcome) {
        self.0.push(Row { revision: revision.to_owned(), era, upstream, outcome });
    }

    pub(crate) fn print(&self) {
        println!(
            "\n{:<16} {:<8} {:<9} {:>8} {:>9} {:>9}",
            "requirement set", "server", "upstream", "scored", "unscored", "warnings"
        );
        for Row { revision, era, upstream, outcome } in &self.0 {
            let of = |(passed, all): (usize, usize)| format!("{passed}/{all}");
            println!(
                "{revision:<16} {:<8} {:<9} {:>8} {:>9} {:>9}",
                era.name(),
                upstream.name(),
                of(outcome.scored),
                of(outcome.unscored),
                outcome.warnings.len()
            );
        }
    }

    /// An error if a scenario failed that must pass.
    pub(crate) fn verdict(&self) -> Result<()> {
        let failed: Vec<String> = self
            .0
            .iter()
            .flat_map(|row| {
                let place =
                    format!("{} before {} over {}", row.revision, row.era.name(), row.upstream.name());
                row.outcome.failures.iter().map(move |scenario| format!("{scenario} ({place})"))
            })
            .collect();
        if self.0.iter().all(|row| row.outcome.ran == 0) {
            bail!("no scenario of that name");
        }
        if !failed.is_empty() {
            bail!("{} scenarios failed through the gateway: {}", failed.len(), failed.join(", "));
        }
        Ok(())
    }
}
