//! [`AdminSocket`]: the admin API in the state directory, for whoever runs the gateway.

use std::path::Path;
use std::time::Duration;

#[cfg(unix)]
use tidegate::edge::http::{self, PageSite};
use tidegate_config::Settings;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::Admin;
#[cfg(unix)]
use super::access::Standing;
use crate::commands::admin::presence::{self, Presence, PresenceFiles};

/// How long those who still ask are waited for: commands that ask are quick.
#[cfg(unix)]
const MOST_DRAIN: Duration = Duration::from_secs(1);

/// How many connections it takes at once: commands make one each.
#[cfg(unix)]
const MOST_CONNECTIONS: usize = 64;

/// The way in for commands, while the gateway runs. Its files are removed with it.
pub(in crate::commands::serve) struct AdminSocket {
    _files: Option<PresenceFiles>,
    serving: Option<JoinHandle<()>>,
    closing: CancellationToken,
}

impl AdminSocket {
    /// Opens it in the state directory of these settings, if they have one. `url` is where the API is over HTTP. What cannot be done
    /// is said in the log: the gateway serves its clients without it.
    pub(in crate::commands::serve) async fn open(
        admin: &Admin,
        settings: &Settings,
        url: Option<String>,
    ) -> AdminSocket {
        let closing = CancellationToken::new();
        let none = |closing| AdminSocket { _files: None, serving: None, closing };
        let Some(state_dir) = &settings.state_dir else { return none(closing) };
        // Asking a gateway that hangs takes a while, and nobody waits for it.
        let swept = state_dir.clone();
        tokio::spawn(async move { presence::sweep(&swept).await });
        let mut files = match PresenceFiles::prepare(state_dir) {
            Ok(files) => files,
            Err(error) => {
                let folder = presence::folder(state_dir);
                tracing::warn!(
                    "Commands such as tidegate status will not find this gateway: {} cannot be used: {error}",
                    folder.display()
                );
                return none(closing);
            }
        };
        let serving = serve(admin, &files.socket(), settings.drain, closing.clone());
        let presence = Presence {
            pid: std::process::id(),
            started: tidegate_service::rfc3339_ms(admin.0.since),
            transport: admin.0.transport,
            token: url
                .as_ref()
                .filter(|_| settings.auth.is_none())
                .map(|_| admin.0.token.reveal().to_owned()),
            url,
            config: admin
                .0
                .config
                .get()
                .map(|config| std::fs::canonicalize(config).unwrap_or(config.clone())),
            socket: None,
        };
        if let Err(error) = files.write(&presence) {
            let folder = presence::folder(state_dir);
            tracing::warn!(
                "Commands such as tidegate status will not find this gateway: nothing can be written to {}: {error}",
                folder.display()
            );
        }
        AdminSocket { _files: Some(files), serving, closing }
    }

    /// Ends what is under way, and removes the files.
    pub(in crate::commands::serve) async fn close(mut self) {
        self.closing.cancel();
        if let Some(serving) = self.serving.take() {
            let _ = serving.await;
        }
    }
}

impl Drop for AdminSocket {
    fn drop(&mut self) {
        self.closing.cancel();
    }
}

/// Listens at a path. Nobody else can get there: the folder is the user's own.
#[cfg(unix)]
fn serve(admin: &Admin, path: &Path, drain: Duration, closing: CancellationToken) -> Option<JoinHandle<()>> {
    use std::os::unix::fs::PermissionsExt as _;
    let bound = tokio::net::UnixListener::bind(path).and_then(|listener| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
        Ok(listener)
    });
    let listener = match bound {
        Ok(listener) => listener,
        Err(error) => {
            tracing::warn!(
                "There is no admin socket at {}: {error}. Commands such as tidegate status use the URL, if there is one; a shorter \
                 state_dir helps if the path is too long",
                path.display()
            );
            return None;
        }
    };
    let settings = http::Settings {
        // Whoever can open the socket sends no names that have to be checked.
        any_host: true,
        max_connections: MOST_CONNECTIONS,
        drain: drain.min(MOST_DRAIN),
        ..http::Settings::default().handlers([admin.handler(Standing::Operator)])
    };
    let site = PageSite::new(&settings);
    Some(tokio::spawn(async move {
        if let Err(error) = http::serve(site, listener, settings, closing.cancelled_owned()).await {
            tracing::warn!(%error, "The admin socket has ended");
        }
    }))
}

#[cfg(not(unix))]
fn serve(_: &Admin, _: &Path, _: Duration, _: CancellationToken) -> Option<JoinHandle<()>> {
    None
}
