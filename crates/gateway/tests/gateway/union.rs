//! The merged lists: what is in them, under which names, for how long, and in which pages.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tidegate_config::{NameStyle, Patterns, ToolOverride};
use tidegate_edge::Eras;
use tidegate_gateway::Health;
use tidegate_protocol::Symbol;
use tidegate_server::{
    CacheHint, Cx, Prompt, PromptArgs, Resource, ResourceTemplate, Scope, Server, ToolError, Vars,
};
use tidegate_service::{Call, Reply};

use crate::rig::*;

/// A server with two of everything, whose addresses are its own.
fn whole(name: &str) -> Server {
    let mut server = Server::new(name, "1.0").dynamic();
    for entry in ["b", "a"] {
        let read = |vars: Vars, _: Cx| async move { Ok::<_, ToolError>(vars.uri().to_owned()) };
        server = server
            .tool(says(entry, &format!("{entry} of {name}")))
            .prompt(Prompt::new(entry).handler(|_: PromptArgs, _: Cx| async { Ok("Hello") }))
            .resource(Resource::text(format!("{name}://{entry}"), entry, "text"))
            .resource_template(ResourceTemplate::new(format!("{name}://{entry}/{{id}}"), entry).reader(read));
    }
    server
}

#[tokio::test]
async fn servers_of_every_era_and_transport_are_one_list_in_the_order_of_the_configuration() {
    let (old, new) = (Served::start(whole("old"), Eras::Legacy), Served::start(whole("new"), Eras::Modern));
    let (both, (old, new)) = (Served::start(whole("both"), Eras::Both).await, tokio::join!(old, new));
    let servers = || [local("here", whole("here")), old.named("old"), new.named("new"), both.named("both")];
    let order = ["here", "old", "new", "both"];
    let expected = |form: fn(&str, &str) -> String| -> Vec<String> {
        order.iter().flat_map(|server| ["b", "a"].map(|entry| form(server, entry))).collect()
    };
    let one = gateway(servers()).await;
    let two = gateway(servers()).await;
    for caller in [modern(), legacy()] {
        for (method, form) in [
            ("tools/list", (|s, e| format!("{s}_{e}")) as fn(&str, &str) -> String),
            ("prompts/list", |s, e| format!("{s}_{e}")),
            ("resources/list", |s, e| format!("{s}://{e}")),
            ("resources/templates/list", |s, e| format!("{s}://{e}/{{id}}")),
        ] {
            assert_eq!(caller.list(&one, method).await, expected(form), "{method}: as the servers have them");
            assert_eq!(caller.list(&two, method).await, expected(form), "the same each time");
        }
        for server in order {
            let called = caller.call(&one, &format!("{server}_a")).await;
            assert_eq!(called, (format!("a of {server}"), false));
        }
    }
    assert!(one.reports().is_empty(), "{:?}", one.reports());
    one.close().await;
    two.close().await;
}

#[tokio::test]
async fn lists_have_the_form_of_the_callers_era() {
    let gateway = gateway([local("here", whole("here"))]).await;
    for method in ["tools/list", "prompts/list", "resources/list", "resources/templates/list"] {
        let new = modern().get(&gateway, method, json!({})).await;
        assert_eq!(new["resultType"], "complete");
        assert!(new["ttlMs"].is_u64() && new["cacheScope"].is_string(), "{new}");
        assert_eq!(new["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "tidegate");
        let old = legacy().get(&gateway, method, json!({})).await;
        for member in ["resultType", "ttlMs", "cacheScope", "nextCursor"] {
            assert!(old.get(member).is_none(), "{member} in {old}");
        }
    }
    gateway.close().await;
}

#[tokio::test]
async fn names_and_descriptions_are_what_the_configuration_says() {
    let server = || {
        let names = ["create", "delete", "delete_all", "list", "secret"];
        names.into_iter().fold(Server::new("s", "1.0"), |server, name| server.tool(says(name, name)))
    };
    let mut plain = local("plain", server());
    plain.prefix = String::new();
    plain.allow = Patterns::new(["*"]).unwrap();
    plain.deny = Patterns::new(["delete*", "secret"]).unwrap();
    let mut changed = local("changed", server());
    let renamed = ToolOverride { name: Some("make".into()), description: None };
    let described = ToolOverride { name: None, description: Some("Better \"said\"".into()) };
    changed.tools = [("create".to_owned(), renamed), ("list".to_owned(), described)].into();
    changed.allow = Patterns::new(["create", "l*"]).unwrap();
    let gateway = gateway([plain.seal(), changed.seal()]).await;
    let caller = modern();
    let list = caller.get(&gateway, "tools/list", json!({})).await;
    assert_eq!(keys(&list), ["create", "list", "make", "changed_list"]);
    assert_eq!(list["tools"][2]["description"], "Says something");
    assert_eq!(list["tools"][3]["description"], "Better \"said\"");
    for (tool, text) in [("create", "create"), ("make", "create"), ("changed_list", "list")] {
        assert_eq!(caller.call(&gateway, tool).await, (text.to_owned(), false));
    }
    // What is not offered cannot be called, under any name.
    for tool in ["delete", "secret", "changed_create", "changed_delete", "plain_create"] {
        let error = caller.fails(&gateway, "tools/call", json!({"name": tool})).await;
        assert_eq!(error.symbol(), Symbol::ToolNotFound, "{tool}");
        assert!(error.message().contains(tool), "{error}");
    }
    assert!(gateway.reports().is_empty());
    gateway.close().await;
}

#[tokio::test]
async fn names_that_collide_or_that_models_refuse_are_replaced_and_reported() {
    let long = "x".repeat(80);
    let (odd, other) = ("files.read/all", "files read.all");
    let lists = move |call: &Call| {
        let tools = [odd, other, long.as_str(), "same"].map(|name| json!({"name": name, "inputSchema": {}}));
        (call.method.as_str() == "tools/list").then(|| json!({"tools": tools}).to_string())
    };
    let answers = move |call: &Call| match call.method.as_str() {
        "tools/call" => {
            let name = call.params.str("name").unwrap().into_owned();
            Some(json!({"content": [{"type": "text", "text": name}]}).to_string())
        }
        _ => lists(call),
    };
    let mut servers = [scripted("one", answers.clone()), scripted("two", answers.clone())];
    for server in &mut servers {
        server.prefix = String::new();
    }
    let first = gateway(servers.clone().map(|server| server.seal())).await;
    let caller = modern();
    let names = caller.list(&first, "tools/list").await;
    assert_eq!(names.len(), 8);
    let fits = |name: &String| {
        name.len() <= 64 && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
    };
    assert!(names.iter().all(fits), "{names:?}");
    assert_eq!(names.iter().collect::<std::collections::HashSet<_>>().len(), 8, "{names:?}");
    // The names of each server's tools do not depend on the order of its list.
    assert_eq!(names[..2], ["one_files_read_all", "files_read_all"], "\"files read.all\" comes first");
    assert_eq!(names[4..6], ["two_files_read_all_2", "two_files_read_all"]);
    assert_eq!((names[3].as_str(), names[7].as_str()), ("same", "two_same"));
    let reports = first.reports();
    for name in names.iter().filter(|name| *name != "same") {
        assert!(reports.iter().any(|report| report.contains(&format!("{name:?}"))), "{name}: {reports:?}");
    }
    // The table knows what each is called at home.
    for (at, name) in names.iter().enumerate() {
        let own = [odd, other, &"x".repeat(80), "same"][at % 4].to_owned();
        assert_eq!(caller.call(&first, name).await, (own, false));
    }
    let second = gateway(servers.map(|server| server.seal())).await;
    assert_eq!(caller.list(&second, "tools/list").await, names, "the same each time");

    let mut exact = settings([scripted("s", answers)]);
    exact.tools.names = NameStyle::Exact;
    let exact = started(exact).await;
    assert_eq!(caller.list(&exact, "tools/list").await[0], "s_files.read/all");
    assert!(exact.reports().is_empty());
    for gateway in [first, second, exact] {
        gateway.close().await;
    }
}

#[tokio::test]
async fn a_name_belongs_to_the_server_whose_prefix_it_has() {
    let server = |name: &str, prefix: &str, tool: &str| {
        let mut settings = local(name, Server::new(name, "1").tool(says(tool, name)));
        settings.prefix = prefix.to_owned();
        settings.seal()
    };
    // Wherever in the configuration the others are, they do not get what is the third one's.
    let all = [
        server("notes", "notes_", "work_echo"),
        server("bare", "", "notes_work_echo"),
        server("notes_work", "notes_work_", "echo"),
    ];
    let gateway = gateway(all).await;
    let caller = modern();
    assert_eq!(
        caller.list(&gateway, "tools/list").await,
        ["notes_work_echo_2", "bare_notes_work_echo", "notes_work_echo"]
    );
    assert_eq!(caller.call(&gateway, "notes_work_echo").await, ("notes_work".to_owned(), false));
    gateway.close().await;
}

#[tokio::test]
async fn names_do_not_depend_on_which_server_answers_first() {
    let server = |name: &str| {
        let mut settings = local(
            name,
            Server::new(name, "1").tool(says("echo", name)).tool(says(&format!("of_{name}"), name)),
        );
        settings.prefix = String::new();
        settings.seal()
    };
    // The first is not there yet.
    let (address, stop) =
        serve(Server::new("a", "1").build(), Eras::Modern, ([127, 0, 0, 1], 0).into()).await;
    drop(stop);
    let mut late = at("a", address);
    late.prefix = String::new();
    let early = gateway([late.seal(), server("b")]).await;
    let caller = modern();
    assert_eq!(caller.list(&early, "tools/list").await, ["b_echo", "b_of_b"]);
    assert!(
        early.reports().iter().any(|report| report.contains("until \"a\" has answered")),
        "{:?}",
        early.reports()
    );
    let a = Server::new("a", "1").tool(says("echo", "a")).tool(says("of_a", "a"));
    let (_, _stop) = serve(a.build(), Eras::Modern, address).await;
    let names = ["echo", "of_a", "b_echo", "of_b"];
    until("the first", async || caller.list(&early, "tools/list").await == names).await;
    assert_eq!(
        early.reports(),
        [r#""echo" of "b" is offered as "b_echo": the name "echo" is already used by "a""#]
    );
    // Nobody who knew the name of one ever called the other.
    assert_eq!(caller.call(&early, "b_echo").await, ("b".to_owned(), false));
    let at_once = gateway([server("a"), server("b")]).await;
    assert_eq!(caller.list(&at_once, "tools/list").await, names, "the same as if it had been there");
    early.close().await;
    at_once.close().await;
}

#[tokio::test]
async fn the_definitions_of_tools_are_in_the_capabilities_for_clients_that_read_them_there() {
    let mut wanted = settings([local("s", whole("s"))]);
    wanted.tools.in_capabilities = true;
    let with = started(wanted).await;
    let without = gateway([local("s", whole("s"))]).await;
    let said = async |gateway: &tidegate_gateway::Gateway, caller: Caller| {
        caller.get(gateway, "server/discover", json!({})).await["capabilities"]["tools"].clone()
    };
    let tools = said(&with, legacy()).await;
    assert_eq!(tools["listChanged"], true);
    let list = legacy().get(&with, "tools/list", json!({})).await;
    for (at, name) in ["s_b", "s_a"].into_iter().enumerate() {
        assert_eq!(tools[name], list["tools"][at], "the whole definition");
    }
    for tools in [said(&with, modern()).await, said(&without, legacy()).await] {
        assert_eq!(tools, json!({"listChanged": true}));
    }
    with.close().await;
    without.close().await;
}

#[tokio::test]
async fn what_a_server_lists_twice_is_offered_once() {
    let lists = |call: &Call| {
        let tools = ["a", "a", "b"].map(|name| json!({"name": name, "inputSchema": {}}));
        (call.method.as_str() == "tools/list").then(|| json!({"tools": tools}).to_string())
    };
    let gateway = gateway([scripted("s", lists)]).await;
    assert_eq!(modern().list(&gateway, "tools/list").await, ["s_a", "s_b"]);
    assert!(
        gateway.reports().iter().any(|report| report.contains("more than once")),
        "{:?}",
        gateway.reports()
    );
    gateway.close().await;
}

/// `ttlMs` and `cacheScope` of the tools.
async fn hints(servers: Vec<tidegate_gateway::ServerSettings>) -> (u64, String) {
    let gateway = gateway(servers).await;
    let list = modern().get(&gateway, "tools/list", json!({})).await;
    gateway.close().await;
    (list["ttlMs"].as_u64().unwrap(), list["cacheScope"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn a_list_is_good_for_as_long_and_for_whom_all_its_parts_are() {
    let server = |name: &str, seconds: u64, scope: Scope| {
        let hint = CacheHint { ttl: Duration::from_secs(seconds), scope };
        local(name, Server::new(name, "1.0").cache(hint).tool(says("t", "t")))
    };
    let (hour, minute) = (server("hour", 3600, Scope::Public), server("minute", 600, Scope::Public));
    let (ttl, scope) = hints(vec![hour.clone(), minute.clone()]).await;
    // What is left of ten minutes; nobody needs more than nine to get here.
    assert!((1..=600_000).contains(&ttl), "{ttl}");
    assert_eq!(scope, "public");
    let mine = server("mine", 3600, Scope::Private);
    assert_eq!(hints(vec![hour.clone(), mine]).await.1, "private");
    // A server without tools says nothing about tools.
    let without = local("without", Server::new("without", "1.0").resource(Resource::text("a://b", "b", "")));
    let (ttl, scope) = hints(vec![hour.clone(), without]).await;
    assert!((600_000..=3_600_000).contains(&ttl), "{ttl}");
    assert_eq!(scope, "public");
    // A legacy server promises nothing.
    let old = Served::start(Server::new("old", "1.0").tool(says("t", "t")), Eras::Legacy).await;
    assert_eq!(hints(vec![hour.clone(), old.named("old")]).await, (0, "private".to_owned()));
    // Nor does one that is not there.
    let gone = at("gone", old.address);
    drop(old);
    assert_eq!(hints(vec![hour, gone]).await, (0, "private".to_owned()));
}

#[tokio::test]
async fn pages_are_sealed_for_one_caller_and_one_list() {
    let built = whole("s").build();
    let handle = built.handle();
    let mut small = settings([door("s", built), local("t", whole("t"))]);
    small.tools.page_bytes = 1;
    let gateway = started(small).await;
    let (ann, bob) = (person("ann"), person("bob"));
    let page = async |caller: &Caller, method: &str, cursor: &Value| -> Result<Value, Symbol> {
        let params = if cursor.is_null() { json!({}) } else { json!({"cursor": cursor}) };
        match caller.ask(&gateway, method, params).await {
            Reply::Complete(page) => Ok(page.to().unwrap()),
            Reply::Error(error) => Err(error.symbol()),
            other => panic!("{other:?}"),
        }
    };
    let all = async |caller: &Caller, mut cursor: Value| {
        let mut all = Vec::new();
        loop {
            let page = page(caller, "tools/list", &cursor).await.unwrap();
            all.extend(keys(&page));
            cursor = page["nextCursor"].clone();
            if cursor.is_null() {
                return all;
            }
        }
    };
    let whole = ["s_a", "s_b", "t_a", "t_b"];
    for caller in [&ann, &bob, &modern(), &legacy()] {
        let mut names = all(caller, Value::Null).await;
        names.sort();
        assert_eq!(names, whole, "whoever comes second gets cursors of their own");
    }
    let first = page(&ann, "tools/list", &Value::Null).await.unwrap();
    let cursor = &first["nextCursor"];
    assert_eq!(page(&bob, "tools/list", cursor).await, Err(Symbol::InvalidCursor));
    assert_eq!(page(&ann, "prompts/list", cursor).await, Err(Symbol::InvalidCursor));
    let text = cursor.as_str().unwrap();
    let tampered = format!("{}{}", &text[..text.len() - 1], if text.ends_with('A') { 'B' } else { 'A' });
    for wrong in [json!(tampered), json!(""), json!("1"), json!(7), json!({})] {
        assert_eq!(page(&ann, "tools/list", &wrong).await, Err(Symbol::InvalidCursor), "{wrong}");
    }
    // A list that is being read does not change under its reader; one that is long gone is not made up.
    let mut changes = 0;
    let mut change = async || {
        changes += 1;
        let before = ann.get(&gateway, "tools/list", json!({})).await["nextCursor"].clone();
        let name = format!("c{changes}");
        handle.add_tool(says(&name, "new")).unwrap();
        until("the change", async || all(&ann, Value::Null).await.contains(&format!("s_{name}"))).await;
        before
    };
    let before = change().await;
    let rest = all(&ann, before.clone()).await;
    assert_eq!(rest.len(), 3, "without the new one: {rest:?}");
    for _ in 0..6 {
        change().await;
    }
    assert_eq!(page(&ann, "tools/list", &before).await, Err(Symbol::InvalidCursor));
    gateway.close().await;
}

#[tokio::test]
async fn pages_of_servers_are_read_to_their_end() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = asked.clone();
    let paged = move |call: &Call| {
        if call.method.as_str() != "tools/list" {
            return None;
        }
        counted.fetch_add(1, Ordering::Relaxed);
        let page: usize = call.params.str("cursor").map_or(0, |cursor| cursor.parse().unwrap());
        let mut result = json!({"tools": [{"name": format!("t{page}"), "inputSchema": {}}],
            "ttlMs": 3_600_000, "cacheScope": "public"});
        if page < 2 {
            result["nextCursor"] = (page + 1).to_string().into();
        }
        Some(result.to_string())
    };
    let endless = |call: &Call| {
        let page = json!({"tools": [{"name": "again", "inputSchema": {}}], "nextCursor": "again"});
        (call.method.as_str() == "tools/list").then(|| page.to_string())
    };
    let split = Server::new("split", "1.0").page_size(2);
    let split = (0..5).fold(split, |server, n| server.tool(says(&format!("n{n}"), "")));
    let split = Served::start(split, Eras::Modern).await;
    let servers = [scripted("paged", paged), scripted("endless", endless), split.named("split")];
    let gateway = gateway(servers).await;
    let names = modern().list(&gateway, "tools/list").await;
    let all: Vec<_> =
        (0..3).map(|n| format!("paged_t{n}")).chain((0..5).map(|n| format!("split_n{n}"))).collect();
    assert_eq!(names, all, "one page, because some clients ask for no other");
    assert_eq!(asked.load(Ordering::Relaxed), 3);
    let Health::Down { why, .. } = health(&gateway, "endless") else { panic!("{:?}", gateway.status()) };
    assert!(why.contains("repeats a page"), "{why}");
    gateway.close().await;
}

#[tokio::test]
async fn entries_that_are_none_are_left_out() {
    let lists = |call: &Call| match call.method.as_str() {
        "tools/list" => Some(r#"{"tools":[{"name":"good"},{"title":"no name"},7,{"name":8}]}"#.to_owned()),
        "prompts/list" => Some(r#"{"prompts":"none"}"#.to_owned()),
        _ => None,
    };
    let gateway = gateway([scripted("s", lists), local("fine", whole("fine"))]).await;
    let names = modern().list(&gateway, "tools/list").await;
    assert_eq!(names, ["s_good", "fine_b", "fine_a"]);
    assert_eq!(modern().list(&gateway, "prompts/list").await.len(), 2, "a list that is none spoils no other");
    assert_eq!(health(&gateway, "s"), Health::Ready);
    gateway.close().await;
}
