//! Every way to have something done: it is done for those who may, and for nobody else.

use serde_json::{Value, json};
use tidegate_config::ToolMode;
use tidegate_protocol::{Limits, Method, Params, Symbol};
use tidegate_service::{Call, Reply, UNLISTED};

use super::{ROLES, World, caller_of, listening, role, roles};
use crate::rig::{Caller, keys};

/// Something that can be done with a tool: by its name and arguments, for whom.
const TOOLS: [(&str, &str, &[&str]); 11] = [
    ("reef_read", "{}", &["admin", "dev"]),
    ("reef_write", r#"{"where":"sandbox"}"#, &["admin", "dev"]),
    ("reef_write", r#"{"where":"prod"}"#, &["admin"]),
    ("reef_write", r#"{"where":["sandbox"]}"#, &["admin"]),
    ("reef_write", "{}", &["admin"]),
    ("reef_wipe", "{}", &["admin"]),
    ("vault_read", "{}", &["admin", "guest"]),
    ("vault_wipe", r#"{"where":"sandbox"}"#, &["admin"]),
    ("reef_hidden", "{}", &["admin", "dev"]),
    ("reef_buried", "{}", &["admin"]),
    ("vault_hidden", "{}", &["admin"]),
];

/// Everybody, of both eras.
fn everybody() -> impl Iterator<Item = (String, Caller)> {
    ROLES.into_iter().chain(["nobody"]).flat_map(|role| {
        [true, false].map(|is_modern| (format!("{role}, modern: {is_modern}"), caller_of(role, is_modern)))
    })
}

fn may(who: &str, those: &[&str]) -> bool {
    those.iter().any(|role| who.starts_with(role))
}

/// Asks as everybody, and sees for whom something was done.
async fn done_for(world: &World, method: &str, params: Value, what: &str, those: &[&str]) {
    for (who, caller) in everybody() {
        world.done.take();
        let reply = caller.ask(&world.gateway, method, params.clone()).await;
        let done = world.done.take();
        let expected = usize::from(may(&who, those));
        assert_eq!(
            done.get(what),
            Some(&expected).filter(|count| **count > 0),
            "{who}: {method} {params}: {reply:?}"
        );
        assert_eq!(done.len(), expected, "{who}: {method} {params}: nothing else is done");
    }
}

#[tokio::test]
async fn tools_by_their_names_and_in_batches() {
    let world = World::start(roles()).await;
    for (tool, arguments, those) in TOOLS {
        let arguments: Value = serde_json::from_str(arguments).unwrap();
        let call = json!({"name": tool, "arguments": arguments});
        done_for(&world, "tools/call", call.clone(), tool, those).await;
        done_for(&world, "tools/call_batch", json!({"calls": [call]}), tool, those).await;
    }
    // Each call of a batch is one of its own.
    let calls = json!({"calls": [{"name": "reef_wipe"}, {"name": "reef_read"}, {"name": "vault_read"}]});
    role("dev").ask(&world.gateway, "tools/call_batch", calls.clone()).await;
    assert_eq!(world.done.take().into_keys().collect::<Vec<_>>(), ["reef_read"]);
    world.gateway.close().await;
}

#[tokio::test]
async fn tools_where_they_are_searched_for() {
    let world = World::with(roles(), |settings| settings.tools.mode = ToolMode::Search).await;
    for (tool, arguments, those) in TOOLS {
        let arguments: Value = serde_json::from_str(arguments).unwrap();
        let call = json!({"name": tool, "arguments": arguments});
        done_for(&world, "tools/call", call.clone(), tool, those).await;
        let through = json!({"name": "call_tool", "arguments": call});
        // What nobody lists is found by nobody.
        let those = if tool.ends_with("hidden") || tool.ends_with("buried") { &[] } else { those };
        done_for(&world, "tools/call", through.clone(), tool, those).await;
        done_for(&world, "tools/call_batch", json!({"calls": [through]}), tool, those).await;
        let twice = json!({"name": "call_tool", "arguments": {"name": "call_tool", "arguments": call}});
        done_for(&world, "tools/call", twice, tool, &[]).await;
    }
    for (who, found) in
        [("admin", &["reef_read", "vault_read"][..]), ("dev", &["reef_read"]), ("guest", &["vault_read"])]
    {
        for name in ["search_tools", "call_tool"] {
            let query = json!({"query": "tool read"});
            let arguments = match name {
                "call_tool" => json!({"name": "search_tools", "arguments": query}),
                _ => query,
            };
            let params = json!({"name": name, "arguments": arguments});
            let result = role(who).get(&world.gateway, "tools/call", params).await;
            let mut names = keys(&result["structuredContent"]);
            names.retain(|name| name.ends_with("_read"));
            names.sort();
            assert_eq!(names, found, "{who}: {name}");
        }
    }
    for (who, said) in [("admin", "10 tools of 2"), ("dev", "3 tools of 1"), ("guest", "1 tool of 1")] {
        let params = json!({"name": "search_tools", "arguments": {"query": ""}});
        let result = role(who).get(&world.gateway, "tools/call", params).await;
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(text.starts_with(said), "{who}: {text}");
        assert_eq!(text.contains("vault"), who != "dev", "{who}: {text}");
    }
    let nobody = role("nobody");
    for tool in ["search_tools", "call_tool"] {
        let params = json!({"name": tool, "arguments": {"query": "read", "name": "search_tools"}});
        let error = nobody.fails(&world.gateway, "tools/call", params).await;
        assert_eq!(error.symbol(), Symbol::ToolNotFound, "{tool}");
    }
    world.gateway.close().await;
}

#[tokio::test]
async fn definitions_of_tools_that_nobody_lists() {
    let world = World::start(roles()).await;
    for (tool, those) in
        [("reef_hidden", &["admin", "dev"][..]), ("reef_buried", &["admin"]), ("vault_hidden", &["admin"])]
    {
        for (who, caller) in everybody() {
            let asked = json!({"_meta": {UNLISTED: tool}});
            let found = keys(&caller.get(&world.gateway, "tools/list", asked).await);
            assert_eq!(found.len(), usize::from(may(&who, those)), "{who}: {tool}");
        }
    }
    world.gateway.close().await;
}

#[tokio::test]
async fn prompts() {
    let world = World::start(roles()).await;
    for (prompt, arguments, those) in [
        ("reef_review", json!({}), &["admin", "dev"][..]),
        ("reef_ask", json!({"where": "sandbox"}), &["admin", "dev"]),
        ("reef_ask", json!({"where": "prod"}), &["admin"]),
        ("reef_ask", json!({}), &["admin"]),
        ("reef_plot", json!({"where": "sandbox"}), &["admin"]),
        ("vault_review", json!({}), &["admin"]),
    ] {
        let params = json!({"name": prompt, "arguments": arguments});
        done_for(&world, "prompts/get", params, prompt, those).await;
    }
    world.gateway.close().await;
}

#[tokio::test]
async fn resources_and_what_fits_a_template() {
    let world = World::start(roles()).await;
    for (uri, those) in [
        ("reef://open", &["admin", "dev"][..]),
        ("reef://secret", &["admin"]),
        ("reef://notes/1", &["admin", "dev"]),
        ("reef://diaries/1", &["admin"]),
        ("vault://open", &["admin"]),
        ("vault://notes/1", &["admin"]),
    ] {
        done_for(&world, "resources/read", json!({"uri": uri}), uri, those).await;
    }
    // What a server might take for something else is not what was allowed.
    for uri in [
        "REEF://secret",
        "reef://notes/../secret",
        "reef://notes/%2e%2e/secret",
        "reef://notes/%2E%2E%2Fsecret",
        "reef://notes/%252e%252e/secret",
        "reef://notes/..%5csecret",
        "reef://notes/./1",
        "reef://%73ecret",
        "reef+reef://secret",
        "vault+reef://open",
    ] {
        for (who, caller) in everybody().filter(|(who, _)| !who.starts_with("admin")) {
            world.done.take();
            let error = caller.fails(&world.gateway, "resources/read", json!({"uri": uri})).await;
            assert_eq!(error.symbol(), Symbol::ResourceNotFound, "{who}: {uri}");
            assert_eq!(world.done.take().len(), 0, "{who}: {uri}");
        }
    }
    world.gateway.close().await;
}

#[tokio::test]
async fn completions() {
    let world = World::start(roles()).await;
    let prompt = |name: &str| json!({"type": "ref/prompt", "name": name});
    let resource = |uri: &str| json!({"type": "ref/resource", "uri": uri});
    for (reference, argument, those) in [
        (prompt("reef_review"), "where", &["admin", "dev"][..]),
        // It depends on what will be filled in.
        (prompt("reef_ask"), "where", &["admin", "dev"]),
        (prompt("reef_plot"), "where", &["admin"]),
        (prompt("vault_review"), "where", &["admin"]),
        (resource("reef://notes/{id}"), "id", &["admin", "dev"]),
        (resource("reef://diaries/{id}"), "id", &["admin"]),
        (resource("vault://notes/{id}"), "id", &["admin"]),
    ] {
        let params = json!({"ref": reference, "argument": {"name": argument, "value": ""}});
        for (who, caller) in everybody() {
            let reply = caller.ask(&world.gateway, "completion/complete", params.clone()).await;
            match may(&who, those) {
                true => assert!(matches!(reply, Reply::Complete(_)), "{who}: {params}: {reply:?}"),
                false => assert!(matches!(reply, Reply::Error(_)), "{who}: {params}: {reply:?}"),
            }
        }
    }
    world.gateway.close().await;
}

#[tokio::test]
async fn methods_that_no_revision_defines() {
    let world = World::start(roles()).await;
    for (method, uri, what, those) in [
        ("vendor/echo", "reef://open", "reef vendor/echo", &["admin", "dev"][..]),
        ("vendor/echo", "reef://secret", "reef vendor/echo", &["admin"]),
        ("vendor/other", "reef://open", "reef vendor/other", &["admin"]),
        ("vendor/echo", "vault://open", "vault vendor/echo", &["admin"]),
        // What a client tells, too.
        ("notifications/vendor/x", "reef://open", "reef notifications/vendor/x", &["admin"]),
    ] {
        done_for(&world, method, json!({"uri": uri}), what, those).await;
        // Where there are many users, servers are not chosen by their names, whoever asks.
        let named = json!({"uri": uri, "_meta": {"dev.tidegate/server": "reef"}});
        done_for(&world, method, named, what, &[]).await;
    }
    world.gateway.close().await;
}

#[tokio::test]
async fn what_roots_a_client_has_concerns_servers_that_it_knows() {
    let world = World::start(roles()).await;
    for (who, told) in
        [("admin", &["reef", "vault"][..]), ("dev", &["reef"]), ("guest", &["vault"]), ("nobody", &[])]
    {
        world.done.take();
        role(who).ask(&world.gateway, "notifications/roots/list_changed", json!({})).await;
        let done: Vec<_> = world.done.take().into_keys().collect();
        let told: Vec<_> =
            told.iter().map(|server| format!("{server} notifications/roots/list_changed")).collect();
        assert_eq!(done, told, "{who}");
    }
    world.gateway.close().await;
}

#[tokio::test]
async fn subscriptions_to_resources() {
    let world = World::start(roles()).await;
    for (who, kept) in [
        ("admin", &["reef://notes/1", "reef://open", "reef://secret", "vault://open"][..]),
        ("dev", &["reef://notes/1", "reef://open"]),
        ("guest", &[]),
        ("nobody", &[]),
    ] {
        let wanted = json!({"resourceSubscriptions":
            ["reef://open", "reef://secret", "vault://open", "reef://notes/1", "reef://none", "none://x"]});
        let (acknowledged, events) = listening(&role(who), &world.gateway, wanted).await;
        let uris = acknowledged["resourceSubscriptions"].as_array().cloned().unwrap_or_default();
        let mut uris: Vec<_> = uris.iter().filter_map(Value::as_str).collect();
        uris.retain(|uri| *uri != "reef://none");
        uris.sort();
        assert_eq!(uris, kept, "{who}");
        events.close();
    }
    world.gateway.close().await;
}

#[tokio::test]
async fn tasks() {
    let world = World::start(roles()).await;
    for (tool, those) in [("reef_long", &["admin", "dev"][..]), ("reef_longer", &["admin"])] {
        for who in ROLES.into_iter().chain(["nobody"]) {
            let reply = role(who).ask(&world.gateway, "tools/call", json!({"name": tool})).await;
            assert_eq!(matches!(reply, Reply::Task(_)), may(who, those), "{who}: {tool}: {reply:?}");
        }
    }
    // A handle is good for nobody else, whatever they may do.
    let Reply::Task(task) = role("dev").ask(&world.gateway, "tools/call", json!({"name": "reef_long"})).await
    else {
        panic!("no task")
    };
    let id = task.to::<Value>().unwrap()["taskId"].clone();
    for who in ["admin", "guest", "nobody"] {
        let error = role(who).fails(&world.gateway, "tasks/get", json!({"taskId": id})).await;
        assert_eq!(error.symbol(), Symbol::TaskNotFound, "{who}");
    }
    role("dev").get(&world.gateway, "tasks/get", json!({"taskId": id})).await;
    world.gateway.close().await;
}

/// Whether a server may do something in the name of a caller.
fn allows(world: &World, who: &str, method: Method, params: Value) -> Result<(), Symbol> {
    let params = Params::parse(&params.into(), &Limits::default()).unwrap();
    let call = Call::new(method, params, role(who).0);
    world.gateway.allows("reef", &call).map_err(|error| error.symbol())
}

#[tokio::test]
async fn what_an_agent_does_with_its_own_tools() {
    let world = World::start(roles()).await;
    let calls = |who: &str, tool: &str, place: &str| {
        allows(&world, who, Method::ToolsCall, json!({"name": tool, "arguments": {"where": place}}))
    };
    for (who, tool, place, expected) in [
        ("admin", "wipe", "prod", Ok(())),
        ("dev", "read", "prod", Ok(())),
        ("dev", "write", "sandbox", Ok(())),
        ("dev", "write", "prod", Err(Symbol::Forbidden)),
        ("dev", "wipe", "sandbox", Err(Symbol::ToolNotFound)),
        ("dev", "hidden", "", Ok(())),
        ("dev", "buried", "", Err(Symbol::ToolNotFound)),
        ("guest", "read", "", Err(Symbol::ToolNotFound)),
        ("nobody", "read", "", Err(Symbol::ToolNotFound)),
    ] {
        assert_eq!(calls(who, tool, place), expected, "{who}: {tool} {place}");
    }
    for (who, uri, is_allowed) in [
        ("admin", "reef://secret", true),
        ("dev", "reef://open", true),
        ("dev", "reef://notes/1", true),
        ("dev", "reef://secret", false),
        ("dev", "reef://notes/%2e%2e/secret", false),
        ("guest", "reef://open", false),
        ("nobody", "reef://open", false),
    ] {
        let expected = if is_allowed { Ok(()) } else { Err(Symbol::ResourceNotFound) };
        assert_eq!(allows(&world, who, Method::ResourcesRead, json!({"uri": uri})), expected, "{who}: {uri}");
    }
    world.gateway.close().await;
}
