//! What those are told who are over a limit, in both eras.

use super::*;

const ONCE: &str = "[limits]\ntenant = { rate = \"1/h\" }\n";

#[test]
fn a_list_too_many() {
    let gateway = Gateway::start(ONCE);
    let (ann, cid) = (member(&gateway, "ann", "reef"), member(&gateway, "cid", "tide"));
    let bob = member(&gateway, "bob", "reef");
    let session = bob.session();
    assert!(
        ann.modern("tools/list", json!({})).is_fine(),
        "opening a session and getting to know each other is free"
    );

    for caller in [&ann, &bob] {
        let modern = caller.modern("tools/list", json!({}));
        assert_eq!(modern.status, 429, "{modern:?}");
        let seconds: u64 = modern.header("retry-after").parse().expect("a number of seconds");
        assert!((1..=3600).contains(&seconds), "{modern:?}");
        is_explained(&modern.json()["error"]);
    }
    for method in ["tools/list", "prompts/list", "resources/list"] {
        let legacy = bob.in_session(&session, method, json!({}));
        assert_eq!((legacy.status, legacy.header("retry-after")), (200, ""), "{legacy:?}");
        is_explained(&legacy.json()["error"]);
    }
    // What is no work goes on.
    assert!(bob.in_session(&session, "ping", json!({})).is_fine());
    // And another tenant is another matter.
    assert!(cid.modern("tools/list", json!({})).is_fine());
}

fn is_explained(error: &Value) {
    assert_eq!(error["code"], -32603, "{error}");
    let said = error["message"].as_str().unwrap();
    assert!(
        said.starts_with("The limit of 1 call an hour for your organisation is reached; try again in "),
        "{said}"
    );
    let data = &error["data"];
    assert_eq!(data["symbol"], "RATE_LIMIT_ERROR", "{error}");
    assert_eq!(data["limit"], json!({"scope": "tenant", "rate": "1/h"}), "{error}");
    assert_eq!(data["remaining"], 0, "{error}");
    assert!((1..=3_600_000).contains(&data["retryAfterMs"].as_u64().unwrap()), "{error}");
}

#[test]
fn a_call_too_many_is_a_result_that_the_model_reads() {
    let gateway = Gateway::start(ONCE);
    let ann = member(&gateway, "ann", "reef");
    let session = ann.session();
    let add = json!({"name": "demo_add", "arguments": {"a": 1, "b": 2}});
    assert!(ann.modern("tools/call", add.clone()).is_fine());
    for answer in [ann.modern("tools/call", add.clone()), ann.in_session(&session, "tools/call", add)] {
        assert_eq!((answer.status, answer.header("retry-after")), (200, ""), "{answer:?}");
        let message = answer.json();
        assert_eq!(message["result"]["isError"], true, "{message}");
        let said = message["result"]["content"][0]["text"].as_str().unwrap();
        assert!(said.contains("is reached; try again in"), "{said}");
        let why = refusal(&message);
        assert_eq!(
            (&why["symbol"], &why["data"]["remaining"]),
            (&json!("RATE_LIMIT_ERROR"), &json!(0)),
            "{why}"
        );
        assert!(why["data"]["retryAfterMs"].as_u64().unwrap() > 0, "{why}");
    }
}

#[test]
fn a_model_that_repeats_itself_is_told_so_in_both_eras() {
    let gateway = Gateway::start("[limits]\ntenant = false\n[limits.run]\nrepeats = 2\n");
    let ann = member(&gateway, "ann", "reef");
    let session = ann.session();
    let add = json!({"name": "demo_add", "arguments": {"a": 1, "b": 2}});
    let calls: [&dyn Fn() -> crate::http::Answer; 2] =
        [&|| ann.modern("tools/call", add.clone()), &|| ann.in_session(&session, "tools/call", add.clone())];
    // A session is a run of its own.
    for call in calls {
        assert!(call().is_fine() && call().is_fine());
        let refused = call();
        assert_eq!(refused.status, 200, "{refused:?}");
        let message = refused.json();
        assert_eq!(refusal(&message)["symbol"], "BUDGET_EXCEEDED", "{message}");
        let said = message["result"]["content"][0]["text"].as_str().unwrap();
        assert!(
            said.starts_with("You have called demo_add with these arguments 2 times in this run"),
            "{said}"
        );
    }
}
