//! JSON-RPC 2.0 messages with raw payloads.
//!
//! A message is classified by which keys it has, never by trying shapes in turn. One pass over the text checks the
//! grammar and notes where the envelope's members, those of `params` and those of `params._meta` stand.

use bytes::Bytes;
use bytestring::ByteString;

use crate::error::{Error, Symbol};
use crate::id::Id;
use crate::json::{Fault, FaultKind, Json, Limits, Members, Object, Scanner, empty_members, scan_members};
use crate::method::Method;

/// What one frame holds: a message, or (2025-03-26 only) a batch of them.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)] // the large one is the common one, and it is moved once
pub enum Incoming {
    /// A single message.
    One(Message),
    /// A JSON-RPC batch. Each entry stands or falls alone.
    Batch(Vec<Result<Message, Malformed>>),
}

/// One JSON-RPC message.
#[derive(Debug, Clone)]
pub enum Message {
    /// Wants an answer.
    Request(Request),
    /// Wants none.
    Notification(Notification),
    /// A successful answer.
    Response(Response),
    /// An answer that says what went wrong.
    Failure(Failure),
}

/// A request.
#[derive(Debug, Clone)]
pub struct Request {
    /// Its id, to be echoed as it stands.
    pub id: Id,
    /// What is asked.
    pub method: Method,
    /// With which parameters.
    pub params: Params,
}

/// A notification.
#[derive(Debug, Clone)]
pub struct Notification {
    /// What is told.
    pub method: Method,
    /// With which parameters.
    pub params: Params,
}

/// A successful response.
#[derive(Debug, Clone)]
pub struct Response {
    /// The id of the request.
    pub id: Id,
    /// The result as it came.
    pub result: Json,
}

/// An error response.
#[derive(Debug, Clone)]
pub struct Failure {
    /// The id of the request, unless it could not be read.
    pub id: Option<Id>,
    /// The error object as it came.
    pub error: Json,
}

/// The parameters of a request or notification, and its `_meta`, split one level deep.
#[derive(Debug, Clone)]
pub struct Params {
    object: Object,
    meta: Option<Object>,
}

impl Params {
    /// No parameters.
    pub fn empty() -> Params {
        Params { object: Object::empty(), meta: None }
    }

    /// Splits a parameters object. Duplicate keys in it or in its `_meta` are refused.
    pub fn parse(json: &Json, limits: &Limits) -> Result<Params, Fault> {
        let object = Object::parse(json.text().clone(), limits)?;
        let meta = match object.json("_meta") {
            Some(meta) => Some(Object::parse(meta.into_text(), limits)?),
            None => None,
        };
        Ok(Params { object, meta })
    }

    /// The same parameters with one member, which is not `_meta`, set to something else. All other bytes stay as they are.
    ///
    /// ```
    /// use tidegate_protocol::{Json, Limits, Params};
    ///
    /// let params = Json::trusted(r#"{"name":"notes_add","_meta":{"k":1},"arguments":{"n":1.0}}"#);
    /// let params = Params::parse(&params, &Limits::default())?.with("name", &Json::string("add"));
    /// assert_eq!(params.as_str(), r#"{"name":"add","_meta":{"k":1},"arguments":{"n":1.0}}"#);
    /// assert_eq!(params.meta().unwrap().get("k"), Some("1"));
    /// # Ok::<(), tidegate_protocol::json::Fault>(())
    /// ```
    pub fn with(&self, name: &str, value: &Json) -> Params {
        debug_assert_ne!(name, "_meta");
        if let Some((object, meta)) = self.object.respelled(name, value, self.meta.as_ref()) {
            return Params { object, meta };
        }
        // What was well formed stays so.
        let limits = Limits { max_depth: usize::MAX, max_bytes: usize::MAX };
        Params::parse(&self.object.with(name, value), &limits).unwrap_or_else(|_| self.clone())
    }

    /// The `_meta` member.
    pub fn meta(&self) -> Option<&Object> {
        self.meta.as_ref()
    }

    /// The object itself.
    pub fn object(&self) -> &Object {
        &self.object
    }
}

impl std::ops::Deref for Params {
    type Target = Object;

    fn deref(&self) -> &Object {
        &self.object
    }
}

/// A message that could not be understood, with the answer it deserves.
#[derive(Debug, Clone)]
pub struct Malformed {
    /// What to answer.
    pub error: Error,
    /// The id, where it could be read.
    pub id: Option<Id>,
}

impl Malformed {
    fn new(symbol: Symbol, message: impl Into<std::borrow::Cow<'static, str>>, id: Option<Id>) -> Self {
        Malformed { error: Error::new(symbol, message), id }
    }

    fn from_fault(fault: &Fault, id: Option<Id>) -> Self {
        let symbol = match fault.kind {
            // Well-formed JSON that is ambiguous or not an object is a bad request rather than broken JSON.
            FaultKind::DuplicateKey(_) | FaultKind::Expected(_) => Symbol::InvalidRequest,
            FaultKind::TooLong(_) => Symbol::TooLarge,
            _ => Symbol::ParseError,
        };
        let sentence = match symbol {
            Symbol::ParseError => format!("Parse error: {fault}"),
            Symbol::TooLarge => format!("Message too large: {fault}"),
            _ => format!("Invalid request: {fault}"),
        };
        Malformed::new(symbol, sentence, id)
    }
}

impl Incoming {
    /// Reads one frame from bytes that may not even be UTF-8.
    pub fn parse_bytes(bytes: Bytes, limits: &Limits) -> Result<Incoming, Malformed> {
        match ByteString::try_from(bytes) {
            Ok(text) => Incoming::parse(text, limits),
            Err(e) => Err(Malformed::new(
                Symbol::ParseError,
                format!("Parse error: the message is not UTF-8 ({e})"),
                None,
            )),
        }
    }

    /// Reads one frame.
    pub fn parse(text: ByteString, limits: &Limits) -> Result<Incoming, Malformed> {
        let max = limits.max_bytes.min(u32::MAX as usize);
        if text.len() > max {
            return Err(Malformed::from_fault(&Fault { kind: FaultKind::TooLong(max), at: max }, None));
        }
        let mut scanner = Scanner::new(&text, limits);
        let incoming = match scanner.next_token() {
            None => {
                return Err(Malformed::new(Symbol::ParseError, "Parse error: the message is empty", None));
            }
            Some(b'[') => Incoming::Batch(batch(&text, &mut scanner)?),
            _ => Incoming::One(message(&text, &mut scanner, 0)?),
        };
        scanner.finish().map_err(|fault| Malformed::from_fault(&fault, None))?;
        Ok(incoming)
    }
}

fn batch(text: &ByteString, scanner: &mut Scanner<'_>) -> Result<Vec<Result<Message, Malformed>>, Malformed> {
    let broken = |fault: Box<Fault>| Malformed::from_fault(&fault, None);
    scanner.at += 1;
    let mut messages = Vec::new();
    if scanner.next_token() == Some(b']') {
        return Err(Malformed::new(Symbol::InvalidRequest, "Invalid request: the batch is empty", None));
    }
    loop {
        scanner.next_token();
        let start = scanner.at;
        scanner.value(1).map_err(broken)?;
        // Each entry is scanned again by itself, so that one bad entry does not spoil the others.
        let entry = text.slice_ref(&text[start..scanner.at]);
        let limits = Limits { max_depth: scanner.max_depth, max_bytes: usize::MAX };
        messages.push(message(&entry, &mut Scanner::new(&entry, &limits), 1));
        match scanner.next_token() {
            Some(b',') => scanner.at += 1,
            Some(b']') => {
                scanner.at += 1;
                return Ok(messages);
            }
            _ => return scanner.fault(FaultKind::Unexpected).map_err(broken),
        }
    }
}

/// Where the envelope's members stand.
#[derive(Default)]
struct Envelope {
    jsonrpc: Option<(usize, usize)>,
    id: Option<(usize, usize)>,
    method: Option<(usize, usize)>,
    params: Option<(usize, usize)>,
    result: Option<(usize, usize)>,
    error: Option<(usize, usize)>,
}

fn message(text: &ByteString, scanner: &mut Scanner<'_>, depth: usize) -> Result<Message, Malformed> {
    if scanner.next_token() != Some(b'{') {
        // Broken JSON and JSON that is not an object are different mistakes.
        let fault = scanner.value(depth).and_then(|()| scanner.fault(FaultKind::Expected("a JSON object")));
        return fault.map_err(|fault: Box<Fault>| Malformed::from_fault(&fault, None));
    }
    let mut envelope = Envelope::default();
    let mut params = empty_members();
    let mut meta: Option<(usize, usize, Members)> = None;
    let mut members = empty_members();
    let scanned = scan_members(scanner, depth, &mut members, |name, scanner| {
        let start = scanner.at;
        if name == "params" && scanner.peek() == Some(b'{') {
            scan_members(scanner, depth + 1, &mut params, |name, scanner| {
                if name == "_meta" && scanner.peek() == Some(b'{') {
                    let start = scanner.at;
                    let mut members = empty_members();
                    scan_members(scanner, depth + 2, &mut members, |_, s| s.value(depth + 3))?;
                    meta = Some((start, scanner.at, members));
                    Ok(())
                } else {
                    scanner.value(depth + 2)
                }
            })?;
        } else {
            scanner.value(depth + 1)?;
        }
        let span = Some((start, scanner.at));
        match name {
            "jsonrpc" => envelope.jsonrpc = span,
            "id" => envelope.id = span,
            "method" => envelope.method = span,
            "params" => envelope.params = span,
            "result" => envelope.result = span,
            "error" => envelope.error = span,
            _ => {}
        }
        Ok(())
    });
    let raw = |span: (usize, usize)| Json::from_span(text, span.0, span.1);
    let id = envelope.id.map(raw).map(|json| Id::from_json(json.clone()).ok_or(json));
    let readable = id.as_ref().and_then(|id| id.as_ref().ok()).cloned();
    scanned.map_err(|fault| Malformed::from_fault(&fault, readable.clone()))?;

    let bad = |what: &'static str| Malformed::new(Symbol::InvalidRequest, what, readable.clone());
    let slice = |(start, end): (usize, usize)| &text.as_bytes()[start..end];
    if envelope.jsonrpc.map(slice) != Some(b"\"2.0\"") {
        return Err(bad("Invalid request: \"jsonrpc\" must be \"2.0\""));
    }
    let id = match id {
        None => None,
        Some(Ok(id)) => Some(id),
        Some(Err(json)) => {
            let what =
                format!("Invalid request: \"id\" must be a string or an integer, not {}", kind_of(&json));
            return Err(Malformed::new(Symbol::InvalidRequest, what, None));
        }
    };
    let split = |params_members: Members| -> Result<Params, Malformed> {
        let Some((start, end)) = envelope.params else { return Ok(Params::empty()) };
        if text.as_bytes()[start] != b'{' {
            let what = "Invalid params: \"params\" must be an object";
            return Err(Malformed::new(Symbol::InvalidParams, what, readable.clone()));
        }
        let object = Object::from_parts(text, start, end, params_members);
        let meta = match meta {
            Some((start, end, members)) => Some(Object::from_parts(text, start, end, members)),
            None if object.has("_meta") => {
                let what = "Invalid params: \"_meta\" must be an object";
                return Err(Malformed::new(Symbol::InvalidParams, what, readable.clone()));
            }
            None => None,
        };
        Ok(Params { object, meta })
    };

    match (envelope.method, envelope.result, envelope.error) {
        (Some((start, end)), None, None) => {
            let Some(method) = method_named(&text[start..end]) else {
                return Err(bad("Invalid request: \"method\" must be a string"));
            };
            let params = split(params)?;
            Ok(match id {
                Some(id) => Message::Request(Request { id, method, params }),
                None => Message::Notification(Notification { method, params }),
            })
        }
        (None, Some(result), None) => match id {
            Some(id) => Ok(Message::Response(Response { id, result: raw(result) })),
            None => Err(bad("Invalid request: a response needs an \"id\"")),
        },
        (None, None, Some(error)) => Ok(Message::Failure(Failure { id, error: raw(error) })),
        (None, None, None) => Err(bad("Invalid request: \"method\" is missing")),
        _ => Err(bad("Invalid request: only one of \"method\", \"result\" and \"error\" may be present")),
    }
}

/// The method that a raw value names, if it is a string.
fn method_named(raw: &str) -> Option<Method> {
    let inner = raw.strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') {
        return Some(Method::from_name(&serde_json::from_str::<String>(raw).ok()?));
    }
    Some(Method::from_name(inner))
}

fn kind_of(json: &Json) -> &'static str {
    match json.as_str().as_bytes()[0] {
        b'n' => "null",
        b't' | b'f' => "a boolean",
        b'{' => "an object",
        b'[' => "an array",
        b'"' => "a string",
        _ => "a fraction",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_with_another_member_are_as_if_read_anew() {
        let limits = Limits::default();
        for text in [
            r#"{"name":"a","_meta":{"x":{"y":1},"z":"q"},"arguments":{"n":1.0}}"#,
            r#" {"_meta": { "x" : 1 } , "arguments":{},"name" : "a"}"#,
            r#"{"name":"a"}"#,
            r#"{"arguments":{"k":[1,2]}}"#,
        ] {
            let request = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{text}}}"#);
            let Ok(Incoming::One(Message::Request(request))) = Incoming::parse(request.into(), &limits)
            else {
                panic!("{text}");
            };
            let alone = Params::parse(&Json::trusted(text), &limits).unwrap();
            for params in [&request.params, &alone] {
                for value in ["\"\"", "\"longer than before\"", "\"b\""] {
                    let changed = params.with("name", &Json::trusted(value));
                    let anew = Params::parse(&Json::trusted(changed.as_str().to_owned()), &limits).unwrap();
                    assert_eq!(changed.get("name"), Some(value), "{text}");
                    for member in ["name", "_meta", "arguments"] {
                        assert_eq!(changed.get(member), anew.get(member), "{text}");
                    }
                    let meta = |params: &Params| {
                        params.meta().map(|meta| {
                            (
                                meta.as_str().to_owned(),
                                meta.get("x").map(str::to_owned),
                                meta.get("z").map(str::to_owned),
                            )
                        })
                    };
                    assert_eq!(meta(&changed), meta(&anew), "{text}");
                }
            }
        }
    }

    fn parse(text: &'static str) -> Result<Message, (i32, String, Option<String>)> {
        match Incoming::parse(text.into(), &Limits::default()) {
            Ok(Incoming::One(message)) => Ok(message),
            Ok(Incoming::Batch(_)) => panic!("a batch"),
            Err(m) => Err((
                m.error.code(crate::Revision::LATEST),
                m.error.message().to_owned(),
                m.id.map(|id| id.to_string()),
            )),
        }
    }

    #[test]
    fn classified_by_keys() {
        assert!(matches!(parse(r#"{"jsonrpc":"2.0","id":0,"method":"ping"}"#), Ok(Message::Request(_))));
        assert!(matches!(
            parse(r#"{"jsonrpc":"2.0","method":"notifications/x"}"#),
            Ok(Message::Notification(_))
        ));
        assert!(matches!(parse(r#"{"jsonrpc":"2.0","id":"a","result":{}}"#), Ok(Message::Response(_))));
        assert!(matches!(
            parse(r#"{"jsonrpc":"2.0","error":{"code":1,"message":""}}"#),
            Ok(Message::Failure(_))
        ));
    }

    #[test]
    fn params_and_meta_are_split_in_the_same_pass() {
        let text = r#"{"method":"tools/call","params":{"name":"x","_meta":{"progressToken":0},"arguments":{"a":1}},"id":18446744073709551616,"jsonrpc":"2.0"}"#;
        let Ok(Message::Request(r)) = parse(text) else { panic!() };
        assert_eq!(r.id.as_json(), "18446744073709551616");
        assert_eq!(r.params.get("arguments"), Some(r#"{"a":1}"#));
        assert_eq!(r.params.meta().unwrap().get("progressToken"), Some("0"));
        assert_eq!(r.params.as_str(), r#"{"name":"x","_meta":{"progressToken":0},"arguments":{"a":1}}"#);
    }

    #[test]
    fn bad_input_gets_the_right_code_and_keeps_the_id() {
        let cases: &[(&'static str, i32, Option<&str>)] = &[
            ("{", -32700, None),
            ("nope", -32700, None),
            ("42", -32600, None),
            (r#"{"jsonrpc":"2.0","id":1,"method":"a"} x"#, -32700, None),
            (r#"{"id":1,"method":"a"}"#, -32600, Some("1")),
            (r#"{"jsonrpc":"1.0","id":1,"method":"a"}"#, -32600, Some("1")),
            (r#"{"jsonrpc":"2.0","id":1}"#, -32600, Some("1")),
            (r#"{"jsonrpc":"2.0","id":1,"method":7}"#, -32600, Some("1")),
            (r#"{"jsonrpc":"2.0","id":null,"method":"a"}"#, -32600, None),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"a"}"#, -32600, None),
            (r#"{"jsonrpc":"2.0","id":true,"method":"a"}"#, -32600, None),
            (r#"{"jsonrpc":"2.0","id":1,"method":"a","params":[]}"#, -32602, Some("1")),
            (r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{"_meta":1}}"#, -32602, Some("1")),
            (r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{"name":1,"name":2}}"#, -32600, Some("1")),
            (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"a"}"#, -32600, Some("1")),
            (r#"{"jsonrpc":"2.0","id":1,"method":"a","result":{}}"#, -32600, Some("1")),
            (r#"{"jsonrpc":"2.0","result":{}}"#, -32600, None),
        ];
        for (text, code, id) in cases {
            let (got, message, got_id) = parse(text).expect_err(text);
            assert_eq!((got, got_id.as_deref()), (*code, *id), "{text}: {message}");
        }
    }

    #[test]
    fn batches() {
        let text = r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},7,{"jsonrpc":"2.0","method":"n"}]"#;
        let Ok(Incoming::Batch(batch)) = Incoming::parse(text.into(), &Limits::default()) else { panic!() };
        assert_eq!(batch.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, false, true]);
        assert!(Incoming::parse("[]".into(), &Limits::default()).is_err());
        assert!(Incoming::parse("[1".into(), &Limits::default()).is_err());
    }

    #[test]
    fn not_utf8() {
        let bytes = Bytes::from_static(b"{\"jsonrpc\":\"\xff\"}");
        let malformed = Incoming::parse_bytes(bytes, &Limits::default()).unwrap_err();
        assert_eq!(malformed.error.code(crate::Revision::LATEST), -32700);
    }
}
