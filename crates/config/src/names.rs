//! Which names may be used.

/// How long a name may be.
pub(crate) const MAX: usize = 64;

/// Checks the name of a server: letters, digits, `-`, `_` and `.`, at most 64 of them. The error is a sentence.
pub fn check_server(name: &str) -> Result<(), &'static str> {
    let fits = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
    match name {
        "" => Err("a server needs a name"),
        _ if name.len() > MAX => Err("a server name may have at most 64 characters"),
        _ if !name.bytes().all(fits) => {
            Err("a server name may contain only letters, digits, \"-\", \"_\" and \".\"")
        }
        _ => Ok(()),
    }
}

/// Checks the name of an endpoint: lower-case letters, digits and `-`, at most 64 of them. The error is a sentence.
pub fn check_endpoint(name: &str) -> Result<(), &'static str> {
    let fits = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    match name {
        "" => Err("an endpoint needs a name"),
        _ if name.len() > MAX => Err("the name of an endpoint may have at most 64 characters"),
        _ if !name.bytes().all(fits) => {
            Err("the name of an endpoint may contain only lower-case letters, digits and \"-\"")
        }
        _ => Ok(()),
    }
}

/// Checks a scope. The error is a sentence.
pub fn check_scope(scope: &str) -> Result<(), &'static str> {
    // RFC 6749 3.3: scope-token = 1*( %x21 / %x23-5B / %x5D-7E )
    let fits = |b: u8| matches!(b, 0x21 | 0x23..=0x5b | 0x5d..=0x7e);
    match scope {
        "" => Err("a scope must not be empty"),
        // 2026-07-28 authorization: refresh tokens are between the client and the authorization server.
        "offline_access" => {
            Err("offline_access asks for a refresh token and gives no access to anything: leave it out")
        }
        _ if scope.len() > LONGEST_SCOPE => Err("a scope may have at most 256 characters"),
        _ if !scope.bytes().all(fits) => Err(
            "a scope may contain only ASCII characters other than spaces, quotes and backslashes; list each scope by itself",
        ),
        _ => Ok(()),
    }
}

/// How long a scope may be.
const LONGEST_SCOPE: usize = 256;

/// Whether every model takes this as (part of) the name of a tool.
pub(crate) fn is_portable(name: &str) -> bool {
    name.len() <= MAX && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b))
}

/// A name that a server may have, made from one that it may not: other programs allow anything.
pub(crate) fn made_fit(name: &str) -> String {
    if check_server(name).is_ok() {
        return name.to_owned();
    }
    let mut fit = String::new();
    for c in name.chars().take(MAX) {
        let c = if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
        if c != '-' || !fit.ends_with('-') {
            fit.push(c);
        }
    }
    let fit = fit.trim_matches('-');
    if fit.is_empty() { "server".to_owned() } else { fit.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_made_fit() {
        for (name, fit) in [
            ("github", "github"),
            ("Brave Search (beta)", "Brave-Search-beta"),
            ("@scope/pkg", "scope-pkg"),
            ("a--b", "a--b"),
            ("été", "t"),
            ("日本", "server"),
        ] {
            assert_eq!(made_fit(name), fit);
            assert_eq!(check_server(fit), Ok(()));
        }
        assert_eq!(check_server(&"a".repeat(64)), Ok(()));
        for bad in ["", "a b", "a/b", "ü", &"a".repeat(65)] {
            assert!(check_server(bad).is_err(), "{bad}");
        }
    }
}
