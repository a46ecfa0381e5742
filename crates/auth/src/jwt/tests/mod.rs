//! Tokens from an issuer inside of the tests, and what becomes of them.

mod fetching;
mod server;
mod signer;
mod tokens;

use std::time::Duration;

use serde_json::{Value, json};
use tidegate_config::{ClaimSettings, JwksSource, JwtSettings};
use tidegate_service::epoch_ms;

use super::keys::Timing;
use super::{ALGORITHMS, JwtVerifier};

pub(crate) use self::server::{Answer, Server};
pub(crate) use self::signer::{Signer, token};

const ISSUER: &str = "https://id.example.com";

fn settings(issuer: &str, jwks: JwksSource) -> JwtSettings {
    JwtSettings {
        issuer: issuer.to_owned(),
        audience: Vec::new(),
        jwks,
        algorithms: ALGORITHMS.map(|(name, _)| name.to_owned()).to_vec(),
        claims: ClaimSettings::default(),
        clock_skew: Duration::from_secs(60),
    }
}

/// Claims of a good token, with some of them replaced or added.
fn claims(issuer: &str, more: Value) -> Value {
    let mut claims =
        json!({ "iss": issuer, "sub": "ann", "aud": "https://mcp.example.com/mcp", "exp": now() + 300 });
    claims.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    claims
}

fn now() -> u64 {
    epoch_ms() / 1000
}

/// A verifier with so short times that tests can wait for them.
fn verifier(issuer: &str, jwks: JwksSource) -> JwtVerifier {
    verifier_with(issuer, jwks, |_| {})
}

fn verifier_with(issuer: &str, jwks: JwksSource, change: impl FnOnce(&mut Timing)) -> JwtVerifier {
    let mut timing = Timing { look: Duration::from_millis(10), ..Timing::default() };
    change(&mut timing);
    JwtVerifier::with_timing(&settings(issuer, jwks), tidegate_web::Settings::default(), timing).unwrap()
}

/// Tries again until it is so: what a task does in the background has no moment at which it must be done.
pub(crate) async fn eventually<F: Future<Output = bool>>(mut is_so: impl FnMut() -> F) {
    for _ in 0..1000 {
        if is_so().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it never was so");
}
