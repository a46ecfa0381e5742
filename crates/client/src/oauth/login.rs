//! [`login`]: logging in because a person wants to, not because a server does.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ::http::{Request, StatusCode, header};
use bytes::Bytes;
use tidegate_protocol::Error;

use super::OAuth;
use super::attempts::Attempts;
use super::authorizer::OAuthInner;
use super::builder::OAuthBuilder;
use super::challenge::Asked;
use super::discovery::discover;
use super::fault::Fault;
use super::obtain::TokenRequest;
use super::scopes::Scopes;
use super::store::{Credentials, FileStore};

/// What came of a login.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoginReport {
    /// The MCP server, without what may be secret in its address.
    pub server: String,
    /// The authorization server.
    pub issuer: String,
    /// What the token allows; empty if the server did not say.
    pub scopes: Scopes,
    /// When the token expires, if that is known.
    pub expires_at: Option<SystemTime>,
    /// Whether it is renewed without another login.
    pub renewable: bool,
    /// Where it is kept.
    pub place: String,
}

/// Logs in to the MCP server at `url` and keeps the tokens where this user's other processes find them
/// ([`FileStore::of_user`]). `options` may change whatever the builder knows; the identity function is fine.
pub async fn login(
    url: &str,
    options: impl FnOnce(OAuthBuilder) -> OAuthBuilder,
) -> Result<LoginReport, Error> {
    let builder = OAuth::builder(url).store(FileStore::of_user()?);
    options(builder).build()?.login().await
}

/// Forgets the tokens of the MCP server at `url` that [`login`] keeps. Says how many entries there were.
pub async fn logout(url: &str) -> Result<usize, Error> {
    OAuth::builder(url).store(FileStore::of_user()?).build()?.logout().await
}

impl OAuth {
    /// Logs in now, whether there are tokens already or not, and whether the settings say interactive or not.
    pub async fn login(&self) -> Result<LoginReport, Error> {
        Ok(Box::pin(self.0.log_in()).await?)
    }
}

impl OAuthInner {
    async fn log_in(&self) -> Result<LoginReport, Fault> {
        let server = &self.settings.server;
        let (status, asked) = self.probe().await?;
        let mut flight = self.board().await;
        let _guard = self.lock(true).await?;
        let kept = self.kept().await?;
        let known: Vec<_> = kept.iter().map(|own| own.issuer.as_str()).collect();
        let found = discover(self.http().await, server, &asked, &known).await?;
        if !found.described && status != StatusCode::UNAUTHORIZED {
            return Err(Fault::Unsupported(format!(
                "{} does not ask for a login, so none is needed",
                server.host()
            )));
        }
        let mine = kept.iter().find(|own| own.issuer == found.server.issuer).cloned();
        // Whoever asks for it by hand starts anew.
        *self.attempts() = Attempts::default();
        let want = TokenRequest { found, asked, more: Scopes::default(), mine, interactive: true };
        self.obtain(&mut flight, want, &kept).await?;
        let own = flight.credentials.as_ref().ok_or_else(|| Fault::Store("the token is gone".to_owned()))?;
        Ok(self.report(own))
    }

    fn report(&self, own: &Credentials) -> LoginReport {
        let tokens = own.tokens.as_ref();
        let expires_at = tokens.and_then(|tokens| tokens.expires_at);
        LoginReport {
            server: self.settings.server.plain(),
            issuer: own.issuer.clone(),
            scopes: own.granted.clone(),
            expires_at: expires_at.map(|at| UNIX_EPOCH + Duration::from_secs(at)),
            renewable: tokens.is_some_and(|tokens| tokens.refresh.is_some()),
            place: self.settings.store.place(own),
        }
    }

    /// Asks the server for something harmless, to be told what it wants. A `ping` opens no session.
    async fn probe(&self) -> Result<(StatusCode, Asked), Fault> {
        let server = &self.settings.server;
        let request = Request::post(server.url.as_str())
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT, "application/json, text/event-stream")
            .body(Bytes::from_static(br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#))
            .map_err(|_| Fault::Settings("the address of the server is not a valid URI".to_owned()))?;
        let (status, headers) = self.http().await.head(request).await?;
        let challenges = headers.get_all(header::WWW_AUTHENTICATE).iter();
        let texts: Vec<_> = challenges.filter_map(|value| value.to_str().ok()).collect();
        Ok((status, Asked::read(&texts)))
    }
}
