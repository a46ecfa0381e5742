//! URLs that a configuration names for others to be sent to, or for the gateway to trust: encrypted, or on this machine.

use std::net::IpAddr;

use url::{Host, Url};

/// A URL that can be trusted to lead where it says: https, or http on this machine. The error is a sentence that does not
/// repeat the value.
pub(crate) fn trusted(text: &str) -> Result<Url, &'static str> {
    trusted_like(text, "must be a URL, such as \"https://id.example.com\"")
}

/// The same. `form` is the sentence for what is no URL at all.
fn trusted_like(text: &str, form: &'static str) -> Result<Url, &'static str> {
    // The parser would leave them out, and whoever compares texts would not.
    if text.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err("must be a URL, which has no spaces");
    }
    let url = Url::parse(text).map_err(|_| form)?;
    match url.scheme() {
        "https" => {}
        "http" if is_loopback(&url) => {}
        "http" => {
            return Err("must begin with https://, or anybody on the way could change what is sent; \
                        http:// is for this machine only");
        }
        _ => return Err(form),
    }
    if !url.has_host() {
        return Err(form);
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("must not have a user name or a password in it");
    }
    match url.fragment() {
        Some(_) => Err("must not have a fragment (#…)"),
        None => Ok(url),
    }
}

/// The URL of an issuer, which is compared character by character.
pub(crate) fn issuer(text: &str) -> Result<(), &'static str> {
    let url = trusted(text)?;
    match url.query() {
        // RFC 8414 2: no query or fragment components.
        Some(_) => Err("must not have a query (?…): it is the issuer exactly as in the tokens"),
        None => Ok(()),
    }
}

/// The beginning of all URLs of a gateway, in its usual form and without a slash at its end.
pub(crate) fn origin(text: &str) -> Result<Url, &'static str> {
    let url = trusted_like(text, "must be a URL, such as \"https://mcp.example.com\"")?;
    match url.path() == "/" && url.query().is_none() {
        true => Ok(url),
        false => Err("must not have a path or a query: write only scheme, host and port, such as \
                      \"https://mcp.example.com\""),
    }
}

/// Whether a URL leads to this machine.
pub(crate) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => IpAddr::V6(ip).to_canonical().is_loopback(),
        None => false,
    }
}
