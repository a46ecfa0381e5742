//! [`OAuth`]: the [`Authorizer`] that gets tokens, renews them, and logs in.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use ::http::{HeaderMap, HeaderValue, Method, StatusCode};
use arc_swap::ArcSwapOption;
use futures_util::future::BoxFuture;
use tidegate_protocol::Error;
use tokio::sync::OnceCell;
use url::Url;

use super::allowed_addresses::AllowedAddresses;
use super::attempts::Attempts;
use super::builder::OAuthBuilder;
use super::current_token::CurrentToken;
use super::dpop::Side;
use super::flight::Flight;
use super::http::Http;
use super::jwt::now;
use super::settings::Settings;
use crate::auth::{Authorizer, Challenge};

/// Gets, keeps and renews the tokens for one MCP server. Clones share everything.
///
/// However many requests are refused or find their token expired at once, one of them gets a new one and the others
/// wait for it, across all processes that share the [`TokenStore`](super::TokenStore). Work that has begun is finished even if nobody waits
/// for it any longer: a refresh token is often good for one use only, and its successor must not get lost.
#[derive(Clone)]
pub struct OAuth(pub(super) Arc<OAuthInner>);

pub(super) struct OAuthInner {
    pub(super) settings: Settings,
    http: OnceCell<Arc<Http>>,
    /// The token in use. Reading it is all that most requests do.
    pub(super) current: ArcSwapOption<CurrentToken>,
    /// The store has been read.
    pub(super) looked: AtomicBool,
    /// Held by whoever is getting a token.
    flight: tokio::sync::Mutex<Flight>,
    /// How many flights have ended, so that those who waited for one know that it did.
    ended: AtomicU64,
    attempts: Mutex<Attempts>,
    /// The token in use has not been seen to work.
    pub(super) unproven: AtomicBool,
}

impl OAuth {
    /// Tokens for the MCP server at this address.
    pub fn builder(server: &str) -> OAuthBuilder {
        OAuthBuilder::new(server)
    }

    pub(super) fn of(settings: Settings) -> OAuth {
        OAuth(Arc::new(OAuthInner {
            settings,
            http: OnceCell::new(),
            current: ArcSwapOption::empty(),
            looked: AtomicBool::new(false),
            flight: tokio::sync::Mutex::default(),
            ended: AtomicU64::new(0),
            attempts: Mutex::default(),
            unproven: AtomicBool::new(false),
        }))
    }

    /// Forgets all tokens for this server, here and in the store. Says how many entries there were.
    pub async fn logout(&self) -> Result<usize, Error> {
        let mut flight = self.0.flight.lock().await;
        *flight = Flight::default();
        self.0.current.store(None);
        self.0.settings.store.remove(self.0.settings.server.key()).await
    }
}

impl Authorizer for OAuth {
    fn ready(&self) -> Option<Option<HeaderValue>> {
        self.0.ready()
    }

    fn authorization(&self) -> BoxFuture<'_, Result<Option<HeaderValue>, Error>> {
        Box::pin(async move {
            if let Some(ready) = self.0.ready() {
                return Ok(ready);
            }
            let seen = self.0.ended.load(Ordering::Acquire);
            let inner = self.0.clone();
            to_the_end(async move { inner.renewed(seen).await }).await
        })
    }

    fn challenged(&self, challenge: Challenge) -> BoxFuture<'_, Result<(), Error>> {
        let seen = self.0.ended.load(Ordering::Acquire);
        let inner = self.0.clone();
        Box::pin(to_the_end(async move { inner.answer(seen, challenge).await }))
    }

    fn proof(&self, method: &Method, url: &Url, authorization: &HeaderValue) -> Option<HeaderValue> {
        let current = self.0.current.load();
        let current = current.as_ref().filter(|current| current.header == *authorization)?;
        let token = Some(current.access.reveal());
        current.dpop.as_ref()?.proof(Side::Resource, method, url, token).ok()
    }

    fn answered(&self, authorization: &HeaderValue, status: StatusCode, headers: &HeaderMap) {
        let current = self.0.current.load();
        let Some(current) = current.as_ref().filter(|current| current.header == *authorization) else {
            return;
        };
        if let Some(dpop) = &current.dpop {
            dpop.learn(Side::Resource, headers);
        }
        let accepted = status.is_success();
        if accepted
            && self.0.unproven.load(Ordering::Relaxed)
            && self.0.unproven.swap(false, Ordering::Relaxed)
        {
            self.0.attempts().worked();
        }
    }
}

impl fmt::Debug for OAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OAuth").field("server", &self.0.settings.server.plain()).finish_non_exhaustive()
    }
}

impl OAuthInner {
    /// What can be said without waiting for anybody: a token that is good, or that there is none.
    fn ready(&self) -> Option<Option<HeaderValue>> {
        let current = self.current.load();
        let Some(current) = current.as_ref() else {
            // The server's refusal leads to a login, if it wants one.
            return self.looked.load(Ordering::Acquire).then_some(None);
        };
        let now = now();
        let good = !current.is_due(now)
            // Somebody is getting a new one; this one will do until then.
            || (!current.is_expired(now) && self.flight.try_lock().is_err());
        good.then(|| Some(current.header.clone()))
    }

    async fn renewed(&self, seen: u64) -> Result<Option<HeaderValue>, Error> {
        let mut flight = self.flight.lock().await;
        let header = || self.current.load().as_ref().map(|current| current.header.clone());
        if self.current.load().as_ref().is_some_and(|current| !current.is_due(now())) {
            return Ok(header());
        }
        if let Some(error) = flight.failed_since(seen, None) {
            return Err(error);
        }
        let outcome = Box::pin(self.renew(&mut flight)).await.map_err(Error::from);
        self.end(&mut flight, None, &outcome);
        outcome.map(|()| header())
    }

    async fn answer(&self, seen: u64, challenge: Challenge) -> Result<(), Error> {
        let mut flight = self.flight.lock().await;
        let question = Some((challenge.status, challenge.refused.clone()));
        if let Some(error) = flight.failed_since(seen, question.as_ref()) {
            return Err(error);
        }
        // In a box, because a whole login is in it.
        let outcome = Box::pin(self.respond(&mut flight, &challenge)).await.map_err(Error::from);
        self.end(&mut flight, question, &outcome);
        outcome
    }

    fn end(&self, flight: &mut Flight, question: super::flight::Question, outcome: &Result<(), Error>) {
        let number = self.ended.fetch_add(1, Ordering::AcqRel) + 1;
        flight.ended(number, question, outcome.as_ref().err());
    }

    /// Waits for all others to be done, and keeps them out.
    pub(super) async fn board(&self) -> tokio::sync::MutexGuard<'_, Flight> {
        self.flight.lock().await
    }

    pub(super) fn attempts(&self) -> MutexGuard<'_, Attempts> {
        self.attempts.lock().unwrap_or_else(|broken| broken.into_inner())
    }

    /// Our way out. Made when it is first needed, because it looks up where the server is.
    pub(super) async fn http(&self) -> &Arc<Http> {
        let make = async || Arc::new(Http::new(AllowedAddresses::around(&self.settings.server.url).await));
        self.http.get_or_init(make).await
    }
}

/// Does `work` even if the caller goes away meanwhile.
async fn to_the_end<T: Send + 'static>(
    work: impl Future<Output = Result<T, Error>> + Send + 'static,
) -> Result<T, Error> {
    tokio::spawn(work).await.unwrap_or_else(|_| Err(Error::internal()))
}
