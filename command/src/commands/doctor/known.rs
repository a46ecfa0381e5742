//! What is to be checked: the servers that were named, or all that are known here.

use std::path::Path;

use tidegate_client::{ServersFile, ServersFileError, Target, is_project_file, well_known_files};

use super::report::Report;
use crate::commands::elicit;
use crate::commands::failure::Failure;
use crate::commands::find::{self, Gateway, Place};
use crate::commands::target::{Common, Words};
use crate::term::clean;

/// What is to be checked: a server, or why there is none.
pub(super) enum Wanted {
    Server(Box<Place>),
    Nothing(Box<Report>),
}

impl Wanted {
    fn of(name: &str, found: Result<Place, Failure>) -> Wanted {
        match found {
            Ok(place) => Wanted::Server(Box::new(place)),
            Err(failure) => Wanted::Nothing(Box::new(Report::failed(name, &failure))),
        }
    }
}

/// What the command line asks for.
pub(super) fn wanted(words: Words, common: &Common) -> Result<Vec<Wanted>, Failure> {
    let (names, command) = words.clone().each();
    if !command.is_empty() {
        let (place, rest) = words.split(common)?;
        crate::commands::nothing_more(rest)?;
        return Ok(vec![Wanted::Server(Box::new(place))]);
    }
    if names.is_empty() {
        return all(common);
    }
    let find = |name: &String| find::find(name, common.config()).and_then(|place| common.applied(place));
    Ok(names.iter().map(|name| Wanted::of(name, find(name))).collect())
}

/// All servers of the file that was given; else those of the gateway, and then those of editors and assistants that the
/// gateway does not have.
fn all(common: &Common) -> Result<Vec<Wanted>, Failure> {
    let mut wanted = Vec::new();
    match common.config() {
        Some(file) if find::is_ours(file) => configured(Gateway::load(file), &mut wanted),
        Some(file) => entries(file, true, &mut wanted),
        None => {
            if let Some(gateway) = Gateway::of_serve() {
                configured(gateway, &mut wanted);
            }
            let files = well_known_files().into_iter().map(|(_, path)| path);
            files.filter(|path| path.is_file()).for_each(|path| entries(&path, false, &mut wanted));
        }
    }
    if wanted.is_empty() {
        return Err(Failure::usage("there are no servers to check: no tidegate.toml and no editor has any")
            .next("Pass one: tidegate doctor TARGET, or a file: tidegate doctor --config FILE."));
    }
    Ok(wanted)
}

fn configured(gateway: Result<Gateway, Failure>, wanted: &mut Vec<Wanted>) {
    match gateway {
        Ok(gateway) => {
            let servers = gateway.settings.servers.iter();
            wanted.extend(
                servers.map(|server| Wanted::of(&server.name, Place::configured(server, &gateway.file))),
            );
            // As `tidegate check` has it: what is disabled is worth knowing, and no fault.
            let file = gateway.file.display().to_string();
            let disabled = gateway.settings.disabled.iter();
            wanted.extend(disabled.map(|server| {
                let what = format!("disabled: {}", server.reason);
                Wanted::Nothing(Box::new(Report::unchecked(&server.name, &file, what, &server.advice)))
            }));
        }
        Err(failure) => wanted.push(Wanted::Nothing(Box::new(Report::failed("tidegate.toml", &failure)))),
    }
}

fn entries(path: &Path, is_given: bool, wanted: &mut Vec<Wanted>) {
    let file = match ServersFile::load(path) {
        Ok(file) => file,
        // Files like ~/.claude.json hold much else.
        Err(ServersFileError::NoServers { .. }) if !is_given => return,
        Err(error) => {
            let shown = path.display().to_string();
            wanted.push(Wanted::Nothing(Box::new(Report::failed(&shown, &Failure::usage(error)))));
            return;
        }
    };
    if !is_given && is_project_file(path) && !agreed(&file) {
        let shown = path.display().to_string();
        let what = "not checked: the file belongs to this directory, and may not be yours";
        for name in file.names() {
            let fix = format!("if you trust it, run tidegate doctor {shown}#{name}");
            wanted.push(Wanted::Nothing(Box::new(Report::unchecked(name, &shown, what, &fix))));
        }
        return;
    }
    for (name, entry) in file.entries() {
        match entry {
            Ok(entry) if entry.disabled => {}
            Ok(entry) if wanted.iter().any(|known| known.is(&entry.target)) => {}
            Ok(entry) => {
                let place = Place::new(name.to_owned(), entry.target, Some(path.to_owned()));
                let place = Place { terms: entry.settings, ..place };
                wanted.push(Wanted::Server(Box::new(place)));
            }
            Err(error) => wanted.push(Wanted::of(name, Err(Failure::usage(error)))),
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

impl Wanted {
    /// Whether it is the same server: programs often know the same ones, and checking them once is enough.
    fn is(&self, other: &Target) -> bool {
        let Wanted::Server(place) = self else { return false };
        match (&place.target, other) {
            (Target::Command(one), Target::Command(other)) => {
                (&one.program, &one.args) == (&other.program, &other.args)
            }
            (Target::Url(one), Target::Url(other)) => one.url == other.url,
            _ => false,
        }
    }
}
