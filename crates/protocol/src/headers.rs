//! The HTTP headers that mirror a modern request, and how text is carried in them.
//!
//! 2026-07-28 repeats the version, the method and the name of what is called in headers, so that load balancers
//! and gateways can route without reading the body. Whoever reads the body must then check that both say the same:
//! that is [`check`]. Headers that mirror tool arguments live in [`crate::param_headers`].

use std::borrow::Cow;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::error::{Error, Symbol};
use crate::message::Request;

/// The protocol version of the request (since 2025-06-18).
pub const PROTOCOL_VERSION: &str = "mcp-protocol-version";
/// The method of the request (2026-07-28).
pub const METHOD: &str = "mcp-method";
/// The name, URI or task id that the request is about (2026-07-28).
pub const NAME: &str = "mcp-name";
/// The legacy session (2025-03-26 to 2025-11-25).
pub const SESSION_ID: &str = "mcp-session-id";
/// The last event seen before a legacy stream broke (2025-03-26 to 2025-11-25).
pub const LAST_EVENT_ID: &str = "last-event-id";
/// What the names of headers that mirror tool arguments start with (2026-07-28).
pub const PARAM_PREFIX: &str = "mcp-param-";

/// Why a header value cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum HeaderFault {
    /// A byte outside visible ASCII, space and tab.
    InvalidCharacter,
    /// The Base64 form with text that is not Base64 or is padded wrongly.
    InvalidBase64,
    /// The Base64 form of bytes that are not UTF-8.
    NotUtf8,
}

impl fmt::Display for HeaderFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            HeaderFault::InvalidCharacter => "it has characters outside visible ASCII, space and tab",
            HeaderFault::InvalidBase64 => "its Base64 text is malformed",
            HeaderFault::NotUtf8 => "its Base64 text does not decode to UTF-8",
        })
    }
}

impl std::error::Error for HeaderFault {}

const OPEN: &str = "=?base64?";
const CLOSE: &str = "?=";

/// The text that a header value carries: as it stands, or out of the `=?base64?…?=` form.
///
/// White space around the value belongs to HTTP and is dropped.
///
/// ```
/// use tidegate_protocol::headers::decode_value;
///
/// assert_eq!(decode_value(b"us-west1").unwrap(), "us-west1");
/// assert_eq!(decode_value(b"=?base64?SGVsbG8sIOS4lueVjA==?=").unwrap(), "Hello, 世界");
/// assert!(decode_value(b"=?base64?SGVsbG8?=").is_err());
/// ```
// 2026-07-28 streamable-http, Value Encoding; the cases are those of SEP-2243.
pub fn decode_value(raw: &[u8]) -> Result<Cow<'_, str>, HeaderFault> {
    let text = plain(raw)?;
    match sentinel(text) {
        None => Ok(Cow::Borrowed(text)),
        Some(encoded) => {
            let bytes = STANDARD.decode(encoded).map_err(|_| HeaderFault::InvalidBase64)?;
            String::from_utf8(bytes).map(Cow::Owned).map_err(|_| HeaderFault::NotUtf8)
        }
    }
}

/// The header value that carries `text`: itself where that is safe, else the `=?base64?…?=` form.
///
/// ```
/// use tidegate_protocol::headers::encode_value;
///
/// assert_eq!(encode_value("us-west1"), "us-west1");
/// assert_eq!(encode_value(" padded "), "=?base64?IHBhZGRlZCA=?=");
/// ```
pub fn encode_value(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let padded = matches!(bytes, [b' ' | b'\t', ..] | [.., b' ' | b'\t']);
    // Text that looks like the encoded form would be decoded by the receiver.
    let looks_encoded = text.starts_with(OPEN) && text.ends_with(CLOSE);
    if bytes.iter().all(|&b| is_field_byte(b)) && !padded && !looks_encoded {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(format!("{OPEN}{}{CLOSE}", STANDARD.encode(text)))
    }
}

/// The mirrored headers of one request as they came, each at most once.
///
/// A transport that finds one of them twice should refuse the request: two parties could read two values.
#[derive(Debug, Clone, Copy, Default)]
pub struct RequestHeaders<'a> {
    /// `MCP-Protocol-Version`.
    pub version: Option<&'a [u8]>,
    /// `Mcp-Method`.
    pub method: Option<&'a [u8]>,
    /// `Mcp-Name`.
    pub name: Option<&'a [u8]>,
}

/// Checks that the headers of a modern request say what its body says.
///
/// A request whose body lacks the mirrored parameter passes if the header is absent too: what is wrong with it is
/// the parameter, and its method says so better.
// 2026-07-28 streamable-http, Server Validation: any failure is 400 with -32020.
pub fn check(headers: &RequestHeaders<'_>, request: &Request, version_in_meta: &str) -> Result<(), Error> {
    // The Base64 form is defined for names and parameters only: these two are compared as they stand.
    plainly("MCP-Protocol-Version", headers.version, version_in_meta)?;
    plainly("Mcp-Method", headers.method, request.method.as_str())?;
    let Some(param) = request.method.name_param() else { return Ok(()) };
    match (headers.name, request.params.str(param)) {
        (None, None) => Ok(()),
        (None, Some(_)) => Err(missing("Mcp-Name")),
        (Some(raw), Some(body)) if is_verbatim(raw, &body) => Ok(()),
        (Some(raw), body) => {
            let value = decode_value(raw).map_err(|fault| malformed("Mcp-Name", fault))?;
            match body {
                Some(body) if body == value => Ok(()),
                Some(body) => Err(mismatch("Mcp-Name", &value, &body)),
                None => Err(Error::new(
                    Symbol::HeaderMismatch,
                    format!(
                        "Header mismatch: Mcp-Name is {}, but the body has no params.{param}",
                        quoted(&value)
                    ),
                )),
            }
        }
    }
}

fn plainly(header: &str, raw: Option<&[u8]>, body: &str) -> Result<(), Error> {
    let raw = raw.ok_or_else(|| missing(header))?;
    if is_verbatim(raw, body) {
        return Ok(());
    }
    let value = plain(raw).map_err(|fault| malformed(header, fault))?;
    if value == body { Ok(()) } else { Err(mismatch(header, value, body)) }
}

/// Whether a header carries `body` as it stands, which is how nearly all of them come. The rest is looked at closely.
fn is_verbatim(raw: &[u8], body: &str) -> bool {
    raw == body.as_bytes() && raw.is_ascii() && !body.starts_with(OPEN)
}

/// A value without the white space around it, if it consists of what a field value may consist of.
fn plain(raw: &[u8]) -> Result<&str, HeaderFault> {
    let mut value = raw;
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = value {
        value = rest;
    }
    if !value.iter().all(|&b| is_field_byte(b)) {
        return Err(HeaderFault::InvalidCharacter);
    }
    std::str::from_utf8(value).map_err(|_| HeaderFault::InvalidCharacter)
}

/// RFC 9110 section 5.5 without `obs-text`, as 2026-07-28 streamable-http wants it.
fn is_field_byte(b: u8) -> bool {
    matches!(b, b'\t' | 0x20..=0x7e)
}

fn sentinel(text: &str) -> Option<&str> {
    text.strip_prefix(OPEN)?.strip_suffix(CLOSE)
}

pub(crate) fn missing(header: &str) -> Error {
    Error::new(Symbol::HeaderMismatch, format!("Header mismatch: the {header} header is missing"))
}

pub(crate) fn malformed(header: &str, fault: HeaderFault) -> Error {
    Error::new(
        Symbol::HeaderMismatch,
        format!("Header mismatch: the {header} header cannot be read: {fault}"),
    )
}

pub(crate) fn mismatch(header: &str, value: &str, body: &str) -> Error {
    let (value, body) = (quoted(value), quoted(body));
    Error::new(
        Symbol::HeaderMismatch,
        format!("Header mismatch: {header} header value {value} does not match body value {body}"),
    )
}

/// A value inside a sentence: quoted, on one line, and cut where it would drown the sentence.
pub(crate) fn quoted(value: &str) -> String {
    const MOST: usize = 100;
    let mut text = String::from("'");
    let mut chars = value.chars();
    text.extend(chars.by_ref().take(MOST).map(|c| if c.is_control() { '\u{fffd}' } else { c }));
    if chars.next().is_some() {
        text.push('…');
    }
    text.push('\'');
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Limits;
    use crate::message::{Incoming, Message};

    fn request(method: &str, params: &str) -> Request {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
        match Incoming::parse(text.into(), &Limits::default()) {
            Ok(Incoming::One(Message::Request(request))) => request,
            other => panic!("{other:?}"),
        }
    }

    /// Headers as `[version, method, name]`, `-` for absent.
    fn outcome(headers: [&str; 3], request: &Request) -> Result<(), String> {
        let [version, method, name] = headers.map(|h| (h != "-").then_some(h.as_bytes()));
        check(&RequestHeaders { version, method, name }, request, "2026-07-28").map_err(|e| {
            assert_eq!(e.symbol(), Symbol::HeaderMismatch);
            e.message().strip_prefix("Header mismatch: ").expect("the prefix").to_owned()
        })
    }

    #[test]
    fn headers_that_agree() {
        const V: &str = "2026-07-28";
        for (headers, method, params) in [
            ([V, "tools/list", "-"], "tools/list", "{}"),
            ([" 2026-07-28\t", "  tools/list ", "-"], "tools/list", "{}"),
            ([V, "tools/call", "echo"], "tools/call", r#"{"name":"echo"}"#),
            ([V, "tools/call", "  echo  "], "tools/call", r#"{"name":"echo"}"#),
            ([V, "tools/call", "echo"], "tools/call", r#"{"name":"\u0065cho"}"#),
            ([V, "tools/call", "=?base64?5LiW55WM?="], "tools/call", r#"{"name":"世界"}"#),
            ([V, "prompts/get", "p"], "prompts/get", r#"{"name":"p"}"#),
            ([V, "resources/read", "file:///a b"], "resources/read", r#"{"uri":"file:///a b"}"#),
            ([V, "tasks/get", "t-1"], "tasks/get", r#"{"taskId":"t-1"}"#),
            // The method answers these: their parameter is missing or of a wrong type.
            ([V, "tools/call", "-"], "tools/call", "{}"),
            ([V, "tools/call", "-"], "tools/call", r#"{"name":7}"#),
            // Nothing in the body corresponds to the name.
            ([V, "tools/list", "what"], "tools/list", "{}"),
            ([V, "vendor/x", "-"], "vendor/x", r#"{"name":"a"}"#),
        ] {
            assert_eq!(outcome(headers, &request(method, params)), Ok(()), "{headers:?} {method} {params}");
        }
    }

    #[test]
    fn headers_that_do_not() {
        const V: &str = "2026-07-28";
        let call = request("tools/call", r#"{"name":"bar"}"#);
        for (headers, sentence) in [
            (["-", "tools/call", "bar"], "the MCP-Protocol-Version header is missing"),
            ([V, "-", "bar"], "the Mcp-Method header is missing"),
            ([V, "tools/call", "-"], "the Mcp-Name header is missing"),
            (
                ["2025-11-25", "tools/call", "bar"],
                "MCP-Protocol-Version header value '2025-11-25' does not match body value '2026-07-28'",
            ),
            (
                [V, "TOOLS/CALL", "bar"],
                "Mcp-Method header value 'TOOLS/CALL' does not match body value 'tools/call'",
            ),
            ([V, "tools/call", "foo"], "Mcp-Name header value 'foo' does not match body value 'bar'"),
            ([V, "tools/call", "Bar"], "Mcp-Name header value 'Bar' does not match body value 'bar'"),
            ([V, "tools/call", ""], "Mcp-Name header value '' does not match body value 'bar'"),
            (
                [V, "tools/call", "=?base64?YmFy!?="],
                "the Mcp-Name header cannot be read: its Base64 text is malformed",
            ),
            (
                [V, "tools/call", "bär"],
                "the Mcp-Name header cannot be read: it has characters outside visible ASCII, space and tab",
            ),
            // The Base64 form is not for methods.
            (
                [V, "=?base64?dG9vbHMvY2FsbA==?=", "bar"],
                "Mcp-Method header value '=?base64?dG9vbHMvY2FsbA==?=' does not match body value 'tools/call'",
            ),
        ] {
            assert_eq!(outcome(headers, &call), Err(sentence.to_owned()), "{headers:?}");
        }
        assert_eq!(
            outcome([V, "tools/call", "foo"], &request("tools/call", "{}")),
            Err("Mcp-Name is 'foo', but the body has no params.name".to_owned())
        );
    }

    #[test]
    fn values_decode() {
        use HeaderFault::*;
        for (raw, want) in [
            ("=?base64?SGVsbG8=?=", Ok("Hello")),
            ("=?base64?SGVsbG8?=", Err(InvalidBase64)),
            ("=?base64?SGVs!!!bG8=?=", Err(InvalidBase64)),
            ("=?base64?/w==?=", Err(NotUtf8)),
            ("=?base64??=", Ok("")),
            ("=?base64?=", Ok("=?base64?=")),
            ("SGVsbG8=", Ok("SGVsbG8=")),
            ("=?base64?SGVsbG8=", Ok("=?base64?SGVsbG8=")),
            ("=?BASE64?SGVsbG8=?=", Ok("=?BASE64?SGVsbG8=?=")),
            ("", Ok("")),
            ("a\tb c", Ok("a\tb c")),
            (" \t a \t", Ok("a")),
            ("a\nb", Err(InvalidCharacter)),
            ("a\u{7f}b", Err(InvalidCharacter)),
            ("é", Err(InvalidCharacter)),
        ] {
            assert_eq!(decode_value(raw.as_bytes()).as_deref().map_err(|e| *e), want, "{raw:?}");
        }
    }

    #[test]
    fn values_encode() {
        for (text, want) in [
            ("us-west1", "us-west1"),
            ("", ""),
            ("a b\tc", "a b\tc"),
            ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("\tindented", "=?base64?CWluZGVudGVk?="),
            ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
            ("=?base64?=", "=?base64?PT9iYXNlNjQ/PQ==?="),
        ] {
            assert_eq!(encode_value(text), want, "{text:?}");
            assert_eq!(decode_value(want.as_bytes()).unwrap(), text);
        }
    }
}
