//! [`AuthorizedBody`]: a stream that ends when the authorisation does.
//!
//! Each stream has its own timer of tokio, and only those have one that may be open for longer than their credential is good: it
//! costs nothing while nothing happens, and a common timer would have to be told of every stream that opens or closes.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http_body::Frame;
use pin_project_lite::pin_project;
use tidegate_service::epoch_ms;
use tokio::sync::futures::OwnedNotified;
use tokio::time::Sleep;

use crate::authenticate::Admitted;
use crate::authenticator::Authenticator;
use crate::credential::{Credential, End};

/// A timer is set for no longer: clocks are put right now and then.
const LONGEST_SLEEP_MS: u64 = 60 * 60 * 1000;

/// The text of a credential whose issuer wants to be asked again.
type Again = (Authenticator, Arc<str>);

pin_project! {
    /// The body of a response that streams.
    pub(crate) struct AuthorizedBody {
        #[pin]
        inner: Body,
        credential: Arc<Credential>,
        #[pin]
        finished: OwnedNotified,
        // Only of a stream that belongs to no request: others may finish.
        timer: Option<Timer>,
        is_over: bool,
    }
}

struct Timer {
    sleep: Option<Pin<Box<Sleep>>>,
    again: Option<Again>,
    asking: Option<Asking>,
}

/// Ready with the credential as it is now, if it is still good.
type Asking = Pin<Box<dyn Future<Output = Option<Arc<Credential>>> + Send>>;

impl AuthorizedBody {
    pub(crate) fn new(inner: Body, admitted: Admitted, is_open_ended: bool) -> AuthorizedBody {
        let Admitted { credential, again, .. } = admitted;
        let finished = credential.finished();
        let timer = is_open_ended.then(|| Timer { sleep: None, again, asking: None });
        AuthorizedBody { inner, credential, finished, timer, is_over: false }
    }
}

impl http_body::Body for AuthorizedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let mut this = self.project();
        if *this.is_over {
            return Poll::Ready(None);
        }
        loop {
            let most = if this.timer.is_some() { End::No } else { End::Expired };
            if this.credential.end() > most {
                return Poll::Ready(over(this.inner, this.is_over));
            }
            if this.finished.as_mut().poll(cx).is_ready() {
                this.finished.set(this.credential.finished());
                continue;
            }
            let Some(timer) = this.timer.as_mut() else { break };
            match timer.poll(this.credential, cx) {
                Poll::Pending => break,
                Poll::Ready(None) => return Poll::Ready(over(this.inner, this.is_over)),
                Poll::Ready(Some(fresh)) => {
                    this.finished.set(fresh.finished());
                    *this.credential = fresh;
                }
            }
        }
        this.inner.poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.is_over || self.inner.is_end_stream()
    }
}

/// Lets go of what produces the stream, which stops it.
fn over(mut inner: Pin<&mut Body>, is_over: &mut bool) -> Option<Result<Frame<Bytes>, axum::Error>> {
    inner.set(Body::empty());
    *is_over = true;
    None
}

impl Timer {
    /// Ready with nothing when the credential has expired, and with another one when it was verified anew.
    fn poll(&mut self, credential: &Arc<Credential>, cx: &mut Context<'_>) -> Poll<Option<Arc<Credential>>> {
        loop {
            if let Some(asking) = &mut self.asking {
                let Poll::Ready(answer) = asking.as_mut().poll(cx) else { return Poll::Pending };
                (self.asking, self.sleep) = (None, None);
                return Poll::Ready(answer);
            }
            let now_ms = epoch_ms();
            let verified = &credential.verified;
            if verified.expires_ms.is_some_and(|end| end <= now_ms) {
                return Poll::Ready(None);
            }
            let recheck_ms = verified.recheck_ms.filter(|_| self.again.is_some());
            if let Some((authenticator, text)) = self.again.clone()
                && recheck_ms.is_some_and(|end| end <= now_ms)
            {
                self.asking = Some(Box::pin(async move {
                    match authenticator.known(&text, epoch_ms()) {
                        (_, Some(known)) => Some(known),
                        (digest, None) => authenticator.verify(&text, digest).await.ok(),
                    }
                }));
                continue;
            }
            let Some(next) = verified.expires_ms.into_iter().chain(recheck_ms).min() else {
                return Poll::Pending;
            };
            let left = Duration::from_millis((next - now_ms).min(LONGEST_SLEEP_MS));
            let sleep = self.sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep(left)));
            if sleep.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            self.sleep = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;
    use tidegate_config::{AuthSettings, ClaimSettings, IntrospectionSettings};
    use tidegate_service::Identity;
    use tidegate_service::secrets::Secret;

    use super::*;
    use crate::credential::Source;
    use crate::issuers::Issuer;
    use crate::verified::Verified;
    use crate::{ProtectedResource, authenticate};

    fn credential(expires_ms: Option<u64>, recheck_ms: Option<u64>) -> Arc<Credential> {
        let verified = Verified {
            identity: Identity::default(),
            audiences: Vec::new(),
            endpoints: None,
            expires_ms,
            recheck_ms,
        };
        Arc::new(Credential::new(verified, Source::Token(Issuer::nobody()), true, 0))
    }

    /// A body that never says anything, for a token of an issuer that cannot be asked.
    fn stream(credential: &Arc<Credential>, is_open_ended: bool) -> (Authenticator, AuthorizedBody) {
        let settings = AuthSettings {
            introspection: vec![IntrospectionSettings {
                issuer: "http://127.0.0.1:9".into(),
                url: "http://127.0.0.1:9/introspect".into(),
                client_id: "tidegate".into(),
                client_secret: Secret::new("a-secret-of-a-test"),
                audience: Vec::new(),
                claims: ClaimSettings::default(),
            }],
            ..AuthSettings::default()
        };
        let resource = ProtectedResource { path: "/mcp".into(), ..ProtectedResource::default() };
        let authenticator = Authenticator::start(&settings, vec![resource], None).unwrap();
        let again = Some((authenticator.clone(), Arc::from("opaque")));
        let admitted = authenticate::tests::admitted(credential.clone(), &authenticator, again);
        let silence = Body::from_stream(futures_util::stream::pending::<Result<Bytes, std::io::Error>>());
        (authenticator, AuthorizedBody::new(silence, admitted, is_open_ended))
    }

    async fn ends(body: AuthorizedBody) -> bool {
        let mut body = Body::new(body);
        let end = tokio::time::timeout(Duration::from_secs(5), body.frame()).await;
        matches!(end, Ok(None))
    }

    #[tokio::test]
    async fn what_expires_ends_streams_that_belong_to_no_request() {
        let credential = credential(Some(epoch_ms() + 100), None);
        let (_authenticator, body) = stream(&credential, true);
        assert!(ends(body).await);
        let (_authenticator, body) = stream(&credential, false);
        assert!(!ends(body).await);
    }

    #[tokio::test]
    async fn what_is_revoked_ends_every_stream() {
        for is_open_ended in [false, true] {
            let credential = credential(None, None);
            let (_authenticator, body) = stream(&credential, is_open_ended);
            let ending = tokio::spawn(ends(body));
            tokio::task::yield_now().await;
            credential.finish(End::Revoked);
            assert!(ending.await.unwrap());
            let (_authenticator, late) = stream(&credential, is_open_ended);
            assert!(ends(late).await);
        }
    }

    #[tokio::test]
    async fn a_token_that_cannot_be_verified_again_is_not_good_for_longer() {
        let credential = credential(None, Some(epoch_ms() + 100));
        let (_authenticator, body) = stream(&credential, true);
        assert!(ends(body).await);
    }
}
