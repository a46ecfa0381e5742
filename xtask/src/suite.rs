//! One requirement set of the official suite: run it, read what it wrote, print a table.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::npm::Tools;
use crate::shell;

/// Unscored scenarios that are known to fail: revision, scenario, and why that is right.
///
/// A scored scenario can never be listed here.
const KNOWN_UNSCORED_FAILURES: &[(&str, &str, &str)] = &[];

/// What came of a requirement set.
pub(crate) struct Outcome {
    /// How many scenarios were run.
    pub(crate) ran: usize,
    /// The scenarios that failed and should not have.
    pub(crate) failures: Vec<String>,
}

/// Runs the server leg of a requirement set, or only one scenario of it, against a URL.
pub(crate) fn run(tools: &Tools, url: &str, revision: &str, only: Option<&str>) -> Result<Outcome> {
    let results = shell::conformance_dir()?.join("results").join(revision);
    if results.exists() {
        fs::remove_dir_all(&results).with_context(|| format!("clearing {}", results.display()))?;
    }
    fs::create_dir_all(&results).with_context(|| format!("creating {}", results.display()))?;

    let mut scenarios = report(tools, revision, &results)?.scenarios;
    scenarios.retain(|scenario| only.is_none_or(|name| name == scenario.name));
    if scenarios.is_empty() {
        return Ok(Outcome { ran: 0, failures: Vec::new() });
    }

    let mut command = tools.suite();
    command.args(["server", "--url", url, "--output-dir"]).arg(&results);
    match only {
        None => command.args(["--requirements", revision]),
        // The suite does not take a scenario and a set; forced, because an extension belongs to no revision.
        Some(name) => command.args(["--scenario", name, "--spec-version", revision, "--force"]),
    };
    println!("\nconformance {revision}: {} scenarios against {url}", scenarios.len());
    let log = results.join("suite.log");
    run_logged(&mut command, &log)?;

    let mut report = report(tools, revision, &results)?;
    report.scenarios.retain(|scenario| only.is_none_or(|name| name == scenario.name));
    if report.scenarios.iter().all(|scenario| !scenario.ran) {
        bail!("the conformance suite ran nothing; its output is in {}", log.display());
    }
    print(&report, revision);
    println!("details: {}", results.display());

    let failures = report
        .scenarios
        .iter()
        .filter(|scenario| !scenario.passed() && known_failure(revision, scenario).is_none())
        .map(|scenario| scenario.name.clone())
        .collect();
    Ok(Outcome { ran: report.scenarios.len(), failures })
}

/// The suite's own output is long; the table says it shorter, and the log has the rest.
fn run_logged(command: &mut Command, log: &Path) -> Result<()> {
    let file = File::create(log).with_context(|| format!("creating {}", log.display()))?;
    command.stdout(file.try_clone()?).stderr(file);
    // Its exit code only tells of scored failures, which we count ourselves.
    command.status().context("could not start the conformance suite")?;
    Ok(())
}

struct Report {
    scenarios: Vec<Scenario>,
    checks: Vec<Check>,
}

struct Scenario {
    name: String,
    /// `scored`, or why it is not.
    standing: String,
    ran: bool,
    passed: u32,
    failed: u32,
    warnings: u32,
    skipped: u32,
}

impl Scenario {
    fn scored(&self) -> bool {
        self.standing == "scored"
    }

    fn passed(&self) -> bool {
        self.ran && self.failed == 0
    }
}

/// A check that did not simply succeed.
struct Check {
    scenario: String,
    status: String,
    id: String,
    message: String,
}

fn known_failure(revision: &str, scenario: &Scenario) -> Option<&'static str> {
    KNOWN_UNSCORED_FAILURES
        .iter()
        .find(|(set, name, _)| !scenario.scored() && *set == revision && *name == scenario.name)
        .map(|(_, _, why)| *why)
}

/// Reads the requirement set and the results. The suite writes YAML and JSON, so Node.js reads them for us and
/// hands over lines of fields.
fn report(tools: &Tools, revision: &str, results: &Path) -> Result<Report> {
    let script = shell::root().join("xtask").join("src").join("report.mjs");
    let text = shell::output(tools.node().arg(script).arg(tools.suite_dir()).arg(revision).arg(results))
        .context("reading the results of the conformance suite")?;
    parse(&text)
}

fn parse(text: &str) -> Result<Report> {
    let mut report = Report { scenarios: Vec::new(), checks: Vec::new() };
    for line in text.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        match fields[..] {
            ["scenario", name, standing, ran, passed, failed, warnings, skipped] => {
                report.scenarios.push(Scenario {
                    name: name.to_owned(),
                    standing: standing.to_owned(),
                    ran: ran == "true",
                    passed: passed.parse()?,
                    failed: failed.parse()?,
                    warnings: warnings.parse()?,
                    skipped: skipped.parse()?,
                });
            }
            ["check", scenario, status, id, message] => report.checks.push(Check {
                scenario: scenario.to_owned(),
                status: status.to_owned(),
                id: id.to_owned(),
                message: message.to_owned(),
            }),
            _ => bail!("report.mjs printed a line that nobody understands: {line}"),
        }
    }
    Ok(report)
}

fn print(report: &Report, revision: &str) {
    let width =
        report.scenarios.iter().map(|scenario| scenario.name.len()).max().unwrap_or(0).max("scenario".len());
    println!(
        "{:<width$}  {:<20} {:>6} {:>6} {:>8} {:>7}",
        "scenario", "standing", "passed", "failed", "warnings", "skipped"
    );
    for scenario in &report.scenarios {
        let Scenario { name, standing, passed, failed, warnings, skipped, .. } = scenario;
        let note = match (scenario.passed(), known_failure(revision, scenario)) {
            (false, Some(why)) => format!("  known: {why}"),
            (true, Some(_)) => "  passes: remove it from KNOWN_UNSCORED_FAILURES".to_owned(),
            (false, None) if !scenario.ran => "  DID NOT FINISH".to_owned(),
            (false, None) => "  FAILED".to_owned(),
            (true, None) => String::new(),
        };
        println!("{name:<width$}  {standing:<20} {passed:>6} {failed:>6} {warnings:>8} {skipped:>7}{note}");
    }
    for Check { scenario, status, id, message } in &report.checks {
        println!("  {status} {scenario} / {id}: {message}");
    }
    for (kind, scored) in [("scored", true), ("unscored", false)] {
        let of_kind = || report.scenarios.iter().filter(|scenario| scenario.scored() == scored);
        let (passed, all) = (of_kind().filter(|scenario| scenario.passed()).count(), of_kind().count());
        if all > 0 {
            println!("{revision}: {passed} of {all} {kind} scenarios pass");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scenario_passes_when_it_ran_and_no_check_failed() {
        let text = "scenario\tping\tscored\ttrue\t2\t0\t1\t0\n\
                    scenario\ttasks\textension\ttrue\t2\t1\t0\t0\n\
                    check\ttasks\tFAILURE\tsome-id\tit is: broken\n\
                    scenario\tcaching\tscored\tfalse\t0\t0\t0\t0\n";
        let report = parse(text).expect("well-formed lines");
        let passed: Vec<bool> = report.scenarios.iter().map(Scenario::passed).collect();
        assert_eq!(passed, [true, false, false]);
        assert_eq!(report.checks[0].message, "it is: broken");
    }

    #[test]
    fn a_line_of_another_shape_is_an_error() {
        assert!(parse("scenario\tping\tscored").is_err());
    }
}
