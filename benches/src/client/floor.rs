//! The load generator in place of a client: prepared bytes out, hardly parsed on the way in.

use anyhow::Result;
use tidegate_benches_common::clocks::Clocks;
use tidegate_benches_common::core::Core;
use tidegate_benches_common::figures::Figures;

use super::{Callee, Stages};
use crate::binaries::Binaries;
use crate::case::Case;
use crate::load::http::HttpLoad;
use crate::load::{Load, Until};
use crate::request::MODERN;
use crate::server::{Running, Server};

pub(super) fn round(binaries: &Binaries, case: Case, callee: &Callee, stages: Stages) -> Result<Figures> {
    let mut started;
    let (mut load, server): (Box<dyn Load>, u32) = match callee {
        Callee::Listening(server) => (Box::new(HttpLoad::connect(server.addr()?, case)?), server.pid()),
        Callee::Started(_) => {
            started = Running::start(binaries, Server::Ours, case.transport, Core::Server, &[])?;
            (started.connect(case)?, started.pid())
        }
    };
    load.run(Until::elapsed(stages.warm_up))?;
    let before = Clocks::read(server)?;
    let sample = load.run(Until::elapsed(stages.measured))?;
    let spent = Clocks::read(server)?.since(&before);
    anyhow::ensure!(sample.requests > 0, "not one call was answered");
    Ok(Figures::new(MODERN, sample.elapsed, &sample.latencies, &spent))
}
