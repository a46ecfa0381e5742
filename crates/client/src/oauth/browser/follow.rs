//! [`FollowRedirect`]: a browser without a person, for authorization servers that agree at once.

use ::http::header;
use futures_util::future::BoxFuture;
use tidegate_protocol::Error;
use url::Url;

use super::{Browser, Visit};
use crate::oauth::allowed_addresses::AllowedAddresses;
use crate::oauth::fault::Fault;
use crate::oauth::http::{Http, get};

/// Asks for the login page and takes the redirect that it answers with. Tests and the conformance suite have
/// authorization servers that work so; nobody has to listen at the redirect URI.
#[derive(Debug, Clone)]
pub struct FollowRedirect {
    redirect_uri: String,
}

impl FollowRedirect {
    /// Has the authorization server redirect to `redirect_uri`, which is never visited.
    pub fn new(redirect_uri: impl Into<String>) -> FollowRedirect {
        FollowRedirect { redirect_uri: redirect_uri.into() }
    }
}

impl Browser for FollowRedirect {
    fn prepare<'a>(&'a self, _: Option<&'a str>) -> BoxFuture<'a, Result<Box<dyn Visit>, Error>> {
        Box::pin(std::future::ready(Ok(Box::new(self.clone()) as Box<dyn Visit>)))
    }
}

impl Visit for FollowRedirect {
    fn redirect_uri(&self) -> &str {
        &self.redirect_uri
    }

    fn visit(self: Box<Self>, url: String) -> BoxFuture<'static, Result<String, Error>> {
        Box::pin(async move {
            let url =
                Url::parse(&url).map_err(|_| Fault::Browser("the login page has no valid address".into()))?;
            let answer = Http::new(AllowedAddresses::anywhere()).send(get(&url)?).await?;
            let location = answer.headers.get(header::LOCATION).and_then(|to| to.to_str().ok());
            match location.filter(|_| answer.status.is_redirection()) {
                Some(location) => Ok(location.to_owned()),
                None => {
                    let status = answer.status.as_u16();
                    Err(Fault::Browser(format!("the login page did not redirect (HTTP {status})")).into())
                }
            }
        })
    }
}
