//! [`Authenticate`]: the HTTP layer that finds out who calls.

use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Body;
use futures_util::task::AtomicWaker;
use http::header::AUTHORIZATION;
use http::{HeaderValue, Request, Response};
use http_body::Body as _;
use pin_project_lite::pin_project;
use tidegate_edge::http::{Challenge, ClientAddress, IdentifiedService, OpenEnded, RequiredScopes};
use tidegate_service::usage::Cache;
use tidegate_service::{Identity, epoch_ms};
use tokio::sync::futures::OwnedNotified;
use tower::Service;

use crate::authenticator::Authenticator;
use crate::authorized_body::AuthorizedBody;
use crate::bearer::{self, Sent};
use crate::cache::Digest;
use crate::credential::{Credential, End};
use crate::metadata;
use crate::refusal::Refusal;
use crate::refusal_detail;
use crate::resource::Resource;

/// Lets those in who have a good credential, told to the inside as an [`Identity`](tidegate_service::Identity),
/// and tells all others where to get one. What is inside never sees the credential.
///
/// ```text
///  request ─ metadata? ─ header ─ known? ──────────── meant for this endpoint? ─ base scopes? ─ inside
///            (open)      400 401  no: verify 401 503  401                        403
/// ```
///
/// One of these serves one connection, whose requests mostly come with the same credential: what the one before was let in with is
/// compared first.
#[derive(Debug)]
pub struct Authenticate<S> {
    authenticator: Authenticator,
    inner: S,
    last: Option<LastVisit>,
    /// Where the connection comes from: not every request of it says so.
    client: Option<ClientAddress>,
}

/// How long a header is at most that is remembered for a connection, in bytes.
const LONGEST_REMEMBERED: usize = 2048;

/// What the request before was let in with.
#[derive(Debug)]
struct LastVisit {
    header: RememberedHeader,
    path: Box<str>,
    resource: Arc<Resource>,
    credential: Arc<Credential>,
    /// Woken when the credential ends.
    ended: Arc<AtomicWaker>,
}

/// An `Authorization` header. Its `Debug` does not show it.
struct RememberedHeader(Box<[u8]>);

impl fmt::Debug for RememberedHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RememberedHeader({} bytes)", self.0.len())
    }
}

impl<S> Authenticate<S> {
    pub(crate) fn new(authenticator: Authenticator, inner: S) -> Authenticate<S> {
        Authenticate { authenticator, inner, last: None, client: None }
    }

    /// Lets a request in as the one before, if it is for the same and has the same header, and nothing has ended meanwhile.
    fn as_before(&self, request: &mut Request<Body>) -> Option<Admitted> {
        let last = self.last.as_ref()?;
        if request.uri().path() != &*last.path || request.uri().query().is_some() {
            return None;
        }
        let headers = request.headers_mut();
        // As many values as names: none is there twice.
        let is_once = headers.len() == headers.keys_len();
        let header = headers
            .get_mut(AUTHORIZATION)
            .filter(|header| is_once && header.as_bytes() == &*last.header.0)?;
        if !self.authenticator.is_good(&last.credential, epoch_ms()) {
            return None;
        }
        // Nothing inside needs it, so nothing inside can pass it on. Emptying it is cheaper than taking it out.
        *header = HeaderValue::from_static("");
        Cache::Credentials.looked_up(true);
        let (credential, resource) = (last.credential.clone(), last.resource.clone());
        Some(Admitted { credential, resource, again: None, ended: Some(last.ended.clone()) })
    }

    /// Remembers what a request was let in with. What has to be verified again soon is not worth it.
    fn remember(&mut self, header: Option<&HeaderValue>, path: &str, admitted: &Admitted) {
        let header = header.filter(|header| header.len() <= LONGEST_REMEMBERED && admitted.again.is_none());
        self.last = header.map(|header| {
            let ended = Arc::new(AtomicWaker::new());
            admitted.credential.watch(&ended);
            LastVisit {
                header: RememberedHeader(header.as_bytes().into()),
                path: path.into(),
                resource: admitted.resource.clone(),
                credential: admitted.credential.clone(),
                ended,
            }
        });
    }
}

impl<S: Clone> Clone for Authenticate<S> {
    /// For another connection, which knows nothing yet.
    fn clone(&self) -> Authenticate<S> {
        Authenticate::new(self.authenticator.clone(), self.inner.clone())
    }
}

impl<S: IdentifiedService> Service<Request<Body>> for Authenticate<S> {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = AuthenticateFuture<S>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        if let Some(admitted) = self.as_before(&mut request) {
            return enter(&mut self.inner, request, admitted);
        }
        let (resource, found) = {
            let state = self.authenticator.state();
            let path = request.uri().path();
            let all = state.resources.iter().map(|one| &**one);
            if let Some(response) = metadata::answer(request.method(), path, all) {
                return AuthenticateFuture::Answered { response: Some(response) };
            }
            if let Some(page) = self.authenticator.open_page(path)
                && (page.is_alike() || !request.headers().contains_key(AUTHORIZATION))
            {
                let response = page.answer(&request, &Identity::default(), path);
                return AuthenticateFuture::Answered { response: Some(response) };
            }
            let found = match bearer::read(request.headers(), request.uri()) {
                Sent::Bearer(text) => Ok(self.authenticator.known(text, epoch_ms())),
                other => Err(other.refusal()),
            };
            (state.resource(path).clone(), found)
        };
        if let Some(client) = request.extensions().get::<ClientAddress>() {
            self.client = Some(*client);
        }
        let address = self.client.map(|client| client.ip);
        let visit = Visit { authenticator: self.authenticator.clone(), resource, address };
        let (digest, known) = match found {
            Ok(found) => found,
            Err((reason, challenge)) => {
                let response = visit.refuse(reason, challenge, || None);
                return AuthenticateFuture::Answered { response: Some(response) };
            }
        };
        // Nothing inside needs it, so nothing inside can pass it on.
        let header = request.headers_mut().remove(AUTHORIZATION);
        match known {
            Some(credential) => {
                let text = credential.verified.recheck_ms.map(|_| credential_of(header.as_ref()));
                match visit.admit(credential, text) {
                    Ok(admitted) => {
                        self.remember(header.as_ref(), request.uri().path(), &admitted);
                        enter(&mut self.inner, request, admitted)
                    }
                    Err(response) => AuthenticateFuture::Answered { response: Some(response) },
                }
            }
            None => {
                let verify = Box::pin(visit.verify(credential_of(header.as_ref()), digest));
                AuthenticateFuture::Verifying { verify, request: Some(request), inner: self.inner.clone() }
            }
        }
    }
}

/// The credential in a header that was read before.
fn credential_of(header: Option<&HeaderValue>) -> Arc<str> {
    let text = header.and_then(|value| value.to_str().ok()).and_then(|text| text.split_once(' '));
    text.map(|(_, credential)| credential.trim_matches(' ')).unwrap_or_default().into()
}

fn enter<S: IdentifiedService>(
    inner: &mut S,
    request: Request<Body>,
    admitted: Admitted,
) -> AuthenticateFuture<S> {
    let identity = admitted.credential.verified.identity.clone();
    let inner = inner.call_as(request, identity);
    AuthenticateFuture::Admitted { inner, admitted: Some(admitted), finished: None }
}

impl Sent<'_> {
    /// What is said to whoever sent no credential.
    fn refusal(&self) -> (Option<&'static str>, Challenge) {
        match self {
            // Every client begins like that: it is no failed login.
            Sent::Nothing | Sent::Bearer(_) => (None, Challenge::unauthenticated()),
            Sent::OtherScheme => (Some("wrong_scheme"), Challenge::unauthenticated()),
            Sent::Wrong(reason, why) => (Some(reason), Challenge::invalid_request(*why)),
        }
    }
}

/// One request at one resource.
struct Visit {
    authenticator: Authenticator,
    resource: Arc<Resource>,
    address: Option<IpAddr>,
}

/// A request that was let in.
pub(crate) struct Admitted {
    pub(crate) credential: Arc<Credential>,
    resource: Arc<Resource>,
    /// The text of a credential that has to be verified again while a stream is open.
    pub(crate) again: Option<(Authenticator, Arc<str>)>,
    /// What its connection is woken by, if it is one of several there with the same credential.
    ended: Option<Arc<AtomicWaker>>,
}

impl Visit {
    async fn verify(self, text: Arc<str>, digest: Digest) -> Result<Admitted, Response<Body>> {
        match self.authenticator.verify(&text, digest).await {
            Ok(credential) => self.admit(credential, Some(text)),
            Err(refusal) => Err(self.refused(refusal, || self.authenticator.detail(refusal, &text))),
        }
    }

    fn admit(self, credential: Arc<Credential>, text: Option<Arc<str>>) -> Result<Admitted, Response<Body>> {
        if let Err(refusal) = self.authenticator.admit(&credential, &self.resource) {
            let detail = || refusal_detail::elsewhere(refusal, &credential, &self.resource);
            return Err(self.refused(refusal, detail));
        }
        if !credential.has_scopes {
            let why = "The token lacks a scope that everything here needs";
            let challenge = Challenge::insufficient_scope(why);
            return Err(self.refuse(
                Some("insufficient_scope"),
                self.resource.with_scopes(challenge, self.resource.base_scopes()),
                || Some(refusal_detail::missing_scopes(&credential, &self.authenticator.state().scopes)),
            ));
        }
        let again = text.filter(|_| credential.verified.recheck_ms.is_some());
        let again = again.map(|text| (self.authenticator, text));
        Ok(Admitted { credential, resource: self.resource, again, ended: None })
    }

    #[cold]
    fn refused(&self, refusal: Refusal, detail: impl FnOnce() -> Option<String>) -> Response<Body> {
        let why = refusal.to_string();
        let challenge = match refusal {
            Refusal::KeysUnavailable => Challenge::unavailable(why),
            Refusal::TooLarge => Challenge::invalid_request(why),
            _ => Challenge::invalid_token(why),
        };
        self.refuse(Some(refusal.reason()), challenge, detail)
    }

    #[cold]
    fn refuse(
        &self,
        reason: Option<&'static str>,
        challenge: Challenge,
        detail: impl FnOnce() -> Option<String>,
    ) -> Response<Body> {
        if let Some(reason) = reason {
            let endpoint = self.resource.endpoint.as_deref();
            self.authenticator.0.refused.tell(reason, endpoint, self.address, detail, epoch_ms());
        }
        self.resource.complete(challenge).respond()
    }
}

pin_project! {
    /// The future of [`Authenticate`].
    #[project = Project]
    #[allow(missing_docs)]
    pub enum AuthenticateFuture<S>
    where
        S: IdentifiedService,
    {
        /// Refused, or metadata.
        Answered { response: Option<Response<Body>> },
        /// The credential is not known yet.
        Verifying {
            verify: Pin<Box<dyn Future<Output = Result<Admitted, Response<Body>>> + Send>>,
            request: Option<Request<Body>>,
            inner: S,
        },
        /// Let in.
        Admitted {
            #[pin]
            inner: S::Future,
            admitted: Option<Admitted>,
            #[pin]
            finished: Option<OwnedNotified>,
        },
    }
}

impl<S: IdentifiedService> Future for AuthenticateFuture<S> {
    type Output = Result<Response<Body>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            match self.as_mut().project() {
                Project::Answered { response } => {
                    return Poll::Ready(Ok(response.take().unwrap_or_else(|| Response::new(Body::empty()))));
                }
                Project::Verifying { verify, request, inner } => {
                    let Poll::Ready(verified) = verify.as_mut().poll(cx) else { return Poll::Pending };
                    let next = match (verified, request.take()) {
                        (Ok(admitted), Some(request)) => enter(inner, request, admitted),
                        (Err(response), _) => AuthenticateFuture::Answered { response: Some(response) },
                        (Ok(_), None) => AuthenticateFuture::Answered { response: None },
                    };
                    self.set(next);
                }
                Project::Admitted { inner, admitted, finished } => {
                    if let Poll::Ready(Ok(response)) = inner.poll(cx) {
                        return Poll::Ready(Ok(match admitted.take() {
                            Some(admitted) => admitted.finish(response),
                            None => response,
                        }));
                    }
                    let Some(admitted) = admitted else { return Poll::Pending };
                    return admitted.poll_revoked(finished, cx).map(Ok);
                }
            }
        }
    }
}

impl Admitted {
    /// Ready with a refusal when the credential of a running call is revoked.
    fn poll_revoked(
        &self,
        mut finished: Pin<&mut Option<OwnedNotified>>,
        cx: &mut Context<'_>,
    ) -> Poll<Response<Body>> {
        loop {
            match &self.ended {
                Some(ended) => ended.register(cx.waker()),
                None if finished.is_none() => finished.set(Some(self.credential.finished())),
                None => {}
            }
            if self.credential.end() == End::Revoked {
                let challenge =
                    Challenge::invalid_token("The credential was revoked while the call was running");
                return Poll::Ready(self.resource.complete(challenge).respond());
            }
            match finished.as_mut().as_pin_mut().map(|finished| finished.poll(cx)) {
                Some(Poll::Ready(())) => finished.set(None),
                _ => return Poll::Pending,
            }
        }
    }

    /// What is added to the answer of the inside.
    fn finish(self, mut response: Response<Body>) -> Response<Body> {
        if response.status() == 403
            && let Some(RequiredScopes(scopes)) = response.extensions_mut().remove::<RequiredScopes>()
        {
            let challenge =
                Challenge::insufficient_scope("The token lacks a scope that this operation needs");
            self.resource.with_scopes(challenge, scopes).add_to(&mut response);
        }
        // What is complete is on its way already.
        if response.body().size_hint().exact().is_some() {
            return response;
        }
        let is_open_ended = response.extensions().get::<OpenEnded>().is_some();
        response.map(|body| Body::new(AuthorizedBody::new(body, self, is_open_ended)))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A request that was let in at the default endpoint.
    pub(crate) fn admitted(
        credential: Arc<Credential>,
        authenticator: &Authenticator,
        again: Option<(Authenticator, Arc<str>)>,
    ) -> Admitted {
        let resource = authenticator.state().resources[0].clone();
        Admitted { credential, resource, again, ended: None }
    }
}
