//! [`TrustedProxies`]: whose word about other people's addresses counts.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;

/// The networks of the proxies that are believed when they say whom they forward a request for.
///
/// ```
/// use tidegate_edge::http::TrustedProxies;
///
/// let proxies = TrustedProxies::parse(["10.0.0.0/8", "2001:db8::1"]).unwrap();
/// assert!(proxies.contains([10, 1, 2, 3].into()));
/// assert!(TrustedProxies::parse(["10.0.0.0/33"]).is_err());
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrustedProxies(Arc<[IpNet]>);

/// A text that is neither a network nor an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidNetwork(String);

impl fmt::Display for InvalidNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} is neither a network such as \"10.0.0.0/8\" nor an address such as \"10.0.0.1\"",
            self.0
        )
    }
}

impl std::error::Error for InvalidNetwork {}

impl TrustedProxies {
    /// These networks and addresses.
    pub fn parse<S: AsRef<str>>(
        networks: impl IntoIterator<Item = S>,
    ) -> Result<TrustedProxies, InvalidNetwork> {
        let parse = |text: S| {
            let text = text.as_ref();
            let network = text.parse().ok();
            let network = network.or_else(|| text.parse::<IpAddr>().ok().map(|ip| ip.to_canonical().into()));
            network.ok_or_else(|| InvalidNetwork(text.to_owned()))
        };
        networks.into_iter().map(parse).collect::<Result<_, _>>().map(TrustedProxies)
    }

    /// Whether nobody is trusted.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether this address is one of theirs. IPv4 is IPv4, also when it is written as IPv6.
    pub fn contains(&self, ip: IpAddr) -> bool {
        let ip = ip.to_canonical();
        self.0.iter().any(|network| network.contains(&ip))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_and_addresses() {
        let proxies =
            TrustedProxies::parse(["10.1.2.3/8", "192.0.2.7", "fd00::/8", "::ffff:198.51.100.1"]).unwrap();
        for inside in ["10.9.9.9", "192.0.2.7", "fd12::1", "::ffff:10.0.0.1", "198.51.100.1"] {
            assert!(proxies.contains(inside.parse().unwrap()), "{inside}");
        }
        for outside in ["11.0.0.1", "192.0.2.8", "fe80::1", "::1", "127.0.0.1"] {
            assert!(!proxies.contains(outside.parse().unwrap()), "{outside}");
        }
        for wrong in ["", "10.0.0.0/33", "localhost", "10.0.0.0/8 ", "10.0.0.1:80"] {
            let error = TrustedProxies::parse([wrong]).unwrap_err().to_string();
            assert!(error.contains(&format!("{wrong:?}")), "{error}");
        }
        assert!(TrustedProxies::default().is_empty());
    }
}
