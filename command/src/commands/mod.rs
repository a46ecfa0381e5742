//! The commands, one file each, and what they share.
//!
//! `resolve` says which server a word means, `target` has the options of all commands that talk to one, `connection` talks to
//! it, `inspect` looks at what one of the configuration offers, `jobs` does that with several, a few at a time, `interrupt` ends
//! it on Ctrl-C, `display` shows that something is going on, `elicit` asks the user, `configuration` finds the gateway's file, `builtin` has the servers that
//! are part of the program and `server_commands` the commands that come with them, `output` is standard output, `help` the list of
//! commands, `failure` and `exit` are the ways out.

mod add;
mod admin;
mod audit;
mod builtin;
mod call;
mod check;
mod completions;
mod configuration;
mod connect;
mod connection;
mod discover;
mod display;
mod doctor;
mod elicit;
mod exit;
mod explain;
mod failure;
mod header;
mod help;
mod import;
mod inspect;
mod interrupt;
mod jobs;
mod keys;
mod list;
mod login;
mod logs;
mod memory;
pub(crate) mod memory_commands;
mod model;
mod operate;
mod output;
mod pin;
mod prompts;
mod remove;
mod resolve;
mod resources;
mod save;
mod serve;
pub(crate) mod server_commands;
mod status;
mod switch;
mod target;
mod tools;

use clap::Subcommand;
use serde_json::Value;
use tidegate::protocol::Json;
use tidegate_service::nearest_name;

pub(crate) use exit::{EXAMPLES, Exit};
pub(crate) use failure::Failure;
pub(crate) use help::grouped;
pub(crate) use server_commands::AnyCommand;

/// What the command can do, besides what servers of the program bring (`server_commands`).
#[derive(Subcommand)]
pub(crate) enum Command {
    Serve(serve::Serve),
    Add(add::Add),
    Remove(remove::Remove),
    Import(import::Import),
    Check(check::Check),
    Keys(keys::Keys),
    Audit(audit::Audit),
    Status(Box<status::Status>),
    List(Box<list::List>),
    Logs(Box<logs::Logs>),
    Explain(Box<explain::Explain>),
    Restart(Box<operate::Restart>),
    Enable(Box<switch::Enable>),
    Disable(Box<switch::Disable>),
    Reset(Box<operate::Reset>),
    Pin(pin::Pin),
    Tools(tools::Tools),
    Call(Box<call::Call>),
    Resources(resources::Resources),
    Read(resources::Read),
    Prompts(prompts::Prompts),
    Prompt(prompts::Prompt),
    Discover(discover::Discover),
    Doctor(doctor::Doctor),
    Connect(connect::Connect),
    Login(login::Login),
    Logout(login::Logout),
    Completions(completions::Completions),
}

impl Command {
    /// Does it.
    pub(crate) async fn run(self) -> Result<Exit, Failure> {
        let fine = |()| Exit::Fine;
        match self {
            Command::Serve(serve) => serve::run(serve).await,
            Command::Add(add) => add::run(add).await,
            Command::Remove(remove) => remove::run(&remove).map(fine),
            Command::Import(import) => import::run(&import).map(fine),
            Command::Check(check) => check::run(check).await,
            Command::Keys(keys) => keys::run(keys).map(fine),
            Command::Audit(audit) => audit::run(audit),
            Command::Status(status) => status::run(*status).await,
            Command::List(list) => list::run(*list).await,
            Command::Logs(logs) => logs::run(*logs).await,
            Command::Explain(explain) => explain::run(*explain).await,
            Command::Restart(restart) => operate::restart(*restart).await,
            Command::Enable(enable) => switch::enable(*enable).await,
            Command::Disable(disable) => switch::disable(*disable).await,
            Command::Reset(reset) => operate::reset(*reset).await,
            Command::Pin(pin) => pin::run(pin).await,
            Command::Tools(tools) => tools::run(tools).await.map(fine),
            Command::Call(call) => call::run(*call).await,
            Command::Resources(resources) => resources::list(resources).await.map(fine),
            Command::Read(read) => resources::read(read).await.map(fine),
            Command::Prompts(prompts) => prompts::list(prompts).await.map(fine),
            Command::Prompt(prompt) => prompts::get(prompt).await.map(fine),
            Command::Discover(discover) => discover::run(discover).await.map(fine),
            Command::Doctor(doctor) => doctor::run(doctor).await,
            Command::Connect(connect) => connect::run(connect).await,
            Command::Login(login) => login::login(login).await.map(fine),
            Command::Logout(logout) => login::logout(logout).await.map(fine),
            Command::Completions(completions) => completions::run(&completions).map(fine),
        }
    }

    /// The options that all commands have that talk to a server.
    fn common(&self) -> Option<&target::ConnectionArgs> {
        Some(match self {
            Command::Tools(tools) => &tools.common,
            Command::Call(call) => &call.common,
            Command::Resources(resources) => &resources.common,
            Command::Read(read) => &read.common,
            Command::Prompts(prompts) => &prompts.common,
            Command::Prompt(prompt) => &prompt.common,
            Command::Discover(discover) => &discover.common,
            Command::Doctor(doctor) => &doctor.common,
            Command::Connect(connect) => &connect.common,
            Command::Serve(_)
            | Command::Add(_)
            | Command::Remove(_)
            | Command::Import(_)
            | Command::Check(_)
            | Command::Keys(_)
            | Command::Audit(_)
            | Command::Status(_)
            | Command::List(_)
            | Command::Logs(_)
            | Command::Explain(_)
            | Command::Restart(_)
            | Command::Enable(_)
            | Command::Disable(_)
            | Command::Reset(_)
            | Command::Pin(_)
            | Command::Login(_)
            | Command::Logout(_)
            | Command::Completions(_) => {
                return None;
            }
        })
    }

    /// Which log lines are wanted if nobody says so: servers tell what they do, and so does what stands in front of
    /// one; a command that somebody waits for says only what it was asked for.
    pub(crate) fn log_level(&self) -> Option<&'static str> {
        match self {
            Command::Serve(serve) => serve.log_level(),
            Command::Connect(connect) => connect.common.log_level(),
            other => other.common().and_then(target::ConnectionArgs::log_level).or(Some(QUIET)),
        }
    }

    /// Whether programs read the output.
    pub(crate) fn is_json(&self) -> bool {
        match self {
            Command::Call(call) => call.common.json || call.raw,
            Command::Check(check) => check.json,
            Command::Keys(keys) => keys.is_json(),
            Command::Audit(audit) => audit.is_json(),
            Command::Status(status) => status.json,
            Command::List(list) => list.json,
            Command::Logs(logs) => logs.json,
            Command::Explain(explain) => explain.is_json(),
            Command::Restart(restart) => restart.is_json(),
            Command::Enable(enable) => enable.is_json(),
            Command::Disable(disable) => disable.is_json(),
            Command::Reset(reset) => reset.is_json(),
            Command::Pin(pin) => pin.json,
            Command::Login(login) => login.json,
            Command::Logout(logout) => logout.json,
            // Its report holds the failures.
            Command::Doctor(_) => false,
            other => other.common().is_some_and(|common| common.json),
        }
    }
}

/// What commands log that somebody waits for. What fails in a server of this process is the result of the command, too.
const QUIET: &str = "warn,tidegate_server=error,tidegate_service=error";

/// Tells programs why there is nothing else on standard output.
pub(crate) fn show_json(failure: &Failure) {
    // The exit code says the rest.
    let _ = output::text(&tidegate::service::secrets::mask(&failure.to_json().to_string()));
}

/// What there is to say about a command line that cannot be read, if it is clearer than what clap says.
pub(crate) fn clearer(error: &clap::Error, args: &[String]) -> Option<Failure> {
    match error.kind() {
        clap::error::ErrorKind::UnknownArgument => add::forgotten(args),
        _ => None,
    }
}

/// A note that the server does not have this at all.
fn none_of(what: &str) {
    output::note(&format!("note: the server has no {what}"));
}

/// Texts of JSON as values; the server's own ones are always readable.
fn values(list: &[Json]) -> Vec<Value> {
    list.iter().filter_map(|json| json.to().ok()).collect()
}

/// The name that is most likely meant, if any is likely, as it can be shown.
fn near<'a>(wanted: &str, names: impl Iterator<Item = &'a str>) -> Option<String> {
    nearest_name(wanted, names).map(crate::term::clean::line)
}

fn nothing_more(rest: Vec<String>) -> Result<(), Failure> {
    match rest.first() {
        Some(word) => Err(Failure::usage(format!(
            "unexpected argument {word:?}: quote a command line as one argument, or put it after --"
        ))),
        None => Ok(()),
    }
}

fn at_most_one(mut rest: Vec<String>, what: &str) -> Result<Option<String>, Failure> {
    if rest.len() > 1 {
        return Err(Failure::usage(format!(
            "unexpected argument {:?} after {what}: quote a command line as one argument, or put it after --",
            rest[1]
        )));
    }
    Ok(rest.pop())
}

fn exactly_one(rest: Vec<String>, what: &str, lister: &str) -> Result<String, Failure> {
    at_most_one(rest, what)?
        .ok_or_else(|| Failure::usage(format!("{what} is missing; run {lister} for a list")))
}
