//! One leg of one requirement set of the official suite: run it, read what it wrote, print a table.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::fixture::Fixture;
use crate::gateway::Pairing;
use crate::leg::Leg;
use crate::npm::Tools;
use crate::shell;

/// Unscored scenarios that are known to fail: leg, revision, scenario, and why that is right.
///
/// A scored scenario can never be listed here.
const KNOWN_UNSCORED_FAILURES: &[(Leg, &str, &str, &str)] = &[];

/// What is tested.
pub(crate) enum Subject {
    /// A server that runs somewhere.
    Remote(String),
    /// Our own server, for as long as this value lives.
    Server(Fixture),
    /// Our own server behind our own gateway.
    Gateway(Pairing),
    /// The program of our own client.
    Client(PathBuf),
}

impl Subject {
    fn leg(&self) -> Leg {
        match self {
            Subject::Remote(_) | Subject::Server(_) | Subject::Gateway(_) => Leg::Server,
            Subject::Client(_) => Leg::Client,
        }
    }

    /// Where its results go, and what it is called.
    fn name(&self) -> String {
        match self {
            Subject::Gateway(pairing) => pairing.name(),
            _ => self.leg().name().to_owned(),
        }
    }

    /// What to tell the suite.
    fn add_to(&self, command: &mut Command) -> Result<()> {
        match self {
            Subject::Remote(url) => command.args(["server", "--url", url]),
            Subject::Server(fixture) => command.args(["server", "--url", &fixture.url()]),
            Subject::Gateway(pairing) => command.args(["server", "--url", &pairing.url()]),
            Subject::Client(program) => {
                // The suite splits the command at spaces, so the path to it must not be part of it.
                let (Some(directory), Some(name)) = (program.parent(), program.file_name()) else {
                    bail!("{} is no path of a program", program.display());
                };
                let mut here = OsString::from("./");
                here.push(name);
                command.args(["client", "--command"]).arg(here).current_dir(directory)
            }
        };
        Ok(())
    }
}

/// What came of a requirement set.
#[derive(Default)]
pub(crate) struct Outcome {
    /// How many scenarios were run.
    pub(crate) ran: usize,
    /// The scenarios that failed and should not have.
    pub(crate) failures: Vec<String>,
    /// How many of the scored scenarios passed, and of how many.
    pub(crate) scored: (usize, usize),
    /// How many of the others passed, and of how many.
    pub(crate) unscored: (usize, usize),
    /// What the suite warned of.
    pub(crate) warnings: Vec<String>,
}

/// Runs a leg of a requirement set, or only one scenario of it.
pub(crate) fn run(tools: &Tools, subject: &Subject, revision: &str, only: Option<&str>) -> Result<Outcome> {
    let leg = subject.leg();
    let results = shell::conformance_dir()?.join("results").join(subject.name()).join(revision);
    if results.exists() {
        fs::remove_dir_all(&results).with_context(|| format!("clearing {}", results.display()))?;
    }
    fs::create_dir_all(&results).with_context(|| format!("creating {}", results.display()))?;

    let mut scenarios = report(tools, leg, revision, &results)?.scenarios;
    let scored = scenarios.iter().filter(|scenario| scenario.scored()).count();
    if leg.scored(revision).is_some_and(|expected| expected != scored) {
        bail!(
            "the suite scores {scored} scenarios in the {} leg of {revision}: see xtask/src/leg.rs",
            leg.name()
        );
    }
    scenarios.retain(|scenario| only.is_none_or(|name| name == scenario.name));
    if scenarios.is_empty() {
        return Ok(Outcome::default());
    }

    let mut command = tools.suite();
    subject.add_to(&mut command)?;
    command.arg("--output-dir").arg(&results);
    match only {
        None => command.args(["--requirements", revision]),
        // The suite does not take a scenario and a set; forced, because an extension belongs to no revision.
        Some(name) => command.args(["--scenario", name, "--spec-version", revision, "--force"]),
    };
    println!("\nconformance of the {}, {revision}: {} scenarios", subject.name(), scenarios.len());
    let log = results.join("suite.log");
    run_logged(&mut command, &log)?;

    let mut report = report(tools, leg, revision, &results)?;
    report.scenarios.retain(|scenario| only.is_none_or(|name| name == scenario.name));
    report.checks.retain(|check| only.is_none_or(|name| name == check.scenario));
    if report.scenarios.iter().all(|scenario| !scenario.ran) {
        bail!("the conformance suite ran nothing; its output is in {}", log.display());
    }
    // Twelve tables would hide what they say; the one of the pairings has what counts.
    if let Subject::Gateway(_) = subject {
        print_checks(&report);
    } else {
        print(&report, leg, revision);
    }
    println!("details: {}", results.display());
    Ok(outcome(&report, subject, revision))
}

fn outcome(report: &Report, subject: &Subject, revision: &str) -> Outcome {
    let leg = subject.leg();
    let allowed = |scenario: &Scenario| match subject {
        Subject::Gateway(pairing) => pairing.allows(&scenario.name) && !scenario.scored(),
        _ => known_failure(leg, revision, scenario).is_some(),
    };
    let count = |scored: bool| {
        let of_kind = || report.scenarios.iter().filter(move |scenario| scenario.scored() == scored);
        (of_kind().filter(|scenario| scenario.passed(leg)).count(), of_kind().count())
    };
    let failed = |scenario: &&Scenario| !scenario.passed(leg) && !allowed(scenario);
    let warned = report.checks.iter().filter(|check| check.status == "WARNING");
    Outcome {
        ran: report.scenarios.len(),
        failures: report.scenarios.iter().filter(failed).map(|scenario| scenario.name.clone()).collect(),
        scored: count(true),
        unscored: count(false),
        warnings: warned
            .map(|check| format!("{} / {}: {}", check.scenario, check.id, check.message))
            .collect(),
    }
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

    fn passed(&self, leg: Leg) -> bool {
        self.ran && self.failed == 0 && self.passed >= leg.least_successes(&self.name)
    }
}

/// A check that did not simply succeed.
struct Check {
    scenario: String,
    status: String,
    id: String,
    message: String,
}

fn known_failure(leg: Leg, revision: &str, scenario: &Scenario) -> Option<&'static str> {
    let is = |known: &&(Leg, &str, &str, &str)| {
        (known.0, known.1, known.2) == (leg, revision, scenario.name.as_str())
    };
    KNOWN_UNSCORED_FAILURES.iter().find(is).filter(|_| !scenario.scored()).map(|(.., why)| *why)
}

/// Reads the requirement set and the results. The suite writes YAML and JSON, so Node.js reads them for us and
/// hands over lines of fields.
fn report(tools: &Tools, leg: Leg, revision: &str, results: &Path) -> Result<Report> {
    let script = shell::root().join("xtask").join("src").join("report.mjs");
    let mut node = tools.node();
    node.arg(script).arg(tools.suite_dir()).args([leg.name(), revision]).arg(results);
    let text = shell::output(&mut node).context("reading the results of the conformance suite")?;
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

fn print(report: &Report, leg: Leg, revision: &str) {
    let width =
        report.scenarios.iter().map(|scenario| scenario.name.len()).max().unwrap_or(0).max("scenario".len());
    println!(
        "{:<width$}  {:<20} {:>6} {:>6} {:>8} {:>7}",
        "scenario", "standing", "passed", "failed", "warnings", "skipped"
    );
    for scenario in &report.scenarios {
        let Scenario { name, standing, passed, failed, warnings, skipped, .. } = scenario;
        let note = match (scenario.passed(leg), known_failure(leg, revision, scenario)) {
            (false, Some(why)) => format!("  known: {why}"),
            (true, Some(_)) => "  passes: remove it from KNOWN_UNSCORED_FAILURES".to_owned(),
            (false, None) if !scenario.ran => "  DID NOT FINISH".to_owned(),
            (false, None) if scenario.failed == 0 => "  FAILED: too few checks".to_owned(),
            (false, None) => "  FAILED".to_owned(),
            (true, None) => String::new(),
        };
        println!("{name:<width$}  {standing:<20} {passed:>6} {failed:>6} {warnings:>8} {skipped:>7}{note}");
    }
    print_checks(report);
    for (kind, scored) in [("scored", true), ("unscored", false)] {
        let of_kind = || report.scenarios.iter().filter(|scenario| scenario.scored() == scored);
        let (passed, all) = (of_kind().filter(|scenario| scenario.passed(leg)).count(), of_kind().count());
        if all > 0 {
            println!("{} {revision}: {passed} of {all} {kind} scenarios pass", leg.name());
        }
    }
}

/// The checks that did not simply succeed.
fn print_checks(report: &Report) {
    for Check { scenario, status, id, message } in &report.checks {
        println!("  {status} {scenario} / {id}: {message}");
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
        for leg in Leg::ALL {
            let passed: Vec<bool> = report.scenarios.iter().map(|scenario| scenario.passed(leg)).collect();
            assert_eq!(passed, [true, false, false], "{leg:?}");
        }
        assert_eq!(report.checks[0].message, "it is: broken");
    }

    #[test]
    fn a_client_that_does_nothing_fails() {
        let text = "scenario\tinitialize\tscored\ttrue\t0\t0\t0\t0\n\
                    scenario\thttp-standard-headers\tscored\ttrue\t8\t0\t0\t3\n";
        let report = parse(text).expect("well-formed lines");
        for scenario in &report.scenarios {
            assert!(!scenario.passed(Leg::Client), "{}", scenario.name);
        }
    }

    #[test]
    fn a_line_of_another_shape_is_an_error() {
        assert!(parse("scenario\tping\tscored").is_err());
    }
}
