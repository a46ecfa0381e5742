//! Which server a call goes to, and how addresses that several servers have are told apart.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tidegate_edge::Eras;
use tidegate_gateway::{Gateway, ServerSettings};
use tidegate_protocol::{Revision, Symbol};
use tidegate_server::{
    Argument, Completing, Content, Cx, Prompt, PromptArgs, PromptMessage, PromptResult, Resource,
    ResourceContents, ResourceLink, ResourceTemplate, Server, ServerDoor, Tool, ToolError, ToolResult, Vars,
};
use tidegate_service::events::{self, Event, Kind, Recorder};
use tidegate_service::{Call, Notice, Reply};

use crate::rig::*;

/// A server with a resource, a template and a user interface that others have too, and some of its own.
fn notes(name: &'static str) -> ServerDoor {
    let link = Tool::new("links").handler(|_: (), _: Cx| async {
        let shared = ResourceLink::new("note://shared", "shared");
        let by = ResourceContents::text("note://by/7", "seven");
        ToolResult::text("note://shared").content(Content::link(shared)).content(Content::resource(by))
    });
    let panel = says("panel", "shown").meta("ui", json!({"resourceUri": "ui://panel", "odd": [1]}));
    let greet = Prompt::new("greet")
        .argument(Argument::new("who").complete(move |typed: Completing, _: Cx| async move {
            typed.filter([format!("{name} one"), "nobody".to_owned()])
        }))
        .handler(move |_: PromptArgs, _: Cx| async move {
            let shared = ResourceContents::text("note://shared", "shared");
            let messages = vec![PromptMessage::user(Content::resource(shared)), PromptMessage::user(name)];
            Ok(PromptResult::new(messages))
        });
    let by = |template: String| {
        let read = move |vars: Vars, _: Cx| async move {
            let text = format!("{} of {name}", vars.get("id").unwrap_or_default());
            Ok::<_, ToolError>(ResourceContents::text(vars.uri(), text))
        };
        ResourceTemplate::new(template, "by")
            .reader(read)
            .complete("id", move |typed: Completing, _: Cx| async move {
                typed.filter([format!("{name}-1"), "other".to_owned()])
            })
    };
    Server::new(name, "1.0")
        .dynamic()
        .tool(link)
        .tool(panel)
        .prompt(greet)
        .resource(Resource::text("note://shared", "shared", format!("shared of {name}")))
        .resource(Resource::text("ui://panel", "panel", format!("<p>{name}</p>")))
        .resource(Resource::text(format!("{name}://own"), "own", format!("own of {name}")))
        .resource_template(by("note://by/{id}".to_owned()))
        .resource_template(by(format!("{name}://item/{{id}}")))
        .build()
}

/// Reads a resource: its address as the server gives it, and its text.
async fn read(caller: &Caller, gateway: &Gateway, uri: &str) -> (String, String) {
    let result = caller.get(gateway, "resources/read", json!({"uri": uri})).await;
    let contents = &result["contents"][0];
    (contents["uri"].as_str().unwrap().to_owned(), contents["text"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn resources_are_found_by_list_template_and_scheme() {
    let (old, new) =
        (serve(notes("old"), Eras::Legacy, any()).await, serve(notes("new"), Eras::Modern, any()).await);
    let servers = [door("here", notes("here")), at("old", old.0), at("new", new.0)];
    let gateway = gateway(servers).await;
    for caller in [modern(), legacy()] {
        for name in ["here", "old", "new"] {
            let uri = format!("{name}://own");
            assert_eq!(read(&caller, &gateway, &uri).await, (uri, format!("own of {name}")));
            let uri = format!("{name}://item/5");
            assert_eq!(read(&caller, &gateway, &uri).await, (uri, format!("5 of {name}")));
            // Nothing lists it, but only one server has anything of the kind: that one says that there is none.
            let missing = format!("{name}://else");
            let error = caller.fails(&gateway, "resources/read", json!({"uri": missing})).await;
            assert_eq!(error.symbol(), Symbol::ResourceNotFound);
            assert!(error.message().contains(&missing), "{error}");
        }
        let error = caller.fails(&gateway, "resources/read", json!({"uri": "nobody://knows"})).await;
        let code = if caller.0.revision.is_modern() { -32602 } else { -32002 };
        assert_eq!((error.symbol(), error.code(caller.0.revision)), (Symbol::ResourceNotFound, code));
        let data = error.data().unwrap().as_str();
        assert!(data.starts_with(r#"{"uri":"nobody://knows","correlationId":""#), "{data}");
    }
    gateway.close().await;
}

fn any() -> std::net::SocketAddr {
    ([127, 0, 0, 1], 0).into()
}

#[tokio::test]
async fn addresses_that_several_servers_have_are_qualified_wherever_they_stand() {
    let new = serve(notes("two"), Eras::Modern, any()).await;
    let gateway = gateway([door("one", notes("one")), at("Two_2", new.0)]).await;
    let caller = modern();
    let mut listed = caller.list(&gateway, "resources/list").await;
    listed.sort();
    let ours = |label: &str, own: &str| {
        [format!("{label}+note://shared"), format!("ui://{label}+panel"), format!("{own}://own")]
    };
    let mut expected = [ours("one", "one"), ours("two-2", "two")].concat();
    expected.sort();
    assert_eq!(listed, expected);
    let templates = caller.list(&gateway, "resources/templates/list").await;
    for template in ["one+note://by/{id}", "two-2+note://by/{id}", "one://item/{id}"] {
        assert!(templates.iter().any(|listed| listed == template), "{template}: {templates:?}");
    }
    for (label, prefix, name) in [("one", "one", "one"), ("two-2", "Two_2", "two")] {
        for (uri, text) in [
            (format!("{label}+note://shared"), format!("shared of {name}")),
            (format!("ui://{label}+panel"), format!("<p>{name}</p>")),
            (format!("{label}+note://by/3"), format!("3 of {name}")),
        ] {
            assert_eq!(read(&caller, &gateway, &uri).await, (uri, text), "what comes back is what was asked");
        }
        let result = caller.get(&gateway, "tools/call", json!({"name": format!("{prefix}_links")})).await;
        assert_eq!(result["content"][0]["text"], "note://shared", "a text is a text");
        assert_eq!(result["content"][1]["uri"], format!("{label}+note://shared"));
        assert_eq!(result["content"][2]["resource"]["uri"], format!("{label}+note://by/7"));
        let prompt = caller.get(&gateway, "prompts/get", json!({"name": format!("{prefix}_greet")})).await;
        assert_eq!(prompt["messages"][0]["content"]["resource"]["uri"], format!("{label}+note://shared"));
        assert_eq!(prompt["messages"][1]["content"]["text"], name);
    }
    let tools = caller.get(&gateway, "tools/list", json!({})).await;
    let panels: Vec<_> =
        tools["tools"].as_array().unwrap().iter().filter_map(|tool| tool["_meta"].get("ui")).collect();
    let panel = |label: &str| json!({"resourceUri": format!("ui://{label}+panel"), "odd": [1]});
    assert_eq!(panels, [&panel("one"), &panel("two-2")]);
    // Whose it is cannot be told, and the sentence says what can be asked for instead.
    for (uri, first, second) in [
        ("note://shared", "one+note://shared", "two-2+note://shared"),
        ("note://by/3", "one+note://by/3", "two-2+note://by/3"),
        ("ui://panel", "ui://one+panel", "ui://two-2+panel"),
    ] {
        let error = caller.fails(&gateway, "resources/read", json!({"uri": uri})).await;
        assert_eq!(error.symbol(), Symbol::ResourceNotFound);
        assert!(error.message().contains(first) && error.message().contains(second), "{error}");
    }
    gateway.close().await;
}

#[tokio::test]
async fn servers_whose_names_look_alike_keep_addresses_of_their_own() {
    let gateway = gateway([door("a_b", notes("x")), door("a-b", notes("y")), door("A.b", notes("z"))]).await;
    let caller = modern();
    let shared: Vec<_> = caller.list(&gateway, "resources/list").await;
    let shared: Vec<_> = shared.into_iter().filter(|uri| uri.ends_with("note://shared")).collect();
    let mut texts = Vec::new();
    for uri in &shared {
        texts.push(read(&caller, &gateway, uri).await.1);
    }
    assert_eq!(texts, ["shared of x", "shared of y", "shared of z"], "{shared:?}");
    gateway.close().await;
}

#[tokio::test]
async fn updates_come_under_the_address_that_was_subscribed_to() {
    let (one, two) = (notes("one"), notes("two"));
    let (first, second) = (one.handle(), two.handle());
    let old = serve(two, Eras::Legacy, any()).await;
    let gateway = gateway([door("one", one), at("two", old.0)]).await;
    let wanted = ["one+note://shared", "two+note://shared", "two://own", "two+note://by/1", "nobody://knows"];
    let params = json!({"notifications": {"resourceSubscriptions": wanted}});
    let Reply::Subscription(open) = modern().ask(&gateway, "subscriptions/listen", params).await else {
        panic!()
    };
    let acknowledged: Value = open.acknowledged.to().unwrap();
    let mut known = wanted[..4].to_vec();
    known.sort_unstable();
    assert_eq!(acknowledged, json!({"resourceSubscriptions": known}));
    // Nothing that happens after the subscription is confirmed is missed.
    for (server, own, uri) in [
        (&first, "note://shared", "one+note://shared"),
        (&second, "note://shared", "two+note://shared"),
        (&second, "two://own", "two://own"),
        (&second, "note://by/1", "two+note://by/1"),
    ] {
        server.resource_updated("nobody://knows");
        server.resource_updated(own);
        let notice = in_time(uri, open.events.next()).await.expect("more");
        assert_eq!(notice, Notice::ResourceUpdated(uri.into()));
    }
    gateway.shut_down();
    in_time("the end", async { while open.events.next().await.is_some() {} }).await;
    gateway.close().await;
}

/// A server that gives links to what it lists nowhere, and says whose they are when they are read.
fn linking(name: &'static str) -> ServerSettings {
    scripted(name, move |call: &Call| match call.method.as_str() {
        "tools/list" => Some(json!({"tools": [{"name": "link", "inputSchema": {}}]}).to_string()),
        "prompts/list" => Some(json!({"prompts": []}).to_string()),
        "resources/list" => Some(json!({"resources": []}).to_string()),
        "tools/call" => {
            let link = json!({"type": "resource_link", "uri": "hidden://x", "name": "x"});
            Some(json!({"content": [{"type": "text", "text": "see"}, link]}).to_string())
        }
        "resources/read" => {
            let uri = call.params.str("uri").unwrap();
            Some(json!({"contents": [{"uri": uri, "text": format!("{uri} of {name}")}]}).to_string())
        }
        _ => None,
    })
}

#[tokio::test]
async fn a_link_works_for_whom_it_was_given_to() {
    let gateway = gateway([linking("one"), linking("two")]).await;
    let (ann, bob) = (person("ann"), person("bob"));
    let (old, older) = (legacy(), legacy());
    let hidden = json!({"uri": "hidden://x"});
    for caller in [&ann, &bob, &old, &older] {
        let error = caller.fails(&gateway, "resources/read", hidden.clone()).await;
        assert_eq!(error.symbol(), Symbol::ResourceNotFound);
    }
    for (caller, tool, server) in
        [(&ann, "one_link", "one"), (&old, "two_link", "two"), (&ann, "two_link", "two")]
    {
        caller.call(&gateway, tool).await;
        assert_eq!(read(caller, &gateway, "hidden://x").await.1, format!("hidden://x of {server}"));
        for other in [&bob, &older] {
            other.fails(&gateway, "resources/read", hidden.clone()).await;
        }
    }
    gateway.close().await;
}

#[tokio::test]
async fn completions_go_where_the_prompt_or_the_template_is() {
    let old = serve(notes("two"), Eras::Legacy, any()).await;
    let gateway = gateway([door("one", notes("one")), at("two", old.0)]).await;
    let argument = |name: &str, value: &str| json!({"name": name, "value": value});
    for caller in [modern(), legacy()] {
        for (reference, argument, expected) in [
            (json!({"type": "ref/prompt", "name": "one_greet"}), argument("who", "o"), "one one"),
            (json!({"type": "ref/prompt", "name": "two_greet"}), argument("who", "t"), "two one"),
            (json!({"type": "ref/resource", "uri": "one+note://by/{id}"}), argument("id", "one"), "one-1"),
            (json!({"type": "ref/resource", "uri": "two+note://by/{id}"}), argument("id", "t"), "two-1"),
            (json!({"type": "ref/resource", "uri": "two://item/{id}"}), argument("id", "t"), "two-1"),
        ] {
            let params = json!({"ref": reference, "argument": argument});
            let result = caller.get(&gateway, "completion/complete", params).await;
            assert_eq!(result["completion"]["values"], json!([expected]), "{reference}");
        }
        for (reference, symbol) in [
            (json!({"type": "ref/prompt", "name": "greet"}), Symbol::PromptNotFound),
            (json!({"type": "ref/resource", "uri": "nobody://{id}"}), Symbol::ResourceNotFound),
            (json!({"type": "ref/other"}), Symbol::InvalidParams),
            (json!("greet"), Symbol::InvalidParams),
        ] {
            let params = json!({"ref": reference, "argument": argument("who", "")});
            let error = caller.fails(&gateway, "completion/complete", params).await;
            assert_eq!(error.symbol(), symbol, "{reference}");
        }
    }
    gateway.close().await;
}

/// A server that answers a method of its own with what it was asked.
fn vendor(name: &'static str) -> ServerSettings {
    scripted(name, move |call: &Call| match call.method.as_str() {
        "vendor/echo" => Some(format!(r#"{{"server":"{name}","asked":{}}}"#, call.params.as_str())),
        "tools/list" => Some(r#"{"tools":[]}"#.to_owned()),
        "prompts/list" => Some(r#"{"prompts":[]}"#.to_owned()),
        "resources/list" => {
            Some(json!({"resources": [{"uri": format!("{name}://r"), "name": "r"}]}).to_string())
        }
        _ => None,
    })
}

#[tokio::test]
async fn methods_that_nobody_knows_go_where_their_server_is_clear() {
    let only = gateway([vendor("only")]).await;
    let asked = json!({"x": 1});
    let result = modern().get(&only, "vendor/echo", asked.clone()).await;
    assert_eq!((&result["server"], &result["asked"]), (&json!("only"), &asked));
    assert_eq!(modern().fails(&only, "vendor/else", json!({})).await.symbol(), Symbol::MethodNotFound);
    only.close().await;

    let two = gateway([vendor("one"), vendor("two")]).await;
    for caller in [modern(), legacy()] {
        let named = json!({"x": 1, "_meta": {"dev.tidegate/server": "two"}});
        assert_eq!(caller.get(&two, "vendor/echo", named).await["server"], "two");
        let placed = json!({"uri": "one://r"});
        assert_eq!(caller.get(&two, "vendor/echo", placed).await["server"], "one");
        let error = caller.fails(&two, "vendor/echo", json!({"x": 1})).await;
        assert_eq!(error.symbol(), Symbol::MethodNotFound);
        let nobody = json!({"_meta": {"dev.tidegate/server": "three"}});
        let error = caller.fails(&two, "vendor/echo", nobody).await;
        assert_eq!(error.symbol(), Symbol::InvalidParams);
        assert!(error.message().contains("three"), "{error}");
    }
    two.close().await;
}

#[tokio::test]
async fn everything_is_declared_and_what_servers_say_of_themselves_is_joined() {
    let apps = r#"{"mimeTypes":["text/html;profile=mcp-app"],"n":1.0E+2,"big":12345678901234567890123}"#;
    let first = scripted("first", move |call: &Call| {
        let declared = format!(
            r#"{{"extensions":{{"io.modelcontextprotocol/ui":{apps}}},"experimental":{{"x":{{"y":1.0}}}}}}"#
        );
        (call.method.as_str() == "server/discover").then(|| {
            format!(r#"{{"supportedVersions":["2026-07-28"],"capabilities":{declared},"instructions":" Be brief. "}}"#)
        })
    });
    let second =
        Server::new("second", "1.0").instructions("Be kind.").extension("com.example/e", json!({"v": 2}));
    let second = Served::start(second, Eras::Modern).await;
    let third = Server::new("third", "1.0").instructions("Be old.");
    let third = Served::start(third, Eras::Legacy).await;
    let (mut second_named, mut third_named) = (second.named("second"), third.named("third"));
    second_named.prefix = String::new();
    third_named.prefix = "3-".to_owned();
    let gateway = gateway([first, second_named, third_named]).await;
    for caller in [modern(), legacy()] {
        let Reply::Complete(text) = caller.ask(&gateway, "server/discover", json!({})).await else {
            panic!()
        };
        let modern = caller.0.revision.is_modern();
        let all: Value = text.to().unwrap();
        let has = &all["capabilities"];
        assert_eq!(has["tools"], json!({"listChanged": true}));
        assert_eq!(has["prompts"], json!({"listChanged": true}));
        assert_eq!(has["resources"], json!({"subscribe": true, "listChanged": true}));
        assert_eq!((&has["logging"], &has["completions"]), (&json!({}), &json!({})));
        // Each says under which names its tools are.
        let named = |prefix: &str| format!("Its tools and prompts have `{prefix}` before their names here.");
        let said = format!(
            "# first\n\n{}\n\nBe brief.\n\n# second\n\nBe kind.\n\n# third\n\n{}\n\nBe old.",
            named("first_"),
            named("3-")
        );
        assert_eq!(all["instructions"], said);
        assert_eq!(all["supportedVersions"].as_array().unwrap().len(), Revision::ALL.len());
        assert!(text.as_str().contains(r#""x":{"y":1.0}"#), "{text}");
        if modern {
            assert!(text.as_str().contains(&format!(r#""io.modelcontextprotocol/ui":{apps}"#)), "{text}");
            assert_eq!(has["extensions"].get("com.example/e"), None, "nobody knows whose calls it has");
            assert_eq!(has["extensions"]["dev.tidegate/call-batch"], json!({}));
        }
    }
    gateway.close().await;
}

#[tokio::test]
async fn a_batch_goes_to_several_servers_and_fails_in_parts() {
    let bad =
        Tool::new("bad").handler(|_: (), _: Cx| async { Err::<String, _>(ToolError::message_only("no")) });
    let old =
        Served::start(Server::new("old", "1.0").tool(says("good", "old good")).tool(bad), Eras::Legacy).await;
    let servers =
        [local("here", Server::new("here", "1.0").tool(says("good", "here good"))), old.named("old")];
    let gateway = gateway(servers).await;
    let calls: Vec<_> = ["old_good", "here_good", "old_bad", "nobody", "here_good"]
        .map(|name| json!({"name": name, "arguments": {}}))
        .into();
    for caller in [modern(), legacy()] {
        let result = caller.get(&gateway, "tools/call_batch", json!({"calls": calls})).await;
        let results = result["results"].as_array().unwrap();
        let said: Vec<_> = results.iter().map(|r| &r["result"]["content"][0]["text"]).collect();
        assert_eq!(said[..3], [&json!("old good"), &json!("here good"), &json!("no")]);
        assert_eq!(results[2]["result"]["isError"], true);
        assert!(results[3]["error"]["message"].as_str().unwrap().contains("nobody"), "{result}");
        assert_eq!((said[4], &results[4]["index"]), (&json!("here good"), &json!(4)));
    }
    gateway.close().await;
}

/// A tool that is not listed can be called by whoever knows it, in both eras, locally and over HTTP; what the
/// configuration leaves out cannot, and what nobody has is still unknown.
#[tokio::test]
async fn tools_that_nobody_lists() {
    let server = |said: &str| {
        let hidden = |name: &str| says(name, said).unlisted();
        Server::new("s", "1").tool(says("shown", said)).tool(hidden("hidden")).tool(hidden("denied"))
    };
    let served = Served::start(server("far"), Eras::Legacy).await;
    let mut near = local("near", server("near"));
    near.prefix = String::new();
    near.deny = tidegate_config::Patterns::new(["denied"]).unwrap();
    let gateway =
        gateway([near, served.named("far"), local("plain", Server::new("p", "1").tool(says("a", "a")))])
            .await;
    for caller in [modern(), legacy()] {
        assert_eq!(caller.list(&gateway, "tools/list").await, ["shown", "far_shown", "plain_a"]);
        assert_eq!(caller.call(&gateway, "hidden").await, ("near".to_owned(), false));
        assert_eq!(caller.call(&gateway, "far_hidden").await, ("far".to_owned(), false));
        for unknown in ["denied", "nobody", "plain_hidden"] {
            let error = caller.fails(&gateway, "tools/call", json!({"name": unknown, "arguments": {}})).await;
            assert!(error.message().contains(&format!("Unknown tool: {unknown}")), "{error}");
        }
    }
    // Servers are asked for what is unknown, but the record of the call names none of them.
    let recorder = Arc::new(ServersOf("far_of_nobody", Mutex::default()));
    events::add(recorder.clone());
    let params = json!({"name": recorder.0, "arguments": {}});
    modern().fails(&gateway, "tools/call", params).await;
    let servers = recorder.1.lock().unwrap();
    assert!(!servers.is_empty() && servers.iter().all(Option::is_none), "{servers:?}");
}

/// Notes the servers in the records of calls of one tool.
struct ServersOf(&'static str, Mutex<Vec<Option<String>>>);

impl Recorder for ServersOf {
    fn wants(&self, kind: Kind) -> bool {
        kind == Kind::CallEnded
    }

    fn record(&self, event: &Event<'_>) {
        if let Event::CallEnded(call) = event
            && call.name() == Some(self.0)
        {
            self.1.lock().unwrap().push(call.server.map(str::to_owned));
        }
    }
}
