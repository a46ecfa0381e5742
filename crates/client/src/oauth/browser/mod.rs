//! [`Browser`]: how a person gets to the login page, and how the answer gets back.

mod follow;
mod loopback;

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use tidegate_protocol::Error;

pub use follow::FollowRedirect;
pub use loopback::LoopbackBrowser;

/// Shows login pages to a person.
pub trait Browser: Send + Sync + 'static {
    /// Gets ready for one login. `registered` is the redirect URI that the authorization server knows from an earlier
    /// one, which saves registering again if it can still be used.
    fn prepare<'a>(&'a self, registered: Option<&'a str>) -> BoxFuture<'a, Result<Box<dyn Visit>, Error>>;
}

/// One login.
pub trait Visit: Send {
    /// Where the authorization server is to send the browser back to.
    fn redirect_uri(&self) -> &str;

    /// Shows the page at `url`, and waits for the browser to come back. Gives the address to which it came back, with
    /// everything that the authorization server put into it.
    fn visit(self: Box<Self>, url: String) -> BoxFuture<'static, Result<String, Error>>;
}

/// A [`Browser`] made of a function: it gets the address of the login page and gives the address to which the browser
/// was sent back.
pub struct BrowserFn {
    redirect_uri: String,
    show: Arc<dyn Fn(String) -> BoxFuture<'static, Result<String, Error>> + Send + Sync>,
}

impl BrowserFn {
    /// `show` does it, and receives what is sent to `redirect_uri`.
    pub fn new<F>(
        redirect_uri: impl Into<String>,
        show: impl Fn(String) -> F + Send + Sync + 'static,
    ) -> BrowserFn
    where
        F: Future<Output = Result<String, Error>> + Send + 'static,
    {
        BrowserFn { redirect_uri: redirect_uri.into(), show: Arc::new(move |url| Box::pin(show(url))) }
    }
}

impl fmt::Debug for BrowserFn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BrowserFn").field("redirect_uri", &self.redirect_uri).finish_non_exhaustive()
    }
}

impl Browser for BrowserFn {
    fn prepare<'a>(&'a self, _: Option<&'a str>) -> BoxFuture<'a, Result<Box<dyn Visit>, Error>> {
        let visit = BrowserFn { redirect_uri: self.redirect_uri.clone(), show: self.show.clone() };
        Box::pin(std::future::ready(Ok(Box::new(visit) as Box<dyn Visit>)))
    }
}

impl Visit for BrowserFn {
    fn redirect_uri(&self) -> &str {
        &self.redirect_uri
    }

    fn visit(self: Box<Self>, url: String) -> BoxFuture<'static, Result<String, Error>> {
        (self.show)(url)
    }
}
