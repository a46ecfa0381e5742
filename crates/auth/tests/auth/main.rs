//! Authentication as a client sees it: requests go through `http::front` with [`Authenticate`](tidegate_auth::Authenticate) in its
//! gap, without a socket.

mod common;
mod connections;
mod credentials;
mod endings;
mod endpoints;
mod keys;
mod metadata;
mod refused_logins;
mod scopes;
