//! Errors that a server answers with, in our own catalogue: code, message and data survive.

use tidegate_protocol::json::{Edit, ObjectWriter};
use tidegate_protocol::{Error, Json, Method, Object, Params, Revision, Symbol};

use crate::app_error::ErrorProfile;

/// The error object of a server's answer to a request of our own as an [`Error`]. It keeps its code, its sentence and its
/// data; only codes that differ by era become a symbol, so that each side gets its own.
pub(crate) fn upstream_error(method: &Method, params: Option<&Params>, error: &Json) -> Error {
    passed_error(ErrorProfile::Standard, method, params, error)
}

/// The same for a request of somebody else. A number that is the server's own, as its profile says, is understood, and
/// goes no further than the data.
pub(crate) fn passed_error(
    profile: ErrorProfile,
    method: &Method,
    params: Option<&Params>,
    error: &Json,
) -> Error {
    let Some(object) = Object::of(error) else {
        let what = "The server answered with an error that is not an object";
        return Error::new(Symbol::Internal, what).as_protocol();
    };
    let code = object.json("code").and_then(|code| code.to::<f64>().ok()).unwrap_or(-32603.0) as i64;
    let message = object.str("message").unwrap_or_default().into_owned();
    let data = object.json("data");
    // What is no error object as the protocol knows it is repaired on the way.
    let whole =
        object.get("code").is_some_and(|code| code.parse::<i64>().is_ok()) && object.str("message").is_some();
    let meant = profile.symbol_of(code, data.as_ref());
    if meant.is_none() && is_missing_resource(method, code, &message, data.as_ref()) {
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
    let symbol = meant.unwrap_or_else(|| symbol_of(method, code, &message, data.as_ref()));
    let mut passed = Error::new(symbol, message).with_code(code as i32).as_protocol();
    if meant.is_some() {
        passed = passed.code_in_data();
    }
    if let Some(data) = data {
        passed = passed.with_data(data);
    }
    if whole { passed.with_original(error.clone()) } else { passed }
}

/// A task of a server as a caller of `revision` may see it: the error that it holds, if it has failed, is one like any
/// other.
pub(crate) fn passed_task(profile: ErrorProfile, revision: Revision, task: Json) -> Json {
    if memchr::memmem::find(task.as_str().as_bytes(), br#""error""#).is_none() {
        return task;
    }
    let mut edit = Edit::of(&task);
    if let Some(edit) = &mut edit {
        edit.map("error", |error| {
            let passed = passed_error(profile, &Method::ToolsCall, None, error).to_json(revision);
            (error.is_object() && passed != *error).then_some(passed)
        });
    }
    edit.and_then(Edit::finish).unwrap_or(task)
}

/// -32002 up to 2025-11-25, -32602 with the URI in its data since.
fn is_missing_resource(method: &Method, code: i64, message: &str, data: Option<&Json>) -> bool {
    if *method != Method::ResourcesRead {
        return false;
    }
    let names_uri = || data.and_then(Object::of).is_some_and(|d| d.has("uri"));
    code == -32002 || (code == -32602 && names_uri() && message.to_ascii_lowercase().contains("not found"))
}

/// What a number means that is not of a profile. Numbers of SDKs about their own connections are passed on as they are.
fn symbol_of(method: &Method, code: i64, message: &str, data: Option<&Json>) -> Symbol {
    let said = data.and_then(Object::of).and_then(|d| d.str("symbol").map(|s| s.into_owned()));
    let named_unknown = || said.as_deref() == Some("TOOL_NOT_FOUND") || message.starts_with("Unknown tool");
    match Symbol::from_code(code).or_else(|| Symbol::from_foreign_code(code)) {
        Some(Symbol::MethodNotFound) if *method == Method::ToolsCall => Symbol::ToolNotFound,
        Some(Symbol::InvalidParams) if named_unknown() => Symbol::ToolNotFound,
        Some(Symbol::Unavailable | Symbol::Timeout | Symbol::ResourceNotFound) | None => Symbol::Internal,
        Some(symbol) => symbol,
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
    }

    #[test]
    fn codes_that_are_gone_do_not_reach_modern_callers() {
        for (code, modern) in [(-32002, -32603), (-32042, -32603), (-32001, -32001)] {
            let text = format!(r#"{{"code":{code},"message":"x"}}"#);
            let error = upstream_error(&Method::ToolsCall, None, &Json::trusted(text.clone()));
            assert_eq!(error.code(Revision::V2026_07_28), modern);
            assert_eq!(error.to_json(Revision::V2025_11_25).as_str(), text);
        }
        let task = Json::trusted(r#"{"taskId":"a","status":"failed","error":{"code":-32002,"message":"x"}}"#);
        let passed = passed_task(ErrorProfile::Standard, Revision::LATEST_MODERN, task.clone());
        assert_eq!(
            passed.as_str(),
            r#"{"taskId":"a","status":"failed","error":{"code":-32603,"message":"x","data":{"originalCode":-32002,"symbol":"INTERNAL_ERROR"}}}"#
        );
        assert_eq!(passed_task(ErrorProfile::Standard, Revision::LATEST_LEGACY, task.clone()), task);
    }

    #[test]
    fn numbers_of_a_profile_are_understood_and_stay_in_the_data() {
        for (profile, code, symbol) in [
            (ErrorProfile::Gbif, -32000, Symbol::ToolNotFound),
            (ErrorProfile::Gbif, -32002, Symbol::Validation),
            (ErrorProfile::Gbif, -32004, Symbol::Unavailable),
            (ErrorProfile::Percolate, -32000, Symbol::TenantNotFound),
            (ErrorProfile::Percolate, -32001, Symbol::AgentNotFound),
            (ErrorProfile::Percolate, -32002, Symbol::RateLimited),
            (ErrorProfile::Docling, -32001, Symbol::Timeout),
            (ErrorProfile::Docling, -32002, Symbol::ConversionFailed),
            (ErrorProfile::DevFlow, -32802, Symbol::Unavailable),
        ] {
            for method in [Method::ToolsCall, Method::ResourcesRead] {
                let text = Json::trusted(format!(r#"{{"code":{code},"message":"x"}}"#));
                let error = passed_error(profile, &method, None, &text);
                assert_eq!(error.symbol(), symbol, "{profile:?} {code}");
                for revision in Revision::ALL {
                    let sent: serde_json::Value = error.to_json(revision).to().unwrap();
                    assert_eq!(sent["code"], symbol.code(revision), "{profile:?} {code}");
                    assert_eq!(sent["data"]["originalCode"], code);
                    assert_eq!(sent["data"]["symbol"], symbol.as_str());
                }
            }
        }
        // What the profile does not number is what it always is.
        let text = Json::trusted(r#"{"code":-31999,"message":"m","data":{"a": 1.0}}"#);
        let error = passed_error(ErrorProfile::Gbif, &Method::ToolsCall, None, &text);
        assert_eq!(error.to_json(Revision::LATEST_MODERN), text);
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
