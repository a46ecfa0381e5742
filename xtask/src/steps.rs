//! `cargo xtask test`: everything that must hold before a change goes in, one step after the other.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::packages::NO_NPM;
use crate::servers::Part;
use crate::{agents, browser, conformance, inspector, load, pgvector, shell};

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

    let is_ci = std::env::var_os("CI").is_some_and(|ci| !ci.is_empty());
    let mut report = Report { is_ci, ..Report::default() };
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
    report.cargo(
        "interoperability with rmcp",
        "test --package tidegate-interop --package tidegate-rmcp --test rmcp",
    )?;
    for part in Part::ALL {
        match part.lacks() {
            None => report.step(part.step(), || part.test())?,
            Some(why) => report.lacking(part.step(), why)?,
        }
    }
    match agents::lacks() {
        None => report.step(agents::STEP, agents::test)?,
        Some(why) => report.lacking(agents::STEP, why)?,
    }
    match browser::lacks() {
        None => report.step(browser::STEP, browser::test)?,
        Some(why) => report.lacking(browser::STEP, why)?,
    }
    match pgvector::lacks() {
        None => report.step(pgvector::STEP, pgvector::test)?,
        Some(why) => report.lacking(pgvector::STEP, why)?,
    }
    match load::lacks() {
        None => report.step(load::STEP, load::test)?,
        Some(why) => report.lacking(load::STEP, why)?,
    }
    report.cargo("doc tests", "test --all-features --doc")?;
    report.cargo("examples", "build --all-features --examples")?;
    report.cargo("documentation", "doc --all-features --no-deps")?;

    if skip_conformance {
        report.skip("conformance suite", "--skip-conformance was given");
        report.skip("conformance, gateway", "--skip-conformance was given");
        report.skip("MCP Inspector", "--skip-conformance was given");
    } else if !shell::installed("npm") {
        report.lacking("conformance suite", NO_NPM)?;
        report.lacking("conformance, gateway", NO_NPM)?;
        report.lacking("MCP Inspector", NO_NPM)?;
    } else {
        report.step("conformance suite", || conformance::suites(&conformance::Options::default()))?;
        report.step("conformance, gateway", || {
            conformance::through_gateway(&conformance::Options::gateway())
        })?;
        report.step("MCP Inspector", || inspector::run(conformance::Era::Both))?;
    }
    Ok(())
}

/// What has been run so far.
#[derive(Default)]
struct Report {
    steps: Vec<(&'static str, Outcome)>,
    /// Whether this is continuous integration.
    is_ci: bool,
}

enum Outcome {
    Passed(Duration),
    Failed(Duration),
    Skipped(&'static str),
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

    fn skip(&mut self, name: &'static str, why: &'static str) {
        println!("\n=== {name}: SKIPPED: {why}");
        self.steps.push((name, Outcome::Skipped(why)));
    }

    /// A step that this machine lacks something for: skipped, but in continuous integration nothing may be.
    fn lacking(&mut self, name: &'static str, why: &'static str) -> Result<()> {
        if self.is_ci {
            return self.step(name, || bail!(why));
        }
        self.skip(name, why);
        Ok(())
    }

    fn print(&self) {
        println!("\n{:<30} {:>8}  result", "step", "time");
        let (mut passed, mut failed, mut skipped) = (0, 0, 0);
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
                Outcome::Skipped(why) => {
                    skipped += 1;
                    ("-".to_owned(), format!("SKIPPED: {why}"))
                }
            };
            println!("{name:<30} {time:>8}  {result}");
        }
        let skipped = if skipped == 0 { String::new() } else { format!(", {skipped} SKIPPED") };
        println!("\n{passed} passed, {failed} failed{skipped}");
    }
}

fn seconds(took: Duration) -> String {
    format!("{:.1} s", took.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lacking_is_skipped_but_not_in_continuous_integration() {
        let mut here = Report::default();
        here.lacking("a step", "npm is not there").expect("skipped");
        assert!(matches!(here.steps[..], [("a step", Outcome::Skipped("npm is not there"))]));

        let mut there = Report { is_ci: true, ..Report::default() };
        there.lacking("a step", "npm is not there").expect_err("a failure");
        assert!(matches!(there.steps[..], [("a step", Outcome::Failed(_))]));
    }
}
