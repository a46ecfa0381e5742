//! [`Issuers`]: who is asked about which token.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use tidegate_config::{AuthSettings, ClaimSettings, IntrospectionSettings, JwtSettings};

use crate::auth_error::AuthError;
use crate::introspection::IntrospectionVerifier;
use crate::jwt::{JwtVerifier, peek_issuer};
use crate::refusal::Refusal;
use crate::verified::Verified;

type Verifying<'a> = Pin<Box<dyn Future<Output = Result<Verified, Refusal>> + Send + 'a>>;

/// One who issues tokens, and how they are verified.
pub(crate) struct Issuer {
    pub(crate) name: Arc<str>,
    /// What `aud` must have one of at the default endpoint; empty for its URL.
    pub(crate) audience: Vec<String>,
    /// As it was configured, to see what a reload changes.
    settings: IssuerSettings,
    verifier: Verifier,
}

#[derive(Debug, Clone, PartialEq)]
enum IssuerSettings {
    Jwt(JwtSettings),
    Introspection(IntrospectionSettings),
    #[cfg(test)]
    Nobody,
}

enum Verifier {
    Jwt(JwtVerifier),
    Introspection(IntrospectionVerifier),
    #[cfg(test)]
    Nobody,
}

impl Issuer {
    fn start(settings: IssuerSettings, web: &tidegate_web::Settings) -> Result<Issuer, AuthError> {
        let (name, audience, verifier) = match &settings {
            IssuerSettings::Jwt(jwt) => {
                let verifier = JwtVerifier::new(jwt, web.clone()).map(Verifier::Jwt);
                (&jwt.issuer, &jwt.audience, verifier)
            }
            IssuerSettings::Introspection(opaque) => {
                let verifier = IntrospectionVerifier::new(opaque, web.clone()).map(Verifier::Introspection);
                (&opaque.issuer, &opaque.audience, verifier)
            }
            #[cfg(test)]
            IssuerSettings::Nobody => return Ok(Issuer::no_one()),
        };
        let verifier = verifier.map_err(|error| AuthError::Issuer { issuer: name.clone(), error })?;
        Ok(Issuer { name: name.as_str().into(), audience: audience.clone(), verifier, settings })
    }

    fn is_introspection(&self) -> bool {
        matches!(self.verifier, Verifier::Introspection(_))
    }

    fn verify<'a>(&'a self, token: &'a str) -> Verifying<'a> {
        match &self.verifier {
            Verifier::Jwt(verifier) => Box::pin(verifier.verify(token)),
            Verifier::Introspection(verifier) => Box::pin(verifier.verify(token)),
            #[cfg(test)]
            Verifier::Nobody => Box::pin(std::future::ready(Err(Refusal::WrongIssuer))),
        }
    }

    #[cfg(test)]
    fn no_one() -> Issuer {
        let (settings, verifier) = (IssuerSettings::Nobody, Verifier::Nobody);
        Issuer { name: "nobody".into(), audience: Vec::new(), settings, verifier }
    }

    /// One whose tokens are never good.
    #[cfg(test)]
    pub(crate) fn nobody() -> Arc<Issuer> {
        Arc::new(Issuer::no_one())
    }
}

impl fmt::Debug for Issuer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Issuer({})", self.name)
    }
}

/// All issuers, in the order of the configuration.
#[derive(Debug, Clone, Default)]
pub(crate) struct Issuers(Vec<Arc<Issuer>>);

impl Issuers {
    /// Those of the settings. One that was there before and is configured in the same way goes on, with the keys that it has until it has
    /// fetched them anew.
    pub(crate) fn start(settings: &AuthSettings, before: &Issuers) -> Result<Issuers, AuthError> {
        let web = tidegate_web::Settings::default();
        let jwt = settings.jwt.iter().cloned().map(IssuerSettings::Jwt);
        let opaque = settings.introspection.iter().cloned().map(IssuerSettings::Introspection);
        let issuer =
            |settings: IssuerSettings| match before.0.iter().find(|issuer| issuer.settings == settings) {
                Some(same) => {
                    // Whoever reloads may want a key to be gone.
                    if let Verifier::Jwt(verifier) = &same.verifier {
                        verifier.fetch_keys_again();
                    }
                    Ok(same.clone())
                }
                None => Issuer::start(settings, &web).map(Arc::new),
            };
        jwt.chain(opaque).map(issuer).collect::<Result<_, _>>().map(Issuers)
    }

    /// Their names, each once.
    pub(crate) fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for issuer in &self.0 {
            if !names.contains(&&*issuer.name) {
                names.push(&issuer.name);
            }
        }
        names
    }

    /// Whether others have the same under a name.
    pub(crate) fn has_same(&self, others: &Issuers, name: &str) -> bool {
        let of = |all: &Issuers| -> Vec<Arc<Issuer>> {
            all.0.iter().filter(|one| *one.name == *name).cloned().collect()
        };
        let (ours, theirs) = (of(self), of(others));
        ours.len() == theirs.len() && ours.iter().zip(&theirs).all(|(one, other)| Arc::ptr_eq(one, other))
    }

    pub(crate) fn has(&self, issuer: &Arc<Issuer>) -> bool {
        self.0.iter().any(|one| Arc::ptr_eq(one, issuer))
    }

    /// How the claims of a token are read, if it is clear whose it is.
    pub(crate) fn claims_of(&self, token: &str) -> Option<&ClaimSettings> {
        let named = peek_issuer(token);
        let mut fitting = self.0.iter().filter(|one| match &named {
            Some(name) => *one.name == **name,
            None => one.is_introspection(),
        });
        let (Some(issuer), None) = (fitting.next(), fitting.next()) else { return None };
        match &issuer.settings {
            IssuerSettings::Jwt(jwt) => Some(&jwt.claims),
            IssuerSettings::Introspection(opaque) => Some(&opaque.claims),
            #[cfg(test)]
            IssuerSettings::Nobody => None,
        }
    }

    /// Changes whenever an issuer withdraws a key.
    pub(crate) fn withdrawals(&self) -> u64 {
        let of_one = |issuer: &Arc<Issuer>| match &issuer.verifier {
            Verifier::Jwt(verifier) => verifier.withdrawals(),
            _ => 0,
        };
        self.0.iter().map(of_one).fold(0, u64::wrapping_add)
    }

    /// Verifies a token with the issuer that it says it is of, and with no other. One that says nothing, because only its issuer can
    /// read it, is shown to everybody who can be asked.
    pub(crate) async fn verify(&self, token: &str) -> Result<(Verified, Arc<Issuer>), Refusal> {
        let named = peek_issuer(token);
        if let Some(name) = &named
            && let Some(issuer) = self.0.iter().find(|one| *one.name == **name && !one.is_introspection())
        {
            return Ok((issuer.verify(token).await?, issuer.clone()));
        }
        let fits = |one: &&Arc<Issuer>| named.as_ref().is_none_or(|name| *one.name == **name);
        let mut refusal = None;
        for issuer in self.0.iter().filter(|one| one.is_introspection()).filter(fits) {
            match issuer.verify(token).await {
                Ok(verified) => return Ok((verified, issuer.clone())),
                // Whoever could not be asked might have known it.
                Err(why) if refusal.is_none() || why.is_unavailable() => refusal = Some(why),
                Err(_) => {}
            }
        }
        Err(refusal.unwrap_or(if named.is_some() { Refusal::WrongIssuer } else { Refusal::Malformed }))
    }
}
