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

/// The OAuth client: by RFC 9068, by OpenID Connect, by version 1 of Entra.
fn client(claims: &Map<String, Value>) -> Result<Option<Arc<str>>, Refusal> {
    let client = ["client_id", "azp", "appid"].iter().find_map(|name| claims.get(*name));
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
mod tests {
    use super::*;
    use serde_json::json;

    const NOW: u64 = 1_800_000_000;

    fn read_as(names: &ClaimSettings, more: Value) -> Result<Verified, Refusal> {
        let mut claims = json!({ "iss": "https://id", "sub": "ann", "aud": "https://mcp", "exp": NOW + 300 });
        let object = claims.as_object_mut().unwrap();
        for (name, value) in more.as_object().unwrap() {
            // In these cases `"gone"` takes a claim away.
            if value == "gone" {
                object.remove(name)
            } else {
                object.insert(name.clone(), value.clone())
            };
        }
        let reader = ClaimReader::new("https://id", names, Duration::from_secs(60));
        reader.read(object, Required::IssuerAndExpiry, NOW * 1000)
    }

    fn read(more: Value) -> Result<Verified, Refusal> {
        read_as(&ClaimSettings::default(), more)
    }

    fn words_of(all: &[Arc<str>]) -> Vec<&str> {
        all.iter().map(|one| &**one).collect()
    }

    #[test]
    fn what_a_token_says() {
        let names = ClaimSettings {
            tenant: Some("org.id".to_owned()),
            roles: Some("realm_access.roles".to_owned()),
            ..ClaimSettings::default()
        };
        let more = json!({
            "org": { "id": "reef" }, "realm_access": { "roles": ["a", "b c"] }, "scope": "mcp files:read", "client_id": "app",
            "act": { "sub": "agent", "act": { "sub": "service" } }, "aud": ["x", "https://mcp"], "nbf": NOW, "iat": NOW - 1,
        });
        let verified = read_as(&names, more).unwrap();
        let principal = Principal::subject("ann").in_tenant("reef").issued_by("https://id");
        assert_eq!(verified.identity.principal, principal);
        let claims = verified.identity.claims.unwrap();
        assert_eq!(words_of(claims.scopes.as_ref().unwrap()), ["mcp", "files:read"]);
        assert_eq!(words_of(&claims.roles), ["a", "b c"]);
        assert_eq!(words_of(&claims.actors), ["agent", "service"]);
        assert_eq!(claims.client.as_deref(), Some("app"));
        assert_eq!(claims.expires_ms, Some((NOW + 300) * 1000));
        assert_eq!(verified.expires_ms, Some((NOW + 360) * 1000));
        assert_eq!(words_of(&verified.audiences), ["x", "https://mcp"]);
        assert_eq!((verified.endpoints, verified.recheck_ms), (None, None));
    }

    #[test]
    fn dates() {
        for (more, expected) in [
            (json!({}), None),
            (json!({ "exp": NOW as f64 + 0.5 }), None),
            (json!({ "exp": NOW - 59 }), None),
            (json!({ "exp": NOW - 60 }), Some(Refusal::Expired)),
            (json!({ "exp": 0 }), Some(Refusal::Expired)),
            (json!({ "exp": "gone" }), Some(Refusal::MissingClaim("exp"))),
            (json!({ "exp": format!("{}", NOW + 300) }), Some(Refusal::Malformed)),
            (json!({ "exp": null }), Some(Refusal::Malformed)),
            (json!({ "exp": true }), Some(Refusal::Malformed)),
            (json!({ "exp": [NOW + 300] }), Some(Refusal::Malformed)),
            (json!({ "exp": -1 }), Some(Refusal::Malformed)),
            (json!({ "exp": 1e300 }), Some(Refusal::Malformed)),
            (json!({ "exp": u64::MAX }), Some(Refusal::Malformed)),
            (json!({ "nbf": NOW + 60 }), None),
            (json!({ "nbf": NOW + 61 }), Some(Refusal::NotYetValid)),
            (json!({ "nbf": "0" }), Some(Refusal::Malformed)),
            (json!({ "nbf": null }), Some(Refusal::Malformed)),
            (json!({ "iat": NOW + 60 }), None),
            (json!({ "iat": NOW + 61 }), Some(Refusal::NotYetValid)),
            (json!({ "iat": {} }), Some(Refusal::Malformed)),
        ] {
            assert_eq!(read(more.clone()).err(), expected, "{more}");
        }
    }

    #[test]
    fn what_is_missing_wrong_or_too_much() {
        let actors =
            |depth: usize| (0..depth).fold(json!({ "sub": "a" }), |act, _| json!({ "sub": "a", "act": act }));
        for (more, expected) in [
            (json!({ "iss": "gone" }), Some(Refusal::WrongIssuer)),
            (json!({ "iss": "https://id/" }), Some(Refusal::WrongIssuer)),
            (json!({ "iss": ["https://id"] }), Some(Refusal::WrongIssuer)),
            (json!({ "aud": "gone" }), Some(Refusal::MissingAudience)),
            (json!({ "aud": "" }), Some(Refusal::MissingAudience)),
            (json!({ "aud": [] }), Some(Refusal::MissingAudience)),
            (json!({ "aud": null }), Some(Refusal::Malformed)),
            (json!({ "aud": [1] }), Some(Refusal::Malformed)),
            (json!({ "sub": "gone" }), Some(Refusal::MissingSubject)),
            (json!({ "sub": "" }), Some(Refusal::MissingSubject)),
            (json!({ "sub": 7 }), Some(Refusal::MissingSubject)),
            (json!({ "sub": "a\u{0}b" }), Some(Refusal::MissingSubject)),
            (json!({ "sub": "a".repeat(512) }), None),
            (json!({ "sub": "a".repeat(513) }), Some(Refusal::MissingSubject)),
            (json!({ "scope": 7 }), Some(Refusal::Malformed)),
            (json!({ "scope": [7] }), Some(Refusal::Malformed)),
            (json!({ "scope": "a ".repeat(256) }), None),
            (json!({ "scope": "a ".repeat(257) }), Some(Refusal::TooLarge)),
            (json!({ "scope": "a".repeat(257) }), Some(Refusal::TooLarge)),
            (json!({ "client_id": 7 }), Some(Refusal::Malformed)),
            (json!({ "act": "bob" }), Some(Refusal::Malformed)),
            (json!({ "act": {} }), Some(Refusal::Malformed)),
            (json!({ "act": actors(7) }), None),
            (json!({ "act": actors(8) }), Some(Refusal::TooLarge)),
        ] {
            assert_eq!(read(more.clone()).err(), expected, "{more}");
        }
    }

    #[test]
    fn tokens_of_other_kinds() {
        for (more, good) in [
            (json!({ "typ": "Bearer" }), true),
            (json!({ "token_use": "access" }), true),
            (json!({ "nonce": "n" }), false),
            (json!({ "at_hash": "h" }), false),
            (json!({ "c_hash": null }), false),
            (json!({ "token_use": "id" }), false),
            (json!({ "token_use": 1 }), false),
            (json!({ "typ": "ID" }), false),
            (json!({ "typ": "Refresh" }), false),
            (json!({ "typ": "Offline" }), false),
            (json!({ "typ": "Logout" }), false),
            (json!({ "events": {} }), false),
        ] {
            assert_eq!(read(more.clone()).err(), (!good).then_some(Refusal::NotAnAccessToken), "{more}");
        }
    }

    #[test]
    fn claims_are_found_by_their_name_or_by_a_path() {
        let more = json!({
            "https://x.example/roles": ["exact"], "a": { "b.c": { "d": ["inner"] }, "b": { "x": 1 } }, "a.b": { "e": "one two" },
            "scp": ["s1", "s2 s3"], "text": "no object",
        });
        for (path, expected) in [
            ("https://x.example/roles", &["exact"][..]),
            ("a.b.c.d", &["inner"]),
            ("a.b.e", &["one", "two"]),
            ("a.b.c.z", &[]),
            ("text.x", &[]),
            ("", &[]),
            (".", &[]),
        ] {
            let names = ClaimSettings { roles: Some(path.to_owned()), ..ClaimSettings::default() };
            let claims = read_as(&names, more.clone()).unwrap().identity.claims.unwrap();
            assert_eq!(words_of(&claims.roles), expected, "{path}");
            assert_eq!(words_of(claims.scopes.as_ref().unwrap()), ["s1", "s2 s3"]);
        }
        let names = ClaimSettings { subject: Some("who.id".to_owned()), ..ClaimSettings::default() };
        let subject = read_as(&names, json!({ "who": { "id": "bob" } })).unwrap().identity.principal.subject;
        assert_eq!(subject.as_deref(), Some("bob"));
        assert_eq!(read_as(&names, json!({})).err(), Some(Refusal::MissingSubject));
        for (claim, client) in [(json!({ "azp": "a", "appid": "b" }), "a"), (json!({ "appid": "b" }), "b")] {
            assert_eq!(read(claim).unwrap().identity.claims.unwrap().client.as_deref(), Some(client));
        }
    }

    #[test]
    fn a_tenant_must_be_there_and_have_a_name() {
        let names = ClaimSettings { tenant: Some("org".to_owned()), ..ClaimSettings::default() };
        for (more, expected) in [
            (json!({ "org": "reef" }), None),
            (json!({}), Some(Refusal::MissingTenant)),
            (json!({ "org": 7 }), Some(Refusal::MissingTenant)),
            (json!({ "org": null }), Some(Refusal::MissingTenant)),
            (json!({ "org": ["reef"] }), Some(Refusal::MissingTenant)),
            (json!({ "org": "" }), Some(Refusal::BadTenant)),
            (json!({ "org": "reef " }), Some(Refusal::BadTenant)),
            (json!({ "org": "reef\u{200b}" }), Some(Refusal::BadTenant)),
        ] {
            assert_eq!(read_as(&names, more.clone()).err(), expected, "{more}");
        }
    }

    #[test]
    fn the_same_subject_of_two_issuers_is_two_principals() {
        let claims = |issuer: &str| json!({ "iss": issuer, "sub": "ann", "aud": "x", "exp": NOW + 1 });
        let principal = |issuer: &str| {
            let reader = ClaimReader::new(issuer, &ClaimSettings::default(), Duration::ZERO);
            let claims = claims(issuer);
            let verified = reader.read(claims.as_object().unwrap(), Required::IssuerAndExpiry, NOW * 1000);
            verified.unwrap().identity.principal
        };
        assert_ne!(principal("https://a"), principal("https://b"));
        assert_eq!(principal("https://a"), principal("https://a"));
    }
}
