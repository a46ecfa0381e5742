//! [`Authorizer`]: where the credentials of HTTP requests come from.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use tidegate_protocol::Error;
use tidegate_service::Principal;
use url::Url;

/// Gets, keeps and renews the credentials for one server.
pub trait Authorizer: Send + Sync + 'static {
    /// The credentials of one caller, where each has its own. They are asked for with each call, and with each session of a
    /// legacy server that is one caller's. `None`: everybody has these.
    fn of_caller(&self, caller: &Principal) -> Option<Arc<dyn Authorizer>> {
        _ = caller;
        None
    }

    /// The same as [`Authorizer::authorization`], where that is known without waiting.
    fn ready(&self) -> Option<Option<HeaderValue>> {
        None
    }

    /// The `Authorization` header for the next request, if there is anything to say. Renews what has expired.
    fn authorization(&self) -> BoxFuture<'_, Result<Option<HeaderValue>, Error>>;

    /// The server refused a request. Gets what it asks for; after `Ok` the request is made once more.
    fn challenged(&self, challenge: Challenge) -> BoxFuture<'_, Result<(), Error>>;

    /// The `DPoP` header for credentials that are bound to a key (RFC 9449). Each request has its own, also when it is
    /// a repetition. `authorization` is the header that it goes with.
    fn proof(&self, method: &Method, url: &Url, authorization: &HeaderValue) -> Option<HeaderValue> {
        _ = (method, url, authorization);
        None
    }

    /// Takes note of what came back for a request with this `Authorization` header, before anything else is done about
    /// it.
    fn answered(&self, authorization: &HeaderValue, status: StatusCode, headers: &HeaderMap) {
        _ = (authorization, status, headers);
    }
}

/// A refused request: 401, or 403 with a challenge that asks for more scope.
#[derive(Debug, Clone)]
pub struct Challenge {
    /// The HTTP status.
    pub status: u16,
    /// The `WWW-Authenticate` headers.
    pub www_authenticate: Vec<String>,
    /// The `Authorization` header of the refused request, to see whether somebody else has renewed it since.
    pub refused: Option<HeaderValue>,
}
