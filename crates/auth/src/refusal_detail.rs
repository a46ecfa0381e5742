//! What the log says of a refused credential beside the reason: who or what it was about. Never told to the caller.
//!
//! Only names that the operator needs to find the mistake are taken out of a token, cleaned and cut; nothing else of it.

use tidegate_service::Claims;

use crate::credential::{Credential, Source};
use crate::issuers::Issuers;
use crate::jwt::{peek_issuer, peek_key_id};
use crate::keys::KeyTable;
use crate::refusal::Refusal;
use crate::resource::Resource;
use crate::scopes::Scopes;

/// How many characters of a name are told.
const LONGEST: usize = 100;
/// How many names of a list are told.
const MOST: usize = 5;

/// About a credential that could not be verified.
pub(crate) fn unverified(
    refusal: Refusal,
    text: &str,
    issuers: &Issuers,
    keys: Option<&KeyTable>,
) -> Option<String> {
    let claim = |name: &str| Some(format!("the claim {}", quoted(name)));
    match refusal {
        Refusal::KeyRevoked | Refusal::KeyExpired => {
            let (name, id) = keys?.name_and_id(text)?;
            Some(key(name, id))
        }
        Refusal::UnknownKey => Some(match peek_key_id(text) {
            Some(kid) => format!("kid {}", quoted(&kid)),
            None => "the token has no kid".to_owned(),
        }),
        Refusal::WrongIssuer => Some(match peek_issuer(text)? {
            empty if empty.is_empty() => "the token has no issuer".to_owned(),
            issuer => format!("issuer {}", quoted(&issuer)),
        }),
        Refusal::MissingAudience => claim("aud"),
        Refusal::MissingSubject => claim(issuers.claims_of(text)?.subject.as_deref().unwrap_or("sub")),
        Refusal::MissingTenant | Refusal::BadTenant => claim(issuers.claims_of(text)?.tenant.as_deref()?),
        Refusal::MissingClaim(name) => claim(name),
        _ => None,
    }
}

/// About a good credential that is for something else.
pub(crate) fn elsewhere(refusal: Refusal, credential: &Credential, resource: &Resource) -> Option<String> {
    match (refusal, &credential.source) {
        (Refusal::WrongEndpoint, Source::Key(used)) => {
            let name = credential.verified.identity.principal.subject.as_deref().unwrap_or_default();
            let endpoints = credential.verified.endpoints.as_deref().unwrap_or_default();
            Some(format!("{}, which is for {}", key(name, &used.id), list(endpoints)))
        }
        (Refusal::WrongAudience, Source::Token(issuer)) => {
            let expected = list(resource.accepted(&issuer.audience));
            let audiences = list(&credential.verified.audiences);
            Some(format!("{}: the audience is {audiences}, expected is {expected}", subject(credential)))
        }
        _ => None,
    }
}

/// About a good credential that lacks scopes which everything needs.
pub(crate) fn missing_scopes(credential: &Credential, scopes: &Scopes) -> String {
    let claims: Option<&Claims> = credential.verified.identity.claims.as_deref();
    format!("{} lacks {}", subject(credential), list(&scopes.missing(claims)))
}

fn key(name: &str, id: &str) -> String {
    format!("the API key {} ({id})", quoted(name))
}

fn subject(credential: &Credential) -> String {
    let principal = &credential.verified.identity.principal;
    let named = |name: &Option<std::sync::Arc<str>>| quoted(name.as_deref().unwrap_or_default());
    format!("subject {} of {}", named(&principal.subject), named(&principal.issuer))
}

fn list<T: AsRef<str>>(all: &[T]) -> String {
    let mut words: Vec<String> = all.iter().take(MOST).map(|one| quoted(one.as_ref())).collect();
    if all.len() > MOST {
        words.push("…".to_owned());
    }
    match words.is_empty() {
        true => "nothing".to_owned(),
        false => words.join(", "),
    }
}

/// A name in quotes, cut, without anything that a terminal or a log could take for something else.
fn quoted(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{:?}…", &text[..at]),
        None => format!("{text:?}"),
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;

    use tidegate_service::{Identity, Principal};

    use super::*;
    use crate::issuers::Issuer;
    use crate::resource::ProtectedResource;
    use crate::verified::Verified;

    fn about(refusal: Refusal, header: &str, claims: &str) -> Option<String> {
        let [header, claims] = [header, claims].map(|part| URL_SAFE_NO_PAD.encode(part));
        unverified(refusal, &format!("{header}.{claims}.c2VjcmV0"), &Issuers::default(), None)
    }

    #[test]
    fn names_are_told_clean_and_cut_and_nothing_else() {
        let header = r#"{"alg":"RS256","kid":"k\n1\u001b[31m"}"#;
        let claims = r#"{"iss":"https://evil.example\u202e","sub":"eve"}"#;
        let told = |refusal| about(refusal, header, claims);
        assert_eq!(told(Refusal::UnknownKey).unwrap(), r#"kid "k\n1\u{1b}[31m""#);
        assert_eq!(told(Refusal::WrongIssuer).unwrap(), r#"issuer "https://evil.example\u{202e}""#);
        assert_eq!(told(Refusal::MissingClaim("exp")).unwrap(), r#"the claim "exp""#);
        assert_eq!(told(Refusal::Expired), None);
        let long = about(Refusal::UnknownKey, &format!(r#"{{"kid":"{}"}}"#, "é".repeat(5000)), "{}").unwrap();
        assert_eq!(long, format!("kid \"{}\"…", "é".repeat(100)));
        assert_eq!(about(Refusal::UnknownKey, "{}", "{}").unwrap(), "the token has no kid");
        assert_eq!(about(Refusal::WrongIssuer, "{}", "{}").unwrap(), "the token has no issuer");
        assert_eq!(list(&["a"; 9]), r#""a", "a", "a", "a", "a", …"#);
    }

    #[test]
    fn a_token_for_something_else_is_told_with_what_was_expected() {
        let principal = Principal::subject("ann").issued_by("https://id.example.com");
        let verified = Verified {
            identity: Identity { principal, claims: None },
            audiences: vec!["account".into(), "other".into()],
            endpoints: None,
            expires_ms: None,
            recheck_ms: None,
        };
        let credential = Credential::new(verified, Source::Token(Issuer::nobody()), true, 0);
        let url = "https://mcp.example.com/mcp".to_owned();
        let resource = ProtectedResource { path: "/mcp".into(), url, ..ProtectedResource::default() };
        let resource = Resource::new(resource, &Issuers::default(), &Scopes::default());
        let told = elsewhere(Refusal::WrongAudience, &credential, &resource).unwrap();
        assert_eq!(
            told,
            "subject \"ann\" of \"https://id.example.com\": the audience is \"account\", \"other\", expected is \
             \"https://mcp.example.com/mcp\""
        );
    }
}
