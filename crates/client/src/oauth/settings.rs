//! What an [`OAuth`](super::OAuth) was told: [`Settings`], [`Grant`], [`Assertion`], [`Enterprise`].

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use tidegate_protocol::Error;
use url::Url;

use super::browser::Browser;
use super::client::Client;
use super::fault::Fault;
use super::scopes::Scopes;
use super::store::TokenStore;
use tidegate_service::secrets::Secret;

/// All that was decided when the [`OAuth`](super::OAuth) was made.
pub(super) struct Settings {
    pub(super) server: Server,
    pub(super) store: Arc<dyn TokenStore>,
    pub(super) browser: Arc<dyn Browser>,
    pub(super) interactive: bool,
    pub(super) client: Option<Client>,
    pub(super) client_metadata_url: Option<String>,
    pub(super) client_name: String,
    pub(super) grant: Grant,
    pub(super) scopes: Scopes,
    pub(super) dpop: bool,
    pub(super) assume_pkce: bool,
}

/// The address of the MCP server, in the forms that are needed.
#[derive(Debug, Clone)]
pub(super) struct Server {
    /// As it was given, for where every character counts.
    pub(super) text: String,
    pub(super) url: Url,
}

impl Server {
    pub(super) fn parse(text: &str) -> Result<Server, Fault> {
        let text = text.trim();
        let text = text.split_once('#').map_or(text, |(before, _)| before);
        match Url::parse(text) {
            Ok(url) if matches!(url.scheme(), "http" | "https") => Ok(Server { text: text.to_owned(), url }),
            _ => Err(Fault::Settings(
                "there is no server to log in to: give its address, like https://example.com/mcp".to_owned(),
            )),
        }
    }

    /// What its tokens are kept under.
    pub(super) fn key(&self) -> &str {
        self.url.as_str()
    }

    /// The address without what may be secret in it.
    pub(super) fn plain(&self) -> String {
        let mut url = self.url.clone();
        _ = url.set_username("");
        _ = url.set_password(None);
        url.set_query(None);
        url.to_string()
    }

    /// Its host, for error messages.
    pub(super) fn host(&self) -> String {
        super::http::host(&self.url)
    }
}

/// On whose behalf tokens are asked for, and with what.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub enum Grant {
    /// A person logs in with a browser.
    #[default]
    User,
    /// The program acts for itself, as the client that it is configured to be (client credentials).
    Client,
    /// The program acts for itself with a token that its platform gives it (workload identity, RFC 7523 grant).
    Workload(Assertion),
    /// A person who is logged in to the identity provider of an enterprise, which decides.
    Enterprise(Enterprise),
}

/// Enterprise-managed authorization (`io.modelcontextprotocol/enterprise-managed-authorization`): the identity provider
/// turns a login with it into a token for the MCP server, without asking anybody.
#[derive(Debug, Clone)]
pub struct Enterprise {
    /// The identity provider, as it calls itself.
    pub idp_issuer: String,
    /// Where it exchanges tokens.
    pub idp_token_endpoint: String,
    /// Who we are to it.
    pub idp_client: Client,
    /// The ID token of the person.
    pub id_token: Assertion,
}

/// A statement that somebody else signed, fetched anew each time because such statements are short-lived.
#[derive(Clone)]
pub struct Assertion(Arc<dyn Fn() -> BoxFuture<'static, Result<Secret, Error>> + Send + Sync>);

impl Assertion {
    /// Always this one.
    pub fn fixed(token: impl Into<Secret>) -> Assertion {
        let token = token.into();
        Assertion::from_fn(move || std::future::ready(Ok(token.clone())))
    }

    /// What a file holds at that moment, as Kubernetes and others hand them out.
    pub fn file(path: impl Into<PathBuf>) -> Assertion {
        /// No token is larger.
        const MAX_TOKEN: u64 = 64 * 1024;
        let path = path.into();
        Assertion::from_fn(move || {
            let path = path.clone();
            async move {
                let shown = path.display().to_string();
                match tokio::task::spawn_blocking(move || crate::read_regular_text(&path, MAX_TOKEN)).await {
                    Ok(Ok(text)) => Ok(Secret::new(text.trim())),
                    Ok(Err(error)) => {
                        Err(Fault::Settings(format!("cannot read the token in {shown}: {error}")).into())
                    }
                    Err(_) => Err(Error::internal()),
                }
            }
        })
    }

    /// Whatever `get` gives.
    pub fn from_fn<F>(get: impl Fn() -> F + Send + Sync + 'static) -> Assertion
    where
        F: Future<Output = Result<Secret, Error>> + Send + 'static,
    {
        Assertion(Arc::new(move || Box::pin(get())))
    }

    pub(super) async fn get(&self) -> Result<Secret, Fault> {
        (self.0)().await.map_err(|error| Fault::Settings(error.to_string()))
    }
}

impl fmt::Debug for Assertion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Assertion(…)")
    }
}
