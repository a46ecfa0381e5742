//! [`Authentication`]: who may call over HTTP, as the configuration says now.

use tidegate_auth::{AuthError, Authenticator, ProtectedResource};
use tidegate_config::{AuthSettings, EndpointSettings, Settings};
use tidegate_protocol::Error;
use tidegate_service::Call;
use tidegate_service::budget::Budget;

/// Who may call. Clones are the same.
#[derive(Clone)]
pub(super) struct Authentication {
    authenticator: Authenticator,
    /// Where clients find the gateway, as long as it runs.
    origin: String,
    /// The path of the default endpoint, as long as it runs.
    path: String,
}

impl Authentication {
    /// As a configuration has it; `None` if everybody is the one user of this machine. `origin` is the beginning of all URLs.
    pub(super) fn start(settings: &Settings, origin: &str) -> Result<Option<Authentication>, AuthError> {
        let Some(auth) = &settings.auth else { return Ok(None) };
        let path = &settings.listen.path;
        let resources = resources(&settings.endpoints, origin, path);
        let authenticator = Authenticator::start(auth, resources, settings.state_dir.as_deref())?;
        set_share(auth);
        Ok(Some(Authentication { authenticator, origin: origin.to_owned(), path: path.clone() }))
    }

    /// Another configuration is in force. On an error the one before stays.
    pub(super) fn reload(
        &self,
        auth: &AuthSettings,
        endpoints: &[EndpointSettings],
    ) -> Result<(), AuthError> {
        self.authenticator.reload(auth, resources(endpoints, &self.origin, &self.path))?;
        set_share(auth);
        Ok(())
    }

    pub(super) fn authenticator(&self) -> &Authenticator {
        &self.authenticator
    }

    /// For tools that need scopes of their own.
    pub(super) fn scope_check(&self) -> impl Fn(&Call) -> Result<(), Error> + Send + Sync + 'static {
        self.authenticator.scope_check()
    }
}

/// So that one caller cannot fill the process for all others.
fn set_share(auth: &AuthSettings) {
    let budget = Budget::of_process();
    budget.set_share(auth.max_buffered.unwrap_or(budget.limit() / USUAL_SHARE));
}

/// Which part of the budget is one caller's, where nobody says so.
const USUAL_SHARE: usize = 4;

/// What tokens can be for.
pub(in crate::commands) fn resources(
    endpoints: &[EndpointSettings],
    origin: &str,
    path: &str,
) -> Vec<ProtectedResource> {
    let resource = |endpoint: Option<&str>, path: String, audience: &[String]| ProtectedResource {
        endpoint: endpoint.map(Into::into),
        url: format!("{origin}{path}"),
        path,
        audience: audience.to_vec(),
    };
    let named = endpoints.iter().map(|endpoint| {
        let path = EndpointSettings::path_beside(&endpoint.name, path);
        resource(Some(&endpoint.name), path, &endpoint.audience)
    });
    std::iter::once(resource(None, path.to_owned(), &[])).chain(named).collect()
}
