//! The measurements, and what they yield.

pub(crate) mod callgrind;
pub(crate) mod process;
pub(crate) mod sessions;
pub(crate) mod throughput;

use crate::case::Case;
use crate::server::Server;

/// Everything one run has to report.
#[derive(Default)]
pub(crate) struct Results {
    pub(crate) rows: Vec<Measured>,
    pub(crate) sessions: Vec<sessions::Idle>,
    /// What a reader must know about this run, such as what could not be measured.
    pub(crate) notes: Vec<String>,
}

/// One row of the table.
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
}
