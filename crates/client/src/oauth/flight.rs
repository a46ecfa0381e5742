//! [`Flight`]: getting one token, from the refusal or the expiry that calls for it to the token in the store.
//!
//! Whoever flies holds the lock of the [`OAuthInner`] and, from where others could get in the way, the lock of the store.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ::http::HeaderValue;
use tidegate_protocol::Error;

use super::authorizer::OAuthInner;
use super::challenge::Asked;
use super::code;
use super::current_token::CurrentToken;
use super::discovery::{DiscoveredServer, discover};
use super::dpop::{Dpop, Side};
use super::fault::Fault;
use super::jwt::now;
use super::obtain::TokenRequest;
use super::registration::Identity;
use super::scopes::Scopes;
use super::settings::Grant;
use super::store::{Credentials, StoreGuard, Tokens};
use super::token::{Granted, TokenEndpoint};
use crate::auth::Challenge;

/// How long another process may take to renew a token.
const WAIT: Duration = Duration::from_secs(45);
/// How long another process may take until somebody has logged in.
const WAIT_FOR_LOGIN: Duration = Duration::from_secs(330);
/// How soon a renewal is tried again after the authorization server could not be reached.
const AGAIN: u64 = 10;

/// What a refusal was about: status and the refused header. `None` for an expiry.
pub(super) type Question = Option<(u16, Option<HeaderValue>)>;

/// What flights leave to the next.
#[derive(Default)]
pub(super) struct Flight {
    /// What the token in use came with.
    pub(super) credentials: Option<Credentials>,
    /// Whom the server named last.
    pub(super) found: Option<DiscoveredServer>,
    failure: Option<(u64, Question, Error)>,
}

impl Flight {
    /// The failure of a flight with the same question that ended after `seen`: those who waited for it share it, or each
    /// of them would open a browser in turn.
    pub(super) fn failed_since(
        &self,
        seen: u64,
        question: Option<&(u16, Option<HeaderValue>)>,
    ) -> Option<Error> {
        let (number, own, error) = self.failure.as_ref()?;
        (*number > seen && own.as_ref() == question).then(|| error.clone())
    }

    pub(super) fn ended(&mut self, number: u64, question: Question, error: Option<&Error>) {
        self.failure = error.map(|error| (number, question, error.clone()));
    }
}

impl OAuthInner {
    /// Answers a refusal: with the token that somebody else got meanwhile, a renewed one, or a new one.
    pub(super) async fn respond(&self, flight: &mut Flight, challenge: &Challenge) -> Result<(), Fault> {
        self.look(flight).await;
        let asked = Asked::read(&challenge.www_authenticate);
        if let Some(current) = self.current.load_full() {
            if challenge.refused.as_ref() != Some(&current.header) {
                return Ok(());
            }
            if asked.says("use_dpop_nonce") {
                // The answer has brought the nonce, and nothing is wrong with the token.
                let known = current.dpop.as_ref().is_some_and(|dpop| dpop.nonce(Side::Resource).is_some());
                let fault = || Fault::Refused { host: self.settings.server.host(), status: challenge.status };
                return known.then_some(()).ok_or_else(fault);
            }
            self.attempts().refused(Instant::now());
        }
        let scopes = match challenge.status {
            403 => self.missing_scopes(flight, &asked, challenge.status)?,
            _ => Scopes::default(),
        };
        let _guard = self.lock(self.settings.interactive).await?;
        let mut kept = self.kept().await?;
        let helps = kept.first().is_some_and(|newest| newest.requested.covers(&scopes));
        if helps && self.adopt_newer(flight, &kept)? {
            return Ok(());
        }
        let renewable = scopes.is_empty() && kept.iter().any(|own| self.refreshes(own));
        if !renewable && !self.may_ask(self.settings.interactive) {
            // Before anybody else is asked anything, as this may happen with each request.
            return Err(self.login_needed(&scopes));
        }
        let found = self.discover(flight, &asked, &kept).await?;
        let mut mine = kept.iter().find(|own| own.issuer == found.server.issuer).cloned();
        if let Some(own) = mine.as_mut().filter(|_| scopes.is_empty() && !self.attempts().is_bad())
            && self.refreshes(own)
        {
            own.token_endpoint = found.server.token_endpoint()?.to_owned();
            match self.refresh(flight, own).await {
                Ok(()) => return Ok(()),
                Err(fault) if fault.is_passing() => return Err(fault),
                Err(fault) => {
                    self.forget(own, &fault).await;
                    kept = self.kept().await?;
                }
            }
        }
        let want = TokenRequest { found, asked, more: scopes, mine, interactive: self.settings.interactive };
        self.obtain(flight, want, &kept).await
    }

    /// The scopes that a 403 asks for, if asking for them can help.
    fn missing_scopes(&self, flight: &Flight, asked: &Asked, status: u16) -> Result<Scopes, Fault> {
        let host = self.settings.server.host();
        if !asked.says("insufficient_scope") {
            return Err(Fault::Refused { host, status });
        }
        let wanted = asked.scopes.clone().unwrap_or_default();
        let had = flight.credentials.as_ref().map(|own| own.requested.clone()).unwrap_or_default();
        if had.covers(&wanted) {
            return Err(Fault::ScopeRefused { host, scopes: wanted.to_string() });
        }
        Ok(wanted)
    }

    /// Renews the token in use before it expires, as far as that goes without anybody's help.
    pub(super) async fn renew(&self, flight: &mut Flight) -> Result<(), Fault> {
        self.look(flight).await;
        let Some(current) = self.current.load_full().filter(|current| current.is_due(now())) else {
            return Ok(());
        };
        let _guard = self.lock(false).await?;
        let kept = self.kept().await?;
        if self.adopt_newer(flight, &kept)? {
            return Ok(());
        }
        let Some(own) = flight.credentials.clone() else { return Ok(()) };
        let outcome = match (&self.settings.grant, &flight.found) {
            (Grant::User, _) if self.refreshes(&own) => self.refresh(flight, &own).await,
            (Grant::User, _) | (_, None) => return self.use_up(&current),
            (_, Some(found)) => {
                let want = TokenRequest {
                    found: found.clone(),
                    asked: Asked { dpop: current.dpop.is_some(), ..Asked::default() },
                    more: Scopes::default(),
                    mine: Some(own.clone()),
                    interactive: false,
                };
                self.mint(flight, want, &kept).await
            }
        };
        match outcome {
            Ok(()) => Ok(()),
            Err(fault) if fault.is_passing() && !current.is_expired(now()) => {
                tracing::warn!(%fault, "the token could not be renewed yet");
                let later = CurrentToken { renew_at: Some(now() + AGAIN), ..(*current).clone() };
                self.current.store(Some(Arc::new(later)));
                Ok(())
            }
            Err(fault) if fault.is_passing() => Err(fault),
            Err(fault) => {
                tracing::info!(%fault, "the token cannot be renewed");
                let mut own = own;
                self.forget(&mut own, &fault).await;
                flight.credentials = Some(own);
                self.current.store(None);
                Ok(())
            }
        }
    }

    /// Nothing renews this token: it is used as long as it lasts. The refusal of a request without one leads on.
    fn use_up(&self, current: &Arc<CurrentToken>) -> Result<(), Fault> {
        let rest = (!current.is_expired(now()))
            .then(|| CurrentToken { renew_at: current.expires_at, ..(**current).clone() });
        self.current.store(rest.map(Arc::new));
        Ok(())
    }

    /// Reads the store when that has not been done yet. If it cannot be read, that is a failure only for servers that
    /// want a token.
    async fn look(&self, flight: &mut Flight) {
        if self.looked.load(Ordering::Acquire) {
            return;
        }
        let kept = self.kept().await;
        let newest =
            |kept: Vec<Credentials>| kept.into_iter().find(|own| own.tokens.is_some() && self.knows(own));
        let adopted =
            kept.map(newest).and_then(|own| own.map_or(Ok(()), |own| self.adopt(flight, own, None)));
        if let Err(fault) = adopted {
            tracing::warn!(%fault, "stored tokens cannot be used");
        }
        self.looked.store(true, Ordering::Release);
    }

    /// Takes a token that another process has got since.
    fn adopt_newer(&self, flight: &mut Flight, kept: &[Credentials]) -> Result<bool, Fault> {
        let Some(newest) = kept.iter().find(|own| own.tokens.is_some() && self.knows(own)) else {
            return Ok(false);
        };
        let ours = flight.credentials.as_ref();
        let newer = ours.is_none_or(|own| newest.saved_at > own.saved_at && newest.tokens != own.tokens);
        let good = newest.tokens.as_ref().is_some_and(|own| own.renew_at().is_none_or(|at| at > now()));
        if !(newer && good) {
            return Ok(false);
        }
        self.adopt(flight, newest.clone(), None)?;
        Ok(true)
    }

    /// Uses these from now on.
    fn adopt(&self, flight: &mut Flight, own: Credentials, dpop: Option<Arc<Dpop>>) -> Result<(), Fault> {
        self.current.store(CurrentToken::of(&own, dpop)?.map(Arc::new));
        flight.credentials = Some(own);
        Ok(())
    }

    async fn refresh(&self, flight: &mut Flight, own: &Credentials) -> Result<(), Fault> {
        let gone =
            || Fault::Settings("the client that logged in is no longer configured; log in again".to_owned());
        let identity = Identity::recall(&self.settings, &own.registration).ok_or_else(gone)?;
        let dpop = match &own.dpop_key {
            Some(key) => Some(self.same_key(key).map_or_else(|| Dpop::from_stored(key).map(Arc::new), Ok)?),
            None => None,
        };
        let endpoint = self.endpoint(own, &identity, dpop.clone()).await?;
        let Some(token) = own.tokens.as_ref().and_then(|tokens| tokens.refresh.clone()) else {
            return Err(gone());
        };
        let mut granted = code::refresh(&endpoint, &token).await?;
        // RFC 6749 section 6: without a new one the old one stays good.
        granted.refresh.get_or_insert(token);
        let requested = own.granted.clone();
        self.keep(flight, own.clone(), granted, &requested, dpop).await
    }

    /// Stores what was granted and uses it. If it cannot be stored, it is used all the same: asking again would cost a
    /// login.
    pub(super) async fn keep(
        &self,
        flight: &mut Flight,
        mut own: Credentials,
        granted: Granted,
        requested: &Scopes,
        dpop: Option<Arc<Dpop>>,
    ) -> Result<(), Fault> {
        let issued_at = now();
        own.granted = granted.scopes.unwrap_or_else(|| requested.clone());
        own.dpop_key = dpop.as_ref().map(|dpop| dpop.stored().clone());
        own.tokens = Some(Tokens {
            access: granted.access,
            kind: granted.kind,
            refresh: granted.refresh,
            issued_at,
            // Some say 0 for "never".
            expires_at: granted
                .expires_in
                .filter(|life| *life > 0)
                .map(|life| issued_at.saturating_add(life)),
        });
        self.save(&mut own).await;
        self.attempts().issued(Instant::now());
        self.unproven.store(true, Ordering::Relaxed);
        self.adopt(flight, own, dpop)
    }

    /// Forgets tokens that were refused, and the client too if the authorization server did.
    pub(super) async fn forget(&self, own: &mut Credentials, fault: &Fault) {
        own.tokens = None;
        if fault.forgets_client() {
            own.registration.redirect_uri = None;
        }
        self.save(own).await;
    }

    pub(super) async fn save(&self, own: &mut Credentials) {
        own.saved_at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64;
        if let Err(error) = self.settings.store.save(own).await {
            tracing::warn!(%error, "could not store a token; it is lost when this process exits");
        }
    }

    async fn discover(
        &self,
        flight: &mut Flight,
        asked: &Asked,
        kept: &[Credentials],
    ) -> Result<DiscoveredServer, Fault> {
        let known: Vec<_> = kept.iter().map(|own| own.issuer.as_str()).collect();
        let found = discover(self.http().await, &self.settings.server, asked, &known).await?;
        flight.found = Some(found.clone());
        Ok(found)
    }

    /// The token endpoint for one client and one resource, if requests may go there.
    pub(super) async fn endpoint(
        &self,
        own: &Credentials,
        identity: &Identity,
        dpop: Option<Arc<Dpop>>,
    ) -> Result<TokenEndpoint, Fault> {
        let http = self.http().await.clone();
        Ok(TokenEndpoint {
            url: http.allowed().check("token endpoint", &own.token_endpoint)?,
            http,
            issuer: own.issuer.clone(),
            client_id: identity.registration.client_id.clone(),
            proof: identity.proof.clone(),
            resource: Some(own.resource.clone()),
            dpop,
        })
    }

    /// The key in use, which knows the nonces, if it is this one.
    pub(super) fn same_key(&self, stored: &super::Secret) -> Option<Arc<Dpop>> {
        self.current.load().as_ref()?.dpop.clone().filter(|dpop| dpop.stored() == stored)
    }

    pub(super) async fn kept(&self) -> Result<Vec<Credentials>, Fault> {
        let kept = self.settings.store.load(self.settings.server.key()).await;
        kept.map_err(|error| Fault::Store(error.to_string()))
    }

    pub(super) async fn lock(&self, for_login: bool) -> Result<StoreGuard, Fault> {
        let wait = if for_login { WAIT_FOR_LOGIN } else { WAIT };
        let guard = self.settings.store.lock(self.settings.server.key(), wait).await;
        guard.map_err(|error| Fault::Store(error.to_string()))
    }

    /// Whether these are of a client that we still are.
    fn knows(&self, own: &Credentials) -> bool {
        let configured = self.settings.client.as_ref().map(|client| client.id.as_str());
        configured.is_none_or(|id| id == own.registration.client_id)
            && Identity::recall(&self.settings, &own.registration).is_some()
    }

    fn refreshes(&self, own: &Credentials) -> bool {
        let has_token = own.tokens.as_ref().is_some_and(|tokens| tokens.refresh.is_some());
        has_token && matches!(self.settings.grant, Grant::User) && self.knows(own)
    }
}
