//! `cargo xtask test`: everything that must hold before a change goes in, one step after the other.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::{conformance, inspector, shell};

/// Runs all steps and prints a table of them; stops at the first that fails.
///
/// A failure is told before the table, so that the last line is always the count.
pub(crate) fn run(args: &[String]) -> Result<ExitCode> {
    let mut skip_conformance = false;
    for arg in args {
        match arg.as_str() {
            "--skip-conformance" => skip_conformance = true,
            other => bail!("`cargo xtask test` does not know `{other}`"),
        }
    }

    let mut report = Report::default();
    let code = match all(&mut report, skip_conformance) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    };
    report.print();
    Ok(code)
}

fn all(report: &mut Report, skip_conformance: bool) -> Result<()> {
    // One profile and one set of features for all of them, so that nothing is compiled twice.
    report.cargo("formatting", "fmt --all --check")?;
    report.cargo("clippy", "clippy --all-targets --all-features -- -D warnings")?;
    report.cargo("unit and integration tests", "test --all-features --lib --bins --tests")?;
    // No default member, because it brings rmcp: its features make other builds of what it shares with us.
    report.cargo("interoperability with rmcp", "test --package tidegate-interop --tests")?;
    report.cargo("doc tests", "test --all-features --doc")?;
    report.cargo("examples", "build --all-features --examples")?;
    report.cargo("documentation", "doc --all-features --no-deps")?;

    if skip_conformance {
        report.leave_out("conformance suite", "--skip-conformance was given");
        report.leave_out("MCP Inspector", "--skip-conformance was given");
    } else if !shell::installed("npm") {
        let why = "npm was not found in the PATH; install Node.js with npm (Debian: apt-get install npm)";
        report.leave_out("conformance suite", why);
        report.leave_out("MCP Inspector", why);
    } else {
        report.step("conformance suite", || conformance::suites(&conformance::Options::default()))?;
        report.step("MCP Inspector", || inspector::run(conformance::Era::Both))?;
    }
    Ok(())
}

/// What has been run so far.
#[derive(Default)]
struct Report {
    steps: Vec<(&'static str, Outcome)>,
}

enum Outcome {
    Passed(Duration),
    Failed(Duration),
    LeftOut(&'static str),
}

impl Report {
    fn cargo(&mut self, name: &'static str, line: &str) -> Result<()> {
        let args: Vec<&str> = line.split(' ').collect();
        // Only rustdoc reads the variable, so it may be there for every step.
        self.step(name, || shell::check(shell::cargo(&args).env("RUSTDOCFLAGS", "-D warnings")))
    }

    fn step(&mut self, name: &'static str, work: impl FnOnce() -> Result<()>) -> Result<()> {
        println!("\n=== {name}");
        let start = Instant::now();
        let result = work();
        let took = start.elapsed();
        self.steps.push((name, if result.is_ok() { Outcome::Passed(took) } else { Outcome::Failed(took) }));
        result.with_context(|| format!("the step \"{name}\" failed, so the steps after it were not run"))
    }

    fn leave_out(&mut self, name: &'static str, why: &'static str) {
        println!("\n=== {name}: left out: {why}");
        self.steps.push((name, Outcome::LeftOut(why)));
    }

    fn print(&self) {
        println!("\n{:<28} {:>8}  result", "step", "time");
        let (mut passed, mut failed) = (0, 0);
        for (name, outcome) in &self.steps {
            let (time, result) = match outcome {
                Outcome::Passed(took) => {
                    passed += 1;
                    (seconds(*took), "passed".to_owned())
                }
                Outcome::Failed(took) => {
                    failed += 1;
                    (seconds(*took), "FAILED".to_owned())
                }
                Outcome::LeftOut(why) => ("-".to_owned(), format!("left out: {why}")),
            };
            println!("{name:<28} {time:>8}  {result}");
        }
        println!("\n{passed} passed, {failed} failed");
    }
}

fn seconds(took: Duration) -> String {
    format!("{:.1} s", took.as_secs_f64())
}
