//! The servers that are part of the program, as servers to connect to.

use tidegate::protocol::{Error, Profile, Symbol};
use tidegate_builtin::{Host, Running};
use tidegate_client::{AppError, ClientBuilder, Target};
use tidegate_config::ServerSettings;

use super::connection;
use crate::builtins::registry;

/// A server of the program. Clones are the same.
#[derive(Clone)]
pub(crate) struct Builtin {
    pub(crate) target: Target,
    running: Running,
}

impl Builtin {
    /// A server of the program. The errors of `host` are for servers whose settings say nothing of them.
    pub(crate) fn new(name: &str, settings: &ServerSettings, mut host: Host) -> Result<Builtin, AppError> {
        host.errors = match Profile::from(settings.options.profile) {
            Profile::Strict => host.errors,
            said => said,
        };
        let builtins = &registry().builtins;
        let Some(builtin) = builtins.get(name) else {
            let known = builtins.names().collect::<Vec<_>>().join(" and ");
            let what =
                format!("server {:?}: {name:?} is not a built-in server; there are {known}", settings.name);
            return Err(connection::app_error(&Error::new(Symbol::InvalidParams, what)));
        };
        let running = builtin.start(&settings.name, settings.builtin.as_ref(), host);
        Ok(Builtin { target: Target::from_door(running.clone()), running })
    }

    /// Has the client end the server, too, when it is closed.
    pub(crate) fn ends_with(self, builder: ClientBuilder) -> ClientBuilder {
        builder.on_close(move || self.running.clone().close())
    }

    /// Whether it can be used; the error says it as the operator should hear it.
    pub(crate) async fn open(&self) -> Result<(), AppError> {
        self.running.open().await.map_err(|error| connection::app_error(&error))
    }
}
