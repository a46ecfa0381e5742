//! The command line.

use std::time::Duration;

use clap::Parser;

use crate::measure::throughput::Rounds;
use crate::server::Server;

/// Measures echo servers and their clients side by side and prints what it saw in tables.
#[derive(Parser)]
#[command(name = "bench")]
pub(crate) struct Args {
    /// One very short round per case: shows that everything works, the numbers are rough.
    #[arg(long)]
    pub(crate) quick: bool,

    /// Only rows whose name contains this: "ours stdio x1 32B" of a server, "ours client stdio x1 32B" of a client,
    /// "ours gateway http modern x16 32B", "ours gateway list", "ours gateway idle", "ours gateway start-up",
    /// "ours gateway principals" or "ours gateway fairness" of a gateway.
    #[arg(long, value_name = "SUBSTR")]
    pub(crate) only: Option<String>,

    /// Leave out instructions and allocations, which take most of the time.
    #[arg(long)]
    pub(crate) no_callgrind: bool,

    /// Only the memory of idle legacy sessions (part of a full run anyway).
    #[arg(long)]
    pub(crate) sessions: bool,

    /// Only the clients (part of a full run anyway).
    #[arg(long, conflicts_with = "sessions")]
    pub(crate) clients: bool,

    /// Only the gateways (part of a full run anyway).
    #[arg(long, conflicts_with_all = ["sessions", "clients"])]
    pub(crate) gateways: bool,

    /// Which servers to measure.
    #[arg(long, value_delimiter = ',', default_values_t = Server::ALL)]
    pub(crate) servers: Vec<Server>,
}

impl Args {
    pub(crate) fn rounds(&self) -> Rounds {
        let (count, warm_up, measured) = if self.quick { (1, 50, 200) } else { (3, 200, 700) };
        Rounds { count, warm_up: Duration::from_millis(warm_up), measured: Duration::from_millis(measured) }
    }

    /// Shorter, because there are many rows.
    pub(crate) fn gateway_rounds(&self) -> Rounds {
        let (count, warm_up, measured) = if self.quick { (1, 50, 150) } else { (3, 150, 350) };
        Rounds { count, warm_up: Duration::from_millis(warm_up), measured: Duration::from_millis(measured) }
    }

    /// How long a gateway is left alone before it is weighed.
    pub(crate) fn settle(&self) -> Duration {
        Duration::from_millis(if self.quick { 300 } else { 2000 })
    }

    /// How many calls a quiet tenant makes.
    pub(crate) fn quiet_calls(&self) -> u64 {
        if self.quick { 50 } else { 1000 }
    }

    /// How often a gateway is started.
    pub(crate) fn starts(&self) -> usize {
        if self.quick { 1 } else { 9 }
    }
}
