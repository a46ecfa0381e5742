//! [`TokenEndpoint`]: where tokens are asked for. It finishes each request: who we are, for which resource, and the
//! proof of possession.

use std::sync::Arc;

use ::http::{HeaderValue, Method, Request, header};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::{Map, Value};
use url::{Url, form_urlencoded};

use super::client::Proof;
use super::dpop::{self, Dpop, Side};
use super::fault::Fault;
use super::http::{Answer, Http, host};
use super::scopes::Scopes;
use super::store::TokenKind;
use tidegate_service::secrets::Secret;

/// The grant of a signed statement (RFC 7523 section 2.1).
pub(super) const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// The parameters of a request.
pub(super) type Form = Vec<(String, String)>;

/// A form of these fields.
pub(super) fn form(fields: &[(&str, &str)]) -> Form {
    fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// One token endpoint, for one client and one resource.
pub(super) struct TokenEndpoint {
    pub(super) http: Arc<Http>,
    pub(super) url: Url,
    /// To whom assertions are addressed.
    pub(super) issuer: String,
    pub(super) client_id: String,
    pub(super) proof: Proof,
    /// RFC 8707, to the letter as the resource calls itself. None where an assertion says it.
    pub(super) resource: Option<String>,
    pub(super) dpop: Option<Arc<Dpop>>,
}

/// What the authorization server gave.
#[derive(Debug)]
pub(super) struct Granted {
    pub(super) access: Secret,
    pub(super) kind: TokenKind,
    pub(super) refresh: Option<Secret>,
    /// Seconds.
    pub(super) expires_in: Option<u64>,
    /// If it says nothing, it gave what was asked for (RFC 6749 section 5.1).
    pub(super) scopes: Option<Scopes>,
}

impl TokenEndpoint {
    /// Asks for a token.
    pub(super) async fn ask(&self, form: Form) -> Result<Granted, Fault> {
        Granted::read(&self.exchange(form).await?)
            .ok_or_else(|| Fault::Metadata(format!("{} gave an answer that holds no token", host(&self.url))))
    }

    /// Asks for a token of any kind, and gives the answer as it came, unless it is a refusal.
    pub(super) async fn exchange(&self, form: Form) -> Result<Bytes, Fault> {
        let answer = self.post(form).await?;
        self.denied(&answer).map_or(Ok(answer.body), Err)
    }

    /// Sends a form, finished, and again if the server wants a nonce in the proof (RFC 9449 section 8).
    async fn post(&self, form: Form) -> Result<Answer, Fault> {
        let answer = self.send(form.clone()).await?;
        let Some(dpop) = &self.dpop else { return Ok(answer) };
        let new = dpop.learn(Side::Authorization, &answer.headers);
        let expected = self.denied(&answer).is_some_and(|fault| fault.code() == Some("use_dpop_nonce"));
        if !(new && expected) {
            return Ok(answer);
        }
        let answer = self.send(form).await?;
        dpop.learn(Side::Authorization, &answer.headers);
        Ok(answer)
    }

    async fn send(&self, form: Form) -> Result<Answer, Fault> {
        let mut request = Request::post(self.url.as_str())
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .header(header::ACCEPT, "application/json");
        if let Proof::Basic(secret) = &self.proof {
            request = request.header(header::AUTHORIZATION, basic(&self.client_id, secret)?);
        }
        if let Some(dpop) = &self.dpop {
            let proof = dpop.proof(Side::Authorization, &Method::POST, &self.url, None)?;
            request = request.header(dpop::PROOF, proof);
        }
        let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(self.finish(form)?).finish();
        let address = |_| Fault::Address {
            what: "token endpoint",
            address: self.url.to_string(),
            why: "it is not a valid URI",
        };
        self.http.send(request.body(Bytes::from(body)).map_err(address)?).await
    }

    /// Adds for which resource it is, and who asks.
    fn finish(&self, mut form: Form) -> Result<Form, Fault> {
        let mut add = |name: &str, value: &str| form.push((name.to_owned(), value.to_owned()));
        // 2026-07-28 authorization, Resource Parameter Implementation: in every token request.
        if let Some(resource) = &self.resource {
            add("resource", resource);
        }
        match &self.proof {
            Proof::None => add("client_id", &self.client_id),
            Proof::Basic(_) => {}
            Proof::Post(secret) => {
                add("client_id", &self.client_id);
                add("client_secret", secret.reveal());
            }
            Proof::Jwt(key) => {
                add("client_assertion_type", ASSERTION_TYPE);
                add("client_assertion", &key.assertion(&self.client_id, &self.issuer)?);
            }
        }
        Ok(form)
    }

    /// The refusal that an answer is, if it is one.
    fn denied(&self, answer: &Answer) -> Option<Fault> {
        let fields: Map<String, Value> = serde_json::from_slice(&answer.body).unwrap_or_default();
        let field = |name| fields.get(name).and_then(Value::as_str).map(str::to_owned);
        let code = field("error");
        if answer.status.is_success() && (code.is_none() || fields.contains_key("access_token")) {
            return None;
        }
        let host = host(&self.url);
        let status = answer.status.as_u16();
        Some(match code {
            // Trouble of its own, whatever it calls it.
            _ if status >= 500 || status == 429 => {
                Fault::Network { host, why: format!("it answers HTTP {status}") }
            }
            Some(code) => {
                Fault::Denied { host, code, description: field("error_description").unwrap_or_default() }
            }
            None => Fault::Denied { host, code: format!("HTTP {status}"), description: String::new() },
        })
    }
}

impl Granted {
    /// Reads a token response. Numbers in quotes and a missing type are common enough to be understood.
    fn read(body: &[u8]) -> Option<Granted> {
        let fields: Map<String, Value> = serde_json::from_slice(body).ok()?;
        let text = |name| fields.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
        let expires_in = fields.get("expires_in");
        Some(Granted {
            access: text("access_token")?.into(),
            kind: TokenKind::named(text("token_type").unwrap_or("Bearer"))?,
            refresh: text("refresh_token").map(Secret::from),
            expires_in: expires_in.and_then(|n| n.as_u64().or_else(|| n.as_str()?.parse().ok())),
            scopes: text("scope").map(Scopes::parse),
        })
    }
}

/// RFC 6749 section 2.3.1: both are form-encoded before they are put together.
fn basic(id: &str, secret: &Secret) -> Result<HeaderValue, Fault> {
    let encode = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    let pair = STANDARD.encode(format!("{}:{}", encode(id), encode(secret.reveal())));
    let mut value = HeaderValue::try_from(format!("Basic {pair}"))
        .map_err(|_| Fault::Settings("the client id and secret do not fit into a header".to_owned()))?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn basic_keeps_what_needs_no_encoding() {
        let header = basic("pre-registered_client.x", &"s e:c/r".into()).unwrap();
        let pair = STANDARD.decode(header.to_str().unwrap().strip_prefix("Basic ").unwrap()).unwrap();
        assert_eq!(String::from_utf8(pair).unwrap(), "pre-registered_client.x:s+e%3Ac%2Fr");
    }

    #[test]
    fn token_responses_of_all_kinds() {
        let read = |text: &str| Granted::read(text.as_bytes());
        let token =
            read(r#"{"access_token":"a","token_type":"bearer","expires_in":"60","scope":"x y"}"#).unwrap();
        assert_eq!((token.kind, token.expires_in), (TokenKind::Bearer, Some(60)));
        assert_eq!(token.scopes, Some(Scopes::parse("x y")));
        assert_eq!(read(r#"{"access_token":"a","token_type":"dpop"}"#).unwrap().kind, TokenKind::Dpop);
        assert_eq!(read(r#"{"access_token":"a"}"#).unwrap().kind, TokenKind::Bearer);
        for nonsense in ["", "[]", r#"{"token_type":"Bearer"}"#, r#"{"access_token":"a","token_type":"mac"}"#]
        {
            assert!(read(nonsense).is_none(), "{nonsense}");
        }
    }
}
