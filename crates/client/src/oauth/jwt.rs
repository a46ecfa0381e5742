//! [`SigningKey`] and the JSON Web Tokens that are signed with it.

use std::fmt;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair, RSA_PKCS1_SHA256, RsaKeyPair};
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use serde_json::{Value, json};
use tidegate_protocol::Error;

use super::fault::Fault;

/// How long an assertion about ourselves is good.
const ASSERTION_LIFE: u64 = 300;

/// A private key with which a client says who it is (`private_key_jwt`): EC P-256 (ES256) or RSA (RS256).
#[derive(Clone)]
pub struct SigningKey {
    pair: Arc<Pair>,
    id: Option<String>,
}

enum Pair {
    Es256(EcdsaKeyPair),
    Rs256(RsaKeyPair),
}

impl SigningKey {
    /// Reads a PEM file's text: `PRIVATE KEY` (PKCS#8, EC P-256 or RSA) or `RSA PRIVATE KEY`.
    pub fn from_pem(pem: &str) -> Result<SigningKey, Error> {
        let unusable = || {
            let what = "the private key cannot be used: it must be an EC P-256 or RSA key in PKCS#8 form; \
                        convert it with: openssl pkcs8 -topk8 -nocrypt -in key.pem";
            Error::from(Fault::Key(what.to_owned()))
        };
        let rsa = |pair| SigningKey::of(Pair::Rs256(pair));
        match PrivateKeyDer::from_pem_slice(pem.as_bytes()).map_err(|_| unusable())? {
            PrivateKeyDer::Pkcs1(der) => {
                RsaKeyPair::from_der(der.secret_pkcs1_der()).map(rsa).map_err(|_| unusable())
            }
            PrivateKeyDer::Pkcs8(der) => match SigningKey::from_pkcs8(der.secret_pkcs8_der()) {
                Ok(key) => Ok(key),
                Err(_) => RsaKeyPair::from_pkcs8(der.secret_pkcs8_der()).map(rsa).map_err(|_| unusable()),
            },
            _ => Err(unusable()),
        }
    }

    /// The same key, with the `kid` by which the authorization server knows it.
    pub fn with_key_id(self, id: impl Into<String>) -> SigningKey {
        SigningKey { id: Some(id.into()), ..self }
    }

    /// A new P-256 key, and its PKCS#8 form to keep it in.
    pub(super) fn generate() -> Result<(SigningKey, Vec<u8>), Fault> {
        let broken = |_| Fault::Key("this system gives no random numbers, so no key can be made".to_owned());
        let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new());
        let bytes = document.map_err(broken)?.as_ref().to_vec();
        Ok((SigningKey::from_pkcs8(&bytes)?, bytes))
    }

    /// A P-256 key from its PKCS#8 form.
    pub(super) fn from_pkcs8(bytes: &[u8]) -> Result<SigningKey, Fault> {
        EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, bytes, &SystemRandom::new())
            .map(|pair| SigningKey::of(Pair::Es256(pair)))
            .map_err(|_| Fault::Key("a stored key cannot be read; log in again".to_owned()))
    }

    fn of(pair: Pair) -> SigningKey {
        SigningKey { pair: Arc::new(pair), id: None }
    }

    /// The public half as a JSON Web Key, for a P-256 key.
    pub(super) fn public_jwk(&self) -> Option<Value> {
        let Pair::Es256(pair) = &*self.pair else { return None };
        // An uncompressed point: 4, then both coordinates (SEC 1 section 2.3.3).
        let (x, y) = pair.public_key().as_ref().get(1..65)?.split_at(32);
        Some(json!({"kty": "EC", "crv": "P-256", "x": encode(x), "y": encode(y)}))
    }

    /// Signs `claims`. `header` gets `alg` and, if the key has one, `kid`.
    pub(super) fn sign(&self, mut header: Value, claims: &Value) -> Result<String, Fault> {
        header["alg"] = match *self.pair {
            Pair::Es256(_) => "ES256".into(),
            Pair::Rs256(_) => "RS256".into(),
        };
        if let Some(id) = &self.id {
            header["kid"] = id.as_str().into();
        }
        let text = format!("{}.{}", encode(header.to_string()), encode(claims.to_string()));
        let random = SystemRandom::new();
        let broken = |_| Fault::Key("signing with the private key failed; check the key".to_owned());
        let signature = match &*self.pair {
            Pair::Es256(pair) => pair.sign(&random, text.as_bytes()).map_err(broken)?.as_ref().to_vec(),
            Pair::Rs256(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, text.as_bytes(), &mut signature).map_err(broken)?;
                signature
            }
        };
        Ok(format!("{text}.{}", encode(signature)))
    }

    /// Says to `audience` that we are `client` (RFC 7523 section 3). The audience is the issuer, not the token
    /// endpoint, so that no other server can pass the assertion on.
    pub(super) fn assertion(&self, client: &str, audience: &str) -> Result<String, Fault> {
        let now = now();
        let claims = json!({
            "iss": client,
            "sub": client,
            "aud": audience,
            "iat": now,
            "exp": now + ASSERTION_LIFE,
            "jti": random_text::<16>(),
        });
        self.sign(json!({"typ": "JWT"}), &claims)
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match *self.pair {
            Pair::Es256(_) => "SigningKey(ES256)",
            Pair::Rs256(_) => "SigningKey(RS256)",
        })
    }
}

/// Base64 as tokens have it.
pub(super) fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The reverse of [`encode`].
pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}

/// Text that nobody can guess and that never comes twice.
pub(super) fn random_text<const BYTES: usize>() -> String {
    encode(tidegate_service::random::<BYTES>())
}

/// Seconds since 1970.
pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use ring::signature::{ECDSA_P256_SHA256_FIXED, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};

    /// The claims of a token, whose signature is right under a P-256 key.
    pub(in crate::oauth) fn verify_es256(token: &str, jwk: &Value) -> (Value, Value) {
        let mut point = vec![4];
        for coordinate in ["x", "y"] {
            point.extend(decode(jwk[coordinate].as_str().unwrap()).unwrap());
        }
        let (text, signature) = token.rsplit_once('.').unwrap();
        UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point)
            .verify(text.as_bytes(), &decode(signature).unwrap())
            .expect("the signature is wrong");
        let (header, claims) = text.split_once('.').unwrap();
        let read = |part| serde_json::from_slice(&decode(part).unwrap()).unwrap();
        (read(header), read(claims))
    }

    /// A new key as a PEM file has it.
    pub(in crate::oauth) fn es256_pem() -> String {
        let text = base64::engine::general_purpose::STANDARD.encode(SigningKey::generate().unwrap().1);
        format!("-----BEGIN PRIVATE KEY-----\n{text}\n-----END PRIVATE KEY-----\n")
    }

    #[test]
    fn assertions_say_who_and_to_whom() {
        let key = SigningKey::from_pem(&es256_pem()).unwrap().with_key_id("k1");
        let token = key.assertion("me", "https://as.example").unwrap();
        let (header, claims) = verify_es256(&token, &key.public_jwk().unwrap());
        assert_eq!((&header["alg"], &header["kid"]), (&json!("ES256"), &json!("k1")));
        assert_eq!((&claims["iss"], &claims["sub"]), (&json!("me"), &json!("me")));
        assert_eq!(claims["aud"], "https://as.example");
        assert_eq!(claims["exp"].as_u64().unwrap() - claims["iat"].as_u64().unwrap(), ASSERTION_LIFE);
        assert_ne!(token, key.assertion("me", "https://as.example").unwrap());
    }

    #[test]
    fn rsa_keys_of_both_forms() {
        for pem in [include_str!("tests/rs256.pem"), include_str!("tests/rs256-pkcs1.pem")] {
            let key = SigningKey::from_pem(pem).unwrap();
            assert_eq!(format!("{key:?}"), "SigningKey(RS256)");
            let token = key.assertion("me", "a").unwrap();
            let (text, signature) = token.rsplit_once('.').unwrap();
            let Pair::Rs256(pair) = &*key.pair else { panic!() };
            UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, pair.public_key().as_ref())
                .verify(text.as_bytes(), &decode(signature).unwrap())
                .unwrap();
        }
    }

    #[test]
    fn other_keys_are_refused_with_advice() {
        for pem in ["", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"] {
            let error = SigningKey::from_pem(pem).unwrap_err();
            assert!(error.detail().contains("openssl pkcs8"), "{error}");
        }
    }
}
