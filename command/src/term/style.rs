//! Colours.

use std::fmt::Display;
use std::io::IsTerminal;

use anstyle::{AnsiColor, Style};

/// Paints text, or leaves it alone where colours would be noise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Paint(bool);

impl Paint {
    /// For stdout: colours if it is a terminal.
    pub(crate) fn stdout() -> Paint {
        Paint(wanted(std::io::stdout().is_terminal(), |name| std::env::var(name).ok()))
    }

    /// For stderr: colours if it is a terminal.
    pub(crate) fn stderr() -> Paint {
        Paint(wanted(std::io::stderr().is_terminal(), |name| std::env::var(name).ok()))
    }

    /// Never colours.
    #[cfg(test)]
    pub(crate) fn plain() -> Paint {
        Paint(false)
    }

    /// Always colours.
    #[cfg(test)]
    pub(crate) fn colourful() -> Paint {
        Paint(true)
    }

    /// A heading.
    pub(crate) fn bold(self, text: impl Display) -> String {
        self.with(Style::new().bold(), text)
    }

    /// Something of less interest.
    pub(crate) fn dim(self, text: impl Display) -> String {
        self.with(Style::new().dimmed(), text)
    }

    /// The name of a tool, a server, a field.
    pub(crate) fn name(self, text: impl Display) -> String {
        self.with(AnsiColor::Cyan.on_default().bold(), text)
    }

    /// Something went well.
    pub(crate) fn good(self, text: impl Display) -> String {
        self.with(AnsiColor::Green.on_default(), text)
    }

    /// Something to look at.
    pub(crate) fn warning(self, text: impl Display) -> String {
        self.with(AnsiColor::Yellow.on_default(), text)
    }

    /// Something went wrong.
    pub(crate) fn bad(self, text: impl Display) -> String {
        self.with(AnsiColor::Red.on_default(), text)
    }

    fn with(self, style: Style, text: impl Display) -> String {
        if self.0 { format!("{style}{text}{style:#}") } else { text.to_string() }
    }
}

/// See <https://no-color.org>: any value of `NO_COLOR` but the empty one means no.
fn wanted(is_terminal: bool, variable: impl Fn(&str) -> Option<String>) -> bool {
    let refused = variable("NO_COLOR").is_some_and(|value| !value.is_empty());
    let unable = variable("TERM").is_some_and(|value| value == "dumb");
    is_terminal && !refused && !unable
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn term_colours_only_where_they_help() {
        let with = |name: &'static str, value: &'static str| {
            move |asked: &str| (asked == name).then(|| value.to_owned())
        };
        assert!(wanted(true, |_| None));
        assert!(wanted(true, with("NO_COLOR", "")));
        assert!(!wanted(false, |_| None));
        assert!(!wanted(true, with("NO_COLOR", "1")));
        assert!(!wanted(true, with("TERM", "dumb")));
        assert_eq!(Paint::plain().bad("x"), "x");
        assert_eq!(Paint::colourful().bold("x"), "\u{1b}[1mx\u{1b}[0m");
    }
}
