//! The measurements, and what they yield.

pub(crate) mod callgrind;
pub(crate) mod clients;
pub(crate) mod fairness;
pub(crate) mod gateway_extras;
pub(crate) mod gateways;
pub(crate) mod sessions;
pub(crate) mod throughput;

use crate::case::Case;
use crate::client::Client;
use crate::gateway::Gateway;
use crate::gateway::case::GatewayCase;
use crate::server::Server;

/// Everything one run has to report.
#[derive(Default)]
pub(crate) struct Results {
    pub(crate) rows: Vec<Measured>,
    pub(crate) clients: Vec<clients::Called>,
    pub(crate) sessions: Vec<sessions::Idle>,
    pub(crate) gateways: Gateways,
    /// What a reader must know about this run, such as what could not be measured.
    pub(crate) notes: Vec<String>,
}

/// What was seen of gateways.
#[derive(Default)]
pub(crate) struct Gateways {
    pub(crate) rows: Vec<gateways::Passed>,
    pub(crate) lists: Vec<gateway_extras::Listed>,
    pub(crate) idle: Vec<gateway_extras::Idle>,
    pub(crate) start_up: Vec<gateway_extras::StartUp>,
    pub(crate) principals: Option<Result<gateway_extras::Principals, String>>,
    pub(crate) fairness: Option<Result<fairness::Fairness, String>>,
    /// What could not be counted.
    pub(crate) notes: Vec<String>,
}

impl Gateways {
    pub(crate) fn row(&self, gateway: Gateway, case: GatewayCase) -> Option<&gateways::Passed> {
        self.rows.iter().find(|row| row.gateway == gateway && row.case == case)
    }

    pub(crate) fn load(&self, gateway: Gateway, case: GatewayCase) -> Option<&throughput::Throughput> {
        self.row(gateway, case)?.seen.as_ref().ok()
    }

    pub(crate) fn list(&self, gateway: Gateway) -> Option<&gateway_extras::Listed> {
        self.lists.iter().find(|row| row.gateway == gateway)
    }
}

/// One row of the table of servers.
pub(crate) struct Measured {
    pub(crate) case: Case,
    pub(crate) server: Server,
    pub(crate) load: throughput::Throughput,
    pub(crate) counts: Option<callgrind::Counts>,
}

impl Results {
    pub(crate) fn row(&self, server: Server, case: Case) -> Option<&Measured> {
        self.rows.iter().find(|row| row.server == server && row.case == case)
    }

    pub(crate) fn client(&self, client: Client, case: Case) -> Option<&clients::Called> {
        self.clients.iter().find(|row| row.client == client && row.case == case)
    }
}

fn median<R, T: PartialOrd>(rounds: &[R], value: impl Fn(&R) -> T) -> T {
    let mut values: Vec<T> = rounds.iter().map(value).collect();
    values.sort_by(|a, b| a.partial_cmp(b).expect("measurements are numbers"));
    values.swap_remove(values.len() / 2)
}
