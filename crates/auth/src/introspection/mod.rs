//! Opaque tokens: their authorization server is asked about each (RFC 7662).
//!
//! An answer is good for a minute, so that a token which was revoked there is refused here soon; [`Verified::recheck_ms`] says so to
//! whoever keeps it. Nothing is kept here but questions that are under way, which all who have the same token share.

mod under_way;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderValue, Method, StatusCode, header};
use serde_json::Value;
use tidegate_config::IntrospectionSettings;
use tidegate_service::epoch_ms;
use tidegate_web::{Request, Web};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};
use url::Url;
use url::form_urlencoded::{Serializer, byte_serialize};

use self::under_way::UnderWay;
use crate::jwt::{ClaimReader, LONGEST_TOKEN, Object, Required, SetupError, checked, guarded};
use crate::{Refusal, Verified};

/// How long a question may take, from waiting for a turn to the last byte of the answer.
const WITHIN: Duration = Duration::from_secs(10);
/// How large an answer may be.
const MOST_BYTES: usize = 256 * 1024;
/// How many questions are asked at once, and how many may be under way or waiting.
const AT_ONCE: usize = 64;
const WAITING: usize = 1024;
/// How long an answer is believed.
const BELIEVED_MS: u64 = 60_000;
/// By how much the clock of the authorization server may differ.
const SKEW: Duration = Duration::from_secs(60);
/// How often it is said that it does not answer as it should.
const COMPLAINT: Duration = Duration::from_secs(30);

/// Verifies the opaque tokens of one authorization server.
#[derive(Clone)]
pub struct IntrospectionVerifier(Arc<Inner>);

struct Inner {
    issuer: String,
    url: Url,
    authorization: HeaderValue,
    web: Web,
    claims: ClaimReader,
    turns: Semaphore,
    under_way: UnderWay,
    complained: Mutex<Option<Instant>>,
}

impl IntrospectionVerifier {
    /// A verifier for these settings. Nobody is asked anything yet. Of `web`, all but the guard holds.
    pub fn new(
        settings: &IntrospectionSettings,
        web: tidegate_web::Settings,
    ) -> Result<IntrospectionVerifier, SetupError> {
        let url = checked("introspection endpoint", &settings.url)?;
        Ok(IntrospectionVerifier(Arc::new(Inner {
            issuer: settings.issuer.clone(),
            authorization: basic(&settings.client_id, settings.client_secret.reveal()),
            web: guarded(&url, web),
            url,
            claims: ClaimReader::new(&settings.issuer, &settings.claims, SKEW),
            turns: Semaphore::new(AT_ONCE),
            under_way: UnderWay::new(WAITING),
            complained: Mutex::new(None),
        })))
    }

    /// The authorization server that is asked.
    pub fn issuer(&self) -> &str {
        &self.0.issuer
    }

    /// What the authorization server says about a token, if it is good now. It may be for anybody: compare
    /// [`Verified::audiences`].
    pub async fn verify(&self, token: &str) -> Result<Verified, Refusal> {
        if token.len() > LONGEST_TOKEN {
            return Err(Refusal::TooLarge);
        }
        // RFC 6750 section 2.1 has fewer characters still.
        if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(Refusal::Malformed);
        }
        let asked = self.0.under_way.join(token, || {
            let (inner, token) = (self.0.clone(), token.to_owned());
            async move { timeout(WITHIN, inner.ask(&token)).await.unwrap_or_else(|_| Err(inner.silent())) }
        });
        asked.await
    }
}

impl Inner {
    async fn ask(&self, token: &str) -> Result<Verified, Refusal> {
        let _turn = self.turns.acquire().await.map_err(|_| Refusal::KeysUnavailable)?;
        let form = Serializer::new(String::new())
            .append_pair("token", token)
            .append_pair("token_type_hint", "access_token")
            .finish();
        // No redirect is followed: it would take the token, and who asks, elsewhere.
        let request = Request::new(Method::POST, self.url.clone())
            .header(header::CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"))
            .header(header::ACCEPT, HeaderValue::from_static("application/json"))
            .header(header::AUTHORIZATION, self.authorization.clone())
            .body(form)
            .within(WITHIN);
        let answer = self.web.send(request).await.map_err(|error| self.complain(&error.to_string()))?;
        match answer.status() {
            StatusCode::OK => {}
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                return Err(self.complain(
                    "it does not accept OUR credentials; check client_id and client_secret, and whether this client may \
                     introspect tokens",
                ));
            }
            status => return Err(self.complain(&format!("it answers HTTP {}", status.as_u16()))),
        }
        let body = answer.whole(MOST_BYTES).await.map_err(|error| self.complain(&error.to_string()))?;
        let Ok(Object(claims)) = serde_json::from_slice(&body) else {
            return Err(self.complain("its answer is not a JSON object, or has a member twice"));
        };
        match claims.get("active") {
            Some(Value::Bool(true)) => {}
            Some(Value::Bool(false)) => return Err(Refusal::Inactive),
            _ => return Err(self.complain("its answer does not say whether the token is active")),
        }
        match claims.get("token_type") {
            None => {}
            Some(Value::String(kind)) if is_bearer(kind) => {}
            // One that is bound to a key is not for whoever bears it.
            Some(_) => return Err(Refusal::NotAnAccessToken),
        }
        let now_ms = epoch_ms();
        let mut verified = self.claims.read(&claims, Required::Nothing, now_ms)?;
        verified.recheck_ms = Some(now_ms + BELIEVED_MS);
        Ok(verified)
    }

    fn silent(&self) -> Refusal {
        self.complain("it does not answer in time, or too many tokens wait for it")
    }

    /// Says what is wrong with the authorization server, but not for every token. Callers only get to know that it did not work.
    fn complain(&self, why: &str) -> Refusal {
        let now = Instant::now();
        let mut complained = self.complained.lock().unwrap_or_else(PoisonError::into_inner);
        if complained.is_none_or(|last| now >= last + COMPLAINT) {
            *complained = Some(now);
            let (issuer, host) = (self.issuer.as_str(), self.url.host_str());
            tracing::error!(issuer, host, "cannot introspect tokens of this issuer, they are refused: {why}");
        }
        Refusal::KeysUnavailable
    }
}

impl fmt::Debug for IntrospectionVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IntrospectionVerifier").field("issuer", &self.0.issuer).finish_non_exhaustive()
    }
}

fn is_bearer(kind: &str) -> bool {
    ["Bearer", "access_token"].iter().any(|known| kind.eq_ignore_ascii_case(known))
}

/// RFC 6749 section 2.3.1: both are form-encoded before they are put together.
fn basic(client: &str, secret: &str) -> HeaderValue {
    let encoded = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
    let credentials = STANDARD.encode(format!("{}:{}", encoded(client), encoded(secret)));
    let mut value =
        HeaderValue::try_from(format!("Basic {credentials}")).expect("base64 has no control characters");
    value.set_sensitive(true);
    value
}

#[cfg(test)]
mod tests;
