//! What HTTP answers that are no MCP messages mean.

use http::StatusCode;
use tidegate_protocol::{Error, Incoming, Json, Limits, Message, Object, Symbol};
use url::Url;

use crate::http::{Answered, Body};

/// The JSON-RPC error object in a body, if there is one.
pub(crate) fn error_in(body: &Body, limits: &Limits) -> Option<Json> {
    let Body::Json(bytes) = body else { return None };
    match Incoming::parse_bytes(bytes.clone(), limits) {
        Ok(Incoming::One(Message::Failure(failure))) => Some(failure.error),
        // Some servers answer with `"id": null`, which is no legal id.
        _ => Object::parse(std::str::from_utf8(bytes).ok()?.to_owned(), limits)
            .ok()?
            .json("error")
            .filter(Json::is_object),
    }
}

/// The code of a JSON-RPC error object.
pub(crate) fn code_of(error: &Json) -> Option<i64> {
    Object::of(error)?.json("code")?.to().ok()
}

/// A status that says no, as an error: what it means, and whether the request was surely not executed.
pub(crate) fn error(url: &Url, answered: &Answered, limits: &Limits) -> Error {
    let status = answered.status;
    let host = url.host_str().unwrap_or("the server");
    let code = status.as_u16();
    // What a server answers in the words of the protocol is meant for callers; pages of whatever stands before it are not.
    let told = error_in(&answered.body, limits).map_or_else(String::new, |_| said(&answered.body, limits));
    let said = match said(&answered.body, limits) {
        empty if empty.is_empty() => challenged(&answered.www_authenticate),
        said => said,
    };
    let error = match status {
        StatusCode::UNAUTHORIZED => {
            let what = format!("{host} wants a login (HTTP 401){said}. Run: tidegate login {}", plain(url));
            Error::new(Symbol::Unauthorized, "The server wants a login (HTTP 401)")
                .with_detail(what)
                .unexecuted()
        }
        StatusCode::FORBIDDEN => {
            let what = format!("{host} does not allow this (HTTP 403){said}");
            Error::new(Symbol::Unauthorized, format!("The server does not allow this (HTTP 403){told}"))
                .with_detail(what)
                .unexecuted()
        }
        StatusCode::TOO_MANY_REQUESTS => {
            let what = format!("{host} is asked too often (HTTP 429){said}");
            Error::new(Symbol::RateLimited, format!("The server is asked too often (HTTP 429){told}"))
                .with_detail(what)
                .unexecuted()
        }
        StatusCode::PAYLOAD_TOO_LARGE => {
            let what = format!("{host} does not take messages this large (HTTP 413){said}");
            Error::new(
                Symbol::TooLarge,
                format!("The server does not take messages this large (HTTP 413){told}"),
            )
            .with_detail(what)
            .unexecuted()
        }
        status if status.is_server_error() => {
            let error = Error::new(Symbol::Unavailable, format!("The server failed (HTTP {code}){told}"))
                .with_detail(format!("{host} failed (HTTP {code}){said}"));
            // RFC 9110 section 15.6.4: a server that says when to come back has not even begun.
            let refused = status == StatusCode::SERVICE_UNAVAILABLE && answered.retry_after.is_some();
            if refused { error.unexecuted() } else { error }
        }
        status if status.is_redirection() => Error::new(
            Symbol::Unavailable,
            format!("The server points elsewhere (HTTP {code}), where requests are not sent"),
        )
        .with_detail(format!(
            "{host} points elsewhere (HTTP {code}), where requests are not sent; use the new address"
        ))
        .unexecuted(),
        _ => {
            let what = format!("{host} refused the request (HTTP {code}){said}");
            Error::new(Symbol::InvalidRequest, format!("The server refused the request (HTTP {code}){told}"))
                .with_detail(what)
                .as_protocol()
                .unexecuted()
        }
    };
    match answered.retry_after {
        Some(after) => error.with_retry_after(after),
        None => error,
    }
}

/// A body of a type that no MCP server answers with.
pub(crate) fn not_mcp(content_type: &str, excerpt: &str) -> Error {
    let kind = if content_type.is_empty() { "no content type" } else { content_type };
    let what = format!("This is no MCP endpoint: it answered with {kind}: {}", cut(excerpt));
    Error::new(Symbol::Unavailable, "The server answered with something that is not MCP").with_detail(what)
}

/// What a `WWW-Authenticate` header says went wrong (RFC 6750 section 3), for people.
fn challenged(headers: &[String]) -> String {
    let named = |name: &str| {
        headers.iter().find_map(|header| {
            let rest = header.split_once(&format!("{name}=\""))?.1;
            Some(cut(rest.split_once('"')?.0))
        })
    };
    let reason = named("error_description").or_else(|| named("error"));
    reason.map_or_else(String::new, |reason| format!(": {reason}"))
}

/// Whether a refusal is about the session: "No valid session ID provided", "Server not initialized".
pub(crate) fn speaks_of_a_session(body: &Body, limits: &Limits) -> bool {
    let said = said(body, limits).to_ascii_lowercase();
    said.contains("session") || said.contains("not initialized")
}

/// What the body adds to the status, for people.
fn said(body: &Body, limits: &Limits) -> String {
    match body {
        Body::Json(bytes) => match error_in(body, limits)
            .and_then(|e| Object::of(&e)?.str("message").map(|m| m.into_owned()))
        {
            Some(message) => format!(": {}", cut(&message)),
            None => format!(": {}", cut(&String::from_utf8_lossy(bytes))),
        },
        Body::Other { excerpt, .. } if !excerpt.trim().is_empty() => format!(": {}", cut(excerpt)),
        _ => String::new(),
    }
}

fn cut(text: &str) -> String {
    let one_line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut short: String = one_line.chars().filter(|c| !c.is_control()).take(200).collect();
    if short.len() < one_line.len() {
        short.push('…');
    }
    short
}

/// An address without what may be secret in it.
pub(crate) fn plain(url: &Url) -> String {
    let mut url = url.clone();
    _ = url.set_username("");
    _ = url.set_password(None);
    url.set_query(None);
    url.set_fragment(None);
    url.to_string()
}
