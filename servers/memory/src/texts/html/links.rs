//! Where the links of a page lead.

use url::Url;

use super::entities::decoded;

/// Longest address of a link that is kept.
const MAX_LINK: usize = 2_000;

/// The value of an attribute of a tag.
pub(super) fn attribute(tag: &str, wanted: &str) -> Option<String> {
    let mut rest = tag.trim_start_matches(|c: char| c == '<' || c.is_ascii_alphanumeric());
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == '/');
        let end = rest.find(|c: char| c.is_whitespace() || "=>/".contains(c)).unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        let (value, after) = match after.trim_start().strip_prefix('=') {
            None => ("", after),
            Some(value) => {
                let value = value.trim_start();
                match value.chars().next().filter(|quote| "\"'".contains(*quote)) {
                    Some(quote) => value[1..].split_once(quote)?,
                    None => value
                        .split_at(value.find(|c: char| c.is_whitespace() || c == '>').unwrap_or(value.len())),
                }
            }
        };
        if name.eq_ignore_ascii_case(wanted) {
            return Some(decoded(value).trim().to_owned());
        }
        // The end of the tag, or a sign that begins no attribute.
        rest = match name.is_empty() && after.len() == rest.len() {
            true => after.get(1..).filter(|after| !after.is_empty())?,
            false => after,
        };
    }
}

/// Where a link leads, if it is to another page.
pub(super) fn target(href: &str, base: Option<&Url>) -> Option<String> {
    let url = resolved(href, base).filter(|_| !href.starts_with('#'))?;
    let known = matches!(url.scheme(), "http" | "https" | "mailto") && url.as_str().len() <= MAX_LINK;
    known.then(|| url.to_string())
}

pub(super) fn resolved(href: &str, base: Option<&Url>) -> Option<Url> {
    match base {
        Some(base) => base.join(href).ok(),
        None => Url::parse(href).ok(),
    }
}
