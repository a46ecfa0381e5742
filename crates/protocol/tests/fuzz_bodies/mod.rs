//! What the fuzz targets do with their input, as plain functions: `/fuzz` runs them without end, and `fuzz_smoke.rs`
//! runs them for a moment with every test run.
//!
//! Each body takes any bytes, must not panic, and asserts what must hold for whatever came in.

use bytes::Bytes;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tidegate_protocol::headers::{RequestHeaders, check, decode_value, encode_value};
use tidegate_protocol::param_headers::HeaderParams;
use tidegate_protocol::sse::{SseDecoder, SseEvent, SseFault, write_event, write_named_event};
use tidegate_protocol::{Incoming, Json, Limits, Malformed, Message, Revision, Symbol};

const LIMITS: Limits = Limits { max_depth: 32, max_bytes: 64 * 1024 };

/// One frame, as it comes from a socket or a pipe.
pub(crate) fn frame(data: &[u8]) {
    match Incoming::parse_bytes(Bytes::copy_from_slice(data), &LIMITS) {
        Ok(Incoming::One(message)) => agrees(&message, data),
        Ok(Incoming::Batch(messages)) => {
            assert!(!messages.is_empty());
            // Raw, because a `Value` rounds long numbers.
            let entries: Vec<Box<RawValue>> = serde_json::from_slice(data).expect("a batch is JSON");
            assert_eq!(entries.len(), messages.len());
            for (message, entry) in messages.iter().zip(entries) {
                match message {
                    Ok(message) => agrees(message, entry.get().as_bytes()),
                    Err(malformed) => refused(malformed, None),
                }
            }
        }
        Err(malformed) => refused(&malformed, Some(data)),
    }
}

/// An accepted message means what serde_json reads in it, and does so again when it is written anew.
fn agrees(message: &Message, data: &[u8]) {
    let rebuilt = written(message);
    let again = match Incoming::parse(rebuilt.clone().into(), &LIMITS) {
        Ok(Incoming::One(again)) => again,
        other => panic!("{rebuilt}: {other:?}"),
    };
    assert_eq!(written(&again), rebuilt);
    // Lone surrogates and numbers beyond a double are JSON, but not a `Value`.
    let Ok(Value::Object(theirs)) = serde_json::from_slice::<Value>(data) else { return };
    let Ok(Value::Object(ours)) = serde_json::from_str::<Value>(&rebuilt) else { panic!("{rebuilt}") };
    for (name, value) in &ours {
        assert_eq!(theirs.get(name), Some(value), "{name} of {rebuilt}");
    }
}

/// A message as text again. What it does not say is left out, and members that no message has are lost.
fn written(message: &Message) -> String {
    let (id, rest) = match message {
        Message::Request(r) => {
            (Some(&r.id), format!(r#""method":{},"params":{}"#, name(&r.method), r.params.as_str()))
        }
        Message::Notification(n) => {
            (None, format!(r#""method":{},"params":{}"#, name(&n.method), n.params.as_str()))
        }
        Message::Response(r) => (Some(&r.id), format!(r#""result":{}"#, r.result)),
        Message::Failure(f) => (f.id.as_ref(), format!(r#""error":{}"#, f.error)),
    };
    let rest = rest.strip_suffix(r#","params":{}"#).unwrap_or(&rest);
    match id {
        Some(id) => format!(r#"{{"jsonrpc":"2.0","id":{id},{rest}}}"#),
        None => format!(r#"{{"jsonrpc":"2.0",{rest}}}"#),
    }
}

fn name(method: &tidegate_protocol::Method) -> Json {
    Json::string(method.as_str())
}

/// A refused message has a code of the protocol, a sentence, and a reason that serde_json does not contradict.
fn refused(malformed: &Malformed, data: Option<&[u8]>) {
    let code = malformed.error.code(Revision::LATEST_MODERN);
    assert!(matches!(code, -32700 | -32600 | -32602), "{code}");
    assert!(!malformed.error.message().is_empty());
    let (Some(data), Symbol::ParseError) = (data, malformed.error.symbol()) else { return };
    let too_deep = malformed.error.message().contains("nested deeper");
    // What serde_json ignores it does not check for UTF-8.
    let theirs = std::str::from_utf8(data).is_ok_and(|text| serde_json::from_str::<IgnoredAny>(text).is_ok());
    assert!(too_deep || !theirs, "{:?}", malformed.error);
}

/// Envelopes made of parts that the bytes choose: nearly every input is JSON, and most are nearly messages.
pub(crate) fn envelope(data: &[u8]) {
    const NAMES: [&str; 8] = ["jsonrpc", "id", "method", "params", "result", "error", "extra", r"\u0069d"];
    const VALUES: [&str; 14] = [
        r#""2.0""#,
        r#""1.0""#,
        "0",
        "-1",
        "1.5",
        "18446744073709551616",
        r#""a""#,
        "null",
        "true",
        "{}",
        "[]",
        r#"{"_meta":{"progressToken":0},"name":"x"}"#,
        r#"{"_meta":1}"#,
        r#"{"a":1,"a":2}"#,
    ];
    let mut bytes = data.iter().copied();
    let mut members = Vec::new();
    // The version first, mostly right, so that the rest is reached.
    if bytes.next().is_some_and(|b| b > 16) {
        members.push(("jsonrpc", r#""2.0""#));
    }
    while let (Some(name), Some(value), true) = (bytes.next(), bytes.next(), members.len() < 8) {
        members.push((NAMES[usize::from(name) % NAMES.len()], VALUES[usize::from(value) % VALUES.len()]));
    }
    let text: Vec<_> = members.iter().map(|(name, value)| format!("\"{name}\": {value}")).collect();
    let text = format!("{{{}}}", text.join(" ,\n"));
    let expected = expected(&members);
    match Incoming::parse(text.clone().into(), &LIMITS) {
        Ok(Incoming::One(message)) => {
            let kind = match &message {
                Message::Request(_) => "request",
                Message::Notification(_) => "notification",
                Message::Response(_) => "response",
                Message::Failure(_) => "failure",
            };
            assert_eq!(kind, expected, "{text}");
            agrees(&message, text.as_bytes());
        }
        Ok(Incoming::Batch(_)) => panic!("{text}"),
        Err(malformed) => {
            assert_eq!("refused", expected, "{text}: {:?}", malformed.error);
            refused(&malformed, Some(text.as_bytes()));
        }
    }
}

/// What an envelope is, said a second time and in another way.
fn expected(members: &[(&str, &str)]) -> &'static str {
    let mut all = Map::new();
    for (name, value) in members {
        let name = if *name == r"\u0069d" { "id" } else { name };
        // Duplicates in what is read are refused, and in what is passed on they are not.
        if *name == *"params" && value.contains(r#""a":2"#) {
            return "refused";
        }
        let value = serde_json::from_str(value).expect("a value of the list");
        if all.insert(name.to_owned(), value).is_some() {
            return "refused";
        }
    }
    // `Value` turns integers beyond 64 bits into fractions: the table has one such integer and one fraction.
    let good_id =
        all.get("id").map(|id| id.is_string() || id.is_i64() || id.as_f64().is_some_and(|n| n > 1e19));
    let params =
        all.get("params").is_none_or(|p| p.is_object() && p.get("_meta").is_none_or(Value::is_object));
    let has = |name: &str| all.contains_key(name);
    if all.get("jsonrpc") != Some(&Value::from("2.0")) || good_id == Some(false) {
        return "refused";
    }
    match (has("method"), has("result"), has("error"), good_id) {
        (true, false, false, id) if all["method"].is_string() && params => {
            if id.is_some() {
                "request"
            } else {
                "notification"
            }
        }
        (false, true, false, Some(true)) => "response",
        (false, false, true, _) => "failure",
        _ => "refused",
    }
}

/// An event stream: the first byte says in which pieces the rest arrives.
pub(crate) fn sse(data: &[u8]) {
    let Some((&size, stream)) = data.split_first() else { return };
    let pieces = events(stream, usize::from(size % 17) + 1);
    let whole = events(stream, stream.len().max(1));
    assert_eq!(pieces, whole, "the pieces make a difference");
    for event in whole.into_iter().flatten() {
        let mut out = Vec::new();
        match &event.event {
            Some(name) => write_named_event(&mut out, name, &event.data),
            None => write_event(&mut out, event.id.as_deref(), &event.data),
        }
        let want = SseEvent { id: event.id.clone().filter(|_| event.event.is_none()), ..event };
        // What replaced broken characters may be longer than they were.
        let got = events_within(&out, 1, usize::MAX);
        assert_eq!(got, [Ok(want)]);
    }
}

fn events(stream: &[u8], size: usize) -> Vec<Result<SseEvent, SseFault>> {
    events_within(stream, size, 256)
}

fn events_within(stream: &[u8], size: usize, limit: usize) -> Vec<Result<SseEvent, SseFault>> {
    let mut decoder = SseDecoder::new(limit);
    let mut events = Vec::new();
    for piece in stream.chunks(size) {
        decoder.push(piece);
        events.extend(std::iter::from_fn(|| decoder.next_event()));
    }
    events
}

/// A header value, and the two checks that read such values.
pub(crate) fn header(data: &[u8]) {
    let Ok(text) = decode_value(data) else { return };
    assert_eq!(decode_value(encode_value(&text).as_bytes()).as_deref(), Ok(&*text));

    let body =
        serde_json::json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": text}});
    let Ok(Incoming::One(Message::Request(request))) = Incoming::parse(body.to_string().into(), &LIMITS)
    else {
        panic!("{body}")
    };
    let headers = |name| RequestHeaders { version: Some(b"2026-07-28"), method: Some(b"tools/call"), name };
    assert!(check(&headers(Some(data)), &request, "2026-07-28").is_ok(), "{text:?}");
    assert!(check(&headers(None), &request, "2026-07-28").is_err());
    assert!(check(&headers(Some(b"another")), &request, "2026-07-28").is_err() || text == "another");

    let schema = serde_json::json!({"properties": {"p": {"type": "string", "x-mcp-header": "P"}}});
    let params = HeaderParams::from_schema(&schema).expect("a good schema");
    let arguments = serde_json::json!({"p": text});
    assert!(params.check(Some(&arguments), |_| Some(data)).is_ok(), "{text:?}");
    assert!(params.check(None, |_| Some(data)).is_err());
    assert!(params.check(Some(&arguments), |_| None::<&[u8]>).is_err());
}
