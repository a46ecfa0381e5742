//! How servers behind the gateway are reached: with the logins of the user, and those that are part of the program.

use tidegate::protocol::Profile;
use tidegate_builtin::Host;
use tidegate_client::{AppError, Client, ClientBuilder, Target};
use tidegate_config::{ServerSettings, Source};
use tidegate_service::Door;

use super::ancestry::Ancestry;
use super::gateway_handle::GatewayHandle;
use crate::commands::builtin::Builtin;
use crate::commands::connection;

/// Makes clients. `errors` is for the demonstration server, `handle` for servers of the program that use others;
/// `is_authenticated` is for those that tell tenants apart. Nothing else of who may call gets to any server.
pub(super) fn with(
    errors: Profile,
    ancestry: Ancestry,
    handle: GatewayHandle,
    is_authenticated: bool,
) -> impl Fn(&ServerSettings) -> Result<ClientBuilder, AppError> {
    move |settings| {
        let options = settings.options.clone();
        let target = match &settings.source {
            Source::Target(Target::Command(command)) => Target::Command(ancestry.tell(command.clone())),
            Source::Target(target) => target.clone(),
            Source::Builtin(name) => {
                let host = Host::new(errors, Some(handle.clone().boxed()))
                    .authenticated(is_authenticated)
                    .allowing(handle.allows(&settings.name));
                let builtin = Builtin::new(name, settings, host)?;
                let builder = Client::builder(builtin.target.clone())?.settings(options);
                return Ok(builtin.ends_with(builder));
            }
        };
        let builder = Client::builder(target.clone())?.settings(options);
        connection::with_logins(builder, &target, false).map_err(|error| connection::app_error(&error))
    }
}
