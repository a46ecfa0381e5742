//! [`OAuthBuilder`]: how an [`OAuth`] is set up.

use std::sync::Arc;

use tidegate_protocol::Error;
use url::Url;

use super::OAuth;
use super::browser::{Browser, LoopbackBrowser};
use super::client::Client;
use super::fault::Fault;
use super::scopes::Scopes;
use super::settings::{Grant, Server, Settings};
use super::store::{MemoryStore, TokenStore};

/// Makes an [`OAuth`]. Without further ado, a person logs in with the browser of this machine, the client registers
/// itself, and tokens end with the process.
///
/// ```
/// use tidegate_client::oauth::{Client, FileStore, Grant, OAuth};
///
/// let for_a_person = OAuth::builder("https://example.com/mcp").store(FileStore::at("tokens")).build()?;
/// let for_a_program = OAuth::builder("https://example.com/mcp")
///     .client(Client::with_secret("reports", "s3cr3t"))
///     .grant(Grant::Client)
///     .build()?;
/// # Ok::<(), tidegate_protocol::Error>(())
/// ```
#[must_use]
pub struct OAuthBuilder {
    server: String,
    store: Arc<dyn TokenStore>,
    browser: Option<Arc<dyn Browser>>,
    interactive: bool,
    client: Option<Client>,
    client_metadata_url: Option<String>,
    client_name: String,
    grant: Grant,
    scopes: Scopes,
    dpop: bool,
    assume_pkce: bool,
}

impl OAuthBuilder {
    pub(super) fn new(server: &str) -> OAuthBuilder {
        OAuthBuilder {
            server: server.to_owned(),
            store: Arc::new(MemoryStore::new()),
            browser: None,
            interactive: true,
            client: None,
            client_metadata_url: None,
            client_name: "Tidegate".to_owned(),
            grant: Grant::User,
            scopes: Scopes::default(),
            dpop: false,
            assume_pkce: false,
        }
    }

    /// Where tokens are kept. Default: in memory.
    pub fn store(self, store: impl TokenStore) -> OAuthBuilder {
        self.shared_store(Arc::new(store))
    }

    /// Where tokens are kept, if others keep theirs there too.
    pub fn shared_store(mut self, store: Arc<dyn TokenStore>) -> OAuthBuilder {
        self.store = store;
        self
    }

    /// How login pages are shown. Default: [`LoopbackBrowser`].
    pub fn browser(mut self, browser: impl Browser) -> OAuthBuilder {
        self.browser = Some(Arc::new(browser));
        self
    }

    /// Whether login pages may be shown at all. A process that nobody looks at must not: there an error says how to log
    /// in. Default: yes.
    pub fn interactive(mut self, interactive: bool) -> OAuthBuilder {
        self.interactive = interactive;
        self
    }

    /// Who we are, for authorization servers that know us already.
    pub fn client(mut self, client: Client) -> OAuthBuilder {
        self.client = Some(client);
        self
    }

    /// The https address of a document that describes this client, which serves as its id wherever authorization servers
    /// take such documents.
    pub fn client_metadata_url(mut self, url: impl Into<String>) -> OAuthBuilder {
        self.client_metadata_url = Some(url.into());
        self
    }

    /// The name under which the client registers itself, which people see when they log in. Default: Tidegate.
    pub fn client_name(mut self, name: impl Into<String>) -> OAuthBuilder {
        self.client_name = name.into();
        self
    }

    /// On whose behalf tokens are asked for. Default: a person's.
    pub fn grant(mut self, grant: Grant) -> OAuthBuilder {
        self.grant = grant;
        self
    }

    /// Scopes to ask for besides those that the server wants. They take the place of those that it describes.
    pub fn scopes(mut self, scopes: Scopes) -> OAuthBuilder {
        self.scopes = scopes;
        self
    }

    /// Whether tokens are bound to a key wherever the authorization server can do that (RFC 9449). Servers that insist
    /// get such tokens in any case. Default: no.
    pub fn dpop(mut self, dpop: bool) -> OAuthBuilder {
        self.dpop = dpop;
        self
    }

    /// Whether to log in at authorization servers that do not say whether they know PKCE. The specification forbids it,
    /// but some widespread ones are silent about it. Default: no.
    pub fn assume_pkce(mut self, assume: bool) -> OAuthBuilder {
        self.assume_pkce = assume;
        self
    }

    /// Checks the settings. Nothing is sent yet.
    pub fn build(self) -> Result<OAuth, Error> {
        let server = Server::parse(&self.server)?;
        if let Some(url) = &self.client_metadata_url {
            // 2026-07-28 client-registration, Client ID Metadata Documents.
            let fits = Url::parse(url).is_ok_and(|url| url.scheme() == "https" && url.path() != "/");
            if !fits {
                let what = "the address of the client's description must be https and have a path";
                return Err(Fault::Settings(what.to_owned()).into());
            }
        }
        if self.client.is_none() && !matches!(self.grant, Grant::User) {
            let what = "a program that gets tokens without a login needs a client id; configure one";
            return Err(Fault::Settings(what.to_owned()).into());
        }
        Ok(OAuth::of(Settings {
            server,
            store: self.store,
            browser: self.browser.unwrap_or_else(|| Arc::new(LoopbackBrowser::new())),
            interactive: self.interactive,
            client: self.client,
            client_metadata_url: self.client_metadata_url,
            client_name: self.client_name,
            grant: self.grant,
            scopes: self.scopes,
            dpop: self.dpop,
            assume_pkce: self.assume_pkce,
        }))
    }
}

impl std::fmt::Debug for OAuthBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OAuthBuilder")
            .field("grant", &self.grant)
            .field("scopes", &self.scopes)
            .finish_non_exhaustive()
    }
}
