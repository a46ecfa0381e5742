//! [`Report`]: what is known about a server, and what is wrong with it.

use std::time::Duration;

use serde_json::{Value, json};

use crate::commands::failure::Failure;
use crate::term::clean;
use crate::term::style::Paint;
use crate::term::wrap::indented;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// Does not work.
    Broken,
    /// Works with some and not with others.
    Warning,
    /// Good to know.
    Note,
}

/// Something about a server, and how to fix it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    level: Level,
    /// What it is about, such as tools by their names. Empty for the server as a whole.
    about: Vec<String>,
    what: String,
    /// How many more things it is about than are named.
    more: usize,
    /// How to fix it.
    fix: String,
}

/// More findings than this help nobody, and each new one is compared with all of them.
const MOST_FINDINGS: usize = 200;
/// How many things of one finding are named.
const MOST_NAMED: usize = 100;

/// What a server offers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counts {
    pub(crate) tools: Option<usize>,
    pub(crate) resources: Option<usize>,
    pub(crate) templates: Option<usize>,
    pub(crate) prompts: Option<usize>,
}

/// What is known about a server so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Report {
    /// What the user calls it.
    pub(crate) name: String,
    /// What it is, without secrets.
    pub(crate) target: String,
    /// The file that names it.
    pub(crate) file: Option<String>,
    /// Its own name and version.
    pub(crate) called: String,
    pub(crate) era: Option<&'static str>,
    pub(crate) revision: Option<String>,
    pub(crate) transport: Option<&'static str>,
    pub(crate) capabilities: Vec<String>,
    pub(crate) connected_in: Option<Duration>,
    pub(crate) ping: Option<Duration>,
    /// Whether it speaks the other era too.
    pub(crate) both_eras: bool,
    pub(crate) counts: Counts,
    /// Whether no other server was being started at the same time.
    pub(crate) started_alone: bool,
    pub(crate) findings: Vec<Finding>,
    /// How many findings were too many.
    pub(crate) left_out: usize,
    /// The last lines of its standard error, if it failed.
    pub(crate) stderr: Vec<String>,
    /// Whether it was not even tried, and that is how it should be.
    pub(crate) unchecked: bool,
}

impl Report {
    /// A server that there is nothing to say about but this.
    pub(crate) fn failed(name: &str, failure: &Failure) -> Report {
        let mut report = Report { name: name.to_owned(), ..Report::default() };
        report.failure("", failure);
        report
    }

    /// A server that is not tried, and why.
    pub(crate) fn unchecked(name: &str, file: &str, what: impl Into<String>, fix: &str) -> Report {
        let (name, file) = (name.to_owned(), Some(file.to_owned()));
        let mut report = Report { name, file, unchecked: true, ..Report::default() };
        report.add(Level::Note, "", what, fix);
        report
    }

    /// Adds a finding. Those that say the same of several things become one.
    pub(crate) fn add(&mut self, level: Level, about: &str, what: impl Into<String>, fix: impl Into<String>) {
        let (what, fix) = (clean::line(&what.into()), fix.into());
        let about = clean::name(about);
        let is_full = self.findings.len() >= MOST_FINDINGS;
        let same =
            self.findings.iter_mut().find(|own| own.level == level && own.what == what && own.fix == fix);
        match same {
            Some(_) if about.is_empty() => {}
            Some(own) if own.about.len() >= MOST_NAMED => own.more += 1,
            Some(own) if own.about.contains(&about) => {}
            Some(own) => own.about.push(about),
            None if is_full => self.left_out += 1,
            None => {
                let about = if about.is_empty() { Vec::new() } else { vec![about] };
                self.findings.push(Finding { level, about, what, more: 0, fix });
            }
        }
    }

    /// Adds something that did not work.
    pub(crate) fn failure(&mut self, about: &str, failure: &Failure) {
        self.add(Level::Broken, about, failure.line(), failure.advice().unwrap_or_default());
        if !failure.stderr().is_empty() {
            self.stderr = failure.stderr().to_vec();
        }
    }

    /// Whether anything does not work.
    pub(crate) fn is_broken(&self) -> bool {
        self.findings.iter().any(|finding| finding.level == Level::Broken)
    }

    /// The worst first.
    pub(crate) fn sort(&mut self) {
        self.findings.sort_by_key(|finding| finding.level);
    }

    /// For scripts.
    pub(crate) fn to_json(&self) -> Value {
        let ms = |time: Option<Duration>| time.map(|time| (time.as_secs_f64() * 1e4).round() / 10.0);
        let findings: Vec<Value> = self
            .findings
            .iter()
            .map(|finding| {
                json!({
                    "level": match finding.level {
                        Level::Broken => "broken",
                        Level::Warning => "warning",
                        Level::Note => "note",
                    },
                    "about": finding.about, "what": finding.what, "fix": finding.fix,
                })
            })
            .collect();
        json!({
            "name": self.name, "target": self.target, "file": self.file, "ok": !self.is_broken(),
            "checked": !self.unchecked,
            "server": self.called, "era": self.era, "bothEras": self.both_eras, "revision": self.revision,
            "transport": self.transport, "capabilities": self.capabilities,
            "connectMs": ms(self.connected_in), "pingMs": ms(self.ping),
            "tools": self.counts.tools, "resources": self.counts.resources,
            "resourceTemplates": self.counts.templates, "prompts": self.counts.prompts,
            "findings": findings, "moreFindings": self.left_out, "stderr": self.stderr,
        })
    }

    /// For people.
    pub(crate) fn show(&self, width: Option<usize>, paint: Paint) -> String {
        let worst = self.findings.iter().map(|finding| finding.level).min();
        let mark = match worst {
            Some(Level::Broken) => paint.bad("✗"),
            Some(Level::Warning) => paint.warning("!"),
            _ if self.unchecked => paint.dim("-"),
            _ => paint.good("✓"),
        };
        let mut out = format!("{mark} {}", paint.bold(clean::name(&self.name)));
        if !self.target.is_empty() && self.target != self.name {
            out.push_str(&paint.dim(format!("  {}", clean::place(&self.target))));
        }
        if let Some(file) = &self.file {
            out.push_str(&paint.dim(format!("  (from {})", clean::line(file))));
        }
        out.push('\n');
        for line in self.facts() {
            out.push_str(&format!("{}\n", indented(&clean::line(&line), "    ", width)));
        }
        for finding in &self.findings {
            out.push_str(&finding.show(width, paint));
        }
        if self.left_out > 0 {
            out.push_str(&format!("    and {} more findings\n", self.left_out));
        }
        if !self.stderr.is_empty() {
            out.push_str("    The server wrote to standard error:\n");
            for line in &self.stderr {
                out.push_str(&format!("    {} {}\n", paint.dim("|"), clean::text(line)));
            }
        }
        out
    }

    /// What is known, in a few lines.
    fn facts(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if let (Some(era), Some(revision), Some(transport)) = (self.era, &self.revision, self.transport) {
            let eras = if self.both_eras { "both eras" } else { era };
            let called = clean::name(&self.called);
            let called = if called.is_empty() { called } else { format!("{called}: ") };
            let over =
                if transport == "local" { ", built in".to_owned() } else { format!(" over {transport}") };
            lines.push(format!("{called}{revision} ({eras}){over}"));
        }
        let mut times = Vec::new();
        if let Some(time) = self.connected_in {
            times.push(format!("connected in {}", short(time)));
        }
        if let Some(time) = self.ping {
            times.push(format!("ping {}", short(time)));
        }
        if !times.is_empty() {
            lines.push(times.join(", "));
        }
        let count = |number: Option<usize>, one: &str, many: &str| match number {
            Some(1) => Some(format!("1 {one}")),
            Some(number) => Some(format!("{number} {many}")),
            None => None,
        };
        let counts = [
            count(self.counts.tools, "tool", "tools"),
            count(self.counts.resources, "resource", "resources"),
            count(self.counts.templates.filter(|n| *n > 0), "resource template", "resource templates"),
            count(self.counts.prompts, "prompt", "prompts"),
        ];
        let counts: Vec<String> = counts.into_iter().flatten().collect();
        if !counts.is_empty() {
            lines.push(counts.join(", "));
        }
        if !self.capabilities.is_empty() {
            let capabilities: Vec<String> = self.capabilities.iter().map(|name| clean::name(name)).collect();
            lines.push(clean::place(&format!("capabilities: {}", capabilities.join(", "))));
        }
        lines
    }
}

impl Finding {
    fn show(&self, width: Option<usize>, paint: Paint) -> String {
        const MOST: usize = 5;
        let mark = match self.level {
            Level::Broken => paint.bad("✗"),
            Level::Warning => paint.warning("!"),
            Level::Note => paint.dim("·"),
        };
        let mut about = self.about.iter().take(MOST).cloned().collect::<Vec<_>>().join(", ");
        let more = self.about.len().saturating_sub(MOST) + self.more;
        if more > 0 {
            about.push_str(&format!(" and {more} more"));
        }
        let what = if about.is_empty() { self.what.clone() } else { format!("{about}: {}", self.what) };
        let what = indented(&what, "      ", width);
        let mut out = format!("    {mark} {}\n", what.trim_start());
        if !self.fix.is_empty() {
            let fix = indented(&clean::line(&self.fix), "        ", width);
            out.push_str(&format!("      {} {}\n", paint.dim("→"), fix.trim_start()));
        }
        out
    }
}

/// All reports in one line.
pub(super) fn summary(reports: &[Report], paint: Paint) -> String {
    let count = |is_it: &dyn Fn(&Report) -> bool| reports.iter().filter(|report| is_it(report)).count();
    let (broken, unchecked) = (count(&Report::is_broken), count(&|report| report.unchecked));
    let fine = reports.len() - broken - unchecked;
    let servers = if reports.len() == 1 { "server" } else { "servers" };
    let mut parts = vec![format!("{fine} {}", if fine == 1 { "works" } else { "work" })];
    if broken > 0 {
        parts.push(paint.bad(format!("{broken} {}", if broken == 1 { "does not" } else { "do not" })));
    }
    if unchecked > 0 {
        parts.push(format!("{unchecked} not checked"));
    }
    format!("{} {servers}: {}", reports.len(), parts.join(", "))
}

/// A time as people say it.
fn short(time: Duration) -> String {
    match time {
        time if time < Duration::from_millis(1) => format!("{} µs", time.as_micros()),
        time if time < Duration::from_millis(10) => format!("{:.1} ms", time.as_secs_f64() * 1e3),
        time if time < Duration::from_secs(1) => format!("{} ms", time.as_millis()),
        time => format!("{:.1} s", time.as_secs_f64()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_counts_them() {
        let good = || Report { name: "a".to_owned(), ..Report::default() };
        let bad = || Report::failed("b", &Failure::usage("no"));
        let off = || Report::unchecked("c", "f", "disabled: x", "");
        for (reports, said) in [
            (vec![good()], "1 server: 1 works"),
            (vec![good(), good(), bad(), off()], "4 servers: 2 work, 1 does not, 1 not checked"),
            (vec![bad(), bad()], "2 servers: 0 work, 2 do not"),
        ] {
            assert_eq!(summary(&reports, Paint::plain()), said);
        }
        assert_eq!(off().show(None, Paint::plain()), "- c  (from f)\n    · disabled: x\n");
    }

    #[test]
    fn long_names_are_cut() {
        let mut report = Report { name: "n".repeat(5_000), ..Report::default() };
        report.target = "t".repeat(50_000);
        report.called = "c".repeat(5_000);
        report.add(Level::Warning, &format!("tool {}", "x".repeat(5_000)), "no description", "write one");
        let shown = report.show(None, Paint::plain());
        assert!(shown.len() < 1_000 && shown.contains("nnn…") && shown.contains("xxx…:"), "{shown}");
    }

    #[test]
    fn findings_that_say_the_same_are_one() {
        let mut report = Report { name: "demo".to_owned(), ..Report::default() };
        for tool in ["a", "b", "a", "c", "d", "e", "f"] {
            report.add(Level::Warning, &format!("tool {tool}"), "no description", "write one");
        }
        report.add(Level::Broken, "", "bad\u{1b}[2J", "");
        report.sort();
        assert_eq!(
            report.show(None, Paint::plain()),
            "✗ demo\n    ✗ bad\n    ! tool a, tool b, tool c, tool d, tool e and 1 more: no description\n      → write one\n"
        );
        assert!(report.is_broken());
    }
}
