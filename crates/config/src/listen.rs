//! Where to listen and for whom: the rules that the command line and the file share.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// An address to listen on: a host and a port.
///
/// ```
/// use tidegate_config::ListenAddress;
///
/// for (written, means) in [
///     ("8080", "127.0.0.1:8080"),
///     (":8080", "127.0.0.1:8080"),
///     ("localhost:8080", "localhost:8080"),
///     ("0.0.0.0:8080", "0.0.0.0:8080"),
///     ("[::1]:8080", "[::1]:8080"),
/// ] {
///     assert_eq!(written.parse::<ListenAddress>().unwrap().to_string(), means);
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListenAddress {
    host: String,
    port: u16,
}

/// What a port alone means: only this machine.
const LOOPBACK: &str = "127.0.0.1";

/// What an address looks like, for error messages.
pub(crate) const FORMS: &str = "a port (8080), a host and a port (localhost:8080, 127.0.0.1:8080), or an IPv6 address and a port ([::1]:8080)";

impl ListenAddress {
    /// The host as it was written, in brackets if it is an IPv6 address.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port; 0 for any that is free.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Whether only this machine can reach it, as far as can be told without resolving names.
    pub fn is_loopback(&self) -> bool {
        let bare = self.host.trim_start_matches('[').trim_end_matches(']');
        self.is_localhost() || bare.parse::<IpAddr>().is_ok_and(|ip| ip.to_canonical().is_loopback())
    }

    /// Whether it is `localhost`, which is both 127.0.0.1 and ::1.
    pub fn is_localhost(&self) -> bool {
        self.host.eq_ignore_ascii_case("localhost")
    }
}

impl FromStr for ListenAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<ListenAddress, String> {
        let text = text.trim();
        // What is before a leading colon is this machine.
        let rest = text.strip_prefix(':').unwrap_or(text);
        let (host, port) = rest.rsplit_once(':').unwrap_or((LOOPBACK, rest));
        let is_v6 = host.starts_with('[') && host.ends_with(']');
        let is_name = !host.is_empty() && !host.contains(|c: char| c.is_whitespace() || ":/@[]*".contains(c));
        // A number may have a sign, and a port has none.
        let port = port.parse().ok().filter(|_| port.bytes().all(|byte| byte.is_ascii_digit()));
        match port {
            Some(port) if is_v6 || is_name => Ok(ListenAddress { host: host.to_owned(), port }),
            _ => Err(format!("{text:?} is not an address to listen on: use {FORMS}")),
        }
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// Whether a host name may be allowed. The error is a sentence that does not repeat the name.
pub fn check_host(host: &str) -> Result<(), &'static str> {
    let is_v6 = host.starts_with('[') && host.ends_with(']');
    if host.trim().is_empty() {
        Err(
            "a host name must not be empty: use the name by which clients reach this server, such as mcp.example.com",
        )
    } else if host.contains('*') {
        Err(
            "wildcards are not supported, because they would switch off the protection against DNS rebinding: \
             list each host name",
        )
    } else if host.contains(|c: char| c.is_whitespace() || "/@".contains(c)) || (host.contains(':') && !is_v6)
    {
        Err("use only the host name, without scheme, port and path, such as mcp.example.com or [fd00::1]")
    } else {
        Ok(())
    }
}

/// Whether web pages of an origin may be allowed: whether a browser can send it. The error is a sentence that does not
/// repeat the origin.
pub fn check_origin(origin: &str) -> Result<(), &'static str> {
    const WRONG: &str = "an origin is what browsers send: a scheme and a host, such as \"https://app.example.com\", and a port \
         unless it is the usual one; no path, not even \"/\"";
    let Some((scheme, host)) = origin.split_once("://") else {
        return if origin == "null" { Ok(()) } else { Err(WRONG) };
    };
    let usual_port = match &*scheme.to_ascii_lowercase() {
        "https" => ":443",
        "http" => ":80",
        _ => "://",
    };
    let is_bare = !host.contains(|c: char| c.is_whitespace() || "/?#@*".contains(c));
    match !scheme.is_empty() && !host.is_empty() && is_bare && !host.ends_with(usual_port) {
        true => Ok(()),
        false => Err(WRONG),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_people_write_them() {
        for (text, means) in [
            ("8080", "127.0.0.1:8080"),
            (" 8080 ", "127.0.0.1:8080"),
            (":8080", "127.0.0.1:8080"),
            ("0", "127.0.0.1:0"),
            ("localhost:8080", "localhost:8080"),
            ("Localhost:0", "Localhost:0"),
            ("127.0.0.1:8765", "127.0.0.1:8765"),
            ("0.0.0.0:8080", "0.0.0.0:8080"),
            ("[::]:8080", "[::]:8080"),
            ("[::1]:8080", "[::1]:8080"),
            ("gateway.internal:80", "gateway.internal:80"),
        ] {
            assert_eq!(text.parse::<ListenAddress>().unwrap().to_string(), means, "{text:?}");
        }
        assert!("LOCALHOST:1".parse::<ListenAddress>().unwrap().is_localhost());
        for (text, is_loopback) in [
            ("8080", true),
            ("localhost:1", true),
            ("127.9.9.9:1", true),
            ("[::1]:1", true),
            ("[::ffff:127.0.0.1]:1", true),
            ("0.0.0.0:1", false),
            ("[::]:1", false),
            ("192.168.1.5:1", false),
            ("gateway.internal:1", false),
            ("localhost.example.com:1", false),
        ] {
            assert_eq!(text.parse::<ListenAddress>().unwrap().is_loopback(), is_loopback, "{text}");
        }
        for text in [
            "",
            ":",
            "localhost",
            "127.0.0.1",
            "::1:8080",
            "::8080",
            "[::1]",
            "http://localhost:8080",
            "a b:80",
            "65536",
            "-1",
            "+80",
            ":+80",
            "localhost:+80",
            "localhost:",
            "localhost:http",
            "*:8080",
            "[::1:8080",
        ] {
            let sentence = text.parse::<ListenAddress>().expect_err(text);
            assert!(sentence.contains("is not an address to listen on: use a port (8080)"), "{sentence}");
        }
    }

    #[test]
    fn hosts_are_names_and_nothing_else() {
        for host in ["mcp.example.com", "localhost", "192.168.1.5", "[fd00::1]"] {
            assert_eq!(check_host(host), Ok(()), "{host}");
        }
        for (host, part) in [
            ("", "must not be empty"),
            (" ", "must not be empty"),
            ("*", "wildcards are not supported"),
            ("*.example.com", "wildcards are not supported"),
            ("https://mcp.example.com", "only the host name"),
            ("mcp.example.com:8080", "only the host name"),
            ("mcp.example.com/mcp", "only the host name"),
            ("fd00::1", "only the host name"),
        ] {
            assert!(check_host(host).unwrap_err().contains(part), "{host:?}");
        }
    }

    #[test]
    fn origins_are_what_browsers_send() {
        for origin in ["https://app.example.com", "http://localhost:3000", "null", "vscode-webview://x"] {
            assert_eq!(check_origin(origin), Ok(()), "{origin}");
        }
        for origin in ["", "*", "https://*", "app.example.com", "https://a.com/", "https://a.com:443", "://a"]
        {
            assert!(check_origin(origin).is_err(), "{origin}");
        }
    }
}
