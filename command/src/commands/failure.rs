//! [`Failure`]: why a command did not do what it was asked for: a sentence, what to do next, and the exit code.

use std::fmt::Display;
use std::io::Write;

use serde_json::{Value, json};
use tidegate::protocol::{Error, Method, Revision, Symbol};
use tidegate_client::{AppError, TargetError};

use super::exit::Exit;
use crate::term::args::ArgsError;
use crate::term::clean;
use crate::term::style::Paint;

/// Why a command failed.
#[derive(Debug)]
pub(crate) struct Failure {
    /// What the process ends with.
    pub(crate) exit: Exit,
    sentence: String,
    /// What to do next.
    advice: Option<String>,
    /// The last lines that the server's process wrote to standard error.
    stderr: Vec<String>,
    error: Option<Box<AppError>>,
}

impl Failure {
    /// A failure with a code of the command itself.
    pub(crate) fn new(exit: Exit, sentence: impl Display) -> Failure {
        Failure { exit, sentence: sentence.to_string(), advice: None, stderr: Vec::new(), error: None }
    }

    /// Something about the command line is wrong.
    pub(crate) fn usage(sentence: impl Display) -> Failure {
        Failure::new(Exit::Usage, sentence)
    }

    /// Ctrl-C.
    pub(crate) fn cancelled() -> Failure {
        Failure::new(Exit::Cancelled, "cancelled")
    }

    /// An error that did not come out of a client.
    pub(crate) fn of(error: &Error) -> Failure {
        AppError::from_error(error, &Method::Initialize, Default::default(), Revision::INTERNAL).into()
    }

    /// The same, with another piece of advice.
    pub(crate) fn advise(mut self, advice: impl Display) -> Failure {
        self.advice = Some(advice.to_string());
        self
    }

    /// The same, with what the server's process wrote last, where those can be the reason.
    pub(crate) fn with_stderr(mut self, lines: Vec<String>) -> Failure {
        let known = matches!(lines.as_slice(), [only] if self.sentence.contains(only.trim()));
        if matches!(self.exit, Exit::Unavailable | Exit::TimedOut) && !known {
            self.stderr = lines;
        }
        self
    }

    /// What it is to the rest of Tidegate.
    pub(crate) fn symbol(&self) -> Option<Symbol> {
        self.error.as_ref().map(|error| error.symbol)
    }

    /// One line: the sentence, and the code in parentheses.
    pub(crate) fn line(&self) -> String {
        let sentence = clean::line(&self.sentence);
        match &self.error {
            Some(error) => format!("{sentence} ({})", error.code),
            None => sentence,
        }
    }

    /// The advice, if there is any.
    pub(crate) fn advice(&self) -> Option<&str> {
        self.advice.as_deref()
    }

    /// What the server's process wrote last.
    pub(crate) fn stderr(&self) -> &[String] {
        &self.stderr
    }

    /// For scripts.
    pub(crate) fn to_json(&self) -> Value {
        let mut object = match &self.error {
            Some(error) => serde_json::to_value(error).unwrap_or_else(|_| json!({})),
            None => json!({}),
        };
        object["message"] = self.sentence.clone().into();
        object["exitCode"] = self.exit.number().into();
        if let Some(advice) = &self.advice {
            object["suggestedAction"] = advice.clone().into();
        }
        if !self.stderr.is_empty() {
            object["stderr"] = self.stderr.clone().into();
        }
        json!({ "error": object })
    }

    /// Tells the user, on standard error.
    pub(crate) fn show(&self) {
        let paint = Paint::stderr();
        let mut out = std::io::stderr().lock();
        // Nobody is there to be told that this failed too.
        let _ = if self.exit == Exit::Cancelled {
            writeln!(out, "{}", self.line())
        } else {
            writeln!(out, "{} {}", paint.bad("error:"), self.line())
        };
        if let Some(advice) = &self.advice {
            let _ = writeln!(out, "  {}", clean::text(advice).replace('\n', "\n  "));
        }
        drop(out);
        self.show_stderr();
    }

    /// Shows what the server's process wrote, on standard error.
    pub(crate) fn show_stderr(&self) {
        let (paint, mut out) = (Paint::stderr(), std::io::stderr().lock());
        if !self.stderr.is_empty() {
            let _ = writeln!(out, "  The server wrote to standard error:");
            for line in &self.stderr {
                let _ = writeln!(out, "  {} {}", paint.dim("|"), clean::text(line));
            }
        }
    }
}

impl From<AppError> for Failure {
    fn from(error: AppError) -> Failure {
        let sentence =
            if error.message.is_empty() { error.user_message.to_string() } else { error.message.clone() };
        Failure {
            exit: exit_of(&error),
            sentence,
            advice: advice(&error),
            stderr: Vec::new(),
            error: Some(Box::new(error)),
        }
    }
}

impl From<TargetError> for Failure {
    fn from(error: TargetError) -> Failure {
        Failure::usage(error)
    }
}

impl From<ArgsError> for Failure {
    fn from(error: ArgsError) -> Failure {
        Failure::usage(error)
    }
}

fn exit_of(error: &AppError) -> Exit {
    match error.symbol {
        Symbol::Unauthorized => Exit::LoginNeeded,
        Symbol::Timeout => Exit::TimedOut,
        // A number came with it, so the server is there and has said so.
        _ if error.original_code.is_some() => Exit::Refused,
        Symbol::Unavailable | Symbol::CircuitOpen | Symbol::RateLimited => Exit::Unavailable,
        _ => Exit::Refused,
    }
}

fn advice(error: &AppError) -> Option<String> {
    let advice = match error.symbol {
        Symbol::Unavailable | Symbol::CircuitOpen if error.original_code.is_none() => {
            "For details, run tidegate doctor with the same target."
        }
        // It has said which setting to raise.
        Symbol::Timeout if error.message.contains(" in the configuration") => return None,
        Symbol::Timeout => "Allow more time with --timeout, such as --timeout 5m.",
        Symbol::ToolNotFound => "To list the tools, run tidegate tools with the same target.",
        Symbol::PromptNotFound => "To list the prompts, run tidegate prompts with the same target.",
        Symbol::ResourceNotFound => "To list the resources, run tidegate resources with the same target.",
        Symbol::MethodNotFound => {
            "To see what the server supports, run tidegate discover with the same target."
        }
        Symbol::Unauthorized if error.message.contains("tidegate login") => {
            "If the server takes an API key instead, pass it with --header 'Authorization: Bearer KEY'."
        }
        Symbol::Unauthorized => {
            "Log in with tidegate login URL, or pass an API key with --header 'Authorization: Bearer KEY'."
        }
        Symbol::UnsupportedVersion => {
            "Leave out --era and --protocol-version to use what the server supports."
        }
        Symbol::MissingCapability => {
            "The server requires a client capability that this command does not have."
        }
        Symbol::RateLimited => return Some(wait(error)),
        Symbol::UrlElicitationRequired => return pages(error),
        _ => return None,
    };
    Some(advice.to_owned())
}

fn wait(error: &AppError) -> String {
    match error.retry_after {
        Some(time) => format!("Try again in {} s.", time.as_secs().max(1)),
        None => "Wait a moment and try again.".to_owned(),
    }
}

/// 2025-11-25 client/elicitation: the error names the pages to visit.
fn pages(error: &AppError) -> Option<String> {
    let data: Value = error.data.as_ref()?.to().ok()?;
    let asked = data.get("elicitations")?.as_array()?.iter();
    let pages: Vec<&str> = asked.filter_map(|page| page.get("url")?.as_str()).collect();
    Some(format!("If you trust the server, visit this page, then try again:\n{}", pages.join("\n")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(error: Error) -> Failure {
        AppError::from_error(&error, &Method::ToolsCall, Default::default(), Revision::INTERNAL).into()
    }

    #[test]
    fn exit_codes_follow_from_errors() {
        for (error, exit) in [
            (Error::new(Symbol::Unavailable, "x"), Exit::Unavailable),
            (Error::new(Symbol::Unavailable, "x").with_code(-32000), Exit::Refused),
            (Error::new(Symbol::CircuitOpen, "x"), Exit::Unavailable),
            (Error::new(Symbol::Timeout, "x"), Exit::TimedOut),
            (Error::new(Symbol::Unauthorized, "x"), Exit::LoginNeeded),
            (Error::new(Symbol::ToolNotFound, "x"), Exit::Refused),
            (Error::new(Symbol::Internal, "x").with_code(-31999), Exit::Refused),
        ] {
            assert_eq!(failure(error.clone()).exit, exit, "{error:?}");
        }
    }

    #[test]
    fn one_clean_line_with_the_code() {
        let failure = failure(Error::new(Symbol::Timeout, "too\nslow\u{1b}[2J"));
        assert_eq!(failure.line(), "too slow (E202)");
        assert_eq!(failure.to_json()["error"]["exitCode"], 6);
    }
}
