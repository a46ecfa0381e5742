//! Header values, and the checks that read them.

use proptest::prelude::*;
use serde_json::json;
use tidegate_protocol::headers::{RequestHeaders, check, decode_value, encode_value};
use tidegate_protocol::param_headers::HeaderParams;
use tidegate_protocol::{Incoming, Limits, Message, Request};

fn call(name: &str) -> Request {
    let text =
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name}}).to_string();
    match Incoming::parse(text.into(), &Limits::default()) {
        Ok(Incoming::One(Message::Request(request))) => request,
        other => panic!("{other:?}"),
    }
}

/// Text that is likely to be awkward in a header.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![any::<String>(), "[ -~\t]{0,12}", "=\\?base64\\?[A-Za-z0-9+/=]{0,8}\\?=", "[ \ta\n]{0,5}"]
}

proptest! {
    #[test]
    fn what_is_encoded_decodes(text in text()) {
        let value = encode_value(&text);
        prop_assert!(value.bytes().all(|b| matches!(b, b'\t' | 0x20..=0x7e)), "{value:?}");
        prop_assert!(!value.starts_with([' ', '\t']) && !value.ends_with([' ', '\t']), "{value:?}");
        prop_assert_eq!(decode_value(value.as_bytes()).unwrap(), text.as_str());
        // White space that HTTP allows around it changes nothing.
        let padded = format!(" \t{value} ");
        prop_assert_eq!(decode_value(padded.as_bytes()).unwrap(), text);
    }

    #[test]
    fn any_bytes_decode_or_not(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        if let Ok(text) = decode_value(&bytes) {
            let encoded = encode_value(&text);
            prop_assert_eq!(decode_value(encoded.as_bytes()).unwrap(), text.as_ref());
        }
    }

    #[test]
    fn a_request_passes_with_its_own_name_only(name in text(), other in text()) {
        let outcome = |header: &str| {
            let headers = RequestHeaders {
                version: Some(b"2026-07-28"),
                method: Some(b"tools/call"),
                name: Some(header.as_bytes()),
            };
            check(&headers, &call(&name), "2026-07-28").is_ok()
        };
        prop_assert!(outcome(&encode_value(&name)));
        prop_assert_eq!(outcome(&encode_value(&other)), name == other);
    }

    #[test]
    fn a_call_passes_with_its_own_parameters_only(
        text in text(),
        number in -((1i64 << 53) - 1)..(1i64 << 53),
        flag in any::<bool>(),
        null in any::<bool>(),
        changed in 0usize..4,
    ) {
        let params = HeaderParams::from_schema(&json!({"properties": {
            "s": {"type": "string", "x-mcp-header": "S"},
            "n": {"type": "integer", "x-mcp-header": "N"},
            "b": {"type": "boolean", "x-mcp-header": "B"},
        }})).unwrap();
        let arguments = json!({"s": text, "n": number, "b": if null { json!(null) } else { json!(flag) }});
        let mut headers = params.headers_for(Some(&arguments));
        let outcome = |headers: &[(String, String)]| {
            let found = |name: &str| headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_bytes());
            params.check(Some(&arguments), found).is_ok()
        };
        prop_assert!(outcome(&headers));
        if let Some(header) = headers.get_mut(changed) {
            header.1.push('!');
            prop_assert!(!outcome(&headers));
        }
    }
}
