//! [`ClientAddress`]: where a request came from.

use std::net::{IpAddr, SocketAddr};

use ::http::HeaderMap;
use ::http::header::{FORWARDED, HeaderName};

use super::trusted_proxies::TrustedProxies;

/// Where a request came from, in the extensions of the request.
///
/// [`serve`](super::serve) puts it there. Over the loopback interface without TLS, and where no proxies are trusted, only the first
/// request of a connection has it, because it costs something and is the same for all of them: a service, of which each
/// connection has a clone, remembers it.
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

/// Most proxies of ours that a request may have come through.
const MAX_HOPS: usize = 32;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

impl ClientAddress {
    /// The other end of a socket.
    pub(super) fn of_peer(peer: SocketAddr, is_secure: bool) -> ClientAddress {
        let ip = peer.ip().to_canonical();
        ClientAddress { ip, port: Some(peer.port()), via_proxy: false, is_secure }
    }

    /// Whom a trusted proxy forwards a request for. If it does not say so in a way that can be understood, it is the proxy itself.
    ///
    /// What anybody but our own proxies has written into the headers is to the left of what these have: the right-most
    /// address that is none of ours is the client.
    pub(super) fn forwarded(self, headers: &HeaderMap, proxies: &TrustedProxies) -> ClientAddress {
        let is_secure = is_secure(headers).unwrap_or(self.is_secure);
        let old = client(from_right(headers, X_FORWARDED_FOR).map(address), proxies);
        let new = client(from_right(headers, FORWARDED).map(|hop| address(parameter(hop, "for")?)), proxies);
        let found = match (old, new) {
            (Found::At(ip, port), Found::Nobody) | (Found::Nobody, Found::At(ip, port)) => Some((ip, port)),
            // A proxy that knows one of the two passes the other on as the client has sent it.
            (Found::At(ip, port), Found::At(also, _)) if ip == also => Some((ip, port)),
            _ => None,
        };
        match found {
            Some((ip, port)) => ClientAddress { ip, port, via_proxy: true, is_secure },
            None => ClientAddress { is_secure, ..self },
        }
    }
}

enum Found {
    /// The header is not there.
    Nobody,
    At(IpAddr, Option<u16>),
    /// It cannot be understood, or is too long.
    Unknown,
}

type Address = (IpAddr, Option<u16>);

/// The first of these that is no proxy of ours; if all are, the last.
fn client(hops: impl Iterator<Item = Option<Address>>, proxies: &TrustedProxies) -> Found {
    let mut found = Found::Nobody;
    for (n, hop) in hops.enumerate() {
        let Some((ip, port)) = hop.filter(|_| n < MAX_HOPS) else { return Found::Unknown };
        found = Found::At(ip, port);
        if !proxies.contains(ip) {
            break;
        }
    }
    found
}

/// The elements of a header that is a list, the last one first. What is no text is an element that is not understood.
fn from_right(headers: &HeaderMap, name: HeaderName) -> impl Iterator<Item = &str> {
    let values: Vec<_> = headers.get_all(name).iter().collect();
    values.into_iter().rev().flat_map(|value| value.to_str().unwrap_or("?").rsplit(',').map(str::trim))
}

/// `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1`, `[2001:db8::1]`, `[2001:db8::1]:80`.
fn address(text: &str) -> Option<Address> {
    if let Ok(ip) = text.parse::<IpAddr>() {
        return Some((ip.to_canonical(), None));
    }
    if let Ok(with_port) = text.parse::<SocketAddr>() {
        return Some((with_port.ip().to_canonical(), Some(with_port.port())));
    }
    let ip = text.strip_prefix('[')?.strip_suffix(']')?.parse::<std::net::Ipv6Addr>().ok()?;
    Some((IpAddr::V6(ip).to_canonical(), None))
}

/// The value of a parameter of an element of `Forwarded` (RFC 7239). None of those that matter has a quote, comma or semicolon in
/// its value: one that has is not understood.
fn parameter<'a>(element: &'a str, name: &str) -> Option<&'a str> {
    let mut values = element.split(';').filter_map(|pair| {
        let (key, value) = pair.split_once('=')?;
        key.trim().eq_ignore_ascii_case(name).then(|| value.trim())
    });
    let value = values.next().filter(|_| values.next().is_none())?;
    Some(value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).unwrap_or(value))
}

/// Whether the way to the proxies was encrypted all along, if they say anything about it.
fn is_secure(headers: &HeaderMap) -> Option<bool> {
    let old = from_right(headers, X_FORWARDED_PROTO);
    let new = from_right(headers, FORWARDED).filter_map(|hop| parameter(hop, "proto"));
    old.chain(new).map(|proto| proto.eq_ignore_ascii_case("https")).reduce(|all, is| all && is)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(headers: &[(&str, &str)]) -> String {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(
                name.parse::<HeaderName>().unwrap(),
                ::http::HeaderValue::from_bytes(value.as_bytes()).unwrap(),
            );
        }
        let proxies = TrustedProxies::parse(["10.0.0.0/8", "fd00::/8"]).unwrap();
        let peer = ClientAddress::of_peer("10.0.0.1:4000".parse().unwrap(), false);
        let ClientAddress { ip, port, via_proxy, is_secure } = peer.forwarded(&map, &proxies);
        assert_eq!(via_proxy, port != Some(4000));
        format!("{ip} {port:?} {is_secure}")
    }

    #[test]
    fn whom_a_proxy_forwards_for() {
        for (header, expected) in [
            ("192.0.2.1", "192.0.2.1 None false"),
            ("192.0.2.1:80", "192.0.2.1 Some(80) false"),
            ("2001:db8::1", "2001:db8::1 None false"),
            ("[2001:db8::1]", "2001:db8::1 None false"),
            ("[2001:db8::1]:80", "2001:db8::1 Some(80) false"),
            ("::ffff:192.0.2.1", "192.0.2.1 None false"),
            // What the client has sent itself stands to the left.
            ("127.0.0.1, 192.0.2.1", "192.0.2.1 None false"),
            ("nonsense, 192.0.2.1, 10.2.3.4,fd00::1", "192.0.2.1 None false"),
            ("10.9.9.9, 10.2.3.4", "10.9.9.9 None false"),
        ] {
            assert_eq!(seen(&[("x-forwarded-for", header)]), expected, "{header}");
        }
        let lines = [
            ("x-forwarded-for", "1.1.1.1"),
            ("x-forwarded-for", "192.0.2.1"),
            ("x-forwarded-for", "10.1.1.1"),
        ];
        assert_eq!(seen(&lines), "192.0.2.1 None false");
        for (header, expected) in [
            ("for=192.0.2.1", "192.0.2.1 None false"),
            ("For=\"[2001:db8::1]:4711\";proto=https;by=10.0.0.1", "2001:db8::1 Some(4711) true"),
            ("for=1.1.1.1, for=192.0.2.1;proto=http, for=10.1.1.1;proto=https", "192.0.2.1 None false"),
        ] {
            assert_eq!(seen(&[("forwarded", header)]), expected, "{header}");
        }
    }

    #[test]
    fn what_is_not_understood_is_the_proxy_itself() {
        let itself = "10.0.0.1 Some(4000) false";
        assert_eq!(seen(&[]), itself);
        let many = vec!["10.1.1.1"; MAX_HOPS].join(", ");
        for header in [
            "",
            "unknown",
            "192.0.2.1, ",
            "_hidden, 10.1.1.1",
            "192.0.2.1:port",
            "\u{e9}",
            &format!("192.0.2.1, {many}"),
        ] {
            assert_eq!(seen(&[("x-forwarded-for", header)]), itself, "{header}");
        }
        for header in ["for=unknown", "proto=http", "for=192.0.2.1;for=192.0.2.2", "for=\"192.0.2.1, for=x\""]
        {
            assert_eq!(seen(&[("forwarded", header)]), itself, "{header}");
        }
        // Nobody knows which of the two the proxy has written.
        assert_eq!(seen(&[("x-forwarded-for", "192.0.2.1"), ("forwarded", "for=192.0.2.2")]), itself);
        let same = [("x-forwarded-for", "192.0.2.1"), ("forwarded", "for=192.0.2.1")];
        assert_eq!(seen(&same), "192.0.2.1 None false");
    }

    #[test]
    fn whether_the_way_was_encrypted() {
        for (proto, expected) in
            [("https", "true"), ("HTTPS", "true"), ("http", "false"), ("https, http", "false"), ("", "false")]
        {
            let seen = seen(&[("x-forwarded-for", "192.0.2.1"), ("x-forwarded-proto", proto)]);
            assert_eq!(seen, format!("192.0.2.1 None {expected}"), "{proto}");
        }
        let both = [("x-forwarded-proto", "https"), ("forwarded", "for=192.0.2.1;proto=http")];
        assert_eq!(seen(&both), "192.0.2.1 None false");
    }
}
