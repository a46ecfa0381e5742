//! [`Dpop`]: tokens that are of no use to a thief, because each request proves that its sender has a key (RFC 9449).

use std::fmt;
use std::sync::Mutex;

use ::http::{HeaderMap, HeaderValue, Method};
use serde_json::{Value, json};
use url::Url;

use super::fault::Fault;
use super::jwt::{SigningKey, decode, encode, now, random_text};
use tidegate_service::secrets::Secret;

/// The header of a proof.
pub(super) const PROOF: &str = "dpop";
/// The header in which a server says what the next proof must hold.
const NONCE: &str = "dpop-nonce";

/// Who demands the proof. Each has nonces of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Authorization,
    Resource,
}

/// One key and what the servers want to see in its proofs.
pub(super) struct Dpop {
    key: SigningKey,
    jwk: Value,
    /// What the key is kept as: tokens outlive this process, and are worth nothing without it.
    stored: Secret,
    nonces: Mutex<[Option<String>; 2]>,
}

impl Dpop {
    /// A new key.
    pub(super) fn new() -> Result<Dpop, Fault> {
        let (key, bytes) = SigningKey::generate()?;
        Dpop::of(key, Secret::new(encode(bytes)))
    }

    /// The key that [`Dpop::stored`] gave.
    pub(super) fn from_stored(stored: &Secret) -> Result<Dpop, Fault> {
        let bytes = decode(stored.reveal()).unwrap_or_default();
        Dpop::of(SigningKey::from_pkcs8(&bytes)?, stored.clone())
    }

    fn of(key: SigningKey, stored: Secret) -> Result<Dpop, Fault> {
        let jwk =
            key.public_jwk().ok_or_else(|| Fault::Key("the key for proofs is not an EC key".to_owned()))?;
        Ok(Dpop { key, jwk, stored, nonces: Mutex::default() })
    }

    /// The key, to keep it.
    pub(super) fn stored(&self) -> &Secret {
        &self.stored
    }

    /// A proof for one request, and for no other. `token` is the one that goes with the request.
    pub(super) fn proof(
        &self,
        side: Side,
        method: &Method,
        url: &Url,
        token: Option<&str>,
    ) -> Result<HeaderValue, Fault> {
        let mut target = url.clone();
        target.set_query(None);
        target.set_fragment(None);
        let mut claims = json!({
            "jti": random_text::<16>(),
            "htm": method.as_str(),
            "htu": target.as_str(),
            "iat": now(),
        });
        if let Some(token) = token {
            claims["ath"] = encode(ring::digest::digest(&ring::digest::SHA256, token.as_bytes())).into();
        }
        if let Some(nonce) = self.nonce(side) {
            claims["nonce"] = nonce.into();
        }
        let proof = self.key.sign(json!({"typ": "dpop+jwt", "jwk": self.jwk}), &claims)?;
        HeaderValue::try_from(proof).map_err(|_| Fault::Key("a proof is not a valid header".to_owned()))
    }

    /// Takes note of what the next proof must hold, if an answer says so. Says whether that is new.
    pub(super) fn learn(&self, side: Side, headers: &HeaderMap) -> bool {
        let Some(nonce) = headers.get(NONCE).and_then(|nonce| nonce.to_str().ok()) else { return false };
        let mut nonces = self.nonces.lock().unwrap_or_else(|broken| broken.into_inner());
        let known = &mut nonces[side as usize];
        let new = known.as_deref() != Some(nonce);
        *known = Some(nonce.to_owned());
        new
    }

    /// What the next proof must hold.
    pub(super) fn nonce(&self, side: Side) -> Option<String> {
        self.nonces.lock().unwrap_or_else(|broken| broken.into_inner())[side as usize].clone()
    }
}

impl fmt::Debug for Dpop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Dpop(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::super::jwt::tests::verify_es256;
    use super::*;

    #[test]
    fn a_proof_is_for_one_request_and_one_token() {
        let dpop = Dpop::new().unwrap();
        let again = Dpop::from_stored(dpop.stored()).unwrap();
        let url = Url::parse("https://a.example/mcp?x=1#y").unwrap();
        let proof = again.proof(Side::Resource, &Method::POST, &url, Some("token")).unwrap();
        let (header, claims) = verify_es256(proof.to_str().unwrap(), &dpop.jwk);
        assert_eq!((&header["typ"], &header["jwk"]), (&json!("dpop+jwt"), &dpop.jwk));
        assert_eq!((&claims["htm"], &claims["htu"]), (&json!("POST"), &json!("https://a.example/mcp")));
        // RFC 9449: the hash of the token, without padding.
        assert_eq!(claims["ath"], "PEaenWxYddN6Q_NT1PiOYfz4EsZu7jRXRlpAsNpBU-A");
        assert!(claims.get("nonce").is_none());
    }

    #[test]
    fn each_side_has_its_nonce() {
        let dpop = Dpop::new().unwrap();
        let headers =
            |nonce| HeaderMap::from_iter([("dpop-nonce".parse().unwrap(), HeaderValue::from_static(nonce))]);
        assert!(dpop.learn(Side::Authorization, &headers("a")));
        assert!(!dpop.learn(Side::Authorization, &headers("a")));
        assert_eq!(dpop.nonce(Side::Resource), None);
        let url = Url::parse("https://a.example/token").unwrap();
        let proof = dpop.proof(Side::Authorization, &Method::POST, &url, None).unwrap();
        let (_, claims) = verify_es256(proof.to_str().unwrap(), &dpop.jwk);
        assert_eq!(claims["nonce"], "a");
        assert!(claims.get("ath").is_none());
    }
}
