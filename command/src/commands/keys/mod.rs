//! `tidegate keys`: the API keys of those who may call the gateway.

mod file;
mod list;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use tidegate_auth::keys::{ApiKey, DEFAULT_ENDPOINT, KeyFile, KeyFileError, NewKey, Rotation};
use tidegate_builtin::Time;
use tidegate_service::{epoch_ms, rfc3339_ms};

use self::file::KeysFile;
use super::failure::Failure;
use super::output;
use crate::term::clean;

/// Manage the API keys of those who may call the gateway.
///
/// A key is shown once, when it is made; the file has only its hash. A running gateway picks up changes within seconds.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Keys {
    #[command(subcommand)]
    action: Action,
}

const EXAMPLES: &str = "\
Examples:
  tidegate keys add ann --tenant acme --role dev   a key for ann, alone on standard output
  tidegate keys add ci --expires 90d --endpoint research
  tidegate keys list
  tidegate keys rotate ann --grace 24h             a new key; the old one is good for another day
  tidegate keys revoke ann";

#[derive(Subcommand)]
enum Action {
    Add(Add),
    List(List),
    Revoke(Revoke),
    Rotate(Rotate),
}

/// Make a key and print it
///
/// Nothing else is printed on standard output. The file is created, readable for its owner only, when it is missing.
#[derive(Args)]
struct Add {
    /// Whose key it is: the user that servers and logs see
    name: String,

    /// The tenant of its holder
    #[arg(long, value_name = "TENANT")]
    tenant: Option<String>,

    /// A role of its holder (repeatable)
    #[arg(long = "role", value_name = "ROLE")]
    roles: Vec<String>,

    /// A scope that the key is limited to (repeatable) [default: all]
    #[arg(long = "scope", value_name = "SCOPE")]
    scopes: Vec<String>,

    /// An endpoint that the key is limited to, "default" for the one that has everything (repeatable) [default: all]
    #[arg(long = "endpoint", value_name = "ENDPOINT")]
    endpoints: Vec<String>,

    /// After which time the key expires, such as 90d [default: never]
    #[arg(long, value_name = "TIME", value_parser = time)]
    expires: Option<Duration>,

    #[command(flatten)]
    place: Place,
}

/// List the keys: whose they are, what they are good for, and when they were last used
#[derive(Args)]
struct List {
    /// Print JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    place: Place,
}

/// End a key: calls and open streams end within seconds
#[derive(Args)]
struct Revoke {
    /// The name of its holder, or its id
    #[arg(value_name = "NAME|ID")]
    name: String,

    #[command(flatten)]
    place: Place,
}

/// Replace a key by a new one of the same holder and print it
#[derive(Args)]
struct Rotate {
    /// The name of its holder, or its id
    #[arg(value_name = "NAME|ID")]
    name: String,

    /// For how long the old key is good beside the new one, such as 24h [default: not at all]
    #[arg(long, value_name = "TIME", value_parser = time)]
    grace: Option<Duration>,

    /// After which time the new key expires [default: as the old one did, from now on]
    #[arg(long, value_name = "TIME", value_parser = time)]
    expires: Option<Duration>,

    #[command(flatten)]
    place: Place,
}

/// Where the keys are.
#[derive(Args)]
struct Place {
    /// The configuration [default: ./tidegate.toml, else the user's own]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// The file of keys [default: keys of [auth] in the configuration, else keys.toml beside it]
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

fn time(text: &str) -> Result<Duration, String> {
    match Time(text.to_owned()).duration() {
        Ok(time) if time.is_zero() => Err("must be longer than 0".to_owned()),
        other => other,
    }
}

impl Keys {
    /// Whether programs read the output.
    pub(crate) fn is_json(&self) -> bool {
        matches!(&self.action, Action::List(list) if list.json)
    }
}

pub(crate) fn run(keys: Keys) -> Result<(), Failure> {
    match keys.action {
        Action::Add(add) => self::add(add),
        Action::List(list) => list::show(&KeysFile::find(&list.place)?, list.json),
        Action::Revoke(revoke) => self::revoke(&revoke),
        Action::Rotate(rotate) => self::rotate(&rotate),
    }
}

fn add(add: Add) -> Result<(), Failure> {
    let place = KeysFile::find(&add.place)?;
    let now = epoch_ms();
    add.endpoints.iter().try_for_each(|endpoint| place.check_endpoint(endpoint))?;
    let some = |list: Vec<String>| (!list.is_empty()).then_some(list);
    let new = NewKey {
        name: add.name.clone(),
        tenant: add.tenant,
        roles: add.roles,
        scopes: some(add.scopes),
        endpoints: some(add.endpoints),
        expires_ms: add.expires.map(|time| after(now, time)),
    };
    let (end, scopes) = (new.expires_ms, new.scopes.clone());
    let key = KeyFile::change(&place.path, |file| file.add(new, now))?;
    output::text(key.reveal())?;
    let name = clean::name(&add.name);
    let until = end.map_or(String::new(), |end| format!("It is good until {}. ", shown_time(end)));
    output::note(&format!("Added a key for {name} to {}. {until}It is not shown again.", place.shown()));
    if let Some(scopes) = scopes {
        place.say_missing_scopes(&scopes);
    }
    place.say_what_is_missing();
    Ok(())
}

fn revoke(revoke: &Revoke) -> Result<(), Failure> {
    let place = KeysFile::find(&revoke.place)?;
    let now = epoch_ms();
    let change = KeyFile::change(&place.path, |file| file.revoke(&revoke.name, now));
    let revoked = change.map_err(|error| place.clearer(error))?;
    match revoked.as_slice() {
        [] => output::note("Nothing to do: it was revoked before."),
        keys => keys.iter().for_each(|key| output::note(&format!("Revoked {}.", named(key)))),
    }
    Ok(())
}

fn rotate(rotate: &Rotate) -> Result<(), Failure> {
    let place = KeysFile::find(&rotate.place)?;
    let now = epoch_ms();
    let grace = rotate.grace.unwrap_or_default();
    let how = Rotation { grace_ms: millis(grace), expires_ms: rotate.expires.map(|time| after(now, time)) };
    let change = KeyFile::change(&place.path, |file| file.rotate(&rotate.name, how, now));
    let key = change.map_err(|error| place.clearer(error))?;
    output::text(key.reveal())?;
    let name = clean::name(&rotate.name);
    output::note(&match how.grace_ms {
        0 => format!(
            "{name} has a new key, and the old one is not good any more. The new one is not shown again."
        ),
        grace => format!(
            "{name} has a new key, and the old one is good until {}. The new one is not shown again.",
            shown_time(now.saturating_add(grace))
        ),
    });
    place.say_what_is_missing();
    Ok(())
}

/// A key, for people: whose it is, and which of theirs.
fn named(key: &ApiKey) -> String {
    format!("the key {} of {}", key.id, clean::name(&key.name))
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn after(now_ms: u64, time: Duration) -> u64 {
    now_ms.saturating_add(millis(time))
}

/// A time in seconds.
fn shown_time(ms: u64) -> String {
    let text = rfc3339_ms(ms);
    match text.split_once('.') {
        Some((seconds, _)) => format!("{seconds}Z"),
        None => text,
    }
}

impl From<KeyFileError> for Failure {
    fn from(error: KeyFileError) -> Failure {
        let failure = Failure::usage(&error);
        match error {
            KeyFileError::NameTaken(_) => failure.advise(
                "tidegate keys rotate NAME gives its holder a new key. tidegate keys list shows all.",
            ),
            _ => failure,
        }
    }
}
