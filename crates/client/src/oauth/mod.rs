//! Logging in to MCP servers that ask for it: OAuth 2.1 as 2026-07-28 basic/authorization has it, and its extensions.
//!
//! [`OAuth`] is an [`Authorizer`](crate::Authorizer). Requests go through these rooms:
//!
//! ```text
//!  refused request ─ challenge ─ discovery ─ registration ─ code | grants ─ store ─ held ─ next request
//!                    what is     whom to     who we are     a login or      for     as a
//!                    asked for   ask                        another grant   later   header
//! ```
//!
//! `authorizer` and `flight` see to it that one of many refused requests does this and the others wait, `attempts` that
//! it is not done for ever, `allowed` that no server sends us to places that are none of its business.
//!
//! `code` is a login with a browser and its renewal, `grants` and `enterprise` are tokens without one. All ask a `token`
//! endpoint, which adds who we are, over `http`.
//!
//! Tokens, codes, keys and secrets appear in no log, no error and no `Debug` output.

mod allowed_addresses;
mod attempts;
mod authorizer;
mod browser;
mod builder;
mod challenge;
mod client;
mod code;
mod current_token;
mod discovery;
mod dpop;
mod enterprise;
mod fault;
mod flight;
mod grants;
mod http;
mod jwt;
mod login;
mod metadata;
mod obtain;
mod registration;
mod scopes;
mod settings;
mod store;
#[cfg(test)]
mod tests;
mod token;

pub use authorizer::OAuth;
pub use browser::{Browser, BrowserFn, FollowRedirect, LoopbackBrowser, Visit};
pub use builder::OAuthBuilder;
pub use client::{Client, ClientAuth};
pub use jwt::SigningKey;
pub use login::{LoginReport, login, logout};
pub use scopes::Scopes;
pub use settings::{Assertion, Enterprise, Grant};
pub use store::{
    Credentials, FileStore, MemoryStore, Origin, Registration, StoreGuard, TokenKind, TokenStore, Tokens,
};
pub use tidegate_service::secrets::Secret;
