//! What is to be checked: the servers that were named, or all that are known here.

use std::path::Path;

use tidegate_client::{ServersFile, ServersFileError, Target, is_project_file, well_known_files};

use super::report::Report;
use crate::commands::elicit;
use crate::commands::failure::Failure;
use crate::commands::resolve::{self, GatewayConfig, ResolvedServer};
use crate::commands::target::{ConnectionArgs, TargetArgs};
use crate::term::clean;

/// What is to be checked: a server, or why there is none.
pub(super) enum CheckTarget {
    Server(Box<ResolvedServer>),
    Unchecked(Box<Report>),
}

impl CheckTarget {
    fn of(name: &str, found: Result<ResolvedServer, Failure>) -> CheckTarget {
        match found {
            Ok(server) => CheckTarget::Server(Box::new(server)),
            Err(failure) => CheckTarget::Unchecked(Box::new(Report::failed(name, &failure))),
        }
    }
}

/// What the command line asks for.
pub(super) fn targets(words: TargetArgs, common: &ConnectionArgs) -> Result<Vec<CheckTarget>, Failure> {
    let (names, command) = words.clone().each();
    if !command.is_empty() {
        let (server, rest) = words.split(common)?;
        crate::commands::nothing_more(rest)?;
        return Ok(vec![CheckTarget::Server(Box::new(server))]);
    }
    if names.is_empty() {
        return all(common);
    }
    let find =
        |name: &String| resolve::resolve(name, common.config()).and_then(|server| common.applied(server));
    Ok(names.iter().map(|name| CheckTarget::of(name, find(name))).collect())
}

/// All servers of the file that was given; else those of the gateway, and then those of editors and assistants that the
/// gateway does not have.
fn all(common: &ConnectionArgs) -> Result<Vec<CheckTarget>, Failure> {
    let mut targets = Vec::new();
    match common.config() {
        Some(file) if resolve::is_tidegate_toml(file) => configured(GatewayConfig::load(file), &mut targets),
        Some(file) => entries(file, true, &mut targets),
        None => {
            if let Some(gateway) = GatewayConfig::of_serve() {
                configured(gateway, &mut targets);
            }
            let files = well_known_files().into_iter().map(|(_, path)| path);
            files.filter(|path| path.is_file()).for_each(|path| entries(&path, false, &mut targets));
        }
    }
    if targets.is_empty() {
        return Err(Failure::usage("there are no servers to check: no tidegate.toml and no editor has any")
            .advise("Pass one: tidegate doctor TARGET, or a file: tidegate doctor --config FILE."));
    }
    Ok(targets)
}

fn configured(gateway: Result<GatewayConfig, Failure>, targets: &mut Vec<CheckTarget>) {
    match gateway {
        Ok(gateway) => {
            let servers = gateway.settings.servers.iter();
            targets.extend(servers.map(|server| {
                CheckTarget::of(&server.name, ResolvedServer::configured(server, &gateway.file))
            }));
            // As `tidegate check` has it: what is disabled is worth knowing, and no fault.
            let file = gateway.file.display().to_string();
            let disabled = gateway.settings.disabled.iter();
            targets.extend(disabled.map(|server| {
                let what = format!("disabled: {}", server.reason);
                CheckTarget::Unchecked(Box::new(Report::unchecked(&server.name, &file, what, &server.advice)))
            }));
        }
        Err(failure) => {
            targets.push(CheckTarget::Unchecked(Box::new(Report::failed("tidegate.toml", &failure))))
        }
    }
}

fn entries(path: &Path, is_given: bool, targets: &mut Vec<CheckTarget>) {
    let file = match ServersFile::load(path) {
        Ok(file) => file,
        // Files like ~/.claude.json hold much else.
        Err(ServersFileError::NoServers { .. }) if !is_given => return,
        Err(error) => {
            let shown = path.display().to_string();
            targets.push(CheckTarget::Unchecked(Box::new(Report::failed(&shown, &Failure::usage(error)))));
            return;
        }
    };
    if !is_given && is_project_file(path) && !agreed(&file) {
        let shown = path.display().to_string();
        let what = "not checked: the file belongs to this directory, and may not be yours";
        for name in file.names() {
            let fix = format!("if you trust it, run tidegate doctor {shown}#{name}");
            targets.push(CheckTarget::Unchecked(Box::new(Report::unchecked(name, &shown, what, &fix))));
        }
        return;
    }
    for (name, entry) in file.entries() {
        match entry {
            Ok(entry) if entry.disabled => {}
            Ok(entry) if targets.iter().any(|known| known.is(&entry.target)) => {}
            Ok(entry) => {
                let server = ResolvedServer::new(name.to_owned(), entry.target, Some(path.to_owned()));
                let server = ResolvedServer { terms: entry.settings, ..server };
                targets.push(CheckTarget::Server(Box::new(server)));
            }
            Err(error) => targets.push(CheckTarget::of(name, Err(Failure::usage(error)))),
        }
    }
}

/// Whether somebody at the terminal wants the servers of a file to be started that may have come with a repository.
fn agreed(file: &ServersFile) -> bool {
    const NAMED: usize = 5;
    let names: Vec<String> = file.names().map(clean::name).collect();
    let more = match names.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let (path, named) = (file.origin().display().to_string(), names[..names.len().min(NAMED)].join(", "));
    let what = format!("{} belongs to this directory, and names {named}{more}.", clean::line(&path));
    !names.is_empty() && elicit::agrees(&what, "Start them?")
}

impl CheckTarget {
    /// Whether it is the same server: programs often know the same ones, and checking them once is enough.
    fn is(&self, other: &Target) -> bool {
        let CheckTarget::Server(server) = self else { return false };
        match (&server.target, other) {
            (Target::Command(one), Target::Command(other)) => {
                (&one.program, &one.args) == (&other.program, &other.args)
            }
            (Target::Url(one), Target::Url(other)) => one.url == other.url,
            _ => false,
        }
    }
}
