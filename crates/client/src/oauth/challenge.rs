//! [`Asked`]: what the `WWW-Authenticate` headers of a refusal ask for.

use super::scopes::Scopes;

/// The challenge that a token can answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Asked {
    /// The server takes tokens only with a proof of possession (RFC 9449).
    pub(super) dpop: bool,
    /// Where the server describes itself (RFC 9728).
    pub(super) resource_metadata: Option<String>,
    /// The scopes that the request needs.
    pub(super) scopes: Option<Scopes>,
    /// The error code, for example `insufficient_scope`.
    pub(super) error: Option<String>,
}

impl Asked {
    /// Reads the headers. `Bearer` counts before `DPoP`, and one that says where to look before one that does not;
    /// all other schemes are passed over.
    pub(super) fn read<S: AsRef<str>>(headers: &[S]) -> Asked {
        let all: Vec<_> = headers.iter().flat_map(|header| challenges(header.as_ref())).collect();
        let pick = |scheme: &str| {
            let of_scheme = || all.iter().filter(|c| c.scheme.eq_ignore_ascii_case(scheme));
            of_scheme().find(|c| c.get("resource_metadata").is_some()).or_else(|| of_scheme().next())
        };
        let Some(chosen) = pick("Bearer").or_else(|| pick("DPoP")) else { return Asked::default() };
        Asked {
            dpop: chosen.scheme.eq_ignore_ascii_case("DPoP"),
            resource_metadata: chosen.get("resource_metadata").map(str::to_owned),
            scopes: chosen.get("scope").map(Scopes::parse).filter(|scopes| !scopes.is_empty()),
            error: chosen.get("error").map(str::to_owned),
        }
    }

    /// Whether the error is this one.
    pub(super) fn says(&self, error: &str) -> bool {
        self.error.as_deref() == Some(error)
    }
}

struct Challenge<'a> {
    scheme: &'a str,
    params: Vec<(String, String)>,
}

impl Challenge<'_> {
    fn get(&self, name: &str) -> Option<&str> {
        self.params.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }
}

/// Splits one header (RFC 9110 section 11.6.1): `scheme name=value, name="value", scheme …`. What cannot be read ends
/// the reading, so that half a value never counts.
fn challenges(header: &str) -> Vec<Challenge<'_>> {
    let mut found: Vec<Challenge<'_>> = Vec::new();
    let mut rest = header;
    loop {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        let (word, after) = token(rest);
        if word.is_empty() {
            return found;
        }
        let value = after.trim_start_matches([' ', '\t']).strip_prefix('=');
        match (value, found.last_mut()) {
            (Some(value), Some(challenge)) => {
                let Some((value, after)) = param_value(value.trim_start_matches([' ', '\t'])) else {
                    return found;
                };
                challenge.params.push((word.to_ascii_lowercase(), value));
                rest = after;
            }
            (Some(_), None) => return found,
            (None, _) => {
                found.push(Challenge { scheme: word, params: Vec::new() });
                rest = skip_token68(after);
            }
        }
    }
}

/// A value, quoted or not, and what follows it.
fn param_value(text: &str) -> Option<(String, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        let (word, after) = token(text);
        return (!word.is_empty()).then(|| (word.to_owned(), after));
    };
    let mut value = String::new();
    let mut chars = quoted.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((value, &quoted[at + 1..])),
            '\\' => value.push(chars.next()?.1),
            c => value.push(c),
        }
    }
    None
}

/// Credentials in one piece, such as `Negotiate oYIB…==`: nothing here reads them.
fn skip_token68(text: &str) -> &str {
    let start = text.trim_start_matches([' ', '\t']);
    let fits = |c: char| c.is_ascii_alphanumeric() || "-._~+/".contains(c);
    let end = start.trim_start_matches(fits).trim_start_matches('=');
    let alone = end.is_empty() || end.trim_start_matches([' ', '\t']).starts_with(',');
    if alone { end } else { text }
}

fn token(text: &str) -> (&str, &str) {
    let fits = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    text.split_at(text.find(|c| !fits(c)).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(metadata: Option<&str>, scopes: Option<&str>, error: Option<&str>) -> Asked {
        Asked {
            dpop: false,
            resource_metadata: metadata.map(str::to_owned),
            scopes: scopes.map(Scopes::parse),
            error: error.map(str::to_owned),
        }
    }

    #[test]
    fn headers_of_all_kinds() {
        for (headers, expected) in [
            (&[][..], Asked::default()),
            (&["Bearer"], Asked::default()),
            (
                &[r#"Bearer error="invalid_token", scope="a b", resource_metadata="https://x/y""#],
                asked(Some("https://x/y"), Some("a b"), Some("invalid_token")),
            ),
            (&[r#"bearer  scope = "a" ,resource_metadata=abc"#], asked(Some("abc"), Some("a"), None)),
            // A parameter inside the value of another one is none.
            (
                &[r#"Bearer error_description="need scope=\"evil\", x", scope="b""#],
                asked(None, Some("b"), None),
            ),
            (&[r#"Basic realm="scope", Bearer scope="b""#], asked(None, Some("b"), None)),
            (&[r#"Negotiate oYIB/+==, Bearer scope="b""#], asked(None, Some("b"), None)),
            (
                &["Basic", r#"Bearer scope="a""#, r#"Bearer resource_metadata="u""#],
                asked(Some("u"), None, None),
            ),
            (&[r#"Bearer scope="never closed"#], Asked::default()),
            (&[r#"=nonsense"#], Asked::default()),
            (
                &[r#"DPoP error="use_dpop_nonce", algs="ES256""#],
                Asked { dpop: true, ..asked(None, None, Some("use_dpop_nonce")) },
            ),
            (&[r#"DPoP algs="ES256", Bearer scope="b""#], asked(None, Some("b"), None)),
        ] {
            assert_eq!(Asked::read(headers), expected, "{headers:?}");
        }
    }
}
