//! Errors that a server answers with, in our own catalogue: code, message and data survive.

use tidegate_protocol::json::ObjectWriter;
use tidegate_protocol::{Error, Json, Method, Object, Params, Symbol};

/// The error object of a server's answer as an [`Error`]. It keeps its code, its sentence and its data; only codes
/// that differ by era become a symbol, so that each side gets its own.
pub(crate) fn upstream_error(method: &Method, params: Option<&Params>, error: &Json) -> Error {
    let Some(object) = Object::of(error) else {
        return Error::new(Symbol::Internal, "The server answered with an error that is not an object")
            .as_protocol();
    };
    let code = object.json("code").and_then(|code| code.to::<f64>().ok()).unwrap_or(-32603.0) as i64;
    let message = object.str("message").unwrap_or_default().into_owned();
    let data = object.json("data");
    // What is no error object as the protocol knows it is mended on the way.
    let whole =
        object.get("code").is_some_and(|code| code.parse::<i64>().is_ok()) && object.str("message").is_some();
    if is_missing_resource(method, code, &message, data.as_ref()) {
        let mut own = ObjectWriter::new();
        if let Some(uri) = params.and_then(|p| p.json("uri")) {
            own.json("uri", &uri);
        }
        let passed = Error::new(Symbol::ResourceNotFound, message).as_protocol();
        return match data {
            Some(data) if whole => passed.with_data(data).with_original(error.clone()),
            data => passed.with_data(data.unwrap_or_else(|| own.finish())),
        };
    }
    let symbol = symbol_of(method, code, &message, data.as_ref());
    let mut passed = Error::new(symbol, message).with_code(code as i32).as_protocol();
    if let Some(data) = data {
        passed = passed.with_data(data);
    }
    if whole { passed.with_original(error.clone()) } else { passed }
}

/// -32002 up to 2025-11-25, -32602 with the URI in its data since.
fn is_missing_resource(method: &Method, code: i64, message: &str, data: Option<&Json>) -> bool {
    if *method != Method::ResourcesRead {
        return false;
    }
    let names_uri = || data.and_then(Object::of).is_some_and(|d| d.has("uri"));
    code == -32002 || (code == -32602 && names_uri() && message.to_ascii_lowercase().contains("not found"))
}

fn symbol_of(method: &Method, code: i64, message: &str, data: Option<&Json>) -> Symbol {
    let said = data.and_then(Object::of).and_then(|d| d.str("symbol").map(|s| s.into_owned()));
    match code {
        -32700 => Symbol::ParseError,
        -32600 => Symbol::InvalidRequest,
        -32601 if *method == Method::ToolsCall => Symbol::ToolNotFound,
        -32601 => Symbol::MethodNotFound,
        -32602 if said.as_deref() == Some("TOOL_NOT_FOUND") || message.starts_with("Unknown tool") => {
            Symbol::ToolNotFound
        }
        -32602 => Symbol::InvalidParams,
        -32020 => Symbol::HeaderMismatch,
        -32021 => Symbol::MissingCapability,
        -32022 => Symbol::UnsupportedVersion,
        -32042 => Symbol::UrlElicitationRequired,
        -32800 => Symbol::Cancelled,
        -32801 => Symbol::TooLarge,
        _ => Symbol::Internal,
    }
}

/// Whether an error object is one that only modern servers send (2026-07-28 versioning, Backward Compatibility).
pub(crate) fn is_modern_error(error: &Json) -> bool {
    matches!(crate::status::code_of(error), Some(-32022..=-32020))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_protocol::Revision;

    fn mapped(method: Method, text: &'static str) -> Error {
        upstream_error(&method, None, &Json::trusted(text))
    }

    #[test]
    fn codes_and_data_survive() {
        let error = mapped(Method::ToolsCall, r#"{"code":-31999,"message":"m","data":{"a": 1.0}}"#);
        for revision in Revision::ALL {
            assert_eq!(
                error.to_json(revision).as_str(),
                r#"{"code":-31999,"message":"m","data":{"a": 1.0}}"#
            );
        }
        assert!(!error.in_tool());
    }

    #[test]
    fn a_missing_resource_has_one_code_per_era() {
        let old = mapped(
            Method::ResourcesRead,
            r#"{"code":-32002,"message":"Resource not found","data":{"uri":"a:b"}}"#,
        );
        assert_eq!(old.code(Revision::V2026_07_28), -32602);
        assert_eq!(old.code(Revision::V2025_11_25), -32002);
        let new = mapped(
            Method::ResourcesRead,
            r#"{"code":-32602,"message":"Resource not found: a:b","data":{"uri":"a:b"}}"#,
        );
        assert_eq!(new.code(Revision::V2025_11_25), -32002);
        let other = mapped(Method::ToolsCall, r#"{"code":-32002,"message":"x"}"#);
        assert_eq!(other.code(Revision::V2026_07_28), -32002);
    }

    #[test]
    fn unknown_tools() {
        assert_eq!(
            mapped(Method::ToolsCall, r#"{"code":-32602,"message":"Unknown tool: x"}"#).symbol(),
            Symbol::ToolNotFound
        );
        assert_eq!(
            mapped(Method::ToolsCall, r#"{"code":-32601,"message":"nope"}"#).symbol(),
            Symbol::ToolNotFound
        );
    }
}
