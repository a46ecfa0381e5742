//! The request headers that decide anything, found in one pass over all of them.

use std::net::SocketAddr;

use ::http::{HeaderMap, HeaderValue};
use tidegate_protocol::seal::digest;
use tidegate_protocol::{Revision, headers, meta};
use tidegate_service::trace::{Origin, TraceContext, Transport};

use super::client_address::ClientAddress;

/// What the headers of a request say, as far as anybody here asks.
#[derive(Default)]
pub(super) struct HttpHeaders<'a> {
    pub(super) version: Option<&'a HeaderValue>,
    pub(super) method: Option<&'a HeaderValue>,
    pub(super) name: Option<&'a HeaderValue>,
    pub(super) session: Option<&'a HeaderValue>,
    pub(super) last_event: Option<&'a HeaderValue>,
    /// The span of the HTTP request, which need not be that of the message.
    traceparent: Option<&'a HeaderValue>,
    /// Where it came from, if that is known.
    pub(super) client: Option<ClientAddress>,
    /// The body is said to be JSON.
    pub(super) json: bool,
    /// A mirrored header that is there twice.
    pub(super) twice: Option<&'static str>,
    /// There are `Mcp-Param-*` headers.
    pub(super) has_params: bool,
    /// Whether `Accept` names event streams; `None` without `Accept`.
    events: Option<bool>,
}

impl<'a> HttpHeaders<'a> {
    pub(super) fn read(map: &'a HeaderMap) -> HttpHeaders<'a> {
        let mut headers = HttpHeaders::default();
        for (name, value) in map {
            let name = name.as_str();
            match name {
                "content-type" => headers.json = is_json(value.as_bytes()),
                "accept" => {
                    headers.events = Some(headers.events == Some(true) || names_events(value.as_bytes()))
                }
                headers::PROTOCOL_VERSION => {
                    headers.mirrored(headers::PROTOCOL_VERSION, value, |h| &mut h.version)
                }
                headers::METHOD => headers.mirrored(headers::METHOD, value, |h| &mut h.method),
                headers::NAME => headers.mirrored(headers::NAME, value, |h| &mut h.name),
                headers::SESSION_ID => headers.session = Some(value),
                headers::LAST_EVENT_ID => headers.last_event = Some(value),
                meta::TRACEPARENT => headers.traceparent = Some(value),
                _ => headers.has_params |= name.starts_with(headers::PARAM_PREFIX),
            }
        }
        headers
    }

    fn mirrored(
        &mut self,
        name: &'static str,
        value: &'a HeaderValue,
        slot: impl for<'s> FnOnce(&'s mut HttpHeaders<'a>) -> &'s mut Option<&'a HeaderValue>,
    ) {
        if slot(self).replace(value).is_some() {
            self.twice = Some(name);
        }
    }

    /// Whether the client reads event streams. One that says nothing about it is taken to.
    pub(super) fn accepts_events(&self) -> bool {
        self.events.unwrap_or(true)
    }

    /// Where the messages of the request come from.
    pub(super) fn origin(&self) -> Origin {
        let address = self.client.and_then(|client| Some(SocketAddr::new(client.ip, client.port?)));
        let text = |header: &'a HeaderValue| header.to_str().ok();
        Origin {
            request: None,
            session: self.session.and_then(text).map(|id| {
                let [a, b, c, d, e, f, g, h, ..] = digest([id]);
                [a, b, c, d, e, f, g, h]
            }),
            transport: Some(Transport::Http(address)),
            carrier: self.carrier(),
            span: None,
        }
    }

    /// The span of the HTTP request.
    pub(super) fn carrier(&self) -> Option<TraceContext> {
        self.traceparent.and_then(|header| header.to_str().ok()).and_then(TraceContext::parse)
    }

    /// What the version header says.
    pub(super) fn version(&self) -> Version<'a> {
        match self.version {
            None => Version::Absent,
            Some(value) => {
                let text = value.to_str().unwrap_or("");
                text.trim().parse().map_or(Version::Unknown(text), Version::Known)
            }
        }
    }
}

/// What the version header says.
pub(super) enum Version<'a> {
    Absent,
    Known(Revision),
    Unknown(&'a str),
}

impl Version<'_> {
    pub(super) fn is_modern(&self) -> bool {
        matches!(self, Version::Known(revision) if revision.is_modern())
    }
}

/// Whether a media type is JSON, parameters aside.
fn is_json(value: &[u8]) -> bool {
    if value == b"application/json" {
        return true;
    }
    let kind = value.split(|b| *b == b';').next().unwrap_or_default().trim_ascii();
    kind.eq_ignore_ascii_case(b"application/json")
}

fn names_events(value: &[u8]) -> bool {
    // As the specification wants it, and nearly everybody writes it.
    if value == b"application/json, text/event-stream" {
        return true;
    }
    value.split(|b| *b == b',').any(|one| {
        let one = one.split(|b| *b == b';').next().unwrap_or_default().trim_ascii();
        one.eq_ignore_ascii_case(b"text/event-stream") || one == b"*/*" || one.eq_ignore_ascii_case(b"text/*")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in pairs {
            map.append(*name, HeaderValue::from_static(value));
        }
        map
    }

    #[test]
    fn media_types() {
        for (value, json) in [
            ("application/json", true),
            ("Application/JSON; charset=utf-8", true),
            ("text/plain", false),
            ("application/jsonx", false),
            ("", false),
        ] {
            let map = headers(&[("content-type", value)]);
            assert_eq!(HttpHeaders::read(&map).json, json, "{value}");
        }
        for (accept, events) in [
            (&["application/json, text/event-stream"][..], true),
            (&["application/json"], false),
            (&[], true),
            (&["*/*"], true),
            (&["application/json", "text/event-stream;q=0.5"], true),
            (&["text/*"], true),
            (&["text/event-stream", "application/json"], true),
        ] {
            let pairs: Vec<_> = accept.iter().map(|a| ("accept", *a)).collect();
            assert_eq!(HttpHeaders::read(&headers(&pairs)).accepts_events(), events, "{accept:?}");
        }
    }

    #[test]
    fn mirrored_headers_once() {
        let map = headers(&[("mcp-name", "a"), ("mcp-method", "m"), ("mcp-name", "a")]);
        assert_eq!(HttpHeaders::read(&map).twice, Some("mcp-name"));
        let map = headers(&[("mcp-name", "a"), ("mcp-param-x", "1")]);
        assert!(HttpHeaders::read(&map).twice.is_none() && HttpHeaders::read(&map).has_params);
    }
}
