//! The credential of a request: one `Authorization: Bearer`, and nothing else.

use http::header::AUTHORIZATION;
use http::{HeaderMap, Uri};

/// How many bytes an `Authorization` header has at most.
const LONGEST: usize = 16 * 1024;

/// What is in the place of a credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sent<'a> {
    /// No header.
    Nothing,
    /// A credential of the scheme Bearer.
    Bearer(&'a str),
    /// A credential of another scheme.
    OtherScheme,
    /// Something that no client may send, with the word for logs and the sentence for the client.
    Wrong(&'static str, &'static str),
}

/// Finds the credential of a request.
pub(crate) fn read<'a>(headers: &'a HeaderMap, uri: &Uri) -> Sent<'a> {
    // RFC 6750 allows it in the query, OAuth 2.1 and 2026-07-28 authorization do not: addresses end up in logs.
    if uri.query().is_some_and(has_token) {
        return Sent::Wrong(
            "token_in_query",
            "The token must not be in the query: send it as Authorization: Bearer",
        );
    }
    let mut all = headers.get_all(AUTHORIZATION).iter();
    let value = match (all.next(), all.next()) {
        (None, _) => return Sent::Nothing,
        (Some(value), None) => value,
        // Somebody in between may have read the other one.
        _ => return Sent::Wrong("duplicate_header", "There is more than one Authorization header: send one"),
    };
    if value.len() > LONGEST {
        return Sent::Wrong("too_large", "The Authorization header is larger than 16 KiB");
    }
    let Ok(text) = value.to_str() else {
        return Sent::Wrong("malformed", "The Authorization header is not ASCII text");
    };
    let (scheme, credential) = text.split_once(' ').unwrap_or((text, ""));
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Sent::OtherScheme;
    }
    let credential = credential.trim_matches(' ');
    // RFC 6750, section 2.1: b64token.
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte);
    if credential.is_empty() || !credential.bytes().all(is_token) {
        return Sent::Wrong("malformed", "The Authorization header has no token in the form of RFC 6750");
    }
    Sent::Bearer(credential)
}

fn has_token(query: &str) -> bool {
    query.split('&').any(|pair| {
        let name = pair.split('=').next().unwrap_or_default();
        name.eq_ignore_ascii_case("access_token") || name.eq_ignore_ascii_case("access%5Ftoken")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(values: &[&str], uri: &str) -> String {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(AUTHORIZATION, value.parse().unwrap());
        }
        match read(&headers, &uri.parse().unwrap()) {
            Sent::Nothing => "nothing".into(),
            Sent::Bearer(token) => format!("bearer {token}"),
            Sent::OtherScheme => "other".into(),
            Sent::Wrong(reason, _) => reason.into(),
        }
    }

    #[test]
    fn one_header_of_one_scheme() {
        let large = format!("Bearer {}", "a".repeat(16 * 1024));
        for (values, expected) in [
            (&[][..], "nothing"),
            (&["Bearer abc"], "bearer abc"),
            (&["bEARER  a.b.c-_~+/= "], "bearer a.b.c-_~+/="),
            (&["Basic abc"], "other"),
            (&["abc"], "other"),
            (&[""], "other"),
            (&["Bearer"], "malformed"),
            (&["Bearer "], "malformed"),
            (&["Bearer a b"], "malformed"),
            (&["Bearer a,Bearer b"], "malformed"),
            (&["Bearer \u{e4}"], "malformed"),
            (&["Bearer a", "Bearer a"], "duplicate_header"),
            (&["Basic a", "Bearer a"], "duplicate_header"),
            (&[large.as_str()], "too_large"),
        ] {
            assert_eq!(sent(values, "/mcp"), expected, "{values:?}");
        }
    }

    #[test]
    fn never_in_the_query() {
        for uri in
            ["/mcp?access_token=x", "/mcp?a=b&ACCESS_TOKEN=x", "/mcp?access%5ftoken=x", "/mcp?access_token"]
        {
            assert_eq!(sent(&["Bearer abc"], uri), "token_in_query", "{uri}");
        }
        assert_eq!(sent(&["Bearer abc"], "/mcp?my_access_token=x"), "bearer abc");
    }
}
