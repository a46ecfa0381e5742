//! [`ClaimReader`]: from the claims of a token to who calls and what they may do.
//!
//! It is the same for the payload of a JWT and for the answer of an introspection endpoint. A claim of the wrong type is never as
//! good as one that is missing: that is how dates were skipped elsewhere (CVE-2026-25537).

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use tidegate_config::ClaimSettings;
use tidegate_service::{Claims, Identity, Principal};

use crate::{Refusal, Verified, is_tenant_name};

/// How many roles, scopes or audiences there are at most, and how many bytes each has.
const MOST_WORDS: usize = 256;
const LONGEST_WORD: usize = 256;
/// How many bytes an audience has at most: it may be a URL.
const LONGEST_AUDIENCE: usize = 2048;
/// How many bytes a subject, a client or an actor has at most.
const LONGEST_SUBJECT: usize = 512;
/// How many may act for each other.
const MOST_ACTORS: usize = 8;
/// The end of the year 9999: later dates are mistakes.
const LAST_DATE: f64 = 253_402_300_799.0;

/// Reads claims of one issuer.
#[derive(Debug)]
pub(crate) struct ClaimReader {
    issuer: Arc<str>,
    names: ClaimSettings,
    skew_ms: u64,
}

/// What every token must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Required {
    /// `iss` and `exp`: nobody else vouches for it.
    IssuerAndExpiry,
    /// Neither: its issuer was asked about it.
    Nothing,
}

impl ClaimReader {
    /// Claims of `issuer` with these names, whose clock may differ from ours by `skew`.
    pub(crate) fn new(issuer: &str, names: &ClaimSettings, skew: Duration) -> ClaimReader {
        ClaimReader { issuer: issuer.into(), names: names.clone(), skew_ms: skew.as_millis() as u64 }
    }

    /// What claims say at this time.
    pub(crate) fn read(
        &self,
        claims: &Map<String, Value>,
        required: Required,
        now_ms: u64,
    ) -> Result<Verified, Refusal> {
        match claims.get("iss") {
            Some(Value::String(issuer)) if **issuer == *self.issuer => {}
            Some(_) => return Err(Refusal::WrongIssuer),
            None if required == Required::IssuerAndExpiry => return Err(Refusal::WrongIssuer),
            None => {}
        }
        let expires_ms = self.check_dates(claims, required, now_ms)?;
        if is_something_else(claims) {
            return Err(Refusal::NotAnAccessToken);
        }
        // RFC 9449 section 7.2: such a token is never accepted as a bearer token.
        if claims.contains_key("cnf") {
            return Err(Refusal::Bound);
        }
        let audiences = match claims.get("aud") {
            None => Vec::new(),
            Some(Value::String(one)) if one.len() <= LONGEST_AUDIENCE => vec![Arc::from(one.as_str())],
            Some(Value::Array(all)) => texts(all, LONGEST_AUDIENCE)?,
            Some(_) => return Err(Refusal::Malformed),
        };
        if audiences.iter().all(|one| one.is_empty()) {
            return Err(Refusal::MissingAudience);
        }
        let subject = find(claims, self.names.subject.as_deref().unwrap_or("sub"));
        let subject = subject.and_then(name).ok_or(Refusal::MissingSubject)?;
        let tenant = self.names.tenant.as_deref().map(|at| tenant(claims, at)).transpose()?;
        let scopes = match &self.names.scopes {
            Some(at) => find(claims, at),
            None => claims.get("scope").or_else(|| claims.get("scp")),
        };
        let roles = self.names.roles.as_deref().and_then(|at| find(claims, at));
        let own = Claims {
            scopes: Some(scopes.map_or_else(|| Ok(Vec::new()), words)?),
            roles: roles.map_or_else(|| Ok(Vec::new()), words)?,
            client: client(claims)?,
            actors: actors(claims)?,
            expires_ms,
        };
        let principal = Principal { issuer: Some(self.issuer.clone()), subject: Some(subject), tenant };
        Ok(Verified {
            identity: Identity { principal, claims: Some(Arc::new(own)) },
            audiences,
            endpoints: None,
            // As long as it would be accepted: what is kept must not end before what is verified anew does.
            expires_ms: expires_ms.map(|expires| expires.saturating_add(self.skew_ms)),
            recheck_ms: None,
        })
    }

    /// When it expires, if it is valid now.
    fn check_dates(
        &self,
        claims: &Map<String, Value>,
        required: Required,
        now_ms: u64,
    ) -> Result<Option<u64>, Refusal> {
        let expires_ms = date_ms(claims, "exp")?;
        let (begins_ms, issued_ms) = (date_ms(claims, "nbf")?, date_ms(claims, "iat")?);
        match expires_ms {
            None if required == Required::IssuerAndExpiry => return Err(Refusal::MissingClaim("exp")),
            Some(expires) if now_ms >= expires.saturating_add(self.skew_ms) => return Err(Refusal::Expired),
            _ => {}
        }
        let latest = now_ms.saturating_add(self.skew_ms);
        if [begins_ms, issued_ms].into_iter().flatten().any(|date| date > latest) {
            return Err(Refusal::NotYetValid);
        }
        Ok(expires_ms)
    }
}

/// A date (RFC 7519 section 2, NumericDate) in milliseconds: a number, or nothing at all.
fn date_ms(claims: &Map<String, Value>, name: &str) -> Result<Option<u64>, Refusal> {
    match claims.get(name) {
        None => Ok(None),
        Some(Value::Number(number)) => match number.as_f64() {
            Some(seconds) if (0.0..=LAST_DATE).contains(&seconds) => Ok(Some((seconds * 1000.0) as u64)),
            _ => Err(Refusal::Malformed),
        },
        Some(_) => Err(Refusal::Malformed),
    }
}

/// ID tokens, refresh tokens and logout tokens are signed with the same keys, and often for the same client.
fn is_something_else(claims: &Map<String, Value>) -> bool {
    let is = |name: &str, others: &[&str]| {
        claims.get(name).is_some_and(|value| {
            // What should be a text and is not cannot be trusted to be the right kind.
            value.as_str().is_none_or(|text| others.iter().any(|other| text.eq_ignore_ascii_case(other)))
        })
    };
    // OpenID Connect Core 2 and 3.3.2.11, Back-Channel Logout 2.4.
    ["nonce", "at_hash", "c_hash", "s_hash", "events"].iter().any(|name| claims.contains_key(*name))
        // Amazon Cognito says `id` or `access`, Ory Hydra `refresh_token` or `access_token`.
        || is("token_use", &["id", "refresh", "id_token", "refresh_token"])
        // Keycloak says `Bearer` for access tokens.
        || is("typ", &["ID", "Refresh", "Offline", "Logout"])
}

/// The claim with exactly this name, else the one that a path with dots leads to.
fn find<'a>(claims: &'a Map<String, Value>, path: &str) -> Option<&'a Value> {
    if let Some(value) = claims.get(path) {
        return Some(value);
    }
    // Names may have dots themselves, so each of them may be the end of the first.
    path.match_indices('.')
        .find_map(|(dot, _)| find(claims.get(&path[..dot])?.as_object()?, &path[dot + 1..]))
}

/// A name of somebody.
fn name(value: &Value) -> Option<Arc<str>> {
    let text = value.as_str()?;
    let fits = !text.is_empty() && text.len() <= LONGEST_SUBJECT && !text.chars().any(char::is_control);
    fits.then(|| text.into())
}

fn tenant(claims: &Map<String, Value>, path: &str) -> Result<Arc<str>, Refusal> {
    let name = find(claims, path).and_then(Value::as_str).ok_or(Refusal::MissingTenant)?;
    if is_tenant_name(name) { Ok(name.into()) } else { Err(Refusal::BadTenant) }
}

/// The OAuth client: by RFC 9068, by OpenID Connect, by version 1 of Entra, by Okta.
fn client(claims: &Map<String, Value>) -> Result<Option<Arc<str>>, Refusal> {
    let client = ["client_id", "azp", "appid", "cid"].iter().find_map(|name| claims.get(*name));
    client.map(|client| name(client).ok_or(Refusal::Malformed)).transpose()
}

/// Who acts for the subject, and for whom they do (RFC 8693 section 4.1).
fn actors(claims: &Map<String, Value>) -> Result<Vec<Arc<str>>, Refusal> {
    let mut actors = Vec::new();
    let mut next = claims.get("act");
    while let Some(actor) = next {
        if actors.len() == MOST_ACTORS {
            return Err(Refusal::TooLarge);
        }
        let actor = actor.as_object().ok_or(Refusal::Malformed)?;
        let who = actor.get("sub").or_else(|| actor.get("client_id"));
        actors.push(who.and_then(name).ok_or(Refusal::Malformed)?);
        next = actor.get("act");
    }
    Ok(actors)
}

/// A list, or words in a text.
fn words(value: &Value) -> Result<Vec<Arc<str>>, Refusal> {
    match value {
        Value::Array(all) => texts(all, LONGEST_WORD),
        Value::String(text) => bounded(text.split_ascii_whitespace(), LONGEST_WORD),
        _ => Err(Refusal::Malformed),
    }
}

fn texts(all: &[Value], longest: usize) -> Result<Vec<Arc<str>>, Refusal> {
    if all.iter().any(|one| !one.is_string()) {
        return Err(Refusal::Malformed);
    }
    bounded(all.iter().filter_map(Value::as_str), longest)
}

fn bounded<'a>(words: impl Iterator<Item = &'a str>, longest: usize) -> Result<Vec<Arc<str>>, Refusal> {
    let mut all = Vec::new();
    for word in words {
        if all.len() == MOST_WORDS || word.len() > longest {
            return Err(Refusal::TooLarge);
        }
        all.push(word.into());
    }
    Ok(all)
}

#[cfg(test)]
mod tests;
