//! [`Client`]: who we are to an authorization server, and how we prove it.

use super::jwt::SigningKey;
use tidegate_service::secrets::Secret;

/// A client that was registered with an authorization server beforehand.
#[derive(Debug, Clone)]
pub struct Client {
    pub(super) id: String,
    pub(super) auth: ClientAuth,
    pub(super) issuer: Option<String>,
}

/// How a client proves who it is when it asks for a token.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum ClientAuth {
    /// It cannot: a public client, as all programs are that run on the machine of their user.
    None,
    /// With a secret, sent in the way that the authorization server prefers.
    Secret(Secret),
    /// With a secret in the `Authorization` header (`client_secret_basic`).
    SecretBasic(Secret),
    /// With a secret in the body (`client_secret_post`).
    SecretPost(Secret),
    /// With a signature (`private_key_jwt`).
    PrivateKey(SigningKey),
}

impl Client {
    /// A client with this id.
    pub fn new(id: impl Into<String>, auth: ClientAuth) -> Client {
        Client { id: id.into(), auth, issuer: None }
    }

    /// A client that has no secret.
    pub fn public(id: impl Into<String>) -> Client {
        Client::new(id, ClientAuth::None)
    }

    /// A client with a secret.
    pub fn with_secret(id: impl Into<String>, secret: impl Into<Secret>) -> Client {
        Client::new(id, ClientAuth::Secret(secret.into()))
    }

    /// The same client, which only this authorization server knows. With any other one an error says so, instead of
    /// showing it a secret that is not meant for it.
    pub fn issued_by(mut self, issuer: impl Into<String>) -> Client {
        self.issuer = Some(issuer.into());
        self
    }
}

/// What goes into a token request.
#[derive(Debug, Clone)]
pub(super) enum Proof {
    None,
    Basic(Secret),
    Post(Secret),
    Jwt(SigningKey),
}

impl ClientAuth {
    /// What to send to a server that takes these methods (RFC 8414: the header, if it does not say).
    pub(super) fn proof(&self, methods: Option<&[String]>) -> Proof {
        match self {
            ClientAuth::None => Proof::None,
            ClientAuth::SecretBasic(secret) => Proof::Basic(secret.clone()),
            ClientAuth::SecretPost(secret) => Proof::Post(secret.clone()),
            ClientAuth::PrivateKey(key) => Proof::Jwt(key.clone()),
            ClientAuth::Secret(secret) => {
                let takes = |method| methods.is_some_and(|all| all.iter().any(|own| own == method));
                if takes("client_secret_post") && !takes("client_secret_basic") {
                    Proof::Post(secret.clone())
                } else {
                    Proof::Basic(secret.clone())
                }
            }
        }
    }
}
