//! [`CurrentToken`]: the token in use, ready to go into requests.

use std::sync::Arc;

use ::http::HeaderValue;

use super::dpop::Dpop;
use super::fault::Fault;
use super::store::{Credentials, TokenKind};
use tidegate_service::secrets::Secret;

/// What a request needs to carry the current token.
#[derive(Debug, Clone)]
pub(super) struct CurrentToken {
    /// The `Authorization` header.
    pub(super) header: HeaderValue,
    pub(super) access: Secret,
    /// When to get the next one, in seconds since 1970.
    pub(super) renew_at: Option<u64>,
    pub(super) expires_at: Option<u64>,
    /// What proves that the token is ours, if it needs that.
    pub(super) dpop: Option<Arc<Dpop>>,
}

impl CurrentToken {
    /// The token among these credentials, if there is one.
    pub(super) fn of(
        credentials: &Credentials,
        dpop: Option<Arc<Dpop>>,
    ) -> Result<Option<CurrentToken>, Fault> {
        let Some(tokens) = &credentials.tokens else { return Ok(None) };
        let dpop = match (tokens.kind, dpop, &credentials.dpop_key) {
            (TokenKind::Bearer, ..) => None,
            (TokenKind::Dpop, Some(dpop), _) => Some(dpop),
            (TokenKind::Dpop, None, Some(key)) => Some(Arc::new(Dpop::from_stored(key)?)),
            (TokenKind::Dpop, None, None) => {
                return Err(Fault::Key("the key of a stored token is lost; log in again".to_owned()));
            }
        };
        let text = format!("{} {}", tokens.kind.scheme(), tokens.access.reveal());
        let mut header = HeaderValue::try_from(text).map_err(|_| {
            Fault::Metadata("the authorization server gave a token that fits in no header".to_owned())
        })?;
        header.set_sensitive(true);
        Ok(Some(CurrentToken {
            header,
            access: tokens.access.clone(),
            renew_at: tokens.renew_at(),
            expires_at: tokens.expires_at,
            dpop,
        }))
    }

    /// Whether it is time for the next one.
    pub(super) fn is_due(&self, now: u64) -> bool {
        self.renew_at.is_some_and(|at| at <= now)
    }

    /// Whether it is no good any more.
    pub(super) fn is_expired(&self, now: u64) -> bool {
        self.expires_at.is_some_and(|at| at <= now)
    }
}
