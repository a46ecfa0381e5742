//! [`Leg`]: the suite has one for servers and one for clients. What we know about each beforehand is here, so that a
//! run that tests less than it should is noticed.

use anyhow::{Result, bail};

/// A side of the suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leg {
    /// The suite is the client, and tests a server.
    Server,
    /// The suite is the server, and tests a client.
    Client,
}

impl Leg {
    /// In the order in which they are run.
    pub(crate) const ALL: [Leg; 2] = [Leg::Server, Leg::Client];

    /// As the suite spells it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Leg::Server => "server",
            Leg::Client => "client",
        }
    }

    pub(crate) fn parse(name: &str) -> Result<Leg> {
        match name {
            "server" => Ok(Leg::Server),
            "client" => Ok(Leg::Client),
            other => bail!("`{other}` is no leg of the suite; there are server and client"),
        }
    }

    /// How many scenarios a requirement set scores. The sets are frozen, so these numbers do not change.
    pub(crate) fn scored(self, revision: &str) -> Option<usize> {
        match (self, revision) {
            (Leg::Server, "2025-11-25") => Some(30),
            (Leg::Server, "2026-07-28") => Some(37),
            (Leg::Client, "2025-11-25") => Some(18),
            (Leg::Client, "2026-07-28") => Some(32),
            _ => None,
        }
    }

    /// How many checks of a scenario must succeed before it counts as passed. Some scenarios find nothing to complain
    /// about in a client that does nothing.
    pub(crate) fn least_successes(self, scenario: &str) -> u32 {
        match (self, scenario) {
            // The suite itself skips scenarios for servers that lack what they test.
            (Leg::Server, _) => 0,
            // One for each method that it wants to see.
            (Leg::Client, "http-standard-headers") => 9,
            (Leg::Client, _) => 1,
        }
    }
}
