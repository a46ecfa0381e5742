//! [`Guard`]: which addresses a connection may go to, decided after the name was looked up.
//!
//! Checking a name alone would not do: who owns a name can let it stand for any address, and for another one a second
//! later. So a name is looked up once, its addresses are checked, and the connection goes to one of these and to nothing
//! else.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use url::Host;

use crate::{Error, Zone};

/// Looks up what a name stands for.
pub type Lookup = Arc<dyn Fn(String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> + Send + Sync>;

/// Which addresses a connection may go to.
#[derive(Clone)]
pub struct Guard {
    allowed: Arc<dyn Fn(IpAddr) -> bool + Send + Sync>,
    home: Option<Arc<str>>,
    skips: bool,
    lookup: Lookup,
}

impl Guard {
    /// The public internet only: for addresses that callers choose.
    pub fn public() -> Guard {
        Guard::up_to(Zone::Public)
    }

    /// Anywhere but the places where clouds keep credentials.
    pub fn private() -> Guard {
        Guard::up_to(Zone::Reserved)
    }

    /// Anywhere: for addresses from the configuration.
    pub fn anywhere() -> Guard {
        Guard::up_to(Zone::Metadata)
    }

    /// This zone, and those that come before it.
    pub fn up_to(farthest: Zone) -> Guard {
        Guard::new(move |address| Zone::of(address) <= farthest)
    }

    /// The addresses of which `allowed` says so.
    pub fn new(allowed: impl Fn(IpAddr) -> bool + Send + Sync + 'static) -> Guard {
        let lookup: Lookup = Arc::new(|name| Box::pin(system(name)));
        Guard { allowed: Arc::new(allowed), home: None, skips: false, lookup }
    }

    /// Also this host, wherever it is.
    #[must_use]
    pub fn or_host(mut self, host: &str) -> Guard {
        self.home = Some(host.into());
        self
    }

    /// Of a name with addresses of both kinds, use those that are allowed. Otherwise such a name is refused as a whole.
    #[must_use]
    pub fn skipping_others(mut self) -> Guard {
        self.skips = true;
        self
    }

    /// Looks names up in another way than the system does.
    #[must_use]
    pub fn with_lookup(mut self, lookup: Lookup) -> Guard {
        self.lookup = lookup;
        self
    }

    /// The addresses of a host that a connection may go to. There is at least one.
    pub async fn addresses(&self, host: &Host<&str>) -> Result<Vec<SocketAddr>, Error> {
        let found = match host {
            Host::Ipv4(address) => vec![IpAddr::V4(*address)],
            Host::Ipv6(address) => vec![IpAddr::V6(*address)],
            Host::Domain(name) => (self.lookup)((*name).to_owned()).await.unwrap_or_default(),
        };
        self.check(&host.to_string(), found)
    }

    fn check(&self, host: &str, mut found: Vec<IpAddr>) -> Result<Vec<SocketAddr>, Error> {
        if found.is_empty() {
            return Err(Error::NoHost(host.to_owned()));
        }
        if !self.home.as_deref().is_some_and(|home| home.eq_ignore_ascii_case(host)) {
            let worst = found.iter().filter(|ip| !(self.allowed)(**ip)).map(|ip| Zone::of(*ip)).max();
            found.retain(|ip| (self.allowed)(*ip));
            if let Some(zone) = worst.filter(|_| !self.skips || found.is_empty()) {
                return Err(Error::Forbidden { host: host.to_owned(), zone });
            }
        }
        Ok(found.into_iter().map(|ip| SocketAddr::new(ip, 0)).collect())
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard").field("home", &self.home).field("skips", &self.skips).finish_non_exhaustive()
    }
}

async fn system(name: String) -> io::Result<Vec<IpAddr>> {
    Ok(tokio::net::lookup_host((name, 0)).await?.map(|address| address.ip()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ips(text: &str) -> Vec<IpAddr> {
        text.split_ascii_whitespace().map(|ip| ip.parse().unwrap()).collect()
    }

    #[test]
    fn a_name_is_worth_as_much_as_its_worst_address() {
        let refused = |guard: &Guard, found: &str| match guard.check("a.test", ips(found)) {
            Err(Error::Forbidden { zone, .. }) => Some(zone),
            Err(other) => panic!("{other}"),
            Ok(_) => None,
        };
        let public = Guard::public();
        assert_eq!(refused(&public, "8.8.8.8 2606:4700::1"), None);
        assert_eq!(refused(&public, "8.8.8.8 10.0.0.1"), Some(Zone::Private));
        assert_eq!(refused(&public, "169.254.169.254 8.8.8.8 127.0.0.1"), Some(Zone::Metadata));
        let private = Guard::private();
        assert_eq!(refused(&private, "8.8.8.8 10.0.0.1 127.0.0.1 ::1"), None);
        assert_eq!(refused(&private, "10.0.0.1 fd00:ec2::254"), Some(Zone::Metadata));
        assert_eq!(refused(&Guard::anywhere(), "169.254.169.254"), None);
        assert!(matches!(public.check("a.test", Vec::new()), Err(Error::NoHost(_))));
    }

    #[test]
    fn others_may_be_skipped_and_one_host_may_be_anywhere() {
        let guard = Guard::public().skipping_others().or_host("Home.test");
        let kept = guard.check("a.test", ips("10.0.0.1 8.8.8.8")).unwrap();
        assert_eq!(kept, ["8.8.8.8:0".parse().unwrap()]);
        assert!(guard.check("a.test", ips("10.0.0.1")).is_err());
        assert_eq!(guard.check("home.test", ips("10.0.0.1 127.0.0.1")).unwrap().len(), 2);
    }
}
