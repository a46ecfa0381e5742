//! Whether those who issue tokens can be asked.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use futures_util::future::join_all;
use serde_json::json;
use tidegate_auth::introspection::IntrospectionVerifier;
use tidegate_auth::jwt::JwtVerifier;
use tidegate_config::{AuthSettings, JwksSource, JwtSettings};

/// A sentence for each issuer that does not answer as it should. The log says why.
pub(super) async fn unreachable(auth: &AuthSettings) -> Vec<String> {
    let jwt = auth.jwt.iter().filter(|jwt| !matches!(jwt.jwks, JwksSource::File(_))).map(|jwt| async move {
        // Settings that cannot be used are a problem already.
        let verifier = JwtVerifier::new(jwt, Default::default()).ok()?;
        let is_away = verifier.verify(&nobodys(jwt)).await.is_err_and(|refusal| refusal.is_unavailable());
        let issuer = &jwt.issuer;
        is_away
            .then(|| format!("auth.jwt: the keys of {issuer} cannot be fetched, so its tokens are refused."))
    });
    let asked = auth.introspection.iter().map(|asked| async move {
        let verifier = IntrospectionVerifier::new(asked, Default::default()).ok()?;
        let is_away = verifier.verify("tidegate-check").await.is_err_and(|refusal| refusal.is_unavailable());
        let issuer = &asked.issuer;
        is_away.then(|| {
            format!("auth.introspection: {issuer} cannot be asked about tokens, so they are refused.")
        })
    });
    let (mut jwt, asked) = tokio::join!(join_all(jwt), join_all(asked));
    jwt.extend(asked);
    jwt.into_iter().flatten().collect()
}

/// A token that nobody has signed. To refuse it, the issuer's keys are needed.
fn nobodys(jwt: &JwtSettings) -> String {
    let part = |value: serde_json::Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
    let algorithm = jwt.algorithms.first().map_or("RS256", String::as_str);
    let header = part(json!({"alg": algorithm, "typ": "at+jwt", "kid": "tidegate-check"}));
    format!("{header}.{}.AAAA", part(json!({"iss": jwt.issuer})))
}
