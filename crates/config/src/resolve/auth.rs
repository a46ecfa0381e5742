//! Who may call.

use std::time::Duration;

use tidegate_service::nearest_name;
use tidegate_service::secrets::Secret;

use super::Resolver;
use crate::auth_settings::{AuthSettings, ClaimSettings, IntrospectionSettings, JwksSource, JwtSettings};
use crate::source_map::{self, item_name};
use crate::urls;
use crate::written::{Auth, Introspection, Jwt, Texts};

/// What is accepted if nobody says so: every algorithm with a public key that is in use.
const ALGORITHMS: [&str; 9] =
    ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA"];
const CLOCK_SKEW: Duration = Duration::from_secs(60);
const LONGEST_CLOCK_SKEW: Duration = Duration::from_secs(5 * 60);

impl Resolver<'_> {
    /// `max_message` is the largest message that a caller may send.
    pub(super) fn auth(&mut self, auth: Auth, max_message: usize) -> AuthSettings {
        if auth.keys.is_none() && auth.jwt.is_empty() && auth.introspection.is_empty() {
            self.required(
                &["auth"],
                &["keys", "jwt", "introspection"],
                "lets nobody in: add keys = \"keys.toml\" (and tidegate keys add NAME), [[auth.jwt]] or \
                 [[auth.introspection]]",
            );
        }
        let keys = auth.keys.as_deref().and_then(|path| self.path(&["auth", "keys"], path));
        let scopes = self.scopes(&auth.scopes, &auth.tool_scopes, auth.scope_includes);
        let max_buffered = auth.max_buffered.as_ref().map(|size| {
            let bytes = self.size(&["auth", "max_buffered"], Some(size), usize::MAX);
            if bytes < max_message {
                self.wrong(
                    &["auth", "max_buffered"],
                    "must be at least max_message, or the largest message could not be received",
                );
            }
            bytes
        });
        let mut jwt: Vec<JwtSettings> = Vec::new();
        for (index, written) in auth.jwt.into_iter().enumerate() {
            let settings = self.jwt(&item_name(index), written);
            if jwt.iter().any(|other| other.issuer == settings.issuer) {
                self.issued_twice("jwt", &item_name(index), &settings.issuer);
            }
            jwt.push(settings);
        }
        let mut introspection: Vec<IntrospectionSettings> = Vec::new();
        for (index, written) in auth.introspection.into_iter().enumerate() {
            let settings = self.introspection(&item_name(index), written);
            if introspection.iter().any(|other| other.issuer == settings.issuer) {
                self.issued_twice("introspection", &item_name(index), &settings.issuer);
            }
            introspection.push(settings);
        }
        AuthSettings { keys, jwt, introspection, scopes, max_buffered }
    }

    fn issued_twice(&mut self, kind: &str, item: &str, issuer: &str) {
        // One that is missing was told already.
        if !issuer.is_empty() {
            let sentence = format!("this issuer has an [[auth.{kind}]] already; keep one of them");
            self.wrong(&["auth", kind, item, "issuer"], sentence);
        }
    }

    fn jwt(&mut self, item: &str, jwt: Jwt) -> JwtSettings {
        let at = |field: &'static str| ["auth", "jwt", item, field];
        let issuer = self.issuer(&["auth", "jwt", item], jwt.issuer);
        let jwks = match jwt.jwks {
            None => JwksSource::Discovered,
            Some(url) if url.contains("://") => {
                if let Err(sentence) = urls::trusted(&url) {
                    self.wrong(&at("jwks"), sentence);
                }
                JwksSource::Url(url)
            }
            Some(file) => match self.path(&at("jwks"), &file) {
                Some(path) => {
                    self.secrets.watch(&path);
                    JwksSource::File(path)
                }
                None => JwksSource::Discovered,
            },
        };
        let algorithms = match jwt.algorithms {
            None => ALGORITHMS.map(str::to_owned).to_vec(),
            Some(said) => {
                self.check_algorithms(&at("algorithms"), &said);
                said
            }
        };
        let clock_skew = self.time(&at("clock_skew"), jwt.clock_skew.as_ref(), CLOCK_SKEW);
        if clock_skew > LONGEST_CLOCK_SKEW {
            self.wrong(
                &at("clock_skew"),
                "must be at most \"5m\", because tokens that have expired are good for that long: set the clock instead",
            );
        }
        JwtSettings {
            issuer,
            audience: self.audience(&at("audience"), jwt.audience),
            jwks,
            algorithms,
            claims: self.claims(&["auth", "jwt", item], [jwt.subject, jwt.tenant, jwt.roles, jwt.scopes]),
            clock_skew,
        }
    }

    fn introspection(&mut self, item: &str, asked: Introspection) -> IntrospectionSettings {
        let around = ["auth", "introspection", item];
        let at = |field: &'static str| ["auth", "introspection", item, field];
        let issuer = self.issuer(&around, asked.issuer);
        let mut needed = |field: &'static str, written: Option<String>, what: &str| match written {
            Some(text) if text.trim().is_empty() => {
                self.wrong(&at(field), format!("must be {what}, and is empty"));
                String::new()
            }
            Some(text) => text,
            None => {
                self.required(&around, &[field], &format!("needs {field}, {what}"));
                String::new()
            }
        };
        let url = needed("url", asked.url, "the introspection endpoint");
        let client_id = needed("client_id", asked.client_id, "the client that asks");
        let client_secret = needed("client_secret", asked.client_secret, "the secret of that client");
        if !url.is_empty()
            && let Err(sentence) = urls::trusted(&url)
        {
            self.wrong(&at("url"), sentence);
        }
        IntrospectionSettings {
            issuer,
            url,
            client_id,
            client_secret: Secret::new(client_secret),
            audience: self.audience(&at("audience"), asked.audience),
            claims: self.claims(&around, [asked.subject, asked.tenant, asked.roles, asked.scopes]),
        }
    }

    fn issuer(&mut self, around: source_map::Path<'_>, written: Option<String>) -> String {
        let Some(issuer) = written else {
            self.required(around, &["issuer"], "needs issuer, the iss of its tokens");
            return String::new();
        };
        if let Err(sentence) = urls::issuer(&issuer) {
            self.wrong(&[around, &["issuer"]].concat(), sentence);
        }
        issuer
    }

    fn claims(&mut self, around: source_map::Path<'_>, names: [Option<String>; 4]) -> ClaimSettings {
        for (field, name) in ["subject", "tenant", "roles", "scopes"].into_iter().zip(&names) {
            if name.as_ref().is_some_and(|name| name.trim().is_empty()) {
                self.wrong(&[around, &[field]].concat(), "must be the name of a claim, and is empty");
            }
        }
        let [subject, tenant, roles, scopes] = names;
        ClaimSettings { subject, tenant, roles, scopes }
    }

    fn check_algorithms(&mut self, at: source_map::Path<'_>, said: &[String]) {
        if said.is_empty() {
            self.wrong(at, "must have at least one algorithm; leave it out for the usual ones");
        }
        for name in said.iter().filter(|name| !ALGORITHMS.contains(&name.as_str())) {
            let sentence = match name.to_ascii_uppercase().as_str() {
                "NONE" => "\"none\" would accept tokens that anybody can write".to_owned(),
                // Whoever has the shared secret can issue tokens; and a public key may be taken for it.
                "HS256" | "HS384" | "HS512" => {
                    "algorithms with a shared secret (HS256, HS384, HS512) are not supported: whoever can check a token \
                     could issue one. Have the issuer sign with RS256 or ES256"
                        .to_owned()
                }
                _ => {
                    let meant = nearest_name(name, ALGORITHMS);
                    let hint = meant.map_or(String::new(), |meant| format!("; did you mean {meant:?}?"));
                    format!("each must be one of {}{hint}", ALGORITHMS.join(", "))
                }
            };
            self.wrong(at, sentence);
        }
    }

    /// Audiences that were written. What every token of an issuer has says nothing about whom a token is for.
    pub(super) fn audience(&mut self, at: source_map::Path<'_>, written: Option<Texts>) -> Vec<String> {
        let Some(Texts(said)) = written else { return Vec::new() };
        if said.is_empty() {
            self.wrong(at, "must have at least one audience; leave it out for the URL of the endpoint");
        }
        for audience in &said {
            if let Some(sentence) = no_audience(audience) {
                self.wrong(at, sentence);
            }
        }
        said
    }
}

/// Why tokens with an audience may be for somebody else.
fn no_audience(audience: &str) -> Option<&'static str> {
    match audience {
        "" => Some("must not be empty: use what the issuer puts into the tokens for this gateway"),
        "account" => Some(
            "\"account\" is in most tokens of Keycloak, whomever they are for: add an audience mapper for this gateway, and \
             write its audience",
        ),
        "00000003-0000-0000-c000-000000000000" | "https://graph.microsoft.com" => Some(
            "is that of Microsoft Graph, whose tokens are not for this gateway: expose an API of its own",
        ),
        _ if audience.contains('*') => {
            Some("is compared character by character, and * is no wildcard: list each audience")
        }
        _ if audience.contains(|c: char| c.is_whitespace() || c.is_control()) => {
            Some("has spaces in it: list each audience by itself")
        }
        _ if audience.starts_with("https://") && audience.ends_with("/userinfo") => Some(
            "is that of the issuer's userinfo endpoint, which is in most tokens of Auth0, whomever they are for: use the \
             identifier of the API",
        ),
        _ => None,
    }
}
