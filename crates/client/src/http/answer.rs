//! [`Answered`]: what came back, sorted by what it is.

use std::time::{Duration, SystemTime};

use ::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header, response};
use bytes::{Bytes, BytesMut};
use tidegate_protocol::{Error, headers};
use tidegate_service::budget::{Budget, FREE, Purpose};
use tidegate_service::wire_trace;

use super::HttpSettings;
use super::connection::{DISCARD_TIME, Flow};
use super::events::Events;
use super::failure;

const SESSION_ID: HeaderName = HeaderName::from_static(headers::SESSION_ID);
/// Nobody is made to wait longer than this.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(60 * 60);
/// How much of an unexpected body is shown.
const EXCERPT_CHARS: usize = 300;

/// The answer to a request, whatever its status.
pub(crate) struct Answered {
    /// The status.
    pub(crate) status: StatusCode,
    /// `Mcp-Session-Id`.
    pub(crate) session: Option<HeaderValue>,
    /// `Retry-After`, at most an hour.
    pub(crate) retry_after: Option<Duration>,
    /// The `WWW-Authenticate` headers of a refusal.
    pub(crate) www_authenticate: Vec<String>,
    /// The body.
    pub(crate) body: Body,
}

/// The body of an answer.
pub(crate) enum Body {
    /// None, or one that nobody needs.
    Empty,
    /// The whole of an `application/json`.
    Json(Bytes),
    /// A `text/event-stream`.
    Events(Box<Events>),
    /// Something else, for the error message.
    Other {
        /// What the server says that it is.
        content_type: String,
        /// How it starts, without control characters.
        excerpt: String,
    },
}

/// Reads the answer: JSON to its end, an event stream not at all.
pub(super) async fn read(
    mut head: response::Parts,
    flow: Flow,
    settings: &HttpSettings,
) -> Result<Answered, Error> {
    Ok(Answered {
        status: head.status,
        session: head.headers.remove(SESSION_ID),
        retry_after: retry_after(&head.headers, SystemTime::now()),
        www_authenticate: if head.status.is_success() { Vec::new() } else { www_authenticate(&head.headers) },
        body: traced(&settings.name, head.status, body(&head, flow, settings).await?),
    })
}

/// Says in the log what came. The events of a stream are told one by one, as they come.
fn traced(server: &str, status: StatusCode, body: Body) -> Body {
    let status = status.as_u16();
    match &body {
        Body::Json(json) if status == 200 => wire_trace::received_from(server, json),
        Body::Json(json) => {
            wire_trace::answered(server, status, "");
            wire_trace::received_from(server, json);
        }
        Body::Empty => wire_trace::answered(server, status, ""),
        Body::Events(_) => wire_trace::answered(server, status, ", an event stream"),
        Body::Other { .. } => wire_trace::answered(server, status, ", not JSON"),
    }
    body
}

async fn body(head: &response::Parts, mut flow: Flow, settings: &HttpSettings) -> Result<Body, Error> {
    let limit = settings.max_body;
    if matches!(head.status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
        flow.discard().await;
        return Ok(Body::Empty);
    }
    let kind = head.headers.get(header::CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
    // We did not ask for any encoding, but some servers know better. Nothing to be done with it.
    let encoded = head
        .headers
        .get(header::CONTENT_ENCODING)
        .filter(|v| !v.as_bytes().eq_ignore_ascii_case(b"identity"));
    if encoded.is_none() && is(kind, b"text/event-stream") && !flow.is_ended() {
        return Ok(Body::Events(Box::new(Events::new(flow, limit, settings.name.clone()))));
    }
    if encoded.is_none() && is(kind, b"application/json") {
        let whole = whole(&mut flow, limit).await?;
        return Ok(if whole.is_empty() { Body::Empty } else { Body::Json(whole) });
    }
    let start = start(&mut flow).await;
    if start.is_empty() {
        return Ok(Body::Empty);
    }
    let mut content_type = tidy(kind, EXCERPT_CHARS);
    if let Some(encoding) = encoded {
        content_type = format!("{content_type}, encoded as {}", tidy(encoding.as_bytes(), EXCERPT_CHARS));
        return Ok(Body::Other { content_type, excerpt: String::new() });
    }
    Ok(Body::Other { content_type, excerpt: tidy(&start, EXCERPT_CHARS) })
}

/// The whole body, at most `limit` bytes. Most arrive as one piece, which is taken as it is.
async fn whole(flow: &mut Flow, limit: usize) -> Result<Bytes, Error> {
    let announced = flow.announced();
    if announced > limit as u64 {
        return Err(failure::too_large(flow.host(), limit));
    }
    let mut hold = Budget::of_process().hold_anyway(0);
    let mut count = |bytes: usize| if bytes > FREE { hold.grow_to(bytes, Purpose::Answer) } else { Ok(()) };
    count(announced as usize)?;
    let mut first = Bytes::new();
    let mut all = BytesMut::new();
    while let Some(data) = flow.data().await {
        let data = data.map_err(|e| failure::broken(flow.host(), &e))?;
        if first.len() + all.len() + data.len() > limit {
            return Err(failure::too_large(flow.host(), limit));
        }
        count(first.len() + all.len() + data.len())?;
        if first.is_empty() && all.is_empty() {
            first = data;
            continue;
        }
        if all.is_empty() {
            all.reserve((announced as usize).max(first.len() + data.len()));
            all.extend_from_slice(&std::mem::take(&mut first));
        }
        all.extend_from_slice(&data);
    }
    let whole = if all.is_empty() { first } else { all.freeze() };
    Ok(if whole.len() > FREE { hold.keep(whole) } else { whole })
}

/// How the body starts: enough for an excerpt, and without waiting long for it.
async fn start(flow: &mut Flow) -> BytesMut {
    let mut start = BytesMut::new();
    let read = async {
        // UTF-8 has up to four bytes per character.
        while start.len() < EXCERPT_CHARS * 4
            && let Some(Ok(data)) = flow.data().await
        {
            start.extend_from_slice(&data);
        }
    };
    let _ = tokio::time::timeout(DISCARD_TIME, read).await;
    start
}

/// Whether a media type is `name`, parameters aside.
fn is(value: &[u8], name: &[u8]) -> bool {
    let kind = value.split(|b| *b == b';').next().unwrap_or_default();
    kind.trim_ascii().eq_ignore_ascii_case(name)
}

/// The first characters of a foreign text, fit for an error message.
fn tidy(bytes: &[u8], chars: usize) -> String {
    let bytes = &bytes[..bytes.len().min(chars * 4)];
    let clean = |c: char| if c.is_control() { ' ' } else { c };
    String::from_utf8_lossy(bytes).trim().chars().take(chars).map(clean).collect()
}

/// The challenges of a refusal.
pub(super) fn www_authenticate(headers: &HeaderMap) -> Vec<String> {
    let text = |v: &HeaderValue| String::from_utf8_lossy(v.as_bytes()).into_owned();
    headers.get_all(header::WWW_AUTHENTICATE).iter().map(text).collect()
}

/// Whether better credentials may help: 401, or 403 that asks for more scope.
pub(super) fn is_challenge(head: &response::Parts) -> bool {
    match head.status {
        StatusCode::UNAUTHORIZED => true,
        // 2025-11-25 authorization, Scope Challenge Handling.
        StatusCode::FORBIDDEN => {
            let wants_scope = |v: &HeaderValue| {
                let text = v.as_bytes().to_ascii_lowercase();
                memchr::memmem::find(&text, b"error=\"insufficient_scope\"").is_some()
                    || memchr::memmem::find(&text, b"error=insufficient_scope").is_some()
            };
            head.headers.get_all(header::WWW_AUTHENTICATE).iter().any(wants_scope)
        }
        _ => false,
    }
}

/// `Retry-After`, within reason.
fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    tidegate_web::retry_after(headers, now).map(|wait| wait.min(MAX_RETRY_AFTER))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_in_all_forms() {
        for (value, seconds) in [
            ("0", Some(0)),
            ("7", Some(7)),
            (" 120 ", Some(120)),
            ("86400", Some(3600)),
            ("99999999999999999999999", Some(3600)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(0)),
            ("Sat, 06 Nov 2094 08:49:37 GMT", Some(3600)),
            ("-1", None),
            ("soon", None),
            ("", None),
        ] {
            let headers = HeaderMap::from_iter([(header::RETRY_AFTER, HeaderValue::from_static(value))]);
            let got = retry_after(&headers, SystemTime::now());
            assert_eq!(got, seconds.map(Duration::from_secs), "{value:?}");
        }
    }

    #[test]
    fn media_types() {
        for (value, json) in [
            ("application/json", true),
            (" Application/JSON ; charset=utf-8", true),
            ("application/jsonx", false),
            ("", false),
        ] {
            assert_eq!(is(value.as_bytes(), b"application/json"), json, "{value:?}");
        }
    }

    #[test]
    fn challenges() {
        for (status, header, expected) in [
            (401, "", true),
            (403, "Bearer error=\"insufficient_scope\", scope=\"a b\"", true),
            (403, "bearer Error=insufficient_scope", true),
            (403, "Bearer error=\"invalid_token\", error_description=\"insufficient_scope\"", false),
            (403, "", false),
            (400, "Bearer error=\"insufficient_scope\"", false),
            (200, "", false),
        ] {
            let answer = ::http::Response::builder().status(status).header("www-authenticate", header);
            let (head, ()) = answer.body(()).unwrap().into_parts();
            assert_eq!(is_challenge(&head), expected, "{status} {header}");
        }
    }

    #[test]
    fn foreign_text_is_tidied() {
        assert_eq!(tidy(b" <html>\r\n\x1b[31mno\xff ", 300), "<html>   [31mno\u{fffd}");
        assert_eq!(tidy("ü".repeat(400).as_bytes(), 300), "ü".repeat(300));
    }
}
