//! Targets as text for people and logs, without their secrets.

use std::borrow::Cow;
use std::fmt;

use tidegate_service::secrets::register_setting;
use url::Url;

use super::{Command, Remote, Target, assignment, scheme};

/// What stands where a secret was.
const HIDDEN: &str = "***";

impl Target {
    /// Makes its secrets known, so that no log line and no error shows them: values of variables and headers, the password
    /// and the query of an address, and what looks like a secret among the arguments.
    pub(crate) fn keep_secrets(&self) {
        match self {
            Target::Command(command) => {
                named(command.env.iter()).for_each(register_setting);
                let mut previous = "";
                for arg in &command.args {
                    if argument(previous, arg) == HIDDEN {
                        register_setting(arg);
                    } else if let Some((_, value)) =
                        arg.split_once('=').filter(|_| argument(previous, arg).ends_with(HIDDEN))
                    {
                        register_setting(value);
                    }
                    previous = arg;
                }
            }
            Target::Url(remote) => {
                named(remote.headers.iter()).for_each(register_setting);
                register_setting(remote.url.as_str());
            }
            Target::Streams(_) | Target::Local(_) => {}
        }
    }
}

/// The values whose names or looks say that they are secrets. `NODE_ENV=production` is none.
fn named<'a>(all: impl Iterator<Item = (&'a String, &'a String)>) -> impl Iterator<Item = &'a str> {
    all.filter(|(name, value)| is_secret(name) || is_random(value)).map(|(_, value)| value.as_str())
}

/// Whether a value looks like a key: long, one word, letters and digits mixed.
fn is_random(value: &str) -> bool {
    let mixed =
        value.contains(|c: char| c.is_ascii_digit()) && value.contains(|c: char| c.is_ascii_alphabetic());
    value.len() >= 20 && mixed && !value.contains(|c: char| c.is_whitespace() || c == '/')
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Command(command) => command.fmt(f),
            Target::Url(remote) => remote.fmt(f),
            Target::Streams(_) => f.write_str("streams"),
            Target::Local(_) => f.write_str("local"),
        }
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for name in self.env.keys() {
            write!(f, "{}={HIDDEN} ", quoted(name))?;
        }
        f.write_str(&quoted(&self.program))?;
        let mut previous = "";
        for arg in &self.args {
            write!(f, " {}", quoted(&argument(previous, arg)))?;
            previous = arg;
        }
        Ok(())
    }
}

impl fmt::Display for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&address(&self.url))
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Command(command) => fmt::Debug::fmt(command, f),
            Target::Url(remote) => fmt::Debug::fmt(remote, f),
            Target::Streams(_) => f.write_str("Streams"),
            Target::Local(_) => f.write_str("Local"),
        }
    }
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Command({self}")?;
        if let Some(cwd) = &self.cwd {
            write!(f, ", in {cwd:?}")?;
        }
        f.write_str(")")
    }
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote")
            .field("url", &format_args!("{self}"))
            .field("headers", &self.headers.keys().collect::<Vec<_>>())
            .field("sse", &self.sse)
            .finish()
    }
}

/// An address without user, password, query and fragment.
pub(crate) fn address(url: &Url) -> String {
    let mut bare = url.clone();
    // These fail only for addresses that have no host, and so none of it either.
    let _ = bare.set_username("");
    let _ = bare.set_password(None);
    bare.set_query(None);
    bare.set_fragment(None);
    let mut text = bare.to_string();
    if url.query().is_some() {
        text.push('?');
        text.push_str(HIDDEN);
    }
    text
}

/// An argument as it may be seen: `--token abc`, `-e NAME=abc`, `Authorization: abc` and `postgres://me:abc@db` keep
/// everything but the `abc`. A guess, and therefore generous.
fn argument<'a>(previous: &str, arg: &'a str) -> Cow<'a, str> {
    if previous.starts_with('-') && !previous.contains('=') && is_secret(previous) && !arg.starts_with("--") {
        return match arg.split_once(':') {
            // A header keeps its name.
            Some((name, _)) if is_header(previous) => format!("{name}: {HIDDEN}").into(),
            _ => HIDDEN.into(),
        };
    }
    if let Some((flag, value)) = arg.split_once('=').filter(|(name, _)| name.starts_with('-')) {
        // Either the option is secret, or the value is something like NAME=abc.
        if is_secret(flag) {
            return format!("{flag}={HIDDEN}").into();
        }
        return format!("{flag}={}", argument("", value)).into();
    }
    if let Some((name, _)) = assignment(arg).filter(|(name, _)| {
        is_secret(name)
            || matches!(previous, "-e" | "--env")
            || !name.contains(|c: char| c.is_ascii_lowercase())
    }) {
        return format!("{name}={HIDDEN}").into();
    }
    if scheme(arg).is_some()
        && let Ok(url) = Url::parse(arg)
    {
        return address(&url).into();
    }
    arg.into()
}

fn is_header(flag: &str) -> bool {
    matches!(flag, "-H" | "--header" | "--headers")
}

/// Whether an option or variable of this name is likely to hold a secret.
fn is_secret(name: &str) -> bool {
    const WORDS: &[&str] =
        &["token", "secret", "password", "passwd", "pwd", "key", "auth", "credential", "bearer", "cookie"];
    let lower = name.to_ascii_lowercase();
    is_header(name) || WORDS.iter().any(|word| lower.contains(word))
}

/// The word as a shell would need it; control characters as escapes, because this goes to terminals.
fn quoted(word: &str) -> Cow<'_, str> {
    if word.contains(char::is_control) {
        return format!("{word:?}").into();
    }
    if word.contains(HIDDEN) && !word.contains(char::is_whitespace) {
        return word.into();
    }
    shlex::try_quote(word).unwrap_or(Cow::Borrowed(word))
}
