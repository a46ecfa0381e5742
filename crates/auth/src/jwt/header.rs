//! [`Header`]: what a token says about itself, before anybody knows whether it may.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::Algorithm;
use serde_json::Value;

use super::strict_json::Object;
use crate::Refusal;

/// The part of the header of a token that counts. `jwk`, `jku`, `x5c` and `x5u` do not: keys come from the issuer, never from a token.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) algorithm: Algorithm,
    pub(super) kid: Option<String>,
}

impl Header {
    /// Reads the header of a token that must be signed with one of these algorithms.
    pub(super) fn read(token: &str, algorithms: &[Algorithm]) -> Result<Header, Refusal> {
        let mut parts = token.split('.');
        let (Some(header), Some(_), Some(_), None) = (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(Refusal::Malformed);
        };
        let header = URL_SAFE_NO_PAD.decode(header).map_err(|_| Refusal::Malformed)?;
        let Object(header) = serde_json::from_slice(&header).map_err(|_| Refusal::Malformed)?;
        let text = |name: &str| match header.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.as_str())),
            Some(_) => Err(Refusal::Malformed),
        };
        // Names of algorithms are compared exactly: `none` and whatever has a shared secret is on no list.
        let name = text("alg")?.ok_or(Refusal::Malformed)?;
        let allowed = name.parse().ok().filter(|algorithm| algorithms.contains(algorithm));
        let algorithm = allowed.ok_or(Refusal::AlgorithmNotAllowed)?;
        // RFC 7515 section 4.1.11: what is critical and not understood ends it. Nothing critical is understood here.
        if header.contains_key("crit") {
            return Err(Refusal::Malformed);
        }
        if !text("typ")?.is_none_or(is_access_token) {
            return Err(Refusal::NotAnAccessToken);
        }
        Ok(Header { algorithm, kid: text("kid")?.map(str::to_owned) })
    }
}

/// RFC 9068 section 2.1 has `at+jwt`; most issuers say `JWT`, which is as good as nothing. Everything else that has a type of its own
/// is something else: an assertion (`oauth-id-jag+jwt`), a logout token, a DPoP proof.
fn is_access_token(typ: &str) -> bool {
    const PREFIX: &str = "application/";
    let cut = typ.get(..PREFIX.len()).filter(|start| start.eq_ignore_ascii_case(PREFIX));
    let typ = cut.map_or(typ, |start| &typ[start.len()..]);
    ["at+jwt", "JWT"].iter().any(|known| typ.eq_ignore_ascii_case(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(header: &str) -> Result<Header, Refusal> {
        let token = format!("{}.e30.AAAA", URL_SAFE_NO_PAD.encode(header));
        Header::read(&token, &[Algorithm::RS256, Algorithm::ES256])
    }

    #[test]
    fn headers_of_access_tokens_and_others() {
        let good =
            |kid: Option<&str>| Ok(Header { algorithm: Algorithm::RS256, kid: kid.map(str::to_owned) });
        for (header, expected) in [
            (r#"{"alg":"RS256"}"#, good(None)),
            (r#"{"alg":"RS256","kid":"a","typ":"at+jwt"}"#, good(Some("a"))),
            (r#"{"alg":"RS256","typ":"AT+JWT"}"#, good(None)),
            (r#"{"alg":"RS256","typ":"application/at+jwt"}"#, good(None)),
            (r#"{"alg":"RS256","typ":"Application/JWT"}"#, good(None)),
            (r#"{"alg":"RS256","typ":"jwt","jku":"https://evil.example","jwk":{"kty":"oct"}}"#, good(None)),
            (r#"{"alg":"RS256","typ":"oauth-id-jag+jwt"}"#, Err(Refusal::NotAnAccessToken)),
            (r#"{"alg":"RS256","typ":"application/oauth-id-jag+jwt"}"#, Err(Refusal::NotAnAccessToken)),
            (r#"{"alg":"RS256","typ":"logout+jwt"}"#, Err(Refusal::NotAnAccessToken)),
            (r#"{"alg":"RS256","typ":"dpop+jwt"}"#, Err(Refusal::NotAnAccessToken)),
            (r#"{"alg":"RS256","typ":""}"#, Err(Refusal::NotAnAccessToken)),
            (r#"{"alg":"RS256","typ":"application/"}"#, Err(Refusal::NotAnAccessToken)),
            (r#"{"alg":"RS256","typ":1}"#, Err(Refusal::Malformed)),
            (r#"{"alg":"RS256","kid":7}"#, Err(Refusal::Malformed)),
            (r#"{"alg":"RS256","crit":["b64"],"b64":false}"#, Err(Refusal::Malformed)),
            (r#"{"alg":"RS256","crit":[]}"#, Err(Refusal::Malformed)),
            (r#"{"alg":"RS256","alg":"ES256"}"#, Err(Refusal::Malformed)),
            (r#"{"kid":"a"}"#, Err(Refusal::Malformed)),
            (r#"{"alg":["RS256"]}"#, Err(Refusal::Malformed)),
            ("[]", Err(Refusal::Malformed)),
            (r#"{"alg":"none"}"#, Err(Refusal::AlgorithmNotAllowed)),
            (r#"{"alg":"None"}"#, Err(Refusal::AlgorithmNotAllowed)),
            (r#"{"alg":"NONE"}"#, Err(Refusal::AlgorithmNotAllowed)),
            (r#"{"alg":"nOnE"}"#, Err(Refusal::AlgorithmNotAllowed)),
            (r#"{"alg":"none "}"#, Err(Refusal::AlgorithmNotAllowed)),
            (r#"{"alg":""}"#, Err(Refusal::AlgorithmNotAllowed)),
            (r#"{"alg":"rs256"}"#, Err(Refusal::AlgorithmNotAllowed)),
            (r#"{"alg":"HS256"}"#, Err(Refusal::AlgorithmNotAllowed)),
            (r#"{"alg":"EdDSA"}"#, Err(Refusal::AlgorithmNotAllowed)),
        ] {
            assert_eq!(read(header), expected, "{header}");
        }
        for token in ["", ".", "..", "a.b", "a.b.c.d", "a.b.c.d.e", "e30.e30.e30", "{}.{}.{}", "é.é.é"] {
            assert_eq!(Header::read(token, &[Algorithm::RS256]), Err(Refusal::Malformed), "{token}");
        }
    }
}
