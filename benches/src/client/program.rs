//! One run of a client program.

use std::ffi::OsString;
use std::process::Stdio;

use anyhow::Result;
use tidegate_benches_common::core::Core;
use tidegate_benches_common::figures::Figures;

use super::{Callee, Stages};
use crate::binaries::{Binaries, Program};
use crate::case::Case;
use crate::request::MODERN;

/// How long, or how often, it calls.
#[derive(Clone, Copy)]
pub(crate) enum Length {
    Time(Stages),
    Calls(u64),
}

/// Runs a client program to its end, which is bounded. `wrapper` is a program to run it under.
pub(crate) fn run(
    binaries: &Binaries,
    program: Program,
    case: Case,
    callee: &Callee,
    length: Length,
    wrapper: &[OsString],
) -> Result<Figures> {
    let binary = binaries.path(program)?;
    let mut command = match wrapper {
        [program, arguments @ ..] => {
            let mut command = Core::Load.command(program);
            command.args(arguments).arg(binary);
            command
        }
        [] => Core::Load.command(binary),
    };
    command.args(["--in-flight", &case.concurrency.to_string()]);
    match length {
        Length::Calls(calls) => command.args(["--calls", &calls.to_string()]),
        Length::Time(Stages { warm_up, measured }) => {
            let [warm_up, measured] = [warm_up, measured].map(|time| time.as_millis().to_string());
            command.args(["--warm-up", &warm_up, "--measured", &measured])
        }
    };
    match callee {
        Callee::Listening(server) => {
            command.args(["--url", &format!("http://{}/mcp", server.addr()?)]);
            command.args(["--server-pid", &server.pid().to_string()])
        }
        Callee::Started(words) => command.arg("--").args(words),
    };
    let output = command.stdin(Stdio::null()).output()?;
    let logged = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(output.status.success(), "{}: {}", output.status, logged.trim_end());
    let figures = Figures::read(&String::from_utf8_lossy(&output.stdout))?;
    anyhow::ensure!(figures.revision == MODERN, "it speaks {}, not {MODERN}", figures.revision);
    Ok(figures)
}
