//! Addresses of resources, of which one thing may have several.
//!
//! Servers decode what is percent-encoded, resolve dots, leave out empty segments and ignore the case of a scheme, each in its own
//! way. So a rule looks at every spelling that a server might take an address for: what allows must fit all of them, what denies
//! any.

use percent_encoding::percent_decode_str;
use smallvec::{SmallVec, smallvec};

/// How often something is decoded: more often than any server does.
const ROUNDS: usize = 3;

/// What an address may be taken for.
#[derive(Debug)]
pub(crate) struct Spellings<'a> {
    /// As it is, and, if that differs, decoded and with a scheme and a host in lower case, and the same without empty segments.
    pub(crate) all: SmallVec<[std::borrow::Cow<'a, str>; 2]>,
    /// Whether whoever resolves its dots ends up elsewhere.
    pub(crate) may_lead_elsewhere: bool,
}

impl Spellings<'_> {
    /// Whether what is denied by some patterns may be meant: by any spelling, also one without what comes behind the path, and
    /// that of its server if two servers have the same address and it is qualified here (`notes+file:///a`).
    pub(crate) fn may_be(&self, matches: impl Fn(&str) -> bool) -> bool {
        let shorter = |address: &str| {
            let path = address.split(['?', '#']).next().unwrap_or_default();
            let path = path.strip_suffix('/').filter(|path| !path.ends_with('/')).unwrap_or(path);
            let path = path.replacen("://localhost/", ":///", 1);
            // With one slash it is the same file.
            let with_three = path.split_once(":/").filter(|(_, rest)| !rest.starts_with('/'));
            matches(&path) || with_three.is_some_and(|(scheme, rest)| matches(&format!("{scheme}:///{rest}")))
        };
        let any = |address: &str| matches(address) || shorter(address);
        self.may_lead_elsewhere
            || self.all.iter().any(|address| any(address) || unqualified(address).is_some_and(any))
    }

    pub(crate) fn of(address: &str) -> Spellings<'_> {
        let mut decoded = address.to_owned();
        for _ in 0..ROUNDS {
            let next = percent_decode_str(&decoded).decode_utf8_lossy().into_owned();
            if next == decoded {
                break;
            }
            decoded = next;
        }
        let decoded = with_lower_case_host(&decoded);
        let may_lead_elsewhere = has_dot_segment(address) || has_dot_segment(&decoded);
        let mut all: SmallVec<[std::borrow::Cow<'_, str>; 2]> = smallvec![address.into()];
        let closed = without_empty_segments(&decoded);
        if decoded != address {
            all.push(decoded.into());
        }
        if let Some(closed) = closed {
            all.push(closed.into());
        }
        Spellings { all, may_lead_elsewhere }
    }
}

/// The address without the name of a server before it, if it may have one.
fn unqualified(address: &str) -> Option<&str> {
    let (scheme, _) = address.split_once(':')?;
    let (_, own) = scheme.split_once('+')?;
    Some(&address[scheme.len() - own.len()..])
}

/// Whether a segment is `.` or `..`, wherever it is: what was encoded may look like the end of the path. Some servers leave out control
/// characters and blanks around an address, and find a segment where none is.
fn has_dot_segment(address: &str) -> bool {
    let rest = address.split_once(':').map_or(address, |(_, rest)| rest);
    address.contains(char::is_control)
        || address.trim() != address
        || rest.split(['/', '\\', '?', '#']).any(|segment| matches!(segment, "." | ".."))
}

/// The same address to a server for which `a//b` is `a/b`, if there is anything to leave out.
fn without_empty_segments(address: &str) -> Option<String> {
    let end = address.find(['?', '#']).unwrap_or(address.len());
    let start = address[..end].find("://").map_or(0, |at| at + "://".len());
    let path = &address[start..end];
    if !path.contains("//") {
        return None;
    }
    let mut closed = address[..start].to_owned();
    for char in path.chars() {
        if char != '/' || !closed[start..].ends_with('/') {
            closed.push(char);
        }
    }
    closed.push_str(&address[end..]);
    Some(closed)
}

/// Neither a scheme nor a host distinguishes case (RFC 3986, section 6.2.2.1).
fn with_lower_case_host(address: &str) -> String {
    let Some((scheme, rest)) = address.split_once(':') else { return address.to_owned() };
    let scheme = scheme.to_ascii_lowercase();
    let Some(rest) = rest.strip_prefix("//") else { return format!("{scheme}:{rest}") };
    let end = rest.find(['/', '\\', '?', '#']).unwrap_or(rest.len());
    let (host, path) = rest.split_at(end);
    format!("{scheme}://{}{path}", host.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_denied_by_an_address() {
        for address in [
            "memo://x",
            "a+memo://x",
            "MEMO://x",
            "memo://x?q=1",
            "memo://x#part",
            "memo://x/",
            "a+memo://%78/?q",
        ] {
            assert!(Spellings::of(address).may_be(|one| one == "memo://x"), "{address}");
        }
        for address in ["file://localhost/etc/x", "file:/etc/x", "FILE:/etc/x", "file:///etc//x"] {
            assert!(Spellings::of(address).may_be(|one| one == "file:///etc/x"), "{address}");
        }
        assert!(!Spellings::of("memo://y").may_be(|one| one == "memo://x"));
    }

    #[test]
    fn what_an_address_may_be_taken_for() {
        for (address, also) in [
            ("file:///a/b", None),
            ("FILE:///a", Some("file:///a")),
            ("docs://Host/Path", Some("docs://host/Path")),
            ("file:///%73ecret", Some("file:///secret")),
            ("file:///%2573ecret", Some("file:///secret")),
            ("urn:Isbn:1", None),
            ("file:///a//b", Some("file:///a/b")),
            ("file:////a", Some("file:///a")),
            ("docs://host//a///b/?u=http://x//y", Some("docs://host/a/b/?u=http://x//y")),
        ] {
            let spellings = Spellings::of(address);
            assert_eq!(spellings.all[0], address);
            assert_eq!(spellings.all.get(1).map(|it| &**it), also, "{address}");
            assert!(!spellings.may_lead_elsewhere, "{address}");
        }
        for address in [
            "file:///public/%23/%2e%2e/%2e%2e/private/b",
            "file:///public/%3F/%2e%2e/private/b",
            "file:///public/.\t./private/b",
            "file:///pri\tvate/b",
            " file:///private/b",
            "file:///a/../b",
            "file:///a/%2e%2e/b",
            "file:///a%2F..%5Cb",
            "f://a/%252e%252e/b",
            "f:///./a",
            "f://x\\..\\b",
        ] {
            assert!(Spellings::of(address).may_lead_elsewhere, "{address}");
        }
    }
}
