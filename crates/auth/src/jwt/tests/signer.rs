//! [`Signer`]: private keys of issuers, and tokens that are signed with them.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::rand::SystemRandom;
use ring::rsa::PublicKeyComponents;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair,
    RSA_PKCS1_SHA256, RSA_PKCS1_SHA384, RSA_PKCS1_SHA512, RSA_PSS_SHA256, RSA_PSS_SHA384, RSA_PSS_SHA512,
    RsaKeyPair,
};
use serde_json::{Value, json};

/// A private key.
pub(crate) enum Signer {
    Rsa(RsaKeyPair),
    P256(EcdsaKeyPair),
    P384(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

impl Signer {
    /// The one of the two RSA keys that are made for tests, because making them takes long.
    pub(crate) fn rsa() -> Signer {
        Signer::of_pem(include_str!("rsa_one.pem"))
    }

    /// The other one.
    pub(crate) fn other_rsa() -> Signer {
        Signer::of_pem(include_str!("rsa_two.pem"))
    }

    fn of_pem(pem: &str) -> Signer {
        let base64: String = pem.lines().filter(|line| !line.starts_with("-----")).collect();
        Signer::Rsa(RsaKeyPair::from_pkcs8(&STANDARD.decode(base64).unwrap()).unwrap())
    }

    pub(crate) fn p256() -> Signer {
        let random = SystemRandom::new();
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8.as_ref(), &random);
        Signer::P256(key.unwrap())
    }

    pub(crate) fn p384() -> Signer {
        let random = SystemRandom::new();
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P384_SHA384_FIXED_SIGNING, &random).unwrap();
        let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P384_SHA384_FIXED_SIGNING, pkcs8.as_ref(), &random);
        Signer::P384(key.unwrap())
    }

    pub(crate) fn ed25519() -> Signer {
        let pkcs8 = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        Signer::Ed25519(Ed25519KeyPair::from_pkcs8(pkcs8.as_ref()).unwrap())
    }

    /// The public half.
    pub(crate) fn jwk(&self, kid: &str) -> Value {
        let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let ec = |key: &EcdsaKeyPair, crv: &str| {
            let point = &key.public_key().as_ref()[1..];
            let (x, y) = point.split_at(point.len() / 2);
            json!({ "kty": "EC", "crv": crv, "x": text(x), "y": text(y), "kid": kid, "use": "sig" })
        };
        match self {
            Signer::Rsa(key) => {
                let public: PublicKeyComponents<Vec<u8>> = key.public().into();
                json!({ "kty": "RSA", "n": text(&public.n), "e": text(&public.e), "kid": kid, "use": "sig" })
            }
            Signer::P256(key) => ec(key, "P-256"),
            Signer::P384(key) => ec(key, "P-384"),
            Signer::Ed25519(key) => {
                json!({ "kty": "OKP", "crv": "Ed25519", "x": text(key.public_key().as_ref()), "kid": kid })
            }
        }
    }

    fn sign(&self, algorithm: &str, message: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match self {
            Signer::Rsa(key) => {
                let mut signature = vec![0; key.public().modulus_len()];
                let padding: &'static dyn ring::signature::RsaEncoding = match algorithm {
                    "RS384" => &RSA_PKCS1_SHA384,
                    "RS512" => &RSA_PKCS1_SHA512,
                    "PS256" => &RSA_PSS_SHA256,
                    "PS384" => &RSA_PSS_SHA384,
                    "PS512" => &RSA_PSS_SHA512,
                    _ => &RSA_PKCS1_SHA256,
                };
                key.sign(padding, &random, message, &mut signature).unwrap();
                signature
            }
            Signer::P256(key) | Signer::P384(key) => key.sign(&random, message).unwrap().as_ref().to_vec(),
            Signer::Ed25519(key) => key.sign(message).as_ref().to_vec(),
        }
    }

    /// A token with a header and claims in these very bytes.
    pub(crate) fn token_of(&self, header: &str, claims: &str) -> String {
        let algorithm = serde_json::from_str::<Value>(header).unwrap_or_default()["alg"].clone();
        let message = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims));
        let signature = self.sign(algorithm.as_str().unwrap_or_default(), message.as_bytes());
        format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}

/// A token with this algorithm and `kid`.
pub(crate) fn token(signer: &Signer, algorithm: &str, kid: &str, claims: &Value) -> String {
    signer
        .token_of(&json!({ "alg": algorithm, "kid": kid, "typ": "at+jwt" }).to_string(), &claims.to_string())
}
