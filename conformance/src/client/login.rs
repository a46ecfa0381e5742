//! [`Login`]: how a scenario wants its client to get a token.

use std::sync::Arc;

use anyhow::{Context as _, Result};

use tidegate_client::Authorizer;
use tidegate_client::oauth::{
    Assertion, Client, ClientAuth, Enterprise, FollowRedirect, Grant, OAuth, OAuthBuilder, SigningKey,
};

use crate::assignment::Assignment;

/// Where the suite's authorization servers send the browser back to. Nobody listens there.
const REDIRECT_URI: &str = "http://localhost:3000/callback";
/// The client id that the suite expects of clients with a metadata document.
const CLIENT_METADATA: &str = "https://conformance-test.local/client-metadata.json";

/// A way to get a token. What it needs besides is in the context of the assignment.
pub(crate) enum Login {
    /// The server asks for none.
    Never,
    /// A person logs in, and the client introduces itself.
    Person,
    /// The same with a client that the authorization server knows already.
    Registered,
    /// The same with tokens that are bound to a key.
    BoundToKey,
    /// The program logs in with its secret.
    Secret,
    /// The program logs in with its private key.
    Key,
    /// The program logs in with what its platform says about it.
    Workload,
    /// The identity provider of an enterprise vouches for a person.
    Enterprise,
}

impl Login {
    /// What gets tokens in this way.
    pub(crate) fn authorizer(&self, given: &Assignment) -> Result<Option<Arc<dyn Authorizer>>> {
        let oauth = OAuth::builder(&given.url);
        let text = |name: &str| given.given(name)?.as_str().with_context(|| format!("`{name}` is no text"));
        let known = |auth| Ok::<_, anyhow::Error>(Client::new(text("client_id")?, auth));
        let secret = || Ok::<_, anyhow::Error>(ClientAuth::Secret(text("client_secret")?.into()));
        let oauth = match self {
            Login::Never => return Ok(None),
            Login::Person => person(oauth),
            Login::Registered => person(oauth).client(known(secret()?)?.issued_by(text("issuer")?)),
            Login::BoundToKey => person(oauth).dpop(true),
            Login::Secret => oauth.grant(Grant::Client).client(known(secret()?)?),
            Login::Key => {
                let key = SigningKey::from_pem(text("private_key_pem")?)?;
                oauth.grant(Grant::Client).client(known(ClientAuth::PrivateKey(key))?)
            }
            Login::Workload => {
                let statement = Assertion::fixed(text("valid_jwt")?);
                oauth.grant(Grant::Workload(statement)).client(known(ClientAuth::None)?)
            }
            Login::Enterprise => {
                let enterprise = Enterprise {
                    idp_issuer: text("idp_issuer")?.to_owned(),
                    idp_token_endpoint: text("idp_token_endpoint")?.to_owned(),
                    idp_client: Client::public(text("idp_client_id")?),
                    id_token: Assertion::fixed(text("idp_id_token")?),
                };
                oauth.grant(Grant::Enterprise(enterprise)).client(known(secret()?)?)
            }
        };
        Ok(Some(Arc::new(oauth.build()?)))
    }
}

/// The suite's authorization servers agree at once, so that nobody has to see their pages.
fn person(oauth: OAuthBuilder) -> OAuthBuilder {
    oauth.browser(FollowRedirect::new(REDIRECT_URI)).client_metadata_url(CLIENT_METADATA)
}
