//! How often: to the unit, for whom it says, and what those are told who come too often.

use super::*;

fn callers(names: &[&str]) -> Vec<Caller> {
    (0..MANY).map(|at| who(names[at % names.len()])).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn to_the_unit_for_whom_it_says() {
    // The limit, who calls, and how many calls get through in all.
    let cases: [(&str, &[&str], usize); 9] = [
        ("tenant = { rate = \"10/h\" }", &["reef/ann", "reef/bob"], 10),
        ("tenant = { rate = \"10/h\" }", &["reef/ann", "tide/ann"], 20),
        ("tenant = { rate = \"10/h\" }", &["ann", "bob"], 20),
        ("tenant = false\nuser = { rate = \"7/h\" }", &["reef/ann", "reef/bob", "tide/ann"], 21),
        ("tenant = false\ntool = { rate = \"5/h\" }", &["reef/ann", "tide/bob"], 5),
        ("tenant = false\nserver = { rate = \"1/h\" }", &["reef/ann", "tide/bob"], 1),
        ("tenant = false\nendpoint = { rate = \"63/h\" }", &["reef/ann", "tide/bob"], 63),
        ("tenant = false\n[[limits.rules]]\ntools = [\"s_w*\"]\nuser = { rate = \"3/h\" }", &["a", "b"], 6),
        ("tenant = { rate = \"64/h\" }\nuser = { rate = \"64/h\" }", &["reef/ann"], 64),
    ];
    for (limits, names, expected) in cases {
        let meter = Meter::free();
        let gateway = meter.gateway(&format!("[limits]\n{limits}")).await;
        let results = all_at_once(&gateway, callers(names), "s_work").await;
        assert_eq!(meter.count(), expected, "{limits}: the tool ran as often");
        let (served, refused): (Vec<_>, Vec<_>) =
            results.iter().partition(|result| refusal(result) == Value::Null);
        assert_eq!((served.len(), refused.len()), (expected, MANY - expected), "{limits}");
        for result in refused {
            let why = refusal(result);
            assert_eq!(result["isError"], true, "{limits}: {result}");
            assert_eq!((&why["symbol"], &why["retryable"]), (&json!("RATE_LIMIT_ERROR"), &json!(true)));
            let data = &why["data"];
            let after = data["retryAfterMs"].as_u64().unwrap();
            assert!((1..=3_600_000).contains(&after), "{limits}: {result}");
            assert!(data["limit"]["rate"].as_str().unwrap().ends_with("/h"), "{limits}: {result}");
            assert!(limits.contains(data["limit"]["scope"].as_str().unwrap()), "{limits}: {result}");
            assert_eq!(data["remaining"], 0, "{limits}: {result}");
            let said = result["content"][0]["text"].as_str().unwrap();
            assert!(said.contains("is reached; try again in"), "{limits}: {said}");
            assert!(!said.contains("ann") && !said.contains("reef"), "{limits}: {said}");
        }
        until_idle(&gateway).await;
        gateway.close().await;
    }
}

#[tokio::test]
async fn what_is_counted_apart() {
    // The limit, and calls with whether they get through: who, at which endpoint, which tool.
    type Steps = &'static [(&'static str, &'static str, &'static str, bool)];
    let cases: [(&str, Steps); 6] = [
        (
            "tenant = false\ntool = { rate = \"1/h\" }",
            &[
                ("a", "", "s_work", true),
                ("b", "", "s_work", false),
                ("b", "", "s_other", true),
                ("b", "", "t_work", true),
            ],
        ),
        (
            "tenant = false\nserver = { rate = \"1/h\" }",
            &[("a", "", "s_work", true), ("b", "", "s_other", false), ("b", "", "t_work", true)],
        ),
        (
            "tenant = false\nendpoint = { rate = \"1/h\" }",
            &[
                ("a", "", "s_work", true),
                ("b", "", "t_work", false),
                ("b", "x", "t_work", true),
                ("a", "x", "s_work", false),
            ],
        ),
        (
            "tenant = false\n[[limits.rules]]\nendpoints = [\"x\"]\nservers = [\"t\"]\nuser = { rate = \"1/h\" }",
            &[
                ("a", "x", "s_work", true),
                ("a", "x", "t_work", true),
                ("a", "x", "t_other", false),
                ("a", "", "t_other", true),
            ],
        ),
        // Whoever is refused as a user has used up nothing of the tenant's.
        (
            "tenant = { rate = \"2/h\" }\nuser = { rate = \"1/h\" }",
            &[
                ("r/a", "", "s_work", true),
                ("r/a", "", "s_work", false),
                ("r/b", "", "s_work", true),
                ("r/c", "", "s_work", false),
            ],
        ),
        // Every rule counts that matches.
        (
            "tenant = false\n[[limits.rules]]\ntools = [\"s_*\"]\nuser = { rate = \"2/h\" }\n[[limits.rules]]\ntools = [\"*_work\"]\nuser = { rate = \"1/h\" }",
            &[
                ("a", "", "s_work", true),
                ("a", "", "s_work", false),
                ("a", "", "s_other", false),
                ("a", "", "t_other", true),
            ],
        ),
    ];
    for (limits, steps) in cases {
        let meter = Meter::free();
        let gateway = meter.gateway(&format!("[limits]\n{limits}\n[endpoints.x]")).await;
        for (at, (name, endpoint, tool, expected)) in steps.iter().enumerate() {
            let caller = who(name);
            let caller = if endpoint.is_empty() { caller } else { caller.at(endpoint) };
            assert_eq!(passes(&caller, &gateway, tool).await, *expected, "{limits}: step {at}");
        }
        gateway.close().await;
    }
}

#[tokio::test]
async fn requests_that_are_no_calls_of_tools_get_an_error() {
    for caller in [who("reef/ann"), {
        let mut legacy = crate::rig::legacy();
        legacy.0.principal = who("reef/ann").0.principal.clone();
        legacy
    }] {
        let meter = Meter::free();
        let gateway = meter.gateway("[limits]\ntenant = { rate = \"1/h\" }").await;
        caller.get(&gateway, "tools/list", json!({})).await;
        let requests = [
            ("tools/list", json!({})),
            ("prompts/list", json!({})),
            ("resources/list", json!({})),
            ("resources/templates/list", json!({})),
            ("prompts/get", json!({"name": "s_greet"})),
            ("resources/read", json!({"uri": "s+memo://a"})),
            (
                "completion/complete",
                json!({"ref": {"type": "ref/prompt", "name": "s_greet"}, "argument": {"name": "who", "value": "a"}}),
            ),
            ("subscriptions/listen", json!({"notifications": {"toolsListChanged": true}})),
        ];
        for (method, params) in requests {
            let error = match caller.ask(&gateway, method, params).await {
                Reply::Error(error) => error,
                other => panic!("{method}: {other:?}"),
            };
            assert_eq!(error.symbol().as_str(), "RATE_LIMIT_ERROR", "{method}: {error}");
            let revision = caller.0.revision;
            assert_eq!(error.symbol().code_in(Default::default(), revision), -32603, "{method}");
            let data: Value = error.data().unwrap().to().unwrap();
            assert_eq!(data["symbol"], "RATE_LIMIT_ERROR", "{method}: {data}");
            assert_eq!(data["limit"], json!({"scope": "tenant", "rate": "1/h"}), "{method}: {data}");
            assert_eq!(data["remaining"], 0, "{method}: {data}");
            assert!(data["retryAfterMs"].as_u64().unwrap() > 0, "{method}: {data}");
            assert!(error.retry_after().is_some(), "{method}");
        }
        // Getting to know each other is free.
        caller.get(&gateway, "server/discover", json!({})).await;
        gateway.close().await;
    }
}

#[tokio::test]
async fn sizes() {
    let meter = Meter::free();
    let limits = "[limits]\ntenant = { request = 200, response = 400 }\n[[limits.rules]]\ntools = [\"s_other\"]\nuser = { response = 100 }";
    let gateway = meter.gateway(limits).await;
    let caller = who("reef/ann");
    // The tool, its arguments, and the scope of the limit that it is over.
    let cases = [
        ("s_work", json!({}), Value::Null, 1),
        ("s_work", json!({"text": "x".repeat(300)}), json!("tenant"), 1),
        ("s_work", json!({"size": 200}), Value::Null, 2),
        ("s_work", json!({"size": 500}), json!("tenant"), 3),
        ("s_other", json!({"size": 200}), json!("user"), 4),
    ];
    for (tool, arguments, scope, ran) in cases {
        let result = call(&caller, &gateway, tool, arguments.clone()).await;
        let why = refusal(&result);
        assert_eq!(why["data"]["limit"]["scope"], scope, "{arguments}: {result}");
        assert_eq!(meter.count(), ran, "{arguments}: what is too large to be sent does not run");
        assert_ne!(why["retryable"], true, "{arguments}: it would be as large again");
    }
    let padded = json!({"uri": "s+memo://a", "_meta": {"padding": "x".repeat(300)}});
    let error = caller.fails(&gateway, "resources/read", padded).await;
    let data: Value = error.data().unwrap().to().unwrap();
    assert_eq!(data["limit"]["scope"], "tenant", "{error}: {data}");
    gateway.close().await;
}
