//! [`Refusal`]: why a credential is not accepted.

use std::fmt;

/// Why a credential is refused. `Display` is the sentence for the caller; [`reason`](Refusal::reason) is the word for logs and
/// counters, which may say more.
///
/// A sentence never repeats anything of the credential, and never helps to guess one: a key that is unknown, revoked or expired
/// is told the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// Its time is over.
    Expired,
    /// Its time has not come.
    NotYetValid,
    /// Not signed by the key that it names.
    BadSignature,
    /// The issuer has no key with this `kid`, as far as is known: it is asked again only after a while.
    UnknownKey,
    /// Signed in a way that is not on the list.
    AlgorithmNotAllowed,
    /// Of somebody who is not trusted here.
    WrongIssuer,
    /// For somebody else.
    WrongAudience,
    /// For nobody in particular.
    MissingAudience,
    /// An ID token, a refresh token, an assertion: not something that opens a resource.
    NotAnAccessToken,
    /// Bound to a key that its holder must prove to have (`cnf`): whoever brings it without has stolen it.
    Bound,
    /// It does not say whose it is.
    MissingSubject,
    /// It does not say of which tenant.
    MissingTenant,
    /// Its tenant has a name that no tenant can have.
    BadTenant,
    /// A claim that every token has is not there.
    MissingClaim(&'static str),
    /// No credential of any kind.
    Malformed,
    /// An API key that nobody was given.
    UnknownKeyId,
    /// An API key that was revoked.
    KeyRevoked,
    /// An API key whose time is over.
    KeyExpired,
    /// Its issuer says that it is not good, or not any more.
    Inactive,
    /// Nobody can tell right now: the issuer's keys, or the issuer, cannot be reached.
    KeysUnavailable,
    /// Larger than any credential is.
    TooLarge,
    /// Good, but not here.
    WrongEndpoint,
}

impl Refusal {
    /// One word for logs and counters.
    pub fn reason(self) -> &'static str {
        match self {
            Refusal::Expired => "expired",
            Refusal::NotYetValid => "not_yet_valid",
            Refusal::BadSignature => "bad_signature",
            Refusal::UnknownKey => "unknown_kid",
            Refusal::AlgorithmNotAllowed => "algorithm_not_allowed",
            Refusal::WrongIssuer => "wrong_issuer",
            Refusal::WrongAudience => "wrong_audience",
            Refusal::MissingAudience => "missing_audience",
            Refusal::NotAnAccessToken => "not_an_access_token",
            Refusal::Bound => "sender_constrained",
            Refusal::MissingSubject => "missing_subject",
            Refusal::MissingTenant => "missing_tenant",
            Refusal::BadTenant => "bad_tenant",
            Refusal::MissingClaim(_) => "missing_claim",
            Refusal::Malformed => "malformed",
            Refusal::UnknownKeyId => "unknown_key",
            Refusal::KeyRevoked => "key_revoked",
            Refusal::KeyExpired => "key_expired",
            Refusal::Inactive => "inactive",
            Refusal::KeysUnavailable => "keys_unavailable",
            Refusal::TooLarge => "too_large",
            Refusal::WrongEndpoint => "wrong_endpoint",
        }
    }

    /// Whether the credential may be good after all and the gateway is to blame: 503 rather than 401.
    pub fn is_unavailable(self) -> bool {
        self == Refusal::KeysUnavailable
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refusal::Expired => "The token has expired: get a new one",
            Refusal::NotYetValid => "The token is not valid yet: check the clocks, or wait",
            Refusal::BadSignature => "The signature of the token is wrong",
            Refusal::UnknownKey => "The token is signed with a key of its issuer that is not known, or not yet",
            Refusal::AlgorithmNotAllowed => "The token is signed with an algorithm that is not allowed here",
            Refusal::WrongIssuer => "The token is of an issuer that is not trusted here",
            Refusal::WrongAudience => "The token is for another resource: ask for one for this resource",
            Refusal::MissingAudience => {
                "The token does not say for which resource it is: its audience is missing"
            }
            Refusal::NotAnAccessToken => "This is not an access token",
            Refusal::Bound => {
                "The token is bound to a key of its client, and proof of that is not supported: get a bearer token"
            }
            Refusal::MissingSubject => "The token does not say whose it is",
            Refusal::MissingTenant => "The token does not say of which tenant its subject is",
            Refusal::BadTenant => "The tenant that the token names cannot be one",
            Refusal::MissingClaim(claim) => return write!(f, "The token lacks the claim {claim}"),
            Refusal::Malformed => "The token is malformed",
            Refusal::UnknownKeyId | Refusal::KeyRevoked | Refusal::KeyExpired => "The API key is not valid",
            Refusal::Inactive => "The token is not valid, or not any more",
            Refusal::KeysUnavailable => "The token cannot be verified right now: try again in a moment",
            Refusal::TooLarge => "The token is too large",
            Refusal::WrongEndpoint => "The API key is not for this endpoint",
        })
    }
}

impl std::error::Error for Refusal {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_cannot_tell_keys_that_are_not_valid_apart_and_the_log_can() {
        let all = [Refusal::UnknownKeyId, Refusal::KeyRevoked, Refusal::KeyExpired];
        assert!(all.iter().all(|one| one.to_string() == all[0].to_string()));
        assert_eq!(all.map(Refusal::reason), ["unknown_key", "key_revoked", "key_expired"]);
    }
}
