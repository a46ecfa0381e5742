//! [`Peer`]: who is at the other end of a connection, and what that says about its requests.

use std::cell::Cell;
use std::net::SocketAddr;

use ::http::{Request, Response};
use axum::body::Body;
use tidegate_protocol::{Error, Symbol};
use tokio::net::TcpStream;

use super::client_address::ClientAddress;
use super::guard::OffLoopback;
use super::respond;
use super::settings::Settings;
use super::trusted_proxies::TrustedProxies;

/// What is known of a connection's other end, before anything was read.
pub(super) struct Peer {
    /// Whether the connection is not over the loopback interface.
    is_off_loopback: bool,
    address: ClientAddress,
    /// Whether each request is told where it comes from; otherwise only the first one is.
    is_told_always: bool,
    /// Whether there was no request yet.
    is_new: Cell<bool>,
    /// What the other end is.
    role: Role,
}

enum Role {
    Client,
    /// Its word about whom it forwards requests for counts.
    Proxy(TrustedProxies),
    /// Not served: only proxies are.
    Stranger,
}

impl Peer {
    pub(super) fn new(stream: &TcpStream, peer: SocketAddr, is_secure: bool, settings: &Settings) -> Peer {
        let is_loopback = stream.local_addr().is_ok_and(|address| address.ip().to_canonical().is_loopback());
        let proxies = &settings.trusted_proxies;
        let role = match proxies.contains(peer.ip()) {
            true => Role::Proxy(proxies.clone()),
            false if settings.only_proxies => Role::Stranger,
            false => Role::Client,
        };
        let address = ClientAddress::of_peer(peer, is_secure);
        // The plain connections of this machine are those that must cost nothing.
        let is_told_always = !is_loopback || is_secure || !proxies.is_empty();
        Peer { is_off_loopback: !is_loopback, address, is_told_always, is_new: Cell::new(true), role }
    }

    /// Whoever connects to a socket that is a file.
    #[cfg(unix)]
    pub(super) fn of_this_machine() -> Peer {
        let address = ClientAddress::of_peer(([127, 0, 0, 1], 0).into(), false);
        Peer {
            is_off_loopback: false,
            address,
            is_told_always: false,
            is_new: Cell::new(true),
            role: Role::Client,
        }
    }

    /// Says in the extensions of a request where it came from, or refuses it.
    pub(super) fn introduce<B>(&self, request: &mut Request<B>) -> Result<(), Response<Body>> {
        let address = match &self.role {
            Role::Client => (self.is_told_always || self.is_new.take()).then_some(self.address),
            Role::Proxy(proxies) => Some(self.address.forwarded(request.headers(), proxies)),
            Role::Stranger => return Err(refusal()),
        };
        if self.is_off_loopback {
            request.extensions_mut().insert(OffLoopback);
        }
        if let Some(address) = address {
            request.extensions_mut().insert(address);
        }
        Ok(())
    }
}

#[cold]
fn refusal() -> Response<Body> {
    let what = "Forbidden: this server is reached only through its proxies, and your address is not among trusted_proxies in \
                the configuration";
    respond::refused(403, &Error::new(Symbol::InvalidRequest, what))
}
