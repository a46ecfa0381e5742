//! JWT access tokens (RFC 7519, RFC 9068).
//!
//! A token goes through these rooms, and whatever is wrong with it ends the way:
//!
//! ```text
//!  token ─ header ──────── keys ────────────── signature ───── claims ─────────── Verified
//!          algorithm,      by `kid`, of the    `jsonwebtoken`  dates, audience,
//!          type, nothing   issuer alone; may   over `ring`     subject, tenant,
//!          critical        fetch new ones      (`crypto`)      scopes, roles
//! ```
//!
//! Whether `aud` has the endpoint that was called is for the caller to see: a token is verified once, and may be used at several.

mod claims;
mod crypto;
mod error;
mod header;
mod keys;
mod strict_json;
#[cfg(test)]
pub(crate) mod tests;

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Algorithm, Validation};
use serde::Deserialize;
use tidegate_config::JwtSettings;
use tidegate_service::epoch_ms;

pub use self::error::SetupError;

pub(crate) use self::claims::{ClaimReader, Required};
pub(crate) use self::keys::{Timing, checked, guarded};
pub(crate) use self::strict_json::Object;

use self::header::Header;
use self::keys::{Found, Keys};
use crate::{Refusal, Verified};

/// How many bytes a token has at most.
pub(crate) const LONGEST_TOKEN: usize = 16 * 1024;

/// What can be allowed: signatures with public keys.
const ALGORITHMS: [(&str, Algorithm); 9] = [
    ("RS256", Algorithm::RS256),
    ("RS384", Algorithm::RS384),
    ("RS512", Algorithm::RS512),
    ("PS256", Algorithm::PS256),
    ("PS384", Algorithm::PS384),
    ("PS512", Algorithm::PS512),
    ("ES256", Algorithm::ES256),
    ("ES384", Algorithm::ES384),
    ("EdDSA", Algorithm::EdDSA),
];

/// Verifies the access tokens of one issuer.
pub struct JwtVerifier {
    issuer: String,
    algorithms: Vec<Algorithm>,
    leeway_s: u64,
    claims: ClaimReader,
    keys: Keys,
}

impl JwtVerifier {
    /// A verifier for these settings. A file of keys is read at once and must be good; what has to be fetched is fetched by a task
    /// that lives as long as the verifier. Of `web`, all but the guard holds. Must be called inside a runtime of tokio.
    pub fn new(settings: &JwtSettings, web: tidegate_web::Settings) -> Result<JwtVerifier, SetupError> {
        JwtVerifier::with_timing(settings, web, Timing::default())
    }

    fn with_timing(
        settings: &JwtSettings,
        web: tidegate_web::Settings,
        timing: Timing,
    ) -> Result<JwtVerifier, SetupError> {
        crypto::install();
        let known = |name: &String| {
            let found = ALGORITHMS.iter().find(|(known, _)| known == name);
            found.map(|(_, algorithm)| *algorithm).ok_or_else(|| SetupError::Algorithm(name.clone()))
        };
        let algorithms = settings.algorithms.iter().map(known).collect::<Result<_, _>>()?;
        Ok(JwtVerifier {
            issuer: settings.issuer.clone(),
            algorithms,
            leeway_s: settings.clock_skew.as_secs(),
            claims: ClaimReader::new(&settings.issuer, &settings.claims, settings.clock_skew),
            keys: Keys::start(&settings.issuer, &settings.jwks, timing, web)?,
        })
    }

    /// The issuer whose tokens these are.
    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// What a token says, if it is good now. It may be for anybody: compare [`Verified::audiences`].
    pub async fn verify(&self, token: &str) -> Result<Verified, Refusal> {
        if token.len() > LONGEST_TOKEN {
            return Err(Refusal::TooLarge);
        }
        let header = Header::read(token, &self.algorithms)?;
        // Before any key is looked for: tokens of others must not make us ask this issuer.
        if peek_issuer(token).ok_or(Refusal::Malformed)? != self.issuer {
            return Err(Refusal::WrongIssuer);
        }
        let kid = header.kid.as_deref();
        let keys = self.keys.current().await?;
        let refusal = match keys.find(kid, header.algorithm) {
            Found::Unfit => return Err(Refusal::AlgorithmNotAllowed),
            Found::Nothing => Refusal::UnknownKey,
            Found::Key(key) => match self.decode(token, &header, &key.decoding) {
                // An issuer that gives its only key no `kid` changes it without a word.
                Err(Refusal::BadSignature) if kid.is_none() => Refusal::BadSignature,
                other => return other,
            },
        };
        if !self.keys.refreshed().await {
            return Err(refusal);
        }
        match self.keys.current().await?.find(kid, header.algorithm) {
            Found::Unfit => Err(Refusal::AlgorithmNotAllowed),
            Found::Nothing => Err(refusal),
            Found::Key(key) => self.decode(token, &header, &key.decoding),
        }
    }

    /// Fetches the keys of the issuer anew, soon.
    pub(crate) fn fetch_keys_again(&self) {
        self.keys.fetch_again();
    }

    /// Changes whenever a key is not used any more, because the issuer withdrew it or is away for too long. What was verified before
    /// may have been signed with it.
    pub fn withdrawals(&self) -> u64 {
        self.keys.withdrawals()
    }

    /// Verifies the signature, then reads the claims. Dates and issuer are checked twice: by the crate, in the way of the field, and
    /// by [`ClaimReader`], which is stricter.
    fn decode(
        &self,
        token: &str,
        header: &Header,
        key: &jsonwebtoken::DecodingKey,
    ) -> Result<Verified, Refusal> {
        let mut validation = Validation::new(header.algorithm);
        validation.leeway = self.leeway_s;
        validation.validate_nbf = true;
        // This one does not know which endpoint was called.
        validation.validate_aud = false;
        validation.set_issuer(&[&self.issuer]);
        // A claim that is missing is told from one of the wrong type below.
        validation.required_spec_claims.clear();
        let token =
            jsonwebtoken::decode::<Object>(token, key, &validation).map_err(|error| refusal(error.kind()))?;
        self.claims.read(&token.claims.0, Required::IssuerAndExpiry, epoch_ms())
    }
}

impl fmt::Debug for JwtVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JwtVerifier").field("issuer", &self.issuer).finish_non_exhaustive()
    }
}

/// Who a token says has issued it, to find out whom to ask. Nothing is verified. `None` if it is no JWT, or an oversized one.
pub fn peek_issuer(token: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Peeked {
        iss: Option<String>,
    }
    let mut parts = token.split('.');
    let (Some(_), Some(payload), Some(_), None) = (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return None;
    };
    if token.len() > LONGEST_TOKEN {
        return None;
    }
    let payload = URL_SAFE_NO_PAD.decode(payload).ok()?;
    let peeked: Peeked = serde_json::from_slice(&payload).ok()?;
    Some(peeked.iss.unwrap_or_default())
}

/// Which key a token says it was signed with, for the log. Nothing is verified.
pub(crate) fn peek_key_id(token: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Peeked {
        kid: Option<String>,
    }
    let header = token.split('.').next().filter(|_| token.len() <= LONGEST_TOKEN)?;
    let peeked: Peeked = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(header).ok()?).ok()?;
    peeked.kid
}

fn refusal(error: &ErrorKind) -> Refusal {
    match error {
        ErrorKind::ExpiredSignature => Refusal::Expired,
        ErrorKind::ImmatureSignature => Refusal::NotYetValid,
        ErrorKind::InvalidIssuer => Refusal::WrongIssuer,
        ErrorKind::InvalidAlgorithm | ErrorKind::UnsupportedAlgorithm | ErrorKind::MissingAlgorithm => {
            Refusal::AlgorithmNotAllowed
        }
        ErrorKind::InvalidSignature => Refusal::BadSignature,
        _ => Refusal::Malformed,
    }
}
