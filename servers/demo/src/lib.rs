//! The demonstration server: a tool of each kind, to try a client with. It is also the example of a server that is part of
//! the `tidegate` program; `docs/builtin.md` goes through it.

mod tools;

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use tidegate_builtin::{Builtin, BuiltinServer, Host, Opened, Reading, Time};
use tidegate_protocol::{Error, Profile};
use tidegate_server::{Server, ServerDoor};

/// The demonstration server as part of a program.
pub fn builtin() -> Builtin {
    Builtin::of::<DemoServer>()
}

struct DemoServer;

/// The built-in demonstration server. It is served if a server has builtin = "demo", or with `tidegate serve --demo`.
#[derive(Deserialize, JsonSchema, Default)]
#[serde(deny_unknown_fields, default)]
struct Demo {
    /// How long the tool count waits between two numbers, such as "100ms" or "1s". Default "100ms".
    pace: Option<Time>,
}

/// What the server is told.
#[derive(Debug, Clone)]
pub struct Settings {
    /// How long `count` waits between two numbers.
    pub pace: Duration,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { pace: Duration::from_millis(100) }
    }
}

/// Counting to 100 takes no longer than a call may.
const SLOWEST: Duration = Duration::from_secs(10);

impl BuiltinServer for DemoServer {
    const NAME: &'static str = "demo";
    const DESCRIPTION: &'static str = "The built-in demonstration server.";
    type Written = Demo;
    type Settings = Settings;

    fn settings(written: &Demo, reading: &mut Reading<'_>) -> Settings {
        let usual = Settings::default();
        let pace = reading.time(&["pace"], written.pace.as_ref(), usual.pace);
        if pace > SLOWEST {
            reading.wrong(&["pace"], "must be at most \"10s\"");
        }
        Settings { pace }
    }

    fn open(settings: &Settings, host: Host) -> Result<Opened, Error> {
        Ok(Opened::new(server(settings, host.errors).bare()))
    }
}

/// The server itself, with the error numbers of `errors`.
pub fn server(settings: &Settings, errors: Profile) -> ServerDoor {
    Server::new("tidegate-demo", env!("CARGO_PKG_VERSION"))
        .title("Tidegate demonstration")
        .error_profile(errors)
        .instructions(
            "A small server to try a client with: echo, add, count (with progress) and greet (asks a question).",
        )
        .tool(tools::echo())
        .tool(tools::add())
        .tool(tools::count(settings.pace))
        .tool(tools::greet())
        .resource(tools::about())
        .prompt(tools::explain())
        .build()
}
