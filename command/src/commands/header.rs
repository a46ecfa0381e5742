//! Headers on the command line: `-H 'Name: value'`.

use super::failure::Failure;

/// A header of the command line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) name: String,
    pub(crate) value: String,
    /// Whether it was written as `NAME=VALUE`, as `tidegate add` once wanted it.
    pub(crate) is_old_form: bool,
}

impl Header {
    /// Reads `Name: value`. No name has a `:` or a `=` in it, so whichever comes first ends the name. An error does not repeat
    /// the text, which may be a secret.
    pub(crate) fn parse(text: &str) -> Result<Header, Failure> {
        let (name, rest) = text.split_at(text.find([':', '=']).unwrap_or(text.len()));
        if !is_token(name) || rest.is_empty() {
            return Err(Failure::usage(
                "--header expects 'Name: value', such as 'Authorization: Bearer KEY'",
            ));
        }
        Ok(Header {
            name: name.to_owned(),
            value: rest[1..].trim().to_owned(),
            is_old_form: rest.starts_with('='),
        })
    }
}

/// Reads `NAME=value` for the environment of a program. An error does not repeat the text, which may be a secret.
pub(crate) fn variable(text: &str) -> Result<(String, String), Failure> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(Failure::usage("--env expects NAME=value")),
    }
}

/// RFC 9110 section 5.6.2.
fn is_token(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_colon_or_equals_sign_ends_the_name() {
        for (text, name, value, is_old_form) in [
            ("Authorization: Bearer a=b:c", "Authorization", "Bearer a=b:c", false),
            ("X-Empty:", "X-Empty", "", false),
            ("X-Tight:v", "X-Tight", "v", false),
            ("X-A=b:c", "X-A", "b:c", true),
            ("X-A=b=c", "X-A", "b=c", true),
        ] {
            let expected = Header { name: name.to_owned(), value: value.to_owned(), is_old_form };
            assert_eq!(Header::parse(text).unwrap(), expected, "{text}");
        }
        for text in ["", "secret", ": v", "=v", "two words: v"] {
            let said = Header::parse(text).unwrap_err().line();
            assert!(said.contains("'Name: value'") && !said.contains("secret"), "{text}: {said}");
        }
    }
}
