//! [`Outputs`]: who takes log lines, and how they look there.

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tracing::Event;

use super::Format;
use super::lines::{self, Around};
use super::log_file::{self, FileSettings, LogFile};
use super::recent::Recent;
use super::writer::{LogWriter, Note};
use super::{json, plain};

/// What lines about lines have as their target.
pub(super) const TARGET: &str = "tidegate::log";

/// How lines look somewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    /// Short, for somebody who looks on.
    Terminal { colours: bool },
    /// For people who read them later.
    Plain,
    /// One JSON object each.
    Json,
}

/// Who takes log lines.
pub(super) struct Outputs {
    stderr: LogWriter,
    /// Whether somebody looks on, and with colours.
    terminal: Option<bool>,
    is_json: Arc<AtomicBool>,
    /// Whether calls have spans, because a filter asks for their fields.
    has_spans: AtomicBool,
    /// A file that lines go to instead.
    file: OnceLock<LogWriter>,
    /// The latest lines, if anybody may want them.
    recent: OnceLock<Recent>,
}

impl Outputs {
    /// Standard error alone.
    pub(super) fn stderr(format: Format) -> Outputs {
        let is_terminal = std::io::stderr().is_terminal();
        let terminal = is_terminal.then(|| wants_colours(|name| std::env::var(name).ok()));
        Outputs::new(std::io::stderr(), format, terminal)
    }

    /// Whatever is standard error. `terminal` says whether it has colours, if it is one.
    pub(super) fn new(to: impl Write + Send + 'static, format: Format, terminal: Option<bool>) -> Outputs {
        let is_json = Arc::new(AtomicBool::new(format == Format::Json));
        Outputs {
            stderr: LogWriter::new(to, note(is_json.clone())),
            terminal,
            is_json,
            has_spans: true.into(),
            file: OnceLock::new(),
            recent: OnceLock::new(),
        }
    }

    /// Starts the thread that writes to standard error. Whoever looks on at a terminal reads; elsewhere somebody may have stopped to.
    pub(super) fn start(&self) -> bool {
        self.terminal.is_none() && self.stderr.start().is_ok()
    }

    pub(super) fn is_json(&self) -> bool {
        self.is_json.load(Ordering::Relaxed)
    }

    pub(super) fn has_spans(&self) -> bool {
        self.has_spans.load(Ordering::Relaxed)
    }

    /// Has calls have spans, if a filter asks for them by their fields.
    pub(super) fn follow(&self, filter: &str) {
        let has_spans = filter.contains('[');
        self.has_spans.store(has_spans, Ordering::Relaxed);
        match has_spans {
            true => tidegate_service::with_spans(),
            false => tidegate_service::without_spans(),
        }
    }

    /// Keeps the latest lines from now on, as many as these bytes hold.
    pub(super) fn keep_recent(&self, bytes: usize) {
        self.recent.get_or_init(|| Recent::new(bytes));
    }

    pub(super) fn recent(&self) -> Option<&Recent> {
        self.recent.get()
    }

    /// How lines look on standard error.
    fn look(&self) -> Look {
        match (self.is_json(), self.terminal) {
            (true, _) => Look::Json,
            (false, Some(colours)) => Look::Terminal { colours },
            (false, None) => Look::Plain,
        }
    }

    /// How lines look in a file.
    fn look_in_file(&self) -> Look {
        if self.is_json() { Look::Json } else { Look::Plain }
    }

    /// Has another look from now on.
    pub(super) fn set_format(&self, format: Format) {
        self.is_json.store(format == Format::Json, Ordering::Relaxed);
    }

    /// Has lines go to a file from now on. Standard error gets them only if somebody looks on there.
    pub(super) fn write_to(&self, settings: FileSettings) -> io::Result<()> {
        log_file::check(&settings.path)?;
        let file = LogFile::new(settings, note(self.is_json.clone()));
        let writer = LogWriter::new(file, note(self.is_json.clone()));
        writer.start()?;
        let is_first = self.file.set(writer).is_ok();
        is_first.then_some(()).ok_or_else(|| io::Error::other("log lines go to a file already"))
    }

    /// Says something to everybody. Lines are made in `line`.
    pub(super) fn say(&self, event: &Event<'_>, around: &[Around], line: &mut String) {
        // What a file cannot be told about itself.
        let is_about_lines = event.metadata().target() == TARGET;
        let file = self.file.get();
        if let Some(file) = file.filter(|_| !is_about_lines) {
            lines::make(line, self.look_in_file(), event, around);
            file.leave(line);
        }
        if file.is_none() || self.terminal.is_some() || is_about_lines {
            lines::make(line, self.look(), event, around);
            self.stderr.say(line);
        }
        if let Some(recent) = self.recent() {
            recent.keep(event, around);
        }
    }

    /// Hands the line about a call, given in pieces, to where lines go that nobody looks on at.
    pub(super) fn gather(&self, pieces: &[&str]) {
        self.file.get().unwrap_or(&self.stderr).gather(pieces);
    }

    /// Has everything written, but waits no longer than this for each place.
    pub(super) fn flush(&self, patience: Duration) {
        // What happens to the file is said on standard error.
        if let Some(file) = self.file.get() {
            file.flush(patience);
        }
        self.stderr.flush(patience);
    }
}

/// What makes lines that no event says, in the format that is in force then.
fn note(is_json: Arc<AtomicBool>) -> Note {
    Box::new(move |level, message| match is_json.load(Ordering::Relaxed) {
        true => json::note(level, TARGET, message),
        false => plain::note(level, message),
    })
}

/// See <https://no-color.org>: any value of `NO_COLOR` but the empty one means no.
fn wants_colours(variable: impl Fn(&str) -> Option<String>) -> bool {
    let refused = variable("NO_COLOR").is_some_and(|value| !value.is_empty());
    !refused && variable("TERM").is_none_or(|value| value != "dumb")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_only_where_they_are_wanted() {
        let with = |name: &'static str, value: &'static str| {
            move |asked: &str| (asked == name).then(|| value.to_owned())
        };
        assert!(wants_colours(|_| None) && wants_colours(with("NO_COLOR", "")));
        assert!(!wants_colours(with("NO_COLOR", "1")) && !wants_colours(with("TERM", "dumb")));
    }
}
