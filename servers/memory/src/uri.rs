//! Texts as they stand in URIs, and the queries of URIs: a URI may name a tenant, a user and where a list goes on.

use std::fmt::Write;

/// What a call names its tenant by, in the two ways in which it is written.
pub(crate) const TENANT_NAMES: [&str; 2] = ["tenant_id", "tenantId"];
/// The same for the user.
pub(crate) const USER_NAMES: [&str; 2] = ["user_id", "userId"];
/// Where a list goes on, in the query of its URI.
pub(crate) const AFTER: &str = "after";

/// A text as it may stand in an address, whatever is in it: only what can mean nothing else stays as it is.
pub(crate) fn escaped(text: &str) -> String {
    escaped_but(text, "")
}

/// The same, and these characters stay as they are, too.
pub(crate) fn escaped_but(text: &str, plain: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                escaped.push(char::from(byte))
            }
            _ if plain.as_bytes().contains(&byte) => escaped.push(char::from(byte)),
            _ => _ = write!(escaped, "%{byte:02X}"),
        }
    }
    escaped
}

/// The text that is written so in an address, or what is wrong with it.
pub(crate) fn unescaped(text: &str) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let (byte, next) = match (first, after) {
            (b'%', [high, low, next @ ..]) if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                (digit(*high) << 4 | digit(*low), next)
            }
            (b'%', _) => {
                let shown: String = String::from_utf8_lossy(rest).chars().take(3).collect();
                return Err(format!("{shown:?} in it is no escaped byte: a percent sign is written %25"));
            }
            (other, next) => (other, next),
        };
        bytes.push(byte);
        rest = next;
    }
    String::from_utf8(bytes).map_err(|_| "the escaped bytes in it are no text in UTF-8".to_owned())
}

/// The value of a hexadecimal digit.
fn digit(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        letter => (letter | 0x20) - b'a' + 10,
    }
}

/// What the query of a URI says under a name.
pub(crate) fn in_query(uri: &str, name: &str) -> Option<String> {
    let (_, query) = split(uri)?;
    let value = query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))?;
    Some(unescaped(value).unwrap_or_else(|_| value.to_owned()))
}

/// Everything that the query of a URI says, in its order.
pub(crate) fn all_in_query(uri: &str) -> impl Iterator<Item = (&str, String)> {
    let pairs = split(uri).map_or("", |(_, query)| query).split('&').filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (name, unescaped(value).unwrap_or_else(|_| value.to_owned())))
}

/// Whether a text begins like a URI of this server.
pub(crate) fn is_own_scheme(text: &str) -> bool {
    ["memory://", "agentlet://", "my-agents://"].iter().any(|scheme| text.starts_with(scheme))
}

/// The URI without its query.
pub(crate) fn without_query(uri: &str) -> &str {
    split(uri).map_or(uri, |(path, _)| path)
}

/// The URI and its query, if everything in that is known here. Any other question mark belongs to a name.
fn split(uri: &str) -> Option<(&str, &str)> {
    let (path, query) = uri.split_once('?')?;
    let known = |pair: &str| {
        let name = pair.split_once('=').map(|(name, _)| name);
        name.is_some_and(|name| TENANT_NAMES.contains(&name) || USER_NAMES.contains(&name) || name == AFTER)
    };
    query.split('&').all(known).then_some((path, query))
}

/// The URI under which a thing of this tenant can be read by somebody who is not authenticated.
pub(crate) fn qualified(uri: &str, chosen: Option<&str>) -> String {
    match chosen {
        Some(tenant) => format!("{uri}?{}={}", TENANT_NAMES[0], escaped(tenant)),
        None => uri.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_comes_back() {
        assert_eq!(escaped("Ann-1_b.c~"), "Ann-1_b.c~");
        assert_eq!(escaped("a b/ü"), "a%20b%2F%C3%BC");
        assert_eq!(escaped_but("a@b|c", "@"), "a@b%7Cc");
        for text in ["", "100%", "%41", "a/b?c#d&e=f", "日本 🦀", "../..", "a+b", "\"<>\\^`{|}"] {
            assert_eq!(unescaped(&escaped(text)).as_deref(), Ok(text));
        }
        assert_eq!(unescaped("%c3%BC+").as_deref(), Ok("ü+"));
    }

    #[test]
    fn what_is_no_escape_is_said() {
        for (bad, shown) in [("100%", "\"%\""), ("%zz", "\"%zz\""), ("a%4", "\"%4\""), ("%ü", "%ü")] {
            let why = unescaped(bad).unwrap_err();
            assert!(why.contains(shown) && why.contains("%25"), "{why}");
        }
        assert!(unescaped("%FF").unwrap_err().contains("UTF-8"));
    }

    #[test]
    fn tenants_are_named_in_queries() {
        for (uri, tenant) in [
            ("memory://knowledge-graph", None),
            ("memory://knowledge-graph?tenant_id=acme", Some("acme")),
            ("my-agents://list?user_id=ann&tenant_id=a%20b", Some("a b")),
            ("my-agents://list?not_tenant_id=acme", None),
            ("agentlet://x?tenant_id=", Some("")),
        ] {
            assert_eq!(in_query(uri, "tenant_id").as_deref(), tenant, "{uri}");
        }
        let uri = qualified("agentlet://user/ann/x", Some("a&b"));
        assert_eq!(uri, "agentlet://user/ann/x?tenant_id=a%26b");
        assert_eq!(in_query(&uri, "tenant_id").as_deref(), Some("a&b"));
        assert_eq!(without_query(&uri), "agentlet://user/ann/x");
    }
}
