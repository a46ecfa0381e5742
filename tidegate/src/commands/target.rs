//! Which server a command talks to, and on which terms: the options that all client commands have.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};
use tidegate::protocol::Revision;
use tidegate_client::{EraChoice, Options, Target};

use super::failure::Failure;
use super::output;

/// The words of the command line: which server, and what is wanted of it.
#[derive(Args, Debug, Clone)]
pub(crate) struct Words {
    /// The server (see below), then what the command wants of it.
    #[arg(value_name = "TARGET", hide = true)]
    words: Vec<String>,

    /// The server's program and its arguments, instead of TARGET.
    #[arg(last = true, value_name = "COMMAND", hide = true)]
    command: Vec<String>,
}

/// A server that was found.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    /// Its name.
    pub(crate) name: String,
    /// What to connect to.
    pub(crate) target: Target,
    /// The file that it is an entry of.
    pub(crate) file: Option<PathBuf>,
}

/// Options that all client commands have.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Connection")]
pub(crate) struct Common {
    /// An mcpServers file; TARGET is then the name of an entry in it.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// A header for every request, such as 'Authorization: Bearer KEY'. May be given more than once.
    #[arg(long = "header", short = 'H', value_name = "NAME: VALUE")]
    headers: Vec<String>,

    /// A variable for the server's program. May be given more than once.
    #[arg(long = "env", short = 'e', value_name = "NAME=VALUE")]
    env: Vec<String>,

    /// How long the server may take for each thing, such as 500ms, 30s or 5m. [default: 60s]
    #[arg(long, value_name = "TIME", value_parser = time)]
    timeout: Option<Duration>,

    /// Which era of the protocol to speak.
    #[arg(long, value_enum, default_value = "auto")]
    era: Era,

    /// The revision of the protocol to offer, such as 2025-06-18.
    #[arg(long, value_name = "DATE", value_parser = revision)]
    protocol_version: Option<Revision>,

    /// Log in with the browser if the server wants a login.
    #[arg(long)]
    pub(crate) login: bool,

    /// JSON for programs instead of text for people.
    #[arg(long)]
    pub(crate) json: bool,

    /// Tell more: what the server logs and writes to standard error. Twice: also what is exchanged.
    #[arg(short = 'v', long = "verbose", action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Era {
    /// Whichever the server speaks, the modern one first.
    Auto,
    /// 2025-11-25 and earlier.
    Legacy,
    /// 2026-07-28.
    Modern,
}

fn time(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(time) if time.is_zero() => Err("it must be longer than nothing".to_owned()),
        Ok(time) => Ok(time),
        Err(_) => Err("write a time with its unit, such as 500ms, 30s or 5m".to_owned()),
    }
}

fn revision(text: &str) -> Result<Revision, String> {
    text.parse().map_err(|()| format!("there are {}", Revision::ALL.map(Revision::as_str).join(", ")))
}

impl Words {
    /// The server that is meant, and the words that follow it.
    pub(crate) fn split(self, common: &Common) -> Result<(Place, Vec<String>), Failure> {
        let Words { mut words, command } = self;
        let place = if command.is_empty() {
            let first = if words.is_empty() { String::new() } else { words.remove(0) };
            find(&first, common)?
        } else if common.config.is_some() {
            return Err(Failure::usage(
                "--config names a server's file and -- its command line: use one of them",
            ));
        } else {
            let text = shlex::try_join(command.iter().map(String::as_str)).map_err(|_| {
                Failure::usage("the command line holds a character that no command line can hold")
            })?;
            let target = Target::parse(&text)?;
            Place { name: target.name(), target, file: None }
        };
        Ok((common.applied(place)?, words))
    }

    /// All words, each a server of its own.
    pub(crate) fn each(self) -> (Vec<String>, Vec<String>) {
        (self.words, self.command)
    }
}

/// Finds a server by a word of the command line.
pub(crate) fn find(word: &str, common: &Common) -> Result<Place, Failure> {
    let found = Target::find(word, common.config.as_deref())?;
    if let Some(file) = &found.file {
        tracing::info!(server = found.name, file = %file.display(), "Server taken from file");
    }
    for note in &found.notes {
        tracing::info!(server = found.name, "{note}");
    }
    if found.disabled {
        output::note(&format!("note: the file says that {:?} is disabled; using it anyway", found.name));
    }
    Ok(Place { name: found.name, target: found.target, file: found.file })
}

impl Common {
    /// Adds the variables and headers of the command line to a server.
    pub(crate) fn applied(&self, mut place: Place) -> Result<Place, Failure> {
        match &mut place.target {
            Target::Command(_) if !self.headers.is_empty() => {
                return Err(Failure::usage(
                    "--header is for servers at an address, and this one is a program: use --env",
                ));
            }
            Target::Command(command) => {
                for pair in &self.env {
                    // What follows the name may be a secret, so it is not repeated.
                    let Some((name, value)) = pair.split_once('=').filter(|(name, _)| !name.is_empty())
                    else {
                        return Err(Failure::usage("--env wants NAME=value"));
                    };
                    command.env.insert(name.to_owned(), value.to_owned());
                }
            }
            Target::Url(_) if !self.env.is_empty() => {
                return Err(Failure::usage(
                    "--env is for servers that are programs, and this one is at an address: use --header",
                ));
            }
            Target::Url(remote) => {
                for header in &self.headers {
                    let Some((name, value)) = header.split_once(':').filter(|(name, _)| is_token(name))
                    else {
                        return Err(Failure::usage("--header wants 'Name: value'"));
                    };
                    remote.headers.retain(|own, _| !own.eq_ignore_ascii_case(name));
                    remote.headers.insert(name.to_owned(), value.trim().to_owned());
                }
            }
            _ => {}
        }
        Ok(place)
    }

    /// The file that was given, if any was.
    pub(crate) fn config(&self) -> Option<&Path> {
        self.config.as_deref()
    }

    /// The time that was given, if any was.
    pub(crate) fn timeout(&self) -> Option<Duration> {
        self.timeout
    }

    /// Whether the user wants a certain era or revision and no other.
    pub(crate) fn insists(&self) -> bool {
        self.protocol_version.is_some() || !matches!(self.era, Era::Auto)
    }

    /// How the client behaves.
    pub(crate) fn options(&self, name: &str) -> Options {
        let mut options = Options::from_env();
        options.name = Some(name.to_owned());
        if let Some(revision) = self.protocol_version {
            options.offer_revision(revision);
            if revision.is_modern() {
                options.era = EraChoice::Modern;
            }
        }
        match self.era {
            Era::Auto => {}
            Era::Legacy => options.era = EraChoice::Legacy,
            Era::Modern => options.era = EraChoice::Modern,
        }
        if let Some(timeout) = self.timeout {
            options.timeout = timeout;
            options.init_timeout = timeout;
            options.probe_timeout = options.probe_timeout.min(timeout / 2);
            options.connect_timeout = options.connect_timeout.min(timeout);
            options.max_timeout = options.max_timeout.max(timeout);
        }
        options
    }

    /// Which log lines are wanted, if the command line says so.
    pub(crate) fn log_level(&self) -> Option<&'static str> {
        match self.verbose {
            0 => None,
            1 => Some("info"),
            2 => Some("debug"),
            _ => Some("trace"),
        }
    }
}

/// RFC 9110 section 5.6.2.
fn is_token(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}
