//! `conformance-client URL`: the client that the official MCP conformance suite watches.
//!
//! It is written with the public interface of `tidegate-client` and nothing else, so that what the suite sees is what
//! every client made with Tidegate does. [`assignment`] is what the suite asks for, [`scenarios`] the table of what to
//! do for it, [`acts`] how that is done, [`login`] how it gets its tokens.

mod acts;
mod assignment;
mod login;
mod scenarios;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result};
use assignment::Assignment;

/// The suite waits 30 s and then ends only the shell around us.
const DEADLINE: Duration = Duration::from_secs(25);

#[tokio::main]
async fn main() -> ExitCode {
    let done = match tokio::time::timeout(DEADLINE, run()).await {
        Ok(done) => done,
        Err(_) => Err(anyhow::anyhow!("not done after {} s", DEADLINE.as_secs())),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<()> {
    let assignment = Assignment::read()?;
    let scenario = scenarios::find(&assignment.scenario)?;
    scenario.run(&assignment).await.with_context(|| assignment.scenario.clone())
}
