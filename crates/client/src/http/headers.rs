//! Request headers: those of one request, those that the user configured, and those that are always there.

use std::collections::BTreeMap;

use ::http::{HeaderMap, HeaderName, HeaderValue, header};
use tidegate_protocol::{Error, Symbol, headers, meta};
use tidegate_service::trace::TraceContext;

// Checked by the compiler, not with each request.
pub(crate) const PROTOCOL_VERSION: HeaderName = HeaderName::from_static(headers::PROTOCOL_VERSION);
const TRACEPARENT: HeaderName = HeaderName::from_static(meta::TRACEPARENT);
pub(crate) const METHOD: HeaderName = HeaderName::from_static(headers::METHOD);

/// The headers of one request on top of those that every request has.
#[derive(Debug, Clone, Default)]
pub(crate) struct Headers {
    own: Vec<(HeaderName, HeaderValue)>,
    calls_tool: bool,
}

impl Headers {
    /// No headers.
    pub(crate) fn new() -> Headers {
        Headers::default()
    }

    /// Those that every tool call of the newest revision has. They are prepared.
    pub(crate) fn of_tool_call() -> Headers {
        Headers { own: Vec::new(), calls_tool: true }
    }

    pub(super) fn calls_tool(&self) -> bool {
        self.calls_tool
    }

    /// Adds one. A later one of the same name replaces an earlier one.
    pub(crate) fn push(&mut self, name: HeaderName, value: HeaderValue) {
        if self.own.capacity() == 0 {
            // Version, method, name, session: room for what a request usually has.
            self.own.reserve_exact(4);
        }
        self.own.push((name, value));
    }

    /// Adds the span that a request belongs to.
    pub(crate) fn push_traceparent(&mut self, span: Option<TraceContext>) {
        if let Some(value) = span.and_then(|span| HeaderValue::from_str(span.traceparent().as_str()).ok()) {
            self.push(TRACEPARENT, value);
        }
    }

    /// Puts them into `map`, where they win.
    pub(super) fn apply(&self, map: &mut HeaderMap) {
        for (name, value) in &self.own {
            map.insert(name, value.clone());
        }
    }

    pub(super) fn len(&self) -> usize {
        self.own.len()
    }
}

/// The headers that the user wants on every request, checked.
pub(super) struct Configured(Vec<(HeaderName, HeaderValue)>);

impl Configured {
    /// Checks what the user configured. Headers that belong to the protocol are left out: ours are the true ones.
    pub(super) fn read(from: &BTreeMap<String, String>) -> Result<Configured, Error> {
        let wrong = |what: String| Error::new(Symbol::InvalidParams, what);
        let mut all = Vec::with_capacity(from.len());
        for (name, value) in from {
            let parsed = HeaderName::from_bytes(name.as_bytes())
                .map_err(|_| wrong(format!("{name:?} is not a valid header name; correct or remove it")))?;
            // The value may be a secret, so it is not shown.
            let mut value = HeaderValue::from_str(value).map_err(|_| {
                wrong(format!(
                    "the value of the header {name:?} has characters that a header cannot carry; remove them \
                     (a line break at its end, perhaps)"
                ))
            })?;
            if is_framing(&parsed) {
                return Err(wrong(format!("the header {name:?} cannot be configured; remove it")));
            }
            if is_ours(&parsed) {
                tracing::warn!(header = %parsed, "a configured header is ignored: the protocol sets it");
                continue;
            }
            value.set_sensitive(parsed == header::AUTHORIZATION);
            all.push((parsed, value));
        }
        Ok(Configured(all))
    }

    /// The configured credentials.
    pub(super) fn authorization(&self) -> Option<&HeaderValue> {
        self.0.iter().find(|(name, _)| name == header::AUTHORIZATION).map(|(_, value)| value)
    }

    pub(super) fn apply(&self, map: &mut HeaderMap) {
        for (name, value) in &self.0 {
            map.insert(name, value.clone());
        }
    }
}

/// What says where a message ends and what becomes of the connection. A wrong one would break every request.
fn is_framing(name: &HeaderName) -> bool {
    matches!(
        *name,
        header::CONNECTION
            | header::CONTENT_LENGTH
            | header::EXPECT
            | header::TE
            | header::TRAILER
            | header::TRANSFER_ENCODING
            | header::UPGRADE
    )
}

/// What the transport says about the request. Other `mcp-` headers may be somebody's own.
fn is_ours(name: &HeaderName) -> bool {
    matches!(*name, header::ACCEPT | header::ACCEPT_ENCODING | header::CONTENT_TYPE)
        || matches!(
            name.as_str(),
            headers::PROTOCOL_VERSION
                | headers::METHOD
                | headers::NAME
                | headers::SESSION_ID
                | headers::LAST_EVENT_ID
        )
        || name.as_str().starts_with(headers::PARAM_PREFIX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, value: &str) -> Result<Configured, Error> {
        Configured::read(&BTreeMap::from([(name.to_owned(), value.to_owned())]))
    }

    #[test]
    fn configured_headers_are_checked() {
        for (name, value, kept) in [
            ("Authorization", "Bearer x", Some(true)),
            ("X-Api-Key", "k", Some(true)),
            ("Mcp-Api-Key", "k", Some(true)),
            ("User-Agent", "me", Some(true)),
            ("Accept", "text/html", Some(false)),
            ("content-type", "text/plain", Some(false)),
            ("Mcp-Session-Id", "1", Some(false)),
            ("Mcp-Param-Region", "x", Some(false)),
            ("Content-Length", "5", None),
            ("Transfer-Encoding", "chunked", None),
            ("Bad Name", "x", None),
            ("", "x", None),
            ("X-Key", "secret\n", None),
        ] {
            match read(name, value) {
                Ok(got) => assert_eq!(Some(got.0.len() == 1), kept, "{name}"),
                Err(e) => {
                    assert_eq!((e.symbol(), kept), (Symbol::InvalidParams, None), "{name}");
                    assert!(e.message().contains(&format!("{name:?}")), "{}", e.message());
                    assert!(!e.message().contains("secret"), "{}", e.message());
                }
            }
        }
    }
}
