//! `tidegate add`: a server for the gateway.

mod outcome;

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use tidegate_client::{EraChoice, Remote, Target};
use tidegate_config::{ServerEntry, Source, edit};

use self::outcome::Outcome;
use super::exit::Exit;
use super::failure::Failure;
use super::header::{self, Header};
use super::{configuration, output};

/// Add a server to the configuration, and try it.
///
/// The file is written first; then the server is started once, for at most its start_timeout (60s), to see what it offers.
/// A server that does not start stays in the file.
#[derive(Args)]
#[command(
    override_usage = "tidegate add [OPTIONS] NAME URL\n       tidegate add [OPTIONS] NAME -- COMMAND [ARG]...\n       \
                      tidegate add [OPTIONS] NAME --builtin memory",
    after_help = AFTER
)]
pub(crate) struct Add {
    /// The name of the server: letters, digits, "-", "_" and ".".
    name: String,

    /// Its URL, or its command line as one argument.
    #[arg(value_name = "URL", required_unless_present_any = ["command", "builtin"], conflicts_with_all = ["command", "builtin"])]
    server: Option<String>,

    /// The server's program and its arguments, instead of URL.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,

    /// A server that is part of Tidegate, instead of URL.
    #[arg(long, value_name = "SERVER", conflicts_with = "command", value_parser = clap::builder::PossibleValuesParser::new(crate::builtins::registry().builtins.names()))]
    builtin: Option<String>,

    /// An environment variable for the server's program. Can be repeated.
    #[arg(long = "env", short = 'e', value_name = "NAME=VALUE")]
    env: Vec<String>,

    /// A header for every request, such as 'Authorization: Bearer ${TOKEN}'. Can be repeated.
    #[arg(long = "header", short = 'H', value_name = "NAME: VALUE")]
    headers: Vec<String>,

    /// The prefix of its tools' names; '' for none. [default: the name and "_", and none for the memory]
    #[arg(long, value_name = "TEXT")]
    prefix: Option<String>,

    /// The era of the protocol to use.
    #[arg(long, value_enum, default_value = "auto")]
    era: Era,

    /// The configuration to change. [default: ./tidegate.toml if it exists, else the user's own]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Replace the server of the same name.
    #[arg(long)]
    replace: bool,

    /// Only write the configuration; do not try the server.
    #[arg(long)]
    no_connect: bool,
}

const AFTER: &str = "\
Keep secrets out of the file: ${NAME} is replaced by an environment variable, ${file:/path} by the contents of a file.
  tidegate add github https://api.githubcopilot.com/mcp -H 'Authorization: Bearer ${GITHUB_TOKEN}'
  tidegate add files --env 'KEY=${file:/run/secrets/key}' -- npx -y some-server

Exit codes:
  0    the server was added, and works or was not tried
  2    the command line or the configuration is wrong
  3    the server was added, but cannot be reached or started
  5    the server was added, but requires a login
  130  cancelled (Ctrl-C)";

#[derive(Clone, Copy, ValueEnum)]
enum Era {
    /// Whichever the server supports, the modern one first.
    Auto,
    /// 2025-11-25 and earlier.
    Legacy,
    /// 2026-07-28.
    Modern,
}

pub(crate) async fn run(add: Add) -> Result<Exit, Failure> {
    let path = configuration::changeable(add.config.as_deref())?;
    let (entry, mut notes) = entry(&add, &path)?;
    let first = add.config.is_none() && !path.exists();
    edit::add(&path, &add.name, &entry, add.replace)?;
    notes.extend(notes_of(&entry));
    for note in notes {
        output::note(&format!("note: {note}"));
    }
    if first {
        configuration::keep_memory(&path, &[(&add.name, &entry)])?;
    }
    let outcome = match add.no_connect {
        true => Outcome::NotTried(entry.missing_variables(&path, &configuration::environment)),
        false => outcome::attempt(&add.name, &path).await,
    };
    outcome.show(&add.name, &path)
}

/// What to say about `tidegate add q npx -y foo`, which clap cannot read: the `--` is missing. `args` are those of the process,
/// without its name.
pub(crate) fn forgotten(args: &[String]) -> Option<Failure> {
    let at = args.iter().position(|arg| !arg.starts_with('-')).filter(|&at| args[at] == "add")?;
    let args = &args[at + 1..];
    if args.iter().any(|arg| arg == "--" || arg.starts_with("--builtin")) {
        return None;
    }
    let mut words = Vec::new();
    let mut skip = false;
    for (at, arg) in args.iter().enumerate() {
        if std::mem::take(&mut skip) {
            continue;
        }
        match arg.strip_prefix('-') {
            Some(_) => skip = WITH_VALUE.contains(&arg.as_str()),
            None => words.push(at),
        }
    }
    let &[_, program, ..] = words.as_slice() else { return None };
    let (before, line) = args.split_at(program);
    if line.len() < 2 || line[0].contains("://") {
        return None;
    }
    let join = |words: &[String]| shlex::try_join(words.iter().map(String::as_str)).ok();
    Some(Failure::usage("the -- before the command line is missing").advise(format!(
        "Write: tidegate add {} -- {}",
        join(before)?,
        join(line)?
    )))
}

/// The options of this command that are followed by a value.
const WITH_VALUE: [&str; 9] =
    ["--env", "-e", "--header", "-H", "--prefix", "--era", "--config", "--log-format", "--log-level"];

/// What to write into the file, and what to say about the way it was asked for.
fn entry(add: &Add, path: &Path) -> Result<(ServerEntry, Vec<String>), Failure> {
    let mut entry = match (&add.server, &add.builtin) {
        (_, Some(name)) => ServerEntry { builtin: Some(name.clone()), ..ServerEntry::default() },
        (Some(url), _) if url.contains("://") || url.starts_with("${") => address(url)?,
        (Some(line), _) => program(line)?,
        (None, None) => {
            let line = shlex::try_join(add.command.iter().map(String::as_str));
            program(&line.map_err(|_| Failure::usage("the command line contains a NUL character"))?)?
        }
    };
    if entry.builtin.is_some() && !(add.env.is_empty() && add.headers.is_empty()) {
        return Err(Failure::usage("--env and --header have no effect on a server that is part of Tidegate"));
    }
    if entry.url.is_some() && !add.env.is_empty() {
        return Err(Failure::usage(
            "--env is for servers that are programs, and this one has a URL: use --header",
        ));
    }
    if entry.url.is_none() && !add.headers.is_empty() {
        return Err(Failure::usage(
            "--header is for servers with a URL, and this one is a program: use --env",
        ));
    }
    for pair in &add.env {
        let (name, value) = header::variable(pair)?;
        entry.env.insert(name, value);
    }
    let mut notes = Vec::new();
    for text in &add.headers {
        let Header { name, value, is_old_form } = Header::parse(text)?;
        if is_old_form {
            notes.push(format!("--header NAME=VALUE is deprecated: write --header '{name}: ...'"));
        }
        entry.headers.insert(name, value);
    }
    // Assistants know the tools of the memory by their own names. A second one would take them away from the first.
    let is_first = entry.builtin.as_deref() == Some("memory") && !has_memory(path, &add.name);
    let usual = is_first.then(String::new);
    entry.prefix = add.prefix.clone().or(usual);
    entry.era = match add.era {
        Era::Auto => EraChoice::Auto,
        Era::Legacy => EraChoice::Legacy,
        Era::Modern => EraChoice::Modern,
    };
    Ok((entry, notes))
}

/// Whether a configuration already has the memory, under another name.
fn has_memory(path: &Path, name: &str) -> bool {
    let is_memory = |source: &Source| matches!(source, Source::Builtin(name) if name == "memory");
    configuration::load_unserved(path).is_ok_and(|settings| {
        settings.servers.iter().any(|other| other.name != name && is_memory(&other.source))
    })
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
        return Err(Failure::usage("this is a URL, not a command line: leave out the --"));
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

fn notes_of(entry: &ServerEntry) -> Vec<String> {
    let secrets = entry.literal_secrets();
    let mut notes: Vec<String> = secrets
        .iter()
        .map(|name| {
            format!(
                "the value of {name} is stored in plain text; write ${{NAME}} instead to use an environment variable"
            )
        })
        .collect();
    if let Some(word) = entry.args.iter().find(|word| is_relative(word)) {
        let word = crate::term::clean::line(word);
        notes.push(format!(
            "{word} is relative to the directory that the gateway is started in; use an absolute path to avoid that"
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forgotten_mark_is_told() {
        for (line, wanted) in [
            ("add q npx -y foo", Some("Write: tidegate add q -- npx -y foo")),
            ("--log-level=warn add q npx foo", Some("Write: tidegate add q -- npx foo")),
            (
                "add -e K=v q --replace npx 'a b'",
                Some("Write: tidegate add -e 'K=v' q --replace -- npx 'a b'"),
            ),
            ("add q -- npx -y foo", None),
            ("add q https://example.com --bad", None),
            ("add q npx", None),
            ("add q", None),
            ("tools q npx -y", None),
        ] {
            let args = shlex::split(line).unwrap();
            let told = forgotten(&args);
            assert_eq!(told.as_ref().and_then(Failure::advice), wanted, "{line}");
        }
    }
}
