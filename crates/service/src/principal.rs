//! [`Principal`]: who calls. [`Claims`]: what else is known of them.

use std::sync::Arc;

use tidegate_protocol::seal::Binding;

/// Who is calling, as established by the transport, never by the message.
///
/// Whatever belongs to a caller (a session, a parked call, a task, a cursor, a cached list) is keyed by this and by nothing
/// else: it is the same before and after a token was refreshed. ARCHITECTURE.md lists what that is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Principal {
    /// Who says so: the issuer of the token, or what keeps the keys. `None` when nobody was authenticated.
    pub issuer: Option<Arc<str>>,
    /// The authenticated subject, unique for its issuer; `None` when nobody was authenticated.
    pub subject: Option<Arc<str>>,
    /// The tenant the subject belongs to.
    pub tenant: Option<Arc<str>>,
}

impl Principal {
    /// A subject without issuer and tenant.
    pub fn subject(subject: impl Into<Arc<str>>) -> Principal {
        Principal { subject: Some(subject.into()), ..Principal::default() }
    }

    /// The same in another tenant.
    pub fn in_tenant(mut self, tenant: impl Into<Arc<str>>) -> Principal {
        self.tenant = Some(tenant.into());
        self
    }

    /// The same as another issuer knows it.
    pub fn issued_by(mut self, issuer: impl Into<Arc<str>>) -> Principal {
        self.issuer = Some(issuer.into());
        self
    }

    /// Binds what is sealed to this caller, a method, and the parameters with this digest, at the default endpoint: see
    /// [`ContextParts::binding`](crate::ContextParts::binding) for the one that was called.
    pub fn binding<'a>(&'a self, method: &'a str, params: [u8; 32]) -> Binding<'a> {
        Binding {
            issuer: self.issuer.as_deref().unwrap_or_default(),
            subject: self.subject.as_deref().unwrap_or_default(),
            tenant: self.tenant.as_deref().unwrap_or_default(),
            endpoint: "",
            method,
            params,
        }
    }
}

/// What an authenticated caller may do and how long, as its credentials say. It may differ from one request to the next, so
/// nothing is keyed by it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Claims {
    /// What the token may be used for; `None` if scopes do not restrict it, as with an API key that was given none.
    pub scopes: Option<Vec<Arc<str>>>,
    /// What the caller is.
    pub roles: Vec<Arc<str>>,
    /// The OAuth client, or the name of the key.
    pub client: Option<Arc<str>>,
    /// Who acts for the subject, the one that calls first (RFC 8693, `act`).
    pub actors: Vec<Arc<str>>,
    /// When the credentials expire, in milliseconds since 1970.
    pub expires_ms: Option<u64>,
}

/// What authentication has found out about a request.
///
/// An HTTP layer puts it into the extensions of the request; the edge hands it on with each call.
#[derive(Debug, Clone, Default)]
pub struct Identity {
    /// Who calls.
    pub principal: Principal,
    /// What else is known; `None` when nobody was authenticated.
    pub claims: Option<Arc<Claims>>,
}

impl From<Principal> for Identity {
    fn from(principal: Principal) -> Identity {
        Identity { principal, claims: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn issuer_subject_and_tenant_tell_principals_apart_and_nothing_else() {
        let ann = || Principal::subject("ann").in_tenant("reef").issued_by("https://id.example.com");
        assert_eq!(ann(), ann());
        let others = [
            Principal::subject("ann").in_tenant("reef"),
            ann().issued_by("https://other.example.com"),
            ann().in_tenant("tide"),
            Principal { subject: Some("bob".into()), ..ann() },
        ];
        for other in others {
            assert_ne!(ann(), other);
            let (own, others) = (ann(), other.clone());
            let (own, others) = (own.binding("m", [0; 32]), others.binding("m", [0; 32]));
            assert_ne!(format!("{own:?}"), format!("{others:?}"));
        }
    }
}
