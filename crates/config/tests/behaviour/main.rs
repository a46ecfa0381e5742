//! What a configuration means, what is said about a wrong one, and what happens to files. One file for each theme.

mod audit;
mod authentication;
mod documentation;
mod editing;
mod endpoints;
mod exposure;
mod files;
#[path = "../../src/test_folder.rs"]
mod folder;
mod importing;
mod limits;
mod log;
mod meaning;
mod missing;
mod mistakes;
mod sections;
mod telemetry;
mod watching;

use tidegate_builtin::Builtins;
use tidegate_client::{Command, Remote, Target};
use tidegate_config::{Config, ConfigError, ServerSettings, Settings, Source};

/// Variables that are set in tests. `hush` must never be seen anywhere.
fn env(name: &str) -> Option<String> {
    match name {
        "TOKEN" => Some("hush".to_owned()),
        "SPACED" => Some("hush hush".to_owned()),
        "BREAK" => Some("hush\nhush".to_owned()),
        "BASE" => Some("https://example.com".to_owned()),
        "SOON" => Some("5s".to_owned()),
        _ => None,
    }
}

/// The servers of the program.
fn builtins() -> Builtins {
    Builtins::new([tidegate_demo::builtin(), tidegate_memory::builtin()])
}

fn parse(text: &str) -> Result<Settings, ConfigError> {
    Config::parse(text, "/srv/app/tidegate.toml", &builtins(), &env)
}

/// What is said about a wrong configuration: where, what, and never a value.
#[track_caller]
fn wrong(text: &str, expected: &str) {
    let error = parse(text).map(|_| ()).unwrap_err().to_string();
    assert!(error.starts_with("/srv/app/tidegate.toml:"), "{error}");
    assert!(error.contains(expected), "{text}\nsays: {error}");
    assert!(!error.contains("hush"), "{text}\nsays: {error}");
}

/// The server `x` of a file that has only this in it.
fn server(fields: &str) -> ServerSettings {
    parse(&format!("[servers.x]\n{fields}")).unwrap().servers.remove(0)
}

fn command(server: &ServerSettings) -> Command {
    match &server.source {
        Source::Target(Target::Command(command)) => command.clone(),
        other => panic!("{other:?}"),
    }
}

fn remote(server: &ServerSettings) -> Remote {
    match &server.source {
        Source::Target(Target::Url(remote)) => remote.clone(),
        other => panic!("{other:?}"),
    }
}
