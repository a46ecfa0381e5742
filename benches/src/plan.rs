//! [`Plan`]: which rows a run measures.

use anyhow::Result;

use crate::args::Args;
use crate::binaries::Program;
use crate::case::Case;
use crate::client::Client;
use crate::gateway::plan::GatewayPlan;
use crate::server::Server;

/// The rows of the tables, case by case.
pub(crate) struct Plan {
    pub(crate) servers: Vec<(Case, Vec<Server>)>,
    pub(crate) clients: Vec<(Case, Vec<Client>)>,
    /// Servers whose idle sessions are weighed.
    pub(crate) sessions: Vec<Server>,
    pub(crate) gateways: GatewayPlan,
}

impl Plan {
    pub(crate) fn of(args: &Args) -> Result<Self> {
        let named = |name: String| args.only.as_ref().is_none_or(|only| name.contains(only.as_str()));
        let mut plan = Self {
            servers: Vec::new(),
            clients: Vec::new(),
            sessions: Vec::new(),
            gateways: GatewayPlan::default(),
        };
        if !args.sessions && !args.clients && !args.gateways {
            plan.servers = rows(Case::all(), &args.servers, |server, case| named(format!("{server} {case}")));
        }
        if !args.sessions && !args.clients {
            plan.gateways = GatewayPlan::of(args.quick, named);
        }
        if !args.sessions && !args.gateways {
            let named = |client, case| named(format!("{client} client {case}"));
            plan.clients = rows(Case::of_clients(), &Client::ALL, named);
        }
        if args.sessions || !(args.clients || args.gateways || args.quick || args.only.is_some()) {
            plan.sessions.clone_from(&args.servers);
        }
        anyhow::ensure!(!plan.programs().is_empty(), "nothing left to measure: see --only and --servers");
        Ok(plan)
    }

    /// What has to be built.
    pub(crate) fn programs(&self) -> Vec<Program> {
        let mut programs = Vec::new();
        programs.extend(self.servers.iter().flat_map(|(_, servers)| servers).map(|server| server.program()));
        programs.extend(self.sessions.iter().map(|server| server.program()));
        for (_, clients) in &self.clients {
            programs.push(Server::Ours.program());
            programs.extend(clients.iter().filter_map(|client| client.program()));
        }
        programs.extend(self.gateways.programs());
        let mut once = Vec::new();
        for program in programs {
            if !once.contains(&program) {
                once.push(program);
            }
        }
        once
    }
}

fn rows<S: Copy>(cases: Vec<Case>, all: &[S], wanted: impl Fn(S, Case) -> bool) -> Vec<(Case, Vec<S>)> {
    let subjects = |case| all.iter().copied().filter(|&subject| wanted(subject, case)).collect::<Vec<_>>();
    let rows = cases.into_iter().map(|case| (case, subjects(case)));
    rows.filter(|(_, subjects)| !subjects.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    /// How many rows of servers, rows of clients, weighings and rows of gateways a command line asks for.
    fn sizes(line: &str) -> Option<[usize; 4]> {
        let args = Args::try_parse_from(line.split(' ')).unwrap();
        let plan = Plan::of(&args).ok()?;
        let servers = plan.servers.iter().map(|(_, servers)| servers.len()).sum();
        let clients = plan.clients.iter().map(|(_, clients)| clients.len()).sum();
        Some([servers, clients, plan.sessions.len(), plan.gateways.rows()])
    }

    #[test]
    fn what_is_asked_for() {
        for (line, want) in [
            ("bench", Some([36, 12, 3, 119])),
            ("bench --quick", Some([36, 12, 0, 51])),
            ("bench --clients", Some([0, 12, 0, 0])),
            ("bench --sessions", Some([0, 0, 3, 0])),
            ("bench --gateways", Some([0, 0, 0, 119])),
            ("bench --gateways --quick", Some([0, 0, 0, 51])),
            ("bench --only client", Some([0, 12, 0, 0])),
            ("bench --only gateway", Some([0, 0, 0, 119])),
            ("bench --only floor", Some([12, 4, 0, 12])),
            ("bench --only start-up", Some([0, 0, 0, 0])),
            ("bench --gateways --only list", Some([0, 0, 0, 0])),
            ("bench --only stdio --servers ours", Some([4, 6, 0, 52])),
            ("bench --only nothing", None),
        ] {
            assert_eq!(sizes(line), want, "{line}");
        }
    }
}
