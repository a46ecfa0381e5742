use std::collections::BTreeSet;
use std::time::Duration;

use tidegate_protocol::{Error, Json, Method, Revision, Symbol};

use super::{AppError, CATALOGUE, ErrorProfile, catalogue_entry, map_mcp_error};
use ErrorProfile::{DevFlow, Docling, Gbif, Percolate, Standard};

const PROFILES: [ErrorProfile; 5] = [Standard, Gbif, Percolate, Docling, DevFlow];

fn raw(profile: ErrorProfile, code: i64) -> AppError {
    map_mcp_error(code, "it broke", None, None, profile)
}

fn of(profile: ErrorProfile, error: &Error, method: Method) -> AppError {
    AppError::from_error(error, &method, profile, Revision::V2025_11_25)
}

fn local(symbol: Symbol) -> Error {
    Error::new(symbol, "it broke")
}

#[test]
fn docling_as_its_table_has_it() {
    for (number, code, user, retryable) in [
        (-32700, "E203", "Invalid request format", false),
        (-32600, "E203", "Invalid request format", false),
        (-32601, "E204", "Requested tool not available", false),
        (-32602, "E203", "Invalid parameters", false),
        (-32603, "E201", "Processing service error", true),
        (-32000, "E201", "Processing service unavailable", true),
        (-32001, "E202", "Request timeout", true),
        (-32002, "E302", "Document conversion failed", true),
        (-32003, "E303", "Export generation failed", true),
    ] {
        for method in [None, Some(&Method::ToolsList), Some(&Method::ToolsCall)] {
            let data = Json::trusted(r#"{"symbol":"TOOL_NOT_FOUND"}"#);
            let error = map_mcp_error(number, "Unknown tool: x", Some(&data), method, Docling);
            assert_eq!((error.code, &*error.user_message, error.retryable), (code, user, retryable));
            assert_eq!(error.suggested_action, if retryable { "Try again" } else { "Contact support" });
            assert_eq!((error.original_code, &*error.message), (Some(number), "Unknown tool: x"));
        }
    }
    for number in [-32004, -32042, -32099, -32800, -1, 0, 42, i64::MIN] {
        let error = raw(Docling, number);
        assert_eq!((error.code, error.retryable), ("E201", true));
        assert_eq!(error.user_message, "An unexpected error occurred");
        assert_eq!(error.suggested_action, "Try again later");
        assert_eq!(error.original_code, Some(number));
    }
}

#[test]
fn numbers_per_profile() {
    for (number, standard, gbif, percolate, docling) in [
        (-32700, "E203", "E203", "E203", "E203"),
        (-32600, "E203", "E203", "E203", "E203"),
        (-32601, "E203", "E203", "E203", "E204"),
        (-32602, "E203", "E203", "E203", "E203"),
        (-32603, "E201", "E201", "E201", "E201"),
        (-32000, "E201", "E204", "E204", "E201"),
        (-32001, "E202", "E306", "E204", "E202"),
        (-32002, "E204", "E203", "E601", "E302"),
        (-32003, "E201", "E601", "E202", "E303"),
        (-32004, "E201", "E201", "E201", "E201"),
        (-32005, "E201", "E201", "E201", "E201"),
        (-32006, "E201", "E202", "E201", "E201"),
        (-32020, "E203", "E203", "E203", "E201"),
        (-32021, "E205", "E205", "E205", "E201"),
        (-32022, "E203", "E203", "E203", "E201"),
        (-32042, "E503", "E503", "E503", "E201"),
        (-32800, "E206", "E206", "E206", "E201"),
        (-32801, "E305", "E305", "E305", "E201"),
        (-32802, "E201", "E201", "E201", "E201"),
        (7, "E201", "E201", "E201", "E201"),
    ] {
        let codes = PROFILES.map(|profile| raw(profile, number).code);
        assert_eq!(codes, [standard, gbif, percolate, docling, standard], "{number}");
    }
    let open = raw(Gbif, -32005);
    assert_eq!(open.user_message, "Service temporarily unavailable (circuit open)");
    assert_eq!(open.symbol, Symbol::CircuitOpen);
}

#[test]
fn what_is_missing() {
    let (call, get, read) = (Method::ToolsCall, Method::PromptsGet, Method::ResourcesRead);
    for (method, message, code) in [
        (Some(&call), "Unknown tool: x", "E204"),
        (None, "Unknown tool: x", "E204"),
        (Some(&call), "unknown tool \"x\"", "E204"),
        (Some(&call), "MCP error -32602: Tool x not found", "E204"),
        (Some(&call), "Tool 'x' not found: tool not found", "E204"),
        (Some(&call), "tool not found", "E204"),
        (Some(&call), "Tool argument x was not found", "E203"),
        (Some(&call), "Unknown resource: x", "E203"),
        (Some(&call), "", "E203"),
        (Some(&get), "Unknown prompt: x", "E204"),
        (Some(&get), "Unknown tool: x", "E203"),
        (Some(&read), "Resource not found", "E204"),
        (Some(&read), "Resource x:y not found.", "E204"),
        (Some(&Method::ToolsList), "Unknown tool: x", "E203"),
    ] {
        let mapped = map_mcp_error(-32602, message, None, method, Standard);
        assert_eq!(mapped.code, code, "{message}");
        if let Some(method) = method {
            let error = Error::new(Symbol::InvalidParams, message.to_owned());
            assert_eq!(of(Standard, &error, method.clone()).code, code, "{message}");
        }
    }
    let uri = Json::trusted(r#"{"uri":"x:y"}"#);
    let error = map_mcp_error(-32602, "no such thing", Some(&uri), Some(&read), Standard);
    assert_eq!((error.code, error.symbol), ("E204", Symbol::ResourceNotFound));
    assert_eq!(error.user_message, "Requested resource not available");
    assert_eq!(error.data.unwrap().as_str(), uri.as_str());
    // A method that a server lacks is a tool only if tools were called.
    assert_eq!(map_mcp_error(-32601, "no", None, Some(&call), Standard).code, "E204");
    let error = map_mcp_error(-32601, "no", None, Some(&get), Standard);
    assert_eq!((error.code, &*error.user_message), ("E203", "Method not supported by the server"));
}

#[test]
fn a_symbol_in_the_data_says_it_best() {
    for (data, code) in [
        (r#"{"symbol":"TOOL_NOT_FOUND","availableTools":[]}"#, "E204"),
        (r#"{"symbol":"RATE_LIMIT_ERROR"}"#, "E601"),
        (r#"{"symbol":"TIMEOUT_ERROR"}"#, "E202"),
        (r#"{"symbol":"NEVER_HEARD_OF"}"#, "E201"),
        (r#"{"symbol":7}"#, "E201"),
        (r#"["symbol"]"#, "E201"),
        ("null", "E201"),
    ] {
        let data = Json::trusted(data);
        for profile in [Standard, Gbif, Percolate, DevFlow] {
            assert_eq!(map_mcp_error(-32603, "no", Some(&data), None, profile).code, code, "{data}");
        }
    }
    for symbol in Symbol::all() {
        let data = Json::trusted(format!(r#"{{"symbol":"{}"}}"#, symbol.as_str()));
        let error = map_mcp_error(12_345, "no", Some(&data), None, Standard);
        assert_eq!(error.symbol, symbol);
    }
}

#[test]
fn a_tool_timeout_of_fastmcp() {
    let error = map_mcp_error(-32000, "Tool 'x' timed out after 5 s", None, None, Standard);
    assert_eq!((error.code, error.symbol), ("E202", Symbol::Timeout));
    let error = map_mcp_error(-32000, "Connection closed", None, None, Standard);
    assert_eq!((error.code, error.symbol), ("E201", Symbol::Unavailable));
}

#[test]
fn every_server_number_is_mapped() {
    for profile in PROFILES {
        for number in -32099..=-32000 {
            let error = raw(profile, number);
            assert!(catalogue_entry(error.code).is_some() && !error.user_message.is_empty(), "{number}");
        }
    }
}

#[test]
fn local_failures() {
    use Symbol::*;
    for (symbol, code, user, action, retryable) in [
        (Timeout, "E202", "Request timeout", "Try again", true),
        (Unavailable, "E201", "Processing service unavailable", "Try again later", true),
        (CircuitOpen, "E201", "Service temporarily unavailable (circuit open)", "Try again later", true),
        (Unauthorized, "E503", "The server requires authorization", "Run tidegate login URL", false),
        (RateLimited, "E601", "Too many requests", "Wait a moment and try again", true),
        (
            BudgetExceeded,
            "E601",
            "The budget for this task is used up",
            "Use what there is, or start anew later",
            false,
        ),
        (Cancelled, "E206", "Processing cancelled", "You can start again", false),
        (TooLarge, "E305", "The result is too large", "Ask for less at once", false),
        (LoopDetected, "E201", "The request ran in a loop", "Contact support", false),
    ] {
        let error = of(Standard, &local(symbol), Method::ToolsCall);
        assert_eq!((error.code, &*error.user_message), (code, user));
        assert_eq!((error.suggested_action, error.retryable), (action, retryable));
        assert_eq!((error.original_code, error.symbol), (None, symbol), "nothing came over the wire");
    }
    for (symbol, code) in [
        (MissingCapability, "E205"),
        (SessionNotFound, "E501"),
        (StateRefused, "E502"),
        (ToolExecution, "E306"),
        (Validation, "E203"),
        (InvalidCursor, "E203"),
        (NotInitialized, "E203"),
        (UnsupportedVersion, "E203"),
        (TaskNotFound, "E204"),
        (UrlElicitationRequired, "E503"),
        (ConversionFailed, "E302"),
        (ExportFailed, "E303"),
    ] {
        let error = of(Standard, &local(symbol), Method::ToolsCall);
        assert_eq!((error.code, error.symbol), (code, symbol));
    }
    let busy = local(RateLimited).with_retry_after(Duration::from_secs(7));
    assert_eq!(of(Standard, &busy, Method::Ping).retry_after, Some(Duration::from_secs(7)));
}

#[test]
fn timeouts_of_docling_tools_are_about_the_document() {
    let late = local(Symbol::Timeout);
    assert_eq!(of(Docling, &late, Method::ToolsCall).code, "E301");
    assert_eq!(of(Docling, &late, Method::ToolsList).code, "E202");
    assert_eq!(of(Docling, &late.unexecuted(), Method::ToolsCall).code, "E202", "it never got there");
}

#[test]
fn a_servers_own_number_is_read_by_its_profile() {
    let error = local(Symbol::Internal).with_code(-32001);
    let codes = PROFILES.map(|profile| of(profile, &error, Method::ToolsCall).code);
    assert_eq!(codes, ["E202", "E306", "E204", "E202", "E202"]);
    assert_eq!(of(Gbif, &error, Method::ToolsCall).original_code, Some(-32001));
    // A number that the profile does not know: what else is known about the error decides.
    let error = local(Symbol::Internal).with_code(-32050);
    assert_eq!(of(Standard, &error, Method::ToolsCall).user_message, "An unexpected error occurred");
    let error = local(Symbol::ToolExecution).with_code(-32050);
    let error = of(Standard, &error, Method::ToolsCall);
    assert_eq!((error.code, error.original_code), ("E306", Some(-32050)));
    // The same once it was understood.
    let error = local(Symbol::Timeout).with_code(-32001).code_in_data();
    let error = of(Docling, &error, Method::ToolsCall);
    assert_eq!((error.code, error.original_code), ("E202", Some(-32001)), "not E301");
    // What failed on this side keeps its meaning.
    let error = of(Gbif, &local(Symbol::Unavailable).with_code(-32001), Method::ToolsCall);
    assert_eq!((error.code, error.original_code), ("E201", Some(-32001)));
    // The standard numbers stand for their symbols, so Docling's words are kept.
    let error = of(Docling, &local(Symbol::Internal), Method::ToolsCall);
    assert_eq!((error.suggested_action, error.original_code), ("Try again", Some(-32603)));
    assert_eq!(of(Docling, &Error::method_not_found("x"), Method::PromptsGet).code, "E204");
}

#[test]
fn every_code_is_in_the_catalogue() {
    let methods = [Method::ToolsCall, Method::ResourcesRead, Method::PromptsGet, Method::ToolsList];
    let messages = ["", "Unknown tool: x", "prompt not found", "timed out"];
    let mut seen = BTreeSet::new();
    for profile in PROFILES {
        for method in &methods {
            for number in (-32810..=-31990).chain([0, i64::MAX]) {
                for message in messages {
                    seen.insert(map_mcp_error(number, message, None, Some(method), profile).code);
                }
            }
            for symbol in Symbol::all() {
                seen.insert(of(profile, &local(symbol), method.clone()).code);
                seen.insert(of(profile, &local(symbol).unexecuted().with_code(-32003), method.clone()).code);
            }
        }
    }
    for code in &seen {
        assert!(catalogue_entry(code).is_some(), "{code} is not in the catalogue");
    }
    assert!(seen.len() > 10);
}

#[test]
fn the_catalogue_is_in_order_and_as_documented() {
    assert!(CATALOGUE.is_sorted_by(|a, b| a.code < b.code));
    let documented: Vec<_> =
        include_str!("catalogue.md").lines().filter(|line| line.starts_with("| E")).collect();
    let catalogue: Vec<_> = CATALOGUE
        .iter()
        .map(|e| {
            let retry = if e.retryable { "yes" } else { "no" };
            let (title, user, action) = (e.title, e.user_message, e.suggested_action);
            format!("| {} | {title} | {user} | {action} | {retry} |", e.code)
        })
        .collect();
    assert_eq!(documented, catalogue);
}

#[test]
fn json_form() {
    let data = Json::trusted(r#"{"file":"a.pdf"}"#);
    let error = map_mcp_error(-32002, "bad page 3", Some(&data), None, Docling);
    assert_eq!(
        serde_json::to_string(&error).unwrap(),
        r#"{"code":"E302","message":"bad page 3","userMessage":"Document conversion failed","suggestedAction":"Try again","retryable":true,"originalMCPCode":-32002,"symbol":"CONVERSION_FAILED","data":{"file":"a.pdf"}}"#
    );
    let error = of(Standard, &local(Symbol::Cancelled), Method::ToolsCall);
    assert_eq!(
        serde_json::to_string(&error).unwrap(),
        r#"{"code":"E206","message":"it broke","userMessage":"Processing cancelled","suggestedAction":"You can start again","retryable":false,"symbol":"CANCELLED"}"#
    );
}

#[test]
fn one_line() {
    let line = |message: &str| map_mcp_error(-32001, message, None, None, Standard).to_string();
    assert_eq!(line("no answer\n  in 5 s"), "E202: Request timeout (no answer in 5 s)");
    assert_eq!(line("Request timeout"), "E202: Request timeout");
    assert_eq!(line(""), "E202: Request timeout");
}

#[test]
fn profiles_have_names() {
    let names = serde_json::to_string(&PROFILES).unwrap();
    assert_eq!(names, r#"["standard","gbif","percolate","docling","devflow"]"#);
    assert_eq!(serde_json::from_str::<[ErrorProfile; 5]>(&names).unwrap(), PROFILES);
}
