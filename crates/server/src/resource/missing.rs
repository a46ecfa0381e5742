//! What to say of an address at which there is nothing: if it is not written as addresses are, that is said.

use tidegate_protocol::template::Template;
use tidegate_protocol::{Error, Symbol};

/// The protocol's error, with what is wrong about the address if anything is.
pub(super) fn not_found<'a>(uri: &str, templates: impl Iterator<Item = &'a Template>) -> Error {
    let error = Error::resource_not_found(uri);
    let Some(why) = malformed(uri).or_else(|| unfit(uri, templates)) else { return error };
    let told = Error::new(Symbol::ResourceNotFound, format!("{}: {why}", error.message()));
    match error.data() {
        Some(data) => told.with_data(data.clone()),
        None => told,
    }
}

/// What makes a text no URI (RFC 3986).
fn malformed(uri: &str) -> Option<String> {
    if super::check_uri(uri).is_err() {
        return Some("it is not a URI, because it does not begin with a scheme such as \"file:\"".to_owned());
    }
    if let Some(odd) = uri.chars().find(|c| c.is_whitespace() || c.is_control()) {
        let escaped: String =
            odd.encode_utf8(&mut [0; 4]).bytes().map(|byte| format!("%{byte:02X}")).collect();
        return Some(format!("{odd:?} is written {escaped} in a URI"));
    }
    let hex = |at: usize| uri.as_bytes().get(at).is_some_and(u8::is_ascii_hexdigit);
    let (at, _) = uri.match_indices('%').find(|(at, _)| !hex(at + 1) || !hex(at + 2))?;
    let shown: String = uri[at..].chars().take(3).collect();
    Some(format!("{shown:?} is not a valid escape; a percent sign is written %25 in a URI"))
}

/// The template that was probably meant, and why it does not fit.
fn unfit<'a>(uri: &str, mut templates: impl Iterator<Item = &'a Template>) -> Option<String> {
    let meant = templates.find_map(|template| {
        let (start, _) = template.as_str().split_once('{')?;
        // A scheme alone says too little.
        let rest = uri.strip_prefix(start).filter(|_| !start.ends_with(':') && !start.ends_with("://"))?;
        Some((template.as_str(), rest))
    });
    match meant? {
        (template, "") => Some(format!("{template} is incomplete so")),
        (template, _) => {
            Some(format!("it does not fit {template}; what stands for a variable has / ? # as %2F %3F %23"))
        }
    }
}
