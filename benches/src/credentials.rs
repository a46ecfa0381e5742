//! [`Credentials`]: what requests are authenticated with, and an [`Issuer`] of access tokens.

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use serde_json::{Value, json};

/// What goes behind `Bearer`: always the same, or another one in each request. All are of the same length.
pub(crate) struct Credentials(Vec<String>);

impl Credentials {
    pub(crate) fn one(credential: String) -> Self {
        Self(vec![credential])
    }

    /// A key for each of some tenants.
    pub(crate) fn of_tenants(keys: Vec<String>) -> Self {
        Self(keys)
    }

    /// A token for each of so many people.
    pub(crate) fn of_people(issuer: &Issuer, count: usize) -> Result<Self> {
        Ok(Self((0..count).map(|n| issuer.token(n)).collect::<Result<_>>()?))
    }

    /// What the `n`th request brings.
    pub(crate) fn of(&self, n: u64) -> &str {
        &self.0[(n % self.0.len() as u64) as usize]
    }

    pub(crate) fn differ(&self) -> bool {
        self.0.len() > 1
    }
}

/// Signs access tokens as long as those of identity providers usually are.
pub(crate) struct Issuer {
    key: EcdsaKeyPair,
    random: SystemRandom,
    now: u64,
}

impl Issuer {
    pub(crate) const NAME: &str = "https://id.example.com/realms/bench";
    pub(crate) const AUDIENCE: &str = "https://mcp.example.com/mcp";

    pub(crate) fn new() -> Result<Self> {
        let random = SystemRandom::new();
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let refused = |_| anyhow::anyhow!("no key could be made");
        let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).map_err(refused)?;
        let key = EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random)
            .map_err(|error| anyhow::anyhow!("no key could be made: {error}"))?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).context("a clock before 1970")?.as_secs();
        Ok(Self { key, random, now })
    }

    /// Its keys as gateways read them.
    pub(crate) fn key_set(&self) -> Value {
        // An uncompressed point: 4, x, y.
        let point = &self.key.public_key().as_ref()[1..];
        let (x, y) = point.split_at(32);
        let [x, y] = [x, y].map(|number| URL_SAFE_NO_PAD.encode(number));
        json!({"keys": [{"kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "kid": "bench", "x": x, "y": y}]})
    }

    /// The token of one of many people.
    pub(crate) fn token(&self, person: usize) -> Result<String> {
        let header = json!({"alg": "ES256", "typ": "at+jwt", "kid": "bench"});
        let claims = json!({
            "iss": Self::NAME,
            "aud": Self::AUDIENCE,
            "sub": format!("5f0c7a52-6d3b-4a57-9f0e-{person:012}"),
            "iat": self.now,
            "exp": self.now + 24 * 3600,
            "jti": format!("0a1d8f6e-21f4-4b89-8a55-{person:012}"),
            "client_id": "an-assistant-on-somebodys-desk",
            "azp": "an-assistant-on-somebodys-desk",
            "scope": "openid profile email mcp",
            "org_id": "reef",
            "realm_access": {"roles": ["default-roles-bench", "offline_access", "user", "dev"]},
            "name": "Ada Lovelace",
            "preferred_username": format!("ada{person:08}"),
            "email": format!("ada{person:08}@example.com"),
            "email_verified": true,
        });
        let [header, claims] = [header, claims].map(|part| URL_SAFE_NO_PAD.encode(part.to_string()));
        let signed = format!("{header}.{claims}");
        let refused = |_| anyhow::anyhow!("a token could not be signed");
        let signature = self.key.sign(&self.random, signed.as_bytes()).map_err(refused)?;
        Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_differ_and_are_of_one_length() {
        let issuer = Issuer::new().unwrap();
        let tokens = Credentials::of_people(&issuer, 20).unwrap();
        assert!(tokens.differ());
        assert_ne!(tokens.of(0), tokens.of(19));
        assert!((0..20).all(|n| tokens.of(n).len() == tokens.of(0).len()));
        assert_eq!(tokens.of(0), tokens.of(20));
        assert_eq!(issuer.key_set()["keys"][0]["x"].as_str().unwrap().len(), 43);
    }
}
