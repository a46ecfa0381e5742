//! Host and Origin checks: a web page must not reach a local server through DNS rebinding.

use ::http::Uri;
use tidegate_protocol::{Error, Symbol};

use super::heads::Heads;
use super::settings::Settings;

/// Refuses requests whose `Host` or `Origin` is not ours (2026-07-28 streamable-http, Security).
pub(super) fn check(heads: &Heads<'_>, uri: &Uri, settings: &Settings) -> Result<(), Error> {
    if settings.any_host {
        return Ok(());
    }
    let forbidden = |what: String| Err(Error::new(Symbol::InvalidRequest, what));
    if heads.ambiguous {
        return forbidden("Forbidden: the Host or Origin header is repeated".to_owned());
    }
    // HTTP/2 carries the host in the request target.
    let host = heads.host.map(|h| h.to_str().unwrap_or("")).or_else(|| uri.authority().map(|a| a.as_str()));
    match host {
        Some(host) if is_ours(host_name(host), settings) => {}
        Some(host) => {
            return forbidden(format!(
                "Forbidden: the host {host:?} is not allowed here; the server must allow it"
            ));
        }
        None => return forbidden("Forbidden: a Host header is required".to_owned()),
    }
    match heads.origin {
        None => Ok(()),
        Some(origin) => {
            let origin = origin.to_str().unwrap_or("");
            let allowed = settings.origins.iter().any(|o| o.eq_ignore_ascii_case(origin))
                || origin.split_once("://").is_some_and(|(_, rest)| is_ours(host_name(rest), settings));
            if allowed {
                Ok(())
            } else {
                forbidden(format!(
                    "Forbidden: the origin {origin:?} is not allowed here; the server must allow it"
                ))
            }
        }
    }
}

fn is_ours(name: &str, settings: &Settings) -> bool {
    name == "127.0.0.1"
        || name.eq_ignore_ascii_case("localhost")
        || name == "[::1]"
        || settings.hosts.iter().any(|h| h.eq_ignore_ascii_case(name))
}

/// `host` or `[v6]` of `host:port`. What is no such thing stays whole, and so is nobody's name.
fn host_name(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => authority,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(host: Option<&str>, origin: Option<&str>, settings: &Settings) -> bool {
        let mut request = ::http::Request::builder().uri("/mcp");
        if let Some(host) = host {
            request = request.header("host", host);
        }
        if let Some(origin) = origin {
            request = request.header("origin", origin);
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        check(&Heads::read(&parts.headers), &parts.uri, settings).is_ok()
    }

    #[test]
    fn local_by_default() {
        let s = Settings::default();
        for host in ["localhost", "LOCALHOST:80", "127.0.0.1:8765", "[::1]:9", "[::1]"] {
            assert!(verdict(Some(host), None, &s), "{host}");
            assert!(verdict(Some(host), Some(&format!("http://{host}")), &s), "{host}");
        }
        for host in
            ["evil.example.com", "localhost.evil.com", "127.0.0.1.evil.com", "", "[::2]:1", "localhost@evil"]
        {
            assert!(!verdict(Some(host), None, &s), "{host}");
        }
        assert!(!verdict(None, None, &s));
        for origin in ["null", "http://evil.example.com", "https://localhost.evil.com", "", "file://"] {
            assert!(!verdict(Some("localhost"), Some(origin), &s), "{origin}");
        }
    }

    #[test]
    fn more_on_request() {
        let s = Settings::default().allow_host("tools.example.com").allow_origin("https://app.example.com");
        assert!(verdict(Some("tools.example.com:443"), Some("https://app.example.com"), &s));
        assert!(verdict(Some("tools.example.com"), Some("https://tools.example.com"), &s));
        assert!(!verdict(Some("app.example.com"), None, &s));
        assert!(verdict(Some("x"), Some("y"), &Settings { any_host: true, ..Settings::default() }));
    }
}
