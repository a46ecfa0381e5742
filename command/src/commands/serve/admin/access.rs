//! Who may use the admin API, and for what.

use std::sync::Arc;

use axum::body::Body;
use axum::http::Request;
use axum::http::header::AUTHORIZATION;
use subtle::ConstantTimeEq as _;
use tidegate_service::{Identity, random};

use super::super::calls_api;
use super::Admin;
use super::asked::Refusal;
use super::routes::{Needs, Route};

/// How somebody has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::commands::serve) enum Standing {
    /// Through the socket in the state directory, which nobody else can open: whoever runs the gateway.
    Operator,
    /// Over HTTP from this machine, where nobody is authenticated.
    Local,
    /// Over HTTP with a key or a token.
    Authenticated,
}

impl Standing {
    /// The way, in a word.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Standing::Operator => "socket",
            Standing::Local => "token",
            Standing::Authenticated => "credential",
        }
    }
}

/// Whether somebody still may what they began.
pub(super) type Still = Arc<dyn Fn() -> bool + Send + Sync>;

/// What whoever is on this machine has to know before anything is changed: anew at each start, and told to nobody but the user
/// of the process. Its `Debug` does not show it.
pub(super) struct Token(String);

impl Token {
    pub(super) fn new() -> Token {
        let bytes: [u8; 32] = random();
        Token(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    pub(super) fn reveal(&self) -> &str {
        &self.0
    }

    /// Whether this is it. How long that takes says nothing about it.
    fn is(&self, given: &str) -> bool {
        self.0.as_bytes().ct_eq(given.as_bytes()).into()
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token")
    }
}

impl Admin {
    /// Lets somebody do something, or says why not. What is returned says whether they still may, for streams.
    pub(super) fn admit(
        &self,
        route: &Route,
        standing: Standing,
        identity: &Identity,
        request: &Request<Body>,
    ) -> Result<Still, Refusal> {
        let object = route.object(request.uri().path());
        let (gateway, identity) = (self.0.gateway.clone(), identity.clone());
        let still: Still = match standing {
            Standing::Operator => Arc::new(|| true),
            // A policy may hide pages from everybody on this machine.
            Standing::Local => Arc::new(move || gateway.allows_page(&identity, &object)),
            // It names servers, callers and what they call: nobody sees it because nothing was said about it.
            Standing::Authenticated => {
                Arc::new(move || identity.claims.is_some() && gateway.rule_allows_page(&identity, &object))
            }
        };
        if !still() {
            return Err(Refusal::not_found());
        }
        // What callers send and get is more than other users of this machine should see.
        let has_bodies = route.path == calls_api::PATH && self.0.monitoring.has_bodies();
        if standing == Standing::Local && (route.needs == Needs::Token || has_bodies) {
            self.check_token(request)?;
        }
        Ok(still)
    }

    /// Whether somebody may know that there is something.
    pub(super) fn may_see(&self, standing: Standing, identity: &Identity, path: &str) -> bool {
        match standing {
            Standing::Operator => true,
            Standing::Local => self.0.gateway.allows_page(identity, path),
            Standing::Authenticated => {
                identity.claims.is_some() && self.0.gateway.rule_allows_page(identity, path)
            }
        }
    }

    fn check_token(&self, request: &Request<Body>) -> Result<(), Refusal> {
        let mut sent = request.headers().get_all(AUTHORIZATION).iter();
        let (header, is_alone) = (sent.next(), sent.next().is_none());
        let header = header.filter(|_| is_alone).and_then(|header| header.to_str().ok());
        let given = header.and_then(|header| {
            let (scheme, given) = header.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then(|| given.trim())
        });
        match given {
            Some(given) if self.0.token.is(given) => Ok(()),
            _ => Err(Refusal::new(
                401,
                "this needs the token of this start of the gateway, as Authorization: Bearer TOKEN. It is in admin/PID-….json in \
                 the state directory; tidegate commands use the socket beside it",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_token_is_the_token() {
        let token = Token::new();
        let text = token.reveal().to_owned();
        assert_eq!((text.len(), format!("{token:?}")), (64, "Token".to_owned()));
        assert!(token.is(&text) && !Token::new().is(&text));
        let longer = format!("{text}0");
        for wrong in ["", &text[1..], &text[..63], &longer, &text.to_uppercase().replace('A', "b")] {
            assert!(!token.is(wrong), "{wrong}");
        }
    }
}
