//! `tidegate add`: a server for the gateway.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use tidegate_client::{EraChoice, Remote, Target};
use tidegate_config::{ServerEntry, edit};

use super::failure::Failure;
use super::{configuration, output};
use crate::term::style::Paint;

/// Add a server to the gateway's configuration.
#[derive(Args)]
#[command(
    override_usage = "tidegate add [OPTIONS] NAME URL\n       tidegate add [OPTIONS] NAME -- COMMAND [ARG]...\n       \
                      tidegate add [OPTIONS] NAME --builtin memory",
    after_help = "Texts may refer to variables and files: --header 'Authorization=Bearer ${TOKEN}', --env 'KEY=${file:/run/secrets/key}'."
)]
pub(crate) struct Add {
    /// What to call it: letters, digits, "-", "_" and ".".
    name: String,

    /// Its address, or its command line as one argument.
    #[arg(value_name = "URL", required_unless_present_any = ["command", "builtin"], conflicts_with_all = ["command", "builtin"])]
    server: Option<String>,

    /// The server's program and its arguments, instead of URL.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,

    /// A server that is part of Tidegate, instead of URL.
    #[arg(long, value_name = "SERVER", conflicts_with = "command", value_parser = clap::builder::PossibleValuesParser::new(tidegate_config::BUILTINS))]
    builtin: Option<String>,

    /// A variable for the server's program. May be given more than once.
    #[arg(long = "env", short = 'e', value_name = "NAME=VALUE")]
    env: Vec<String>,

    /// A header for every request. May be given more than once.
    #[arg(long = "header", short = 'H', value_name = "NAME=VALUE")]
    headers: Vec<String>,

    /// What the names of its tools are preceded by; '' for nothing. [default: the name and "_", and nothing for the memory]
    #[arg(long, value_name = "TEXT")]
    prefix: Option<String>,

    /// Which era of the protocol to speak.
    #[arg(long, value_enum, default_value = "auto")]
    era: Era,

    /// The configuration to change. [default: ./tidegate.toml if there is one, else that of the user]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Put it in place of a server of the same name.
    #[arg(long)]
    replace: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Era {
    /// Whichever the server speaks, the modern one first.
    Auto,
    /// 2025-11-25 and earlier.
    Legacy,
    /// 2026-07-28.
    Modern,
}

pub(crate) fn run(add: Add) -> Result<(), Failure> {
    let path = configuration::changeable(add.config.as_deref())?;
    let entry = entry(&add)?;
    let first = add.config.is_none() && !path.exists();
    edit::add(&path, &add.name, &entry, add.replace)?;
    for note in notes(&entry) {
        output::note(&format!("note: {note}"));
    }
    if first {
        configuration::keep_memory(&path, &[(&add.name, &entry)])?;
    }
    let paint = Paint::stdout();
    output::text(&format!(
        "{} {} to {}",
        paint.good("Added"),
        paint.name(&add.name),
        paint.dim(path.display().to_string())
    ))
}

fn entry(add: &Add) -> Result<ServerEntry, Failure> {
    let mut entry = match (&add.server, &add.builtin) {
        (_, Some(name)) => ServerEntry { builtin: Some(name.clone()), ..ServerEntry::default() },
        (Some(url), _) if url.contains("://") || url.starts_with("${") => address(url)?,
        (Some(line), _) => program(line)?,
        (None, None) => {
            let line = shlex::try_join(add.command.iter().map(String::as_str));
            program(&line.map_err(|_| {
                Failure::usage("the command line holds a character that no command line can hold")
            })?)?
        }
    };
    if entry.builtin.is_some() && !(add.env.is_empty() && add.headers.is_empty()) {
        return Err(Failure::usage(
            "--env and --header are for other servers, and this one is part of Tidegate",
        ));
    }
    if entry.url.is_some() && !add.env.is_empty() {
        return Err(Failure::usage(
            "--env is for servers that are programs, and this one is at an address: use --header",
        ));
    }
    if entry.url.is_none() && !add.headers.is_empty() {
        return Err(Failure::usage(
            "--header is for servers at an address, and this one is a program: use --env",
        ));
    }
    for pair in &add.env {
        // What follows the name may be a secret, so it is not repeated.
        let (name, value) = pair
            .split_once('=')
            .filter(|(name, _)| !name.is_empty())
            .ok_or_else(|| Failure::usage("--env wants NAME=value"))?;
        entry.env.insert(name.to_owned(), value.to_owned());
    }
    for pair in &add.headers {
        let (name, value) = pair
            .split_once(['=', ':'])
            .filter(|(name, _)| !name.is_empty() && !name.contains(char::is_whitespace))
            .ok_or_else(|| Failure::usage("--header wants NAME=value"))?;
        entry.headers.insert(name.to_owned(), value.trim().to_owned());
    }
    // Assistants know the tools of the memory by their own names.
    let usual = (entry.builtin.as_deref() == Some("memory")).then(String::new);
    entry.prefix = add.prefix.clone().or(usual);
    entry.era = match add.era {
        Era::Auto => EraChoice::Auto,
        Era::Legacy => EraChoice::Legacy,
        Era::Modern => EraChoice::Modern,
    };
    Ok(entry)
}

fn address(url: &str) -> Result<ServerEntry, Failure> {
    // With references in it, it may not be an address yet.
    if !url.contains("${") {
        Remote::parse(url)?;
    }
    Ok(ServerEntry { url: Some(url.to_owned()), ..ServerEntry::default() })
}

fn program(line: &str) -> Result<ServerEntry, Failure> {
    let Target::Command(command) = Target::parse(line)? else {
        return Err(Failure::usage("the command line is an address: give it as URL, without --"));
    };
    Ok(ServerEntry {
        command: Some(absolute(command.program)),
        args: command.args,
        env: command.env,
        ..ServerEntry::default()
    })
}

/// Whoever types `./server` means the one in this directory, wherever the configuration is.
fn absolute(program: String) -> String {
    if !is_relative(&program) {
        return program;
    }
    match std::path::absolute(Path::new(&program)) {
        Ok(path) => path.to_string_lossy().into_owned(),
        Err(_) => program,
    }
}

fn is_relative(word: &str) -> bool {
    word.starts_with("./") || word.starts_with("../")
}

fn notes(entry: &ServerEntry) -> Vec<String> {
    let secrets = entry.literal_secrets();
    let mut notes: Vec<String> = secrets
        .iter()
        .map(|name| {
            format!("the value of {name} stands in the file in full; ${{NAME}} in its place would refer to a variable")
        })
        .collect();
    if let Some(word) = entry.args.iter().find(|word| is_relative(word)) {
        let word = crate::term::clean::line(word);
        notes.push(format!(
            "{word} is looked for where the gateway is started; write the whole path to be independent of that"
        ));
    }
    notes
}
