//! [`Reach`]: where requests may go, so that no server can make us talk to what only we can reach.
//!
//! A server names its authorization server, and that one names its endpoints. All of these names are wishes of
//! strangers. Requests go over https, or plainly to this very machine, and to private addresses only for a server that
//! is at one itself.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::{Host, Url};

use super::fault::Fault;

/// Where an address is, from everybody's to nobody's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    Public,
    Private,
    Loopback,
    /// Link-local (where clouds keep their secrets), multicast, unspecified and reserved addresses.
    Never,
}

/// The addresses that count as near enough to one server.
#[derive(Debug, Clone)]
pub(super) struct Reach {
    home: Option<Url>,
    farthest: Class,
}

impl Reach {
    /// What a server at `home` may send us to. Looks up its name.
    pub(super) async fn around(home: &Url) -> Reach {
        let farthest = match home.host() {
            Some(Host::Domain(name)) if is_localhost(name) => Class::Loopback,
            Some(Host::Domain(name)) => {
                let found =
                    tokio::net::lookup_host((name, home.port_or_known_default().unwrap_or(443))).await;
                // A name with one public address counts as public, and no name counts as this machine: who controls
                // a name chooses what it stands for.
                let classes = found.map(|all| all.map(|a| class(a.ip())).min()).unwrap_or_default();
                classes.unwrap_or(Class::Public).min(Class::Private)
            }
            Some(Host::Ipv4(ip)) => class(ip.into()),
            Some(Host::Ipv6(ip)) => class(ip.into()),
            None => Class::Public,
        };
        let farthest = if farthest == Class::Never { Class::Public } else { farthest };
        Reach { home: Some(home.clone()), farthest }
    }

    /// Anywhere: for addresses that the user gave.
    pub(super) fn anywhere() -> Reach {
        Reach { home: None, farthest: Class::Loopback }
    }

    /// Whether a connection may go to this address.
    pub(super) fn allows(&self, ip: IpAddr) -> bool {
        class(ip) <= self.farthest
    }

    /// Whether this is the name of the server itself, to which we talk anyway.
    pub(super) fn is_home(&self, host: &str) -> bool {
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
            Host::Domain(_) if local => self.farthest >= Class::Loopback,
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

/// Whether the host is this machine by its very name.
pub(super) fn is_local(host: &Host<&str>) -> bool {
    match host {
        Host::Domain(name) => is_localhost(name),
        Host::Ipv4(ip) => ip.is_loopback(),
        Host::Ipv6(ip) => ip.is_loopback(),
    }
}

fn is_localhost(name: &str) -> bool {
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    name == "localhost" || name.ends_with(".localhost")
}

fn class(ip: IpAddr) -> Class {
    match ip {
        IpAddr::V4(ip) => class_v4(ip),
        IpAddr::V6(ip) => class_v6(ip),
    }
}

fn class_v4(ip: Ipv4Addr) -> Class {
    let [a, b, ..] = ip.octets();
    if ip.is_loopback() {
        Class::Loopback
    } else if ip.is_private() || (a == 100 && (64..128).contains(&b)) {
        Class::Private
    } else if a == 0 || a >= 224 || ip.is_link_local() || (a == 198 && matches!(b, 18 | 19)) {
        Class::Never
    } else {
        Class::Public
    }
}

fn class_v6(ip: Ipv6Addr) -> Class {
    let [a, b, c, .., y, z] = ip.segments();
    let v4 = |high: u16, low: u16| class_v4(Ipv4Addr::from((u32::from(high) << 16) | u32::from(low)));
    match ip.segments() {
        _ if ip.is_loopback() => Class::Loopback,
        _ if ip.is_unspecified() || ip.is_multicast() => Class::Never,
        // IPv4 in disguise: mapped, compatible, NAT64 and 6to4.
        [0, 0, 0, 0, 0, 0xffff | 0, ..] | [0x64, 0xff9b, 0, 0, 0, 0, ..] => v4(y, z),
        [0x2002, ..] => v4(b, c),
        // Teredo and local NAT64 hide what they lead to.
        [0x2001, 0, ..] | [0x64, 0xff9b, 1, ..] => Class::Never,
        _ if a & 0xffc0 == 0xfe80 => Class::Never,
        _ if a & 0xfe00 == 0xfc00 => Class::Private,
        _ => Class::Public,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_may_send_us_where() {
        // The homes are literal, so that nothing is looked up.
        for (home, address, allowed) in [
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
            let reach = Reach::around(&Url::parse(home).unwrap()).await;
            assert_eq!(reach.check("endpoint", address).is_ok(), allowed, "{home} to {address}");
        }
    }

    #[tokio::test]
    async fn a_plain_server_may_describe_itself_plainly() {
        let reach = Reach::around(&Url::parse("http://10.0.0.1:8000/mcp").unwrap()).await;
        assert!(reach.check_own("description", "http://10.0.0.1:8000/.well-known/x").is_ok());
        assert!(reach.check_own("description", "http://10.0.0.2:8000/.well-known/x").is_err());
    }

    #[test]
    fn passwords_in_addresses_stay_there() {
        let fault = Reach::anywhere().check("endpoint", "https://user:pw@as.example/").unwrap_err();
        assert!(!fault.to_string().contains("pw@"), "{fault}");
    }
}
