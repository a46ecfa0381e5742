//! How servers behind the gateway are reached: with the logins of the user, and those that are part of the program.

use tidegate::demo;
use tidegate::protocol::{Error, Profile, Symbol};
use tidegate_client::{AppError, Client, ClientBuilder, Command, Target};
use tidegate_config::{ServerSettings, Source};

use crate::commands::connection;

/// How many gateways started each other to get here. A gateway whose configuration has the gateway itself among its
/// servers would start processes without end.
const DEPTH: &str = "TIDEGATE_DEPTH";

/// How many gateways started each other to get here.
pub(super) fn depth() -> u8 {
    std::env::var(DEPTH).ok().and_then(|depth| depth.parse().ok()).unwrap_or(0)
}

/// A program that knows how deep it is.
fn deeper(mut command: Command) -> Command {
    command.env.insert(DEPTH.to_owned(), depth().saturating_add(1).to_string());
    command
}

/// Makes clients. `errors` is for the demonstration server.
pub(super) fn with(errors: Profile) -> impl Fn(&ServerSettings) -> Result<ClientBuilder, AppError> {
    move |settings| {
        let target = match &settings.source {
            Source::Target(Target::Command(command)) => Target::Command(deeper(command.clone())),
            Source::Target(target) => target.clone(),
            Source::Builtin(name) if name == "demo" => Target::from_door(demo::server(errors)),
            Source::Builtin(name) => {
                let what = format!(
                    "server {:?}: there is no built-in server {name:?}; there is demo",
                    settings.name
                );
                return Err(connection::app_error(&Error::new(Symbol::InvalidParams, what)));
            }
        };
        let builder = Client::builder(target.clone())?.options(settings.options.clone());
        connection::with_logins(builder, &target, false).map_err(|error| connection::app_error(&error))
    }
}
