//! [`ClientAddress`]: where a request came from.

use std::net::IpAddr;

/// Where a request came from, in the extensions of the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientAddress {
    /// The client's address, as far as anybody who is trusted says so.
    pub ip: IpAddr,
    /// Its port, unless a proxy has not told it.
    pub port: Option<u16>,
    /// Whether a trusted proxy has said so, and not the socket.
    pub via_proxy: bool,
    /// Whether the client's side of the connection is encrypted.
    pub is_secure: bool,
}
