//! Who can reach the gateway, and how: its URL, the proxies in front of it, and its certificate.

use std::net::IpAddr;

use super::Resolver;
use crate::auth_settings::TlsSettings;
use crate::written::Tls;
use crate::{permissions, urls};

/// The largest networks that anybody has proxies in: 10.0.0.0/8, and fc00::/7.
const WIDEST_V4: u8 = 8;
const WIDEST_V6: u8 = 7;

impl Resolver<'_> {
    /// The URL without a slash at its end, and its host unless that is this machine.
    pub(super) fn public_url(&mut self, written: Option<&str>) -> Option<(String, Option<String>)> {
        match urls::origin(written?) {
            Ok(url) => {
                let host = url.host_str().filter(|_| !urls::is_loopback(&url)).map(str::to_owned);
                Some((url.origin().ascii_serialization(), host))
            }
            Err(sentence) => {
                self.wrong(&["public_url"], sentence);
                None
            }
        }
    }

    pub(super) fn trusted_proxies(&mut self, written: &[String]) -> Vec<String> {
        for sentence in written.iter().filter_map(|network| check_network(network).err()) {
            self.wrong(&["trusted_proxies"], sentence);
        }
        written.to_vec()
    }

    pub(super) fn tls(&mut self, tls: Option<&Tls>) -> Option<TlsSettings> {
        let tls = tls?;
        let mut file = |field: &'static str, written: Option<&String>, what: &str| match written {
            Some(path) => self.path(&["tls", field], path).unwrap_or_default(),
            None => {
                self.required(&["tls"], &[field], what);
                Default::default()
            }
        };
        let cert = file("cert", tls.cert.as_ref(), "needs cert, the file of the certificate");
        let key = file("key", tls.key.as_ref(), "needs key, the file of the private key");
        self.notes.extend(permissions::note_on_private_key(&key));
        Some(TlsSettings { cert, key })
    }
}

/// Whether this is an address, or a network in which all machines may be trusted. The error is a sentence.
fn check_network(text: &str) -> Result<(), String> {
    const FORM: &str = "each must be an address or a network, such as \"10.0.0.7\" or \"10.0.0.0/8\"";
    let (address, prefix) = match text.split_once('/') {
        Some((address, prefix)) => (address, Some(prefix)),
        None => (text, None),
    };
    let address: IpAddr = address.parse().map_err(|_| FORM.to_owned())?;
    if address.to_canonical() != address {
        return Err("write IPv4 addresses and networks without ::ffff:".to_owned());
    }
    let Some(prefix) = prefix else {
        return match address.is_unspecified() {
            true => Err(format!("{address} is no proxy's address: {FORM}")),
            false => Ok(()),
        };
    };
    let (longest, widest) = if address.is_ipv4() { (32, WIDEST_V4) } else { (128, WIDEST_V6) };
    let is_number = prefix.bytes().all(|byte| byte.is_ascii_digit());
    match prefix.parse::<u8>() {
        Ok(prefix) if is_number && prefix <= longest && prefix >= widest => Ok(()),
        Ok(prefix) if is_number && prefix < widest => Err(format!(
            "/{prefix} would trust most of the Internet, and anybody could claim to be anybody: list the proxies in front \
             of the gateway"
        )),
        _ => Err(FORM.to_owned()),
    }
}
