//! JSON-RPC 2.0 messages with raw payloads.
//!
//! A message is classified by which keys it has, never by trying shapes in turn. One pass over the text checks the
//! grammar and notes where the envelope's members, those of `params` and those of `params._meta` stand.

use bytes::Bytes;
use bytestring::ByteString;

use crate::envelope::{Envelope, Field, VERSION};
use crate::error::{Error, Symbol};
use crate::id::{Id, LONGEST_ID};
use crate::json::{Fault, FaultKind, Json, Limits, Scanner};
use crate::method::Method;
use crate::params::Params;

/// Most messages that one batch may have.
pub const MAX_BATCH: usize = 100;

/// What one frame holds: a message, or (2025-03-26 only) a batch of them.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)] // the large one is the common one, and it is moved once
pub enum Incoming {
    /// A single message.
    One(Message),
    /// A JSON-RPC batch of at most [`MAX_BATCH`] messages. Each entry stands or falls alone.
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
        if messages.len() == MAX_BATCH {
            // Whatever else it has is not even looked at.
            let what = format!("Invalid request: a batch may have at most {MAX_BATCH} messages");
            return Err(Malformed::new(Symbol::InvalidRequest, what, None));
        }
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

fn message(text: &ByteString, scanner: &mut Scanner<'_>, depth: usize) -> Result<Message, Malformed> {
    if scanner.next_token() != Some(b'{') {
        // Broken JSON and JSON that is not an object are different mistakes.
        let fault = scanner.value(depth).and_then(|()| scanner.fault(FaultKind::Expected("a JSON object")));
        return fault.map_err(|fault: Box<Fault>| Malformed::from_fault(&fault, None));
    }
    let mut envelope = Envelope::new();
    // A copy of its own can live in registers.
    let mut local = *scanner;
    let scanned = envelope.scan(&mut local, depth);
    scanner.at = local.at;
    let id = envelope.id(text);
    if let Err(fault) = scanned {
        return Err(Malformed::from_fault(&fault, id));
    }
    let invalid = |what: &'static str, id| Err(Malformed::new(Symbol::InvalidRequest, what, id));
    if envelope.get(Field::Jsonrpc).map(|span| span.of(text).as_bytes()) != Some(VERSION) {
        return invalid("Invalid request: \"jsonrpc\" must be \"2.0\"", id);
    }
    if let (None, Some(span)) = (&id, envelope.get(Field::Id)) {
        let what = match span.of(text) {
            long if envelope.id_is_good() => {
                let length = long.len();
                format!(
                    "Invalid request: \"id\" may have at most {LONGEST_ID} bytes, and this one has {length}"
                )
            }
            raw => {
                let kind = kind_of(raw);
                format!("Invalid request: \"id\" must be a string or an integer, not {kind}")
            }
        };
        return Err(Malformed::new(Symbol::InvalidRequest, what, None));
    }
    match (envelope.get(Field::Method), envelope.get(Field::Result), envelope.get(Field::Error)) {
        (Some(span), None, None) => {
            let Some(method) = envelope.method(text, span) else {
                return invalid("Invalid request: \"method\" must be a string", id);
            };
            let params = match envelope.split(text) {
                Ok(params) => params,
                Err(what) => return Err(Malformed::new(Symbol::InvalidParams, what, id)),
            };
            Ok(match id {
                Some(id) => Message::Request(Request { id, method, params }),
                None => Message::Notification(Notification { method, params }),
            })
        }
        (None, Some(result), None) => match id {
            Some(id) => Ok(Message::Response(Response { id, result: result.json(text) })),
            None => invalid("Invalid request: a response needs an \"id\"", None),
        },
        (None, None, Some(error)) => Ok(Message::Failure(Failure { id, error: error.json(text) })),
        (None, None, None) => invalid("Invalid request: \"method\" is missing", id),
        _ => invalid("Invalid request: only one of \"method\", \"result\" and \"error\" may be present", id),
    }
}

fn kind_of(raw: &str) -> &'static str {
    match raw.as_bytes()[0] {
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

    fn parse(text: &'static str) -> Result<Message, (i32, String, Option<String>)> {
        match Incoming::parse(text.into(), &Limits::default()) {
            Ok(Incoming::One(message)) => Ok(message),
            Ok(Incoming::Batch(_)) => panic!("a batch"),
            Err(m) => Err((
                m.error.code(crate::Revision::LATEST_MODERN),
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
    fn ids_are_bounded() {
        let with_id = |id: String| {
            let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
            Incoming::parse(text.into(), &Limits::default())
        };
        assert!(with_id(format!("\"{}\"", "a".repeat(LONGEST_ID - 2))).is_ok());
        for id in [format!("\"{}\"", "a".repeat(LONGEST_ID - 1)), "7".repeat(LONGEST_ID + 1)] {
            let refused = with_id(id).unwrap_err();
            assert_eq!((refused.error.symbol(), refused.id), (Symbol::InvalidRequest, None));
            assert_eq!(
                refused.error.message(),
                "Invalid request: \"id\" may have at most 1024 bytes, and this one has 1025"
            );
        }
    }

    #[test]
    fn batches_are_bounded() {
        let of = |n: usize, end: &str| {
            let entries = vec![r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#; n].join(",");
            Incoming::parse(format!("[{entries}{end}").into(), &Limits::default())
        };
        assert!(matches!(of(MAX_BATCH, "]"), Ok(Incoming::Batch(batch)) if batch.len() == MAX_BATCH));
        // What comes behind the hundredth is not read, so whether it is well-formed does not matter.
        for end in ["]", "nonsense"] {
            let refused = of(MAX_BATCH + 1, end).unwrap_err().error;
            assert_eq!(refused.symbol(), Symbol::InvalidRequest);
            assert_eq!(refused.message(), "Invalid request: a batch may have at most 100 messages");
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
        assert_eq!(malformed.error.code(crate::Revision::LATEST_MODERN), -32700);
    }
}
