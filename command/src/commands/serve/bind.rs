//! Taking the address to listen on, before anything else is started.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use tidegate_config::ListenAddress;
use tokio::net::TcpListener;

use super::port_owner;
use crate::commands::exit::Exit;
use crate::commands::failure::Failure;

/// The sockets for an address. `localhost` has one for each kind of address that this machine has.
pub(super) async fn bind(wanted: &ListenAddress) -> Result<Vec<TcpListener>, Failure> {
    let listeners = if wanted.is_localhost() {
        localhost(wanted.port()).await
    } else {
        TcpListener::bind(wanted.to_string()).await.map(|listener| vec![listener])
    };
    listeners.map_err(|error| failure(wanted, &error))
}

async fn localhost(port: u16) -> std::io::Result<Vec<TcpListener>> {
    let v4 = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await;
    let port = match &v4 {
        Ok(v4) => v4.local_addr()?.port(),
        Err(_) => port,
    };
    let v6 = TcpListener::bind((Ipv6Addr::LOCALHOST, port)).await;
    match (v4, v6) {
        // Half of localhost would be somebody else's, and clients would meet whom they did not look for.
        (Err(error), _) | (_, Err(error)) if error.kind() == ErrorKind::AddrInUse => Err(error),
        (Ok(v4), Ok(v6)) => Ok(vec![v4, v6]),
        (Ok(only), Err(_)) | (Err(_), Ok(only)) => Ok(vec![only]),
        (Err(error), Err(_)) => Err(error),
    }
}

fn failure(wanted: &ListenAddress, error: &std::io::Error) -> Failure {
    let port = wanted.port();
    let unavailable = |what: String| Failure::new(Exit::Unavailable, what);
    match error.kind() {
        ErrorKind::AddrInUse => {
            let other = port.checked_add(1).unwrap_or(8765);
            let (by, advice) = match port_owner::of(port) {
                Some(owner) if owner.name == "tidegate" => (format!(" by {owner}"), "Use that one, stop it,"),
                Some(owner) => (format!(" by {owner}"), "Stop it,"),
                None => (String::new(), "Stop the program that uses it,"),
            };
            unavailable(format!("port {port} is already in use{by}"))
                .advise(format!("{advice} or choose another port with --listen {other}."))
        }
        ErrorKind::PermissionDenied => unavailable(format!("not allowed to listen on {wanted}"))
            .advise("Ports below 1024 need privileges: choose another one with --listen, such as 8765."),
        ErrorKind::AddrNotAvailable => unavailable(format!("{wanted} is not an address of this machine"))
            .advise("Use 127.0.0.1 for this machine only, or 0.0.0.0 for all of its addresses."),
        _ => unavailable(format!("cannot listen on {wanted}: {error}"))
            .advise("Choose another address with --listen."),
    }
}

/// The beginning of the URLs by which clients reach it: the address that is listened on or, if that is every address, the
/// first name that is allowed.
pub(super) fn origin(address: SocketAddr, hosts: &[String], is_encrypted: bool) -> String {
    let scheme = if is_encrypted { "https" } else { "http" };
    match hosts.first() {
        Some(host) if address.ip().is_unspecified() => format!("{scheme}://{host}:{}", address.port()),
        _ => format!("{scheme}://{address}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn localhost_is_both_kinds_of_address_with_one_port() {
        let listeners = bind(&"localhost:0".parse().unwrap()).await.unwrap();
        let addresses: Vec<SocketAddr> = listeners.iter().map(|l| l.local_addr().unwrap()).collect();
        assert_eq!(addresses[0].ip(), Ipv4Addr::LOCALHOST);
        assert!(addresses.iter().all(|address| address.ip().is_loopback()));
        assert!(addresses.iter().all(|address| address.port() == addresses[0].port()));
        // A machine may have no IPv6.
        let has_v6 = std::net::TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_ok();
        assert_eq!(addresses.len(), if has_v6 { 2 } else { 1 });
    }

    #[test]
    fn urls_are_what_clients_can_use() {
        let hosts = ["mcp.example.com".to_owned()];
        for (address, hosts, is_encrypted, expected) in [
            ("127.0.0.1:8765", &[][..], false, "http://127.0.0.1:8765"),
            ("127.0.0.1:8765", &hosts, false, "http://127.0.0.1:8765"),
            ("[::1]:8765", &[], true, "https://[::1]:8765"),
            ("0.0.0.0:80", &hosts, false, "http://mcp.example.com:80"),
            ("0.0.0.0:8443", &hosts, true, "https://mcp.example.com:8443"),
            ("192.168.1.5:80", &hosts, false, "http://192.168.1.5:80"),
        ] {
            assert_eq!(origin(address.parse().unwrap(), hosts, is_encrypted), expected);
        }
    }
}
