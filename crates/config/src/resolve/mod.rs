//! From what was written to what it means. Nothing stops at the first problem: all of them are collected, and whatever
//! is wrong counts as its default until the end.

mod admin;
mod audit;
mod auth;
mod command;
mod connection;
mod endpoints;
mod limits;
mod listen;
mod log;
mod network;
pub(crate) mod otlp;
mod policy;
mod protocol;
mod scopes;
mod sealing;
mod server;
mod telemetry;
mod values;

use std::collections::BTreeMap;
use std::path::Path;

use etcetera::BaseStrategy;
use tidegate_builtin::{Builtins, Findings};

use crate::config::Purpose;
use crate::disabled::{DisabledServer, advice};
use crate::document::Document;
use crate::error::{ConfigError, Problem};
use crate::missing_reference::{self, Missing, MissingReference, MissingReferences};
use crate::secrets::{Fault, Secrets};
use crate::section::Section;
use crate::settings::{
    CallSettings, LONGEST_NAMES, NameStyle, PinMode, SHORTEST_NAMES, SchemaStyle, Settings, ToolMode,
    ToolSettings,
};
use crate::source_map::{self, SourceMap};
use crate::written::{self, Directory, File, Time, Tools};
use tidegate_policy::Patterns;

/// What a configuration means.
pub(crate) fn settings(
    document: Document,
    origin: &Path,
    builtins: &Builtins,
    secrets: &Secrets<'_>,
    purpose: Purpose,
) -> Result<Settings, ConfigError> {
    let Document { file, sections, source_map, mut shown, problems, absent, removed, .. } = document;
    let mut resolver = Resolver {
        builtins,
        secrets,
        source_map: &source_map,
        problems,
        notes: Vec::new(),
        absent,
        removed,
        default_env: BTreeMap::new(),
        disabled: Vec::new(),
        origin,
        purpose,
    };
    let mut settings = resolver.file(file, &sections);
    for server in &mut settings.servers {
        if let Some(shown) = shown.remove(&server.name) {
            server.shown = shown;
        }
    }
    if !resolver.problems.is_empty() {
        return Err(ConfigError::new(origin, resolver.into_problems()));
    }
    settings.disabled = resolver.disabled;
    settings.notes = settings.disabled.iter().map(ToString::to_string).chain(resolver.notes).collect();
    Ok(settings)
}

/// Where state is kept between runs if nobody says so; `None` if the home directory is unknown.
pub fn usual_state_dir() -> Option<std::path::PathBuf> {
    let base = etcetera::choose_base_strategy().ok()?;
    Some(base.state_dir().unwrap_or_else(|| base.data_dir()).join("tidegate"))
}

/// Servers of the program say what is wrong with their sections as everybody does.
impl Findings for Resolver<'_> {
    fn wrong(&mut self, at: &[&str], sentence: String) {
        Resolver::wrong(self, at, sentence);
    }

    fn note(&mut self, at: &[&str], sentence: &str) {
        Resolver::note(self, at, sentence);
    }

    fn required(&mut self, at: &[&str], fields: &[&str], sentence: &str) {
        Resolver::required(self, at, fields, sentence);
    }

    fn path(&mut self, at: &[&str], text: &str) -> Option<std::path::PathBuf> {
        Resolver::path(self, at, text)
    }
}

/// Finds out what fields mean.
struct Resolver<'a> {
    /// The servers of the program.
    builtins: &'a Builtins,
    secrets: &'a Secrets<'a>,
    source_map: &'a SourceMap,
    problems: Vec<Problem>,
    notes: Vec<String>,
    /// What servers refer to that does not exist.
    absent: MissingReferences,
    /// Fields that could not be read.
    removed: Vec<Vec<String>>,
    /// The variables that every program gets.
    default_env: BTreeMap<String, String>,
    /// The servers that are not used.
    disabled: Vec<DisabledServer>,
    /// The configuration.
    origin: &'a Path,
    /// What the settings are for.
    purpose: Purpose,
}

/// No machine has more connections or calls at once.
const MOST: usize = 1_000_000;

impl Resolver<'_> {
    fn file(&mut self, file: File, sections: &[Section]) -> Settings {
        let listen = self.listen(&file);
        let drain = self.time(&["drain"], file.drain.as_ref(), Settings::default().drain);
        let state_dir = match &file.state_dir {
            Some(Directory::Off) => None,
            Some(Directory::At(path)) => self.path(&["state_dir"], path),
            Some(Directory::Usual) | None => self.usual_state_dir(),
        };
        let sealing_keys = self.sealing_keys(&file.sealing_keys);
        let tools = self.tools(&file.tools);
        let calls = self.calls(&file, &tools);
        self.check_variables(&["defaults", "env"], &file.defaults.env);
        self.default_env = file.defaults.env;
        let auth = file.auth.map(|auth| self.auth(auth, listen.max_message));
        let audit = file.audit.as_ref().map(|audit| self.audit(audit));
        let telemetry = self.telemetry(&file.telemetry);
        let log = self.log(&file.log, audit.as_ref());
        self.check_exposure(&listen, auth.as_ref());
        let admin = self.admin(&file.admin, &listen, auth.as_ref());
        let names: Vec<String> = file.servers.keys().cloned().collect();
        let endpoints = self.endpoints(file.endpoints, &listen.path, &names);
        self.check_audiences(&endpoints, auth.as_ref(), listen.public_url.as_deref(), &listen.path);
        let policy = file.policy.and_then(|policy| self.policy(policy, auth.as_ref(), &endpoints, &names));
        let limits = file.limits.map(|limits| self.limits(limits, auth.is_some()));
        let mut servers = Vec::new();
        for (name, server) in file.servers {
            servers.extend(self.server(name, server, tools.names));
        }
        for section in sections {
            let told = section.builtin.settings(&section.written, self).made_from(section.identity.clone());
            servers = servers.into_iter().map(|server| server.told(section.builtin.name(), &told)).collect();
        }
        self.check_exposed_names(&servers);
        let errors = protocol::profile(file.errors).into();
        Settings {
            servers,
            tools,
            listen,
            auth,
            policy,
            audit,
            telemetry,
            log,
            admin,
            endpoints,
            limits,
            calls,
            errors,
            drain,
            state_dir,
            sealing_keys,
            ..Settings::default()
        }
    }

    /// Everything that is wrong, in the order of the text, with what servers refer to in vain.
    fn into_problems(self) -> Vec<Problem> {
        let mut problems = self.problems;
        let file = self.origin.file_name().unwrap_or_default().to_string_lossy();
        for absent in self.absent.iter() {
            let path: Vec<&str> = absent.path.iter().map(String::as_str).collect();
            let sentence = match &absent.what {
                Missing::Variable(name) => {
                    format!("the environment variable {name} is not set. {}", advice(1, &file))
                }
                Missing::File(sentence) => sentence.clone(),
            };
            problems.push(self.source_map.problem(&path, sentence));
        }
        problems.sort_by_key(|problem| problem.at);
        problems
    }

    fn calls(&mut self, file: &File, tools: &ToolSettings) -> CallSettings {
        let usual = CallSettings::default();
        let max_calls = self.count("max_calls", file.max_calls, usual.max_calls);
        let max_result = self.size(&["max_result"], file.max_result.as_ref(), usual.max_result);
        // What is around the entries of a page counts, too.
        if max_result / 2 < tools.page_bytes {
            const WHY: &str = "or lists could not be sent";
            match file.max_result {
                Some(_) => {
                    let least = 2 * tools.page_bytes;
                    self.wrong(
                        &["max_result"],
                        format!("must be at least {least}, twice tools.page_bytes, {WHY}"),
                    );
                }
                None => {
                    let most = max_result / 2;
                    self.wrong(
                        &["tools", "page_bytes"],
                        format!("must be at most {most}, half of max_result, {WHY}"),
                    );
                }
            }
        }
        let call_timeout = self.time(&["call_timeout"], file.call_timeout.as_ref(), usual.call_timeout);
        if call_timeout.is_zero() {
            self.wrong(&["call_timeout"], "must be longer than 0");
        }
        CallSettings { max_calls, max_result, call_timeout }
    }

    /// How many there may be of something, at the top of the file.
    fn count(&mut self, field: &str, written: Option<usize>, usual: usize) -> usize {
        let count = written.unwrap_or(usual);
        if !(1..=MOST).contains(&count) {
            self.wrong(&[field], format!("must be from 1 to {MOST}"));
        }
        count
    }

    fn tools(&mut self, tools: &Tools) -> ToolSettings {
        let usual = ToolSettings::default();
        let lock_file = tools.lock_file.as_deref().unwrap_or("tidegate.lock");
        let settings = ToolSettings {
            mode: match tools.mode {
                None | Some(written::Mode::All) => ToolMode::All,
                Some(written::Mode::Search) => ToolMode::Search,
            },
            favourites: self.patterns(&["tools", "favourites"], &tools.favourites),
            pin: match tools.pin {
                None | Some(written::Pin::Off) => PinMode::Off,
                Some(written::Pin::FirstUse) => PinMode::FirstUse,
                Some(written::Pin::Locked) => PinMode::Locked,
            },
            lock_file: self.path(&["tools", "lock_file"], lock_file).unwrap_or(usual.lock_file),
            names: match tools.names {
                None | Some(written::Names::Portable) => NameStyle::Portable,
                Some(written::Names::Exact) => NameStyle::Exact,
            },
            name_length: tools.name_length.unwrap_or(usual.name_length),
            schemas: match tools.schemas {
                None | Some(written::Schemas::Exact) => SchemaStyle::Exact,
                Some(written::Schemas::Portable) => SchemaStyle::Portable,
            },
            page_bytes: self.size(&["tools", "page_bytes"], tools.page_bytes.as_ref(), usual.page_bytes),
            batch: tools.batch.unwrap_or(usual.batch),
            in_capabilities: tools.in_capabilities.unwrap_or(usual.in_capabilities),
        };
        if settings.mode == ToolMode::All && !settings.favourites.is_empty() {
            self.note(&["tools", "favourites"], "has no effect: mode = \"all\" lists every tool.");
        }
        if !(SHORTEST_NAMES..=LONGEST_NAMES).contains(&settings.name_length) {
            let what = format!("must be from {SHORTEST_NAMES} to {LONGEST_NAMES}");
            self.wrong(&["tools", "name_length"], &what);
        }
        if settings.names == NameStyle::Exact && tools.name_length.is_some() {
            self.note(
                &["tools", "name_length"],
                "has no effect: names = \"exact\" keeps all names as they are.",
            );
        }
        if settings.pin == PinMode::Off && tools.lock_file.is_some() {
            self.note(&["tools", "lock_file"], "has no effect: nothing is pinned (pin = \"off\").");
        }
        settings
    }

    fn usual_state_dir(&mut self) -> Option<std::path::PathBuf> {
        let usual = usual_state_dir();
        if usual.is_none() {
            let note =
                "The home directory is unknown, so no state is kept between runs. Set HOME or state_dir.";
            self.notes.push(note.to_owned());
        }
        usual
    }

    fn path(&mut self, at: source_map::Path<'_>, text: &str) -> Option<std::path::PathBuf> {
        if text.trim().is_empty() {
            self.wrong(at, "must be a path, and is empty");
            return None;
        }
        Some(self.secrets.path(text))
    }

    fn patterns(&mut self, at: source_map::Path<'_>, texts: &[String]) -> Patterns {
        match Patterns::new(texts) {
            Ok(patterns) => patterns,
            Err(error) => {
                self.wrong(at, error.to_string());
                Patterns::default()
            }
        }
    }

    fn time(
        &mut self,
        at: source_map::Path<'_>,
        time: Option<&Time>,
        usual: std::time::Duration,
    ) -> std::time::Duration {
        let Some(time) = time else { return usual };
        time.duration().unwrap_or_else(|sentence| {
            self.wrong(at, sentence);
            usual
        })
    }

    fn size(&mut self, at: source_map::Path<'_>, size: Option<&written::Size>, usual: usize) -> usize {
        let Some(size) = size else { return usual };
        values::size(size).unwrap_or_else(|sentence| {
            self.wrong(at, sentence);
            usual
        })
    }

    /// Something that a server refers to cannot be had: the server is not used.
    fn lacks(&mut self, at: source_map::Path<'_>, fault: Fault) {
        match fault {
            Fault::Missing(what) => self.absent.add(at, what),
            Fault::Wrong(sentence) => self.wrong(at, sentence),
        }
    }

    /// The server as one that is not used, if it refers to what does not exist.
    fn without(&self, name: &str) -> Option<DisabledServer> {
        let located = |absent| {
            let absent: &MissingReference = absent;
            let path: Vec<&str> = absent.path.iter().map(String::as_str).collect();
            let line = self.source_map.line(&path);
            (line, (absent, missing_reference::location(&path, line)))
        };
        let mut absent: Vec<_> = self.absent.of(name).into_iter().map(located).collect();
        absent.sort_by_key(|(line, _)| *line);
        let absent: Vec<_> = absent.into_iter().map(|(_, absent)| absent).collect();
        (!absent.is_empty()).then(|| DisabledServer::missing(name, &absent, self.origin))
    }

    /// Something is not there that one of these fields would be. It is no news if one of them could not be read.
    fn required(&mut self, at: source_map::Path<'_>, fields: &[&str], sentence: &str) {
        let was_there = |field: &str| {
            self.removed
                .iter()
                .any(|path| path.split_last().is_some_and(|(last, around)| last == field && around == at))
        };
        if !fields.iter().any(|field| was_there(field)) {
            self.wrong(at, sentence);
        }
    }

    fn check_variables(&mut self, at: source_map::Path<'_>, variables: &BTreeMap<String, String>) {
        for (variable, value) in variables {
            let at = [at, &[variable]].concat();
            if variable.is_empty() || variable.contains(['=', '\0']) {
                self.wrong(&at, "this is not a valid name for an environment variable");
            }
            if value.contains('\0') {
                self.wrong(&at, "must not contain a NUL character");
            }
        }
    }

    fn wrong(&mut self, at: source_map::Path<'_>, sentence: impl Into<String>) {
        if self.absent.covers(at) {
            return;
        }
        let problem = self.source_map.problem(at, sentence);
        // What is wrong with a default is wrong with every server, and is said once.
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }

    fn note(&mut self, at: source_map::Path<'_>, sentence: &str) {
        self.notes.push(format!("{} {sentence}", source_map::dotted(at)));
    }
}
