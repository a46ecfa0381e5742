//! What is counted, what is not, and for how long.

use super::*;

#[tokio::test]
async fn names_that_somebody_made_up_are_not_counted() {
    let meter = Meter::new(0);
    let gateway = meter.gateway("[limits]\ntenant = false\ntool = { rate = \"1/h\", concurrent = 1 }\nserver = { rate = \"1/h\", concurrent = 1 }").await;
    let caller = who("reef/ann");
    for at in 0..100 {
        for (method, params) in [
            ("tools/call", json!({"name": format!("s_{at}"), "arguments": {}})),
            ("prompts/get", json!({"name": format!("s_{at}")})),
            ("resources/read", json!({"uri": format!("nobody{at}://x")})),
            ("vendor/made-up", json!({"_meta": {"dev.tidegate/server": format!("s{at}")}})),
        ] {
            match caller.ask(&gateway, method, params).await {
                Reply::Error(error) => assert_ne!(error.symbol().as_str(), "RATE_LIMIT_ERROR", "{error}"),
                Reply::Complete(result) => assert!(!result.as_str().contains("RATE_LIMIT_ERROR"), "{result}"),
                other => panic!("{other:?}"),
            }
        }
    }
    assert_eq!(gateway.queues(), []);
    // And nothing was used up of what there is.
    meter.let_go(1);
    assert!(passes(&caller, &gateway, "s_work").await);
    assert!(!passes(&caller, &gateway, "s_work").await);
    gateway.close().await;
}

#[tokio::test]
async fn a_tool_that_nobody_lists_counts_once_however_many_servers_are_asked() {
    let server = |name: &str| {
        let hidden = crate::rig::says(&format!("hidden_{name}"), name).unlisted();
        let mut server = local(name, Server::new("s", "1").tool(hidden).tool(crate::rig::says(name, name)));
        server.prefix.clear();
        server.seal()
    };
    let text = "[limits]\ntenant = { rate = \"6/h\", concurrent = 1 }\n[limits.run]\ncalls = 5\n";
    let read = Config::parse(text, "tidegate.toml", &Default::default(), &|_| None).unwrap();
    let mut settings = settings(["a", "b", "c"].map(server));
    settings.limits = read.limits;
    let gateway = crate::rig::started(settings).await;
    let caller = who("reef/ann");
    let define = json!({"_meta": {tidegate_service::UNLISTED: "hidden_c"}});
    for tool in ["hidden_a", "hidden_c", "hidden_b"] {
        assert!(passes(&caller, &gateway, tool).await, "{tool}");
    }
    for _ in 0..2 {
        let reply = caller.ask(&gateway, "tools/call", json!({"name": "hidden_d", "arguments": {}})).await;
        assert!(
            matches!(&reply, Reply::Error(error) if error.symbol().as_str() == "TOOL_NOT_FOUND"),
            "{reply:?}"
        );
    }
    let defined = caller.get(&gateway, "tools/list", define.clone()).await;
    assert_eq!(defined["tools"][0]["name"], "hidden_c", "{defined}");
    // Six of six requests, five of them of the run.
    let error = caller.fails(&gateway, "tools/list", define).await;
    assert_eq!(error.symbol().as_str(), "RATE_LIMIT_ERROR", "{error}");
    let refused = call(&caller, &gateway, "hidden_a", json!({})).await;
    assert_eq!(refusal(&refused)["symbol"], "BUDGET_EXCEEDED", "{refused}");
    gateway.close().await;
}

#[tokio::test]
async fn a_rule_finds_tools_that_nobody_lists_by_their_names_and_counts_them_as_one() {
    let tools = ["hidden_a", "hidden_b", "secret_c"].map(|name| crate::rig::says(name, name).unlisted());
    let server =
        tools.into_iter().fold(Server::new("s", "1").tool(crate::rig::says("open", "open")), Server::tool);
    let text =
        "[limits]\ntenant = false\n[[limits.rules]]\ntools = [\"s_hidden_*\"]\ntool = { rate = \"2/h\" }\n";
    let read = Config::parse(text, "tidegate.toml", &Default::default(), &|_| None).unwrap();
    let mut settings = settings([local("s", server)]);
    settings.limits = read.limits;
    let gateway = crate::rig::started(settings).await;
    let caller = who("reef/ann");
    for (tool, expected) in [
        ("s_hidden_a", true),
        ("s_hidden_b", true),
        ("s_hidden_a", false),
        ("s_hidden_b", false),
        ("s_secret_c", true),
        ("s_secret_c", true),
        ("s_secret_c", true),
        ("s_open", true),
    ] {
        assert_eq!(passes(&caller, &gateway, tool).await, expected, "{tool}");
    }
    gateway.close().await;
}

#[tokio::test]
async fn what_the_policy_refuses_uses_up_nothing() {
    let meter = Meter::free();
    let text = "[limits]\ntenant = { rate = \"2/h\" }\nuser = { concurrent = 1 }\n[limits.run]\ncalls = 2\n\
                [policy]\n[[policy.rules]]\nallow = [\"s_work\"]\nwhen = 'args.size < 5'\n[[policy.rules]]\nallow = [\"t_work\"]\n";
    let gateway = meter.gateway(text).await;
    let caller = who("reef/ann");
    for _ in 0..10 {
        for (tool, arguments) in
            [("s_work", json!({"size": 9})), ("s_other", json!({})), ("s_nothing", json!({}))]
        {
            match caller.ask(&gateway, "tools/call", json!({"name": tool, "arguments": arguments})).await {
                Reply::Error(error) => assert_ne!(error.symbol().as_str(), "RATE_LIMIT_ERROR", "{error}"),
                Reply::Complete(result) => {
                    assert!(result.as_str().contains("\"isError\":true"), "{result}");
                    assert!(!result.as_str().contains("RATE_LIMIT_ERROR"), "{result}");
                }
                other => panic!("{other:?}"),
            }
        }
    }
    assert_eq!(meter.count(), 0);
    for passes in [true, true, false] {
        let result = call(&caller, &gateway, "s_work", json!({"size": 1})).await;
        assert_eq!(refusal(&result) == Value::Null, passes, "{result}");
    }
    gateway.close().await;
}

#[tokio::test]
async fn a_reload_keeps_what_stays_and_begins_anew_what_is_changed() {
    let meter = Meter::free();
    let before = "tenant = { rate = \"3/h\" }\nuser = { rate = \"2/h\" }";
    let gateway = meter.gateway(&format!("[limits]\n{before}")).await;
    let [ann, bob, cid] = ["reef/ann", "reef/bob", "reef/cid"].map(who);
    for expected in [true, true, false] {
        assert_eq!(passes(&ann, &gateway, "s_work").await, expected);
    }
    // The limits, and who gets through then.
    let cases = [
        // The same, however it is written, and with something else besides.
        (
            "user = { rate = \"2/h\", request = \"1MiB\" }\ntenant = { rate = \"3/h\" }",
            [(&ann, false), (&bob, true), (&bob, false)],
        ),
        // The tenant has used up its own; whoever had one is not given another.
        (before, [(&ann, false), (&bob, false), (&bob, false)]),
        // Another limit is counted from its beginning. Bob was refused by the tenant's, and has used up his own with that.
        (
            "tenant = { rate = \"4/h\" }\nuser = { rate = \"2/h\" }",
            [(&ann, false), (&cid, true), (&bob, false)],
        ),
        ("tenant = false\nuser = { rate = \"1/h\" }", [(&ann, true), (&ann, false), (&bob, true)]),
        // What was counted before is still known.
        (before, [(&ann, false), (&bob, false), (&bob, false)]),
    ];
    for (limits, steps) in cases {
        gateway.reload(meter.settings(&format!("[limits]\n{limits}"))).await.unwrap();
        gateway.settled(crate::rig::PATIENCE).await;
        for (at, (caller, expected)) in steps.into_iter().enumerate() {
            assert_eq!(passes(caller, &gateway, "s_work").await, expected, "{limits}: step {at}");
        }
    }
    // Without limits nobody is refused.
    gateway.reload(meter.settings("")).await.unwrap();
    gateway.settled(crate::rig::PATIENCE).await;
    for _ in 0..10 {
        assert!(passes(&ann, &gateway, "s_work").await);
    }
    gateway.close().await;
}

/// Whoever waits at a limit while it is changed is served all the same.
#[tokio::test]
async fn who_waits_outlives_a_reload() {
    let meter = Meter::new(0);
    let limits = "[limits]\ntenant = { concurrent = 1 }";
    let settings = meter.settings(limits);
    let gateway = crate::rig::started(settings.clone()).await;
    let tasks: Vec<_> = (0..3)
        .map(|_| {
            let gateway = gateway.clone();
            tokio::spawn(async move { call(&who("reef/ann"), &gateway, "s_work", json!({})).await })
        })
        .collect();
    until("that two wait", async || gateway.queues().iter().any(|queue| queue.waiting == 2)).await;
    let mut other = settings.clone();
    other.limits = meter.settings("[limits]\ntenant = { concurrent = 2 }").limits;
    gateway.reload(other).await.unwrap();
    meter.let_go(3);
    for task in tasks {
        assert_eq!(refusal(&in_time("its turn", task).await.unwrap()), Value::Null);
    }
    until_idle(&gateway).await;
    gateway.close().await;
}
