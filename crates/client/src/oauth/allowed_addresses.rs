//! [`AllowedAddresses`]: where requests may go, so that no server can make us talk to what only we can reach.
//!
//! A server names its authorization server, and that one names its endpoints. All of these names are wishes of
//! strangers. Requests go over https, or plainly to this very machine, and to private addresses only for a server that
//! is at one itself.

use std::net::IpAddr;

use tidegate_web::{Guard, Zone, is_local};
use url::{Host, Url};

use super::fault::Fault;

/// The addresses that count as near enough to one server.
#[derive(Debug, Clone)]
pub(super) struct AllowedAddresses {
    home: Option<Url>,
    farthest: Zone,
}

impl AllowedAddresses {
    /// What a server at `home` may send us to. Looks up its name.
    pub(super) async fn around(home: &Url) -> AllowedAddresses {
        let farthest = match home.host() {
            Some(host) if is_local(&host) => Zone::Loopback,
            Some(Host::Domain(name)) => {
                let found =
                    tokio::net::lookup_host((name, home.port_or_known_default().unwrap_or(443))).await;
                // A name with one public address counts as public, and no name counts as this machine: who controls
                // a name chooses what it stands for.
                let zones = found.map(|all| all.map(|a| Zone::of(a.ip())).min()).unwrap_or_default();
                zones.unwrap_or(Zone::Public).min(Zone::Private)
            }
            Some(Host::Ipv4(ip)) => Zone::of(ip.into()),
            Some(Host::Ipv6(ip)) => Zone::of(ip.into()),
            None => Zone::Public,
        };
        let farthest = if farthest >= Zone::Reserved { Zone::Public } else { farthest };
        AllowedAddresses { home: Some(home.clone()), farthest }
    }

    /// Anywhere: for addresses that the user gave.
    pub(super) fn anywhere() -> AllowedAddresses {
        AllowedAddresses { home: None, farthest: Zone::Loopback }
    }

    /// The same for connections, after names were looked up.
    pub(super) fn guard(&self) -> Guard {
        let guard = Guard::up_to(self.farthest).skipping_others();
        match self.home.as_ref().and_then(Url::host_str) {
            Some(home) => guard.or_host(home),
            None => guard,
        }
    }

    /// Whether a connection may go to this address.
    fn allows(&self, ip: IpAddr) -> bool {
        Zone::of(ip) <= self.farthest
    }

    /// Whether this is the name of the server itself, to which we talk anyway.
    fn is_home(&self, host: &str) -> bool {
        self.home.as_ref().and_then(Url::host_str).is_some_and(|home| home.eq_ignore_ascii_case(host))
    }

    /// Reads an address that a server named, if a request may go there. `what` says what it is the address of.
    pub(super) fn check(&self, what: &'static str, address: &str) -> Result<Url, Fault> {
        let no = |why| Err(Fault::Address { what, address: address.to_owned(), why });
        let Ok(url) = Url::parse(address) else { return no("it is not a URL") };
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Fault::Address {
                what,
                address: "(with a password)".into(),
                why: "it holds a password",
            });
        }
        let Some(host) = url.host() else { return no("it names no host") };
        let local = is_local(&host);
        match url.scheme() {
            "https" => {}
            "http" if local => {}
            "http" => return no("it is neither https nor on this machine"),
            _ => return no("it is not https"),
        }
        let near = match host {
            Host::Domain(_) if local => self.farthest >= Zone::Loopback,
            // Names are looked up when the connection is made, and what they stand for is checked there.
            Host::Domain(_) => true,
            Host::Ipv4(ip) => self.allows(ip.into()),
            Host::Ipv6(ip) => self.allows(ip.into()),
        };
        if near || self.is_home(url.host_str().unwrap_or_default()) {
            Ok(url)
        } else {
            no("it is a private address, and the server is not at one")
        }
    }

    /// The same for what describes the server itself: on its own origin it may be as plain as the server is.
    pub(super) fn check_own(&self, what: &'static str, address: &str) -> Result<Url, Fault> {
        match (Url::parse(address), &self.home) {
            (Ok(url), Some(home)) if url.origin() == home.origin() => Ok(url),
            _ => self.check(what, address),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_may_send_us_where() {
        // The homes are literal, so that nothing is looked up.
        for (home, address, is_allowed) in [
            ("https://192.0.2.1/mcp", "https://as.example/token", true),
            ("https://192.0.2.1/mcp", "http://as.example/token", false),
            ("https://192.0.2.1/mcp", "https://10.0.0.9/token", false),
            ("https://192.0.2.1/mcp", "https://[fd00::1]/token", false),
            ("https://192.0.2.1/mcp", "https://[::ffff:10.0.0.9]/token", false),
            ("https://192.0.2.1/mcp", "https://169.254.169.254/token", false),
            ("https://192.0.2.1/mcp", "http://localhost:8080/token", false),
            ("https://192.0.2.1/mcp", "http://127.0.0.1/token", false),
            ("https://192.0.2.1/mcp", "https://user:pw@as.example/token", false),
            ("https://192.0.2.1/mcp", "javascript:alert(1)", false),
            ("https://192.0.2.1/mcp", "file:///etc/passwd", false),
            ("https://192.0.2.1/mcp", "not a url", false),
            ("https://10.0.0.1/mcp", "https://10.0.0.9/token", true),
            ("https://10.0.0.1/mcp", "https://100.64.0.1/token", true),
            ("https://10.0.0.1/mcp", "http://10.0.0.1/token", false),
            ("https://10.0.0.1/mcp", "http://127.0.0.1/token", false),
            ("http://localhost:3000/mcp", "http://127.0.0.1:4000/token", true),
            ("http://localhost:3000/mcp", "http://localhost:4000/token", true),
            ("http://127.0.0.1:3000/mcp", "https://10.0.0.9/token", true),
            ("http://127.0.0.1:3000/mcp", "https://169.254.169.254/token", false),
            ("http://127.0.0.1:3000/mcp", "http://as.example/token", false),
        ] {
            let allowed = AllowedAddresses::around(&Url::parse(home).unwrap()).await;
            assert_eq!(allowed.check("endpoint", address).is_ok(), is_allowed, "{home} to {address}");
        }
    }

    #[tokio::test]
    async fn a_plain_server_may_describe_itself_plainly() {
        let allowed = AllowedAddresses::around(&Url::parse("http://10.0.0.1:8000/mcp").unwrap()).await;
        assert!(allowed.check_own("description", "http://10.0.0.1:8000/.well-known/x").is_ok());
        assert!(allowed.check_own("description", "http://10.0.0.2:8000/.well-known/x").is_err());
    }

    #[test]
    fn passwords_in_addresses_stay_there() {
        let fault =
            AllowedAddresses::anywhere().check("endpoint", "https://user:pw@as.example/").unwrap_err();
        assert!(!fault.to_string().contains("pw@"), "{fault}");
    }
}
