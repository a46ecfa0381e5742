//! `tidegate explain` against a running gateway: it tells the true cause, to those who may know it.

use std::process::Output;

use serde_json::{Value, json};

use crate::http::until;
use crate::rig::{Gateway, SERVERS, command};

/// Asks a gateway, with these arguments.
pub(crate) fn explain(gateway: &Gateway, arguments: &[&str]) -> Output {
    let url = format!("http://{}", gateway.address);
    let mut explain = command(gateway.folder.path());
    explain.args(["explain", "--url", &url]).args(arguments);
    explain.output().unwrap()
}

/// What it says about a call, once that has ended.
pub(crate) fn told(gateway: &Gateway, id: &str, more: &[&str]) -> String {
    let mut said = String::new();
    until("the call is known", || {
        let done = explain(gateway, &[&[id], more].concat());
        said = String::from_utf8_lossy(&done.stdout).into_owned();
        done.status.success()
    });
    said
}

/// The id that a caller got with a failure.
fn id_of(message: &Value) -> String {
    let of_error = &message["error"]["data"]["correlationId"];
    let of_tool = &message["result"]["_meta"]["dev.tidegate/error"]["correlationId"];
    of_error.as_str().or(of_tool.as_str()).unwrap_or_else(|| panic!("{message}")).to_owned()
}

#[test]
fn whoever_was_refused_or_failed_learns_why_from_the_id() {
    let nowhere = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let config = format!(
        "{SERVERS}[servers.gone]\nurl = \"http://{nowhere}/mcp\"\n[policy]\ndefault = \"deny\"\n[[policy.rules]]\nname = \"small sums\"\n\
         allow = [\"demo_add\"]\nwhen = 'args.a < 10'\n[[policy.rules]]\nname = \"lists\"\nallow = [\"page:*\", \"demo_echo\", \"gone_*\"]\n\
         [limits]\ntenant = false\n[[limits.rules]]\ntools = [\"demo_echo\"]\ntool = {{ rate = \"1/h\" }}\n"
    );
    let gateway = Gateway::start_exactly(&config);
    let caller = gateway.nobody();
    let session = caller.session();
    assert!(caller.call("demo_echo", json!({"message": "hello"})).is_fine());
    let modern = |tool: &str, arguments: Value| id_of(&caller.call(tool, arguments).json());
    for (id, expected) in [
        (modern("demo_add", json!({"a": 11, "b": 2})), &["policy   refused by default", "FORBIDDEN"][..]),
        (
            modern("demo_echo", json!({"message": "sea urchin"})),
            &["limit    ", "\"rate\":\"1/h\"", "RATE_LIMIT_ERROR"],
        ),
        (modern("demo_nothing", json!({})), &["tools/call demo_nothing", "TOOL_NOT_FOUND"]),
    ] {
        let said = told(&gateway, &id, &[]);
        assert!(said.starts_with(&id), "{said}");
        expected.iter().for_each(|part| assert!(said.contains(part), "{part}: {said}"));
        assert!(!said.contains("urchin"), "arguments are no part of it: {said}");
    }
    let add = json!({"name": "demo_add", "arguments": {"a": 1, "b": 2}});
    assert!(caller.in_session(&session, "tools/call", add).is_fine());
    let latest = explain(&gateway, &["--tool", "demo_add", "--limit", "1", "--json"]);
    let story: Value = serde_json::from_slice(&latest.stdout).unwrap();
    assert_eq!(
        (&story["rule"], &story["outcome"], &story["server"]),
        (&json!("small sums"), &json!("ok"), &json!("demo"))
    );
    assert_eq!((&story["revision"], &story["translated"]), (&json!("2025-11-25"), &json!(true)), "{story}");
    let last = explain(&gateway, &["--last-error"]);
    assert!(String::from_utf8_lossy(&last.stdout).contains("TOOL_NOT_FOUND"), "{last:?}");
    let unknown = explain(&gateway, &["1-abc"]);
    assert_eq!(unknown.status.code(), Some(2), "{unknown:?}");
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("knows no call 1-abc"), "{unknown:?}");
}

#[test]
fn with_keys_it_is_for_those_whom_a_rule_lets() {
    let allowed = "[policy]\n[[policy.rules]]\nallow = [\"page:/api/*\"]\nroles = [\"ops\"]\n[[policy.rules]]\nallow = [\"*\"]\n";
    let (open, shadow) = (
        allowed.replace("[policy]\n", "[policy]\ndefault = \"allow\"\n"),
        allowed.replace("[policy]\n", "[policy]\nmode = \"shadow\"\n"),
    );
    let of_rule = [Some(0), Some(2), Some(2)];
    for (config, codes) in [(allowed, of_rule), (&open, of_rule), (&shadow, of_rule), ("", [Some(2); 3])] {
        let gateway = Gateway::start(config);
        let ops = gateway.add_key(&["olga", "--role", "ops"]);
        let dev = gateway.add_key(&["bob", "--role", "dev"]);
        let caller = gateway.with_token(&dev);
        until("the key is known", || caller.call("demo_add", json!({"a": 1, "b": 2})).is_fine());
        let headers = [&ops, &dev].map(|key| format!("Authorization: Bearer {key}"));
        let asks = |header: Option<&str>| {
            let header: Vec<&str> = header.into_iter().flat_map(|header| ["-H", header]).collect();
            explain(&gateway, &header)
        };
        let answers = [asks(Some(&headers[0])), asks(Some(&headers[1])), asks(None)];
        assert_eq!(answers.each_ref().map(|answer| answer.status.code()), codes, "{answers:?}");
        let said = String::from_utf8_lossy(&answers[0].stdout).into_owned();
        assert_eq!(
            said.contains("bob, tenant") || said.contains("by       bob"),
            codes[0] == Some(0),
            "{said}"
        );
        assert!(answers[1..].iter().all(|answer| answer.stdout.is_empty()), "{answers:?}");
    }
}

#[test]
fn whoever_asks_nobody_is_told_so() {
    let folder = tempfile::tempdir().unwrap();
    let nowhere = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = format!("http://{nowhere}");
    let asked = command(folder.path()).args(["explain", "--url", &url]).output().unwrap();
    assert_eq!(asked.status.code(), Some(3), "{asked:?}");
    assert!(String::from_utf8_lossy(&asked.stderr).contains("no gateway answers at"), "{asked:?}");
}
