//! [`TokenRequest`]: a new token, from the authorization server that was found, by whichever grant was chosen.

use std::sync::Arc;

use super::authorizer::OAuthInner;
use super::browser::Visit;
use super::challenge::Asked;
use super::discovery::DiscoveredServer;
use super::dpop::Dpop;
use super::fault::{Fault, quote};
use super::flight::Flight;
use super::registration::Identity;
use super::scopes::Scopes;
use super::settings::Grant;
use super::store::{Credentials, Origin};
use super::{code, enterprise, grants};

/// What kind of token to get, and from whom.
pub(super) struct TokenRequest {
    pub(super) found: DiscoveredServer,
    pub(super) asked: Asked,
    /// Scopes that a refused request needs.
    pub(super) more: Scopes,
    /// What is kept of this authorization server.
    pub(super) mine: Option<Credentials>,
    /// Whether a browser may be opened.
    pub(super) interactive: bool,
}

impl OAuthInner {
    /// Gets a token, unless that has been tried often enough.
    pub(super) async fn obtain(
        &self,
        flight: &mut Flight,
        want: TokenRequest,
        kept: &[Credentials],
    ) -> Result<(), Fault> {
        if !self.may_ask(want.interactive) {
            return Err(self.login_needed(&want.more));
        }
        if !self.attempts().may() {
            return Err(Fault::TooManyLogins { host: self.settings.server.host() });
        }
        let outcome = self.mint(flight, want, kept).await;
        // A person who was bothered counts, and a token that was given out. A server that is down does not.
        let counts = match &outcome {
            Ok(()) => true,
            Err(fault) => matches!(self.settings.grant, Grant::User) && !fault.is_passing(),
        };
        if counts {
            self.attempts().made();
        }
        outcome
    }

    /// Whether a new token can be asked for at all.
    pub(super) fn may_ask(&self, interactive: bool) -> bool {
        interactive || !matches!(self.settings.grant, Grant::User)
    }

    pub(super) fn login_needed(&self, scopes: &Scopes) -> Fault {
        Fault::LoginNeeded { server: self.settings.server.plain(), scopes: scopes.clone() }
    }

    /// Gets a token.
    pub(super) async fn mint(
        &self,
        flight: &mut Flight,
        want: TokenRequest,
        kept: &[Credentials],
    ) -> Result<(), Fault> {
        let scopes = self.scopes(&want);
        let dpop = self.dpop(&want)?;
        // A login is prepared first: what is registered includes where the browser comes back to.
        let visit = match self.settings.grant {
            Grant::User => Some(self.prepare(&want, kept).await?),
            _ => None,
        };
        let http = self.http().await;
        let identity = match &visit {
            Some(visit) => {
                let redirect_uri = visit.redirect_uri();
                Identity::for_user(http, &self.settings, &want.found, kept, redirect_uri, &scopes).await?
            }
            None => Identity::configured(&self.settings, &want.found, kept)?,
        };
        let mut own = self.entry(&want, &identity, &scopes)?;
        let is_new = want.mine.as_ref().is_none_or(|mine| mine.registration != own.registration);
        if is_new && own.registration.origin == Origin::Dynamic {
            // So that a login which comes to nothing leaves no heap of clients behind.
            self.save(&mut own).await;
        }
        let endpoint = self.endpoint(&own, &identity, dpop.clone()).await?;
        let outcome = match (&self.settings.grant, visit) {
            (Grant::Client, _) => grants::client_credentials(&endpoint, &scopes).await,
            (Grant::Workload(assertion), _) => grants::workload(&endpoint, assertion, &scopes).await,
            (Grant::Enterprise(own), _) => enterprise::enterprise(&endpoint, own, &scopes).await,
            (Grant::User, Some(visit)) => {
                let metadata = &want.found.server;
                code::login(metadata, &endpoint, &scopes, visit, self.settings.assume_pkce).await
            }
            (Grant::User, None) => Err(Fault::Browser("there is no browser".to_owned())),
        };
        match outcome {
            Ok(granted) => self.keep(flight, own, granted, &scopes, dpop).await,
            Err(fault) => {
                if fault.forgets_client() || fault.code() == Some("invalid_scope") {
                    // The next attempt starts from nothing: another client, and only the scopes of the challenge.
                    own.registration.redirect_uri = None;
                    own.requested = Scopes::default();
                    own.tokens = None;
                    self.save(&mut own).await;
                }
                Err(fault)
            }
        }
    }

    async fn prepare(&self, want: &TokenRequest, kept: &[Credentials]) -> Result<Box<dyn Visit>, Fault> {
        let issuer = &want.found.server.issuer;
        let registered = kept.iter().find(|own| own.issuer == *issuer).map(|own| &own.registration);
        let redirect_uri = registered.and_then(|own| own.redirect_uri.as_deref());
        let visit = self.settings.browser.prepare(redirect_uri).await;
        visit.map_err(|error| Fault::Browser(error.to_string()))
    }

    /// 2026-07-28 authorization, Scope Selection Strategy: what the challenge says, else what the server describes; and
    /// what was asked for before, so that a new token can do all that the old one could.
    fn scopes(&self, want: &TokenRequest) -> Scopes {
        let chosen = match &want.asked.scopes {
            Some(asked) => asked.clone(),
            None if !self.settings.scopes.is_empty() => Scopes::default(),
            None => want.found.resource.scopes.clone(),
        };
        let before = want.mine.as_ref().map(|mine| mine.requested.clone()).unwrap_or_default();
        let mut scopes = before.union(&chosen).union(&want.more).union(&self.settings.scopes);
        // 2026-07-28 authorization, Refresh Tokens. Alone it would stand for nothing but itself.
        if matches!(self.settings.grant, Grant::User)
            && want.found.server.offers_offline()
            && !scopes.is_empty()
        {
            scopes = scopes.union(&Scopes::parse("offline_access"));
        }
        scopes
    }

    /// The key for proofs, if the token is to be bound to one.
    fn dpop(&self, want: &TokenRequest) -> Result<Option<Arc<Dpop>>, Fault> {
        let server = &want.found.server;
        let needed = want.asked.dpop || want.found.resource.needs_dpop;
        if !(needed || self.settings.dpop && server.takes_dpop()) {
            return Ok(None);
        }
        if server.dpop_signing_alg_values_supported.is_some() && !server.takes_dpop() {
            return Err(Fault::Unsupported(format!(
                "{} wants tokens that are bound to a key, but {} makes none with ES256; tell whoever runs them",
                self.settings.server.host(),
                quote(&server.issuer)
            )));
        }
        let stored = want.mine.as_ref().and_then(|mine| mine.dpop_key.as_ref());
        if let Some(same) = stored.and_then(|key| self.same_key(key)) {
            return Ok(Some(same));
        }
        let recalled = stored.and_then(|key| Dpop::from_stored(key).ok());
        Ok(Some(Arc::new(recalled.map_or_else(Dpop::new, Ok)?)))
    }

    /// What is to be stored, without tokens yet.
    fn entry(&self, want: &TokenRequest, identity: &Identity, scopes: &Scopes) -> Result<Credentials, Fault> {
        Ok(Credentials {
            server: self.settings.server.key().to_owned(),
            issuer: want.found.server.issuer.clone(),
            token_endpoint: want.found.server.token_endpoint()?.to_owned(),
            resource: want.found.resource.resource.clone(),
            registration: identity.registration.clone(),
            tokens: None,
            requested: scopes.clone(),
            granted: Scopes::default(),
            dpop_key: None,
            saved_at: 0,
        })
    }
}
