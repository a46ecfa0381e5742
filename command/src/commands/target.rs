//! The options that all client commands have: which server they talk to, and how.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};
use tidegate::protocol::Revision;
use tidegate_client::{ClientSettings, EntrySettings, EraChoice, Target};

use super::exit::Exit;
use super::failure::Failure;
use super::header::{self, Header};
use super::resolve::{self, ResolvedServer};

/// The words of the command line: which server, and what is wanted of it.
#[derive(Args, Debug, Clone)]
pub(crate) struct TargetArgs {
    /// The server (see below), then what the command wants of it.
    #[arg(value_name = "TARGET", hide = true)]
    words: Vec<String>,

    /// The server's program and its arguments, instead of TARGET.
    #[arg(last = true, value_name = "COMMAND", hide = true)]
    command: Vec<String>,
}

/// Options that all client commands have.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Connection")]
pub(crate) struct ConnectionArgs {
    /// A tidegate.toml or mcpServers file; TARGET is then the name of a server in it.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// A header for every request, such as 'Authorization: Bearer KEY'. Can be repeated.
    #[arg(long = "header", short = 'H', value_name = "NAME: VALUE")]
    headers: Vec<String>,

    /// An environment variable for the server's program. Can be repeated.
    #[arg(long = "env", short = 'e', value_name = "NAME=VALUE")]
    env: Vec<String>,

    /// How long to wait for the server to start, and for each response, such as 500ms, 30s or 5m.
    /// [default: what the configuration says, else 60s]
    #[arg(long, value_name = "TIME", value_parser = time)]
    timeout: Option<Duration>,

    /// The era of the protocol to use.
    #[arg(long, value_enum, default_value = "auto")]
    era: Era,

    /// The protocol version to offer, such as 2025-06-18.
    #[arg(long, value_name = "DATE", value_parser = revision)]
    protocol_version: Option<Revision>,

    /// Log in with the browser if the server requires a login.
    #[arg(long)]
    pub(crate) login: bool,

    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,

    /// Show what the server logs and writes to standard error. Twice: also the messages exchanged.
    #[arg(short = 'v', long = "verbose", action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Era {
    /// Whichever the server supports, the modern one first.
    Auto,
    /// 2025-11-25 and earlier.
    Legacy,
    /// 2026-07-28.
    Modern,
}

fn time(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(time) if time.is_zero() => Err("it must be longer than zero".to_owned()),
        Ok(time) => Ok(time),
        Err(_) => Err("write a time with its unit, such as 500ms, 30s or 5m".to_owned()),
    }
}

/// What the file of another program says.
fn with_terms(mut options: ClientSettings, terms: &EntrySettings) -> ClientSettings {
    if let Some(timeout) = terms.timeout {
        options.timeout = timeout;
        options.max_timeout = options.max_timeout.max(timeout);
    }
    options.init_timeout = terms.start_timeout.unwrap_or(options.init_timeout);
    options
}

fn revision(text: &str) -> Result<Revision, String> {
    text.parse()
        .map_err(|()| format!("known versions are {}", Revision::ALL.map(Revision::as_str).join(", ")))
}

impl TargetArgs {
    /// The server that is meant, and the words that follow it.
    pub(crate) fn split(self, common: &ConnectionArgs) -> Result<(ResolvedServer, Vec<String>), Failure> {
        let TargetArgs { mut words, command } = self;
        let server = if command.is_empty() {
            let first = if words.is_empty() { String::new() } else { words.remove(0) };
            resolve::resolve(&first, common.config())?
        } else if common.config.is_some() {
            return Err(Failure::usage("--config and a command line after -- cannot be used together"));
        } else {
            resolve::command_line(&command)?
        };
        Ok((common.applied(server)?, words))
    }

    /// All words, each a server of its own.
    pub(crate) fn each(self) -> (Vec<String>, Vec<String>) {
        (self.words, self.command)
    }
}

impl ConnectionArgs {
    /// Adds the variables and headers of the command line to a server.
    pub(crate) fn applied(&self, mut server: ResolvedServer) -> Result<ResolvedServer, Failure> {
        match &mut server.target {
            Target::Command(_) if !self.headers.is_empty() => {
                return Err(Failure::usage(
                    "--header is for servers with a URL, and this one is a program: use --env",
                ));
            }
            Target::Command(command) => {
                for pair in &self.env {
                    let (name, value) = header::variable(pair)?;
                    command.env.insert(name, value);
                }
            }
            Target::Url(_) if !self.env.is_empty() => {
                return Err(Failure::usage(
                    "--env is for servers that are programs, and this one has a URL: use --header",
                ));
            }
            Target::Url(remote) => {
                for text in &self.headers {
                    let header = Header::parse(text)?;
                    if header.is_old_form {
                        return Err(Failure::usage("--header expects 'Name: value', not NAME=VALUE"));
                    }
                    remote.headers.retain(|own, _| !own.eq_ignore_ascii_case(&header.name));
                    remote.headers.insert(header.name, header.value);
                }
            }
            _ if !(self.env.is_empty() && self.headers.is_empty()) => {
                return Err(Failure::usage(
                    "--env and --header have no effect on a server that is part of Tidegate",
                ));
            }
            _ => {}
        }
        Ok(server)
    }

    /// The file that was given, if any was.
    pub(crate) fn config(&self) -> Option<&Path> {
        self.config.as_deref()
    }

    /// The time that was given, if any was.
    pub(crate) fn timeout(&self) -> Option<Duration> {
        self.timeout
    }

    /// A failure to connect, with what to do if the command line asks for a certain era or version.
    pub(crate) fn advised(&self, failure: Failure) -> Failure {
        let insists = self.protocol_version.is_some() || !matches!(self.era, Era::Auto);
        match failure.exit {
            Exit::Refused if insists => {
                failure.advise("Leave out --era and --protocol-version to use what the server supports.")
            }
            _ => failure,
        }
    }

    /// How the client behaves: as the configuration of the server says, and the command line above that.
    pub(crate) fn options(&self, server: &ResolvedServer) -> ClientSettings {
        let usual = ClientSettings::from_env();
        let mut options = match &server.settings {
            None => with_terms(usual, &server.terms),
            Some(settings) => {
                let mut options = settings.options.clone();
                // This is one client that calls for itself, and no gateway.
                options.sessions = usual.sessions;
                if options.era == EraChoice::Auto {
                    (options.era, options.offer) = (usual.era, usual.offer);
                }
                options
            }
        };
        options.name = Some(server.name.clone());
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
            // What the configuration says is not what ends the call.
            options.written_at = None;
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
