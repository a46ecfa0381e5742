//! Every way in, one row each: what needs credentials, a tenant or a scope needs them by each of these ways.

use serde_json::{Value, json};

use super::World;
use super::features::{remember, remember_that};
use crate::http::Answer;
use crate::rig::{ANN, BOB, CID, Caller, Gateway, MOVED};

/// A way to ask for what a memory knows of an entity.
struct Door {
    name: &'static str,
    ask: fn(&Caller, &str) -> String,
}

/// All that a tenant's memory says of an entity of this name, by each way in.
const DOORS: &[Door] = &[
    Door { name: "tools/call", ask: |who, pearl| who.call("open_nodes", json!({"names": [pearl]})).body },
    Door {
        name: "tools/call in a session",
        ask: |who, pearl| {
            in_session(who, "tools/call", json!({"name": "open_nodes", "arguments": {"names": [pearl]}}))
        },
    },
    Door {
        name: "tools/call without a session",
        ask: |who, pearl| {
            let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                "params": {"name": "open_nodes", "arguments": {"names": [pearl]}}});
            who.send("POST", "/mcp", &[], &call.to_string()).body
        },
    },
    Door {
        name: "tools/call over HTTP+SSE",
        ask: |who, pearl| {
            let call = json!({"name": "open_nodes", "arguments": {"names": [pearl]}});
            over_http_sse(who, &[("tools/call", call)])
        },
    },
    Door {
        name: "tools/call_batch",
        ask: |who, pearl| {
            let calls = json!([{"name": "demo_echo", "arguments": {"message": "first"}},
                {"name": "open_nodes", "arguments": {"names": [pearl]}}]);
            who.modern("tools/call_batch", json!({"calls": calls})).body
        },
    },
    Door {
        name: "a tool that searches",
        ask: |who, pearl| who.call("search_nodes", json!({"query": pearl})).body,
    },
    Door { name: "a tool that reads all", ask: |who, _| who.call("read_graph", json!({"limit": 1000})).body },
    Door {
        name: "a tool that searches everything",
        ask: |who, pearl| who.call("search_knowledge_base", json!({"query": pearl})).body,
    },
    Door {
        name: "a tool that looks up",
        ask: |who, pearl| who.call("lookup_entity", json!({"entity_id": pearl})).body,
    },
    Door {
        name: "a tool that searches by meaning",
        ask: |who, pearl| who.call("semantic_search", json!({"query": pearl})).body,
    },
    Door {
        name: "a tool that looks back",
        ask: |who, pearl| who.call("get_entity_history", json!({"entityName": pearl})).body,
    },
    Door {
        name: "a tool of other servers of this kind",
        ask: |who, _| who.call("get_decayed_graph", json!({"limit": 1000})).body,
    },
    Door {
        name: "resources/read",
        ask: |who, _| who.modern("resources/read", json!({"uri": "memory://knowledge-graph"})).body,
    },
    Door {
        name: "resources/read in a session",
        ask: |who, _| in_session(who, "resources/read", json!({"uri": "memory://knowledge-graph"})),
    },
    Door {
        name: "resources/read by a template",
        ask: |who, pearl| {
            who.modern("resources/read", json!({"uri": format!("memory://entities/{pearl}")})).body
        },
    },
    Door {
        name: "an agent that calls tools, with the caller's own model",
        ask: |who, pearl| {
            let question = json!({"name": "ask_agent", "arguments": {"agent_uri": "librarian", "prompt": "What is it?"}});
            let asked = who.modern("tools/call", question.clone()).json()["result"].clone();
            let wanted = json!({"tool": "open_nodes", "arguments": {"names": [pearl]}}).to_string();
            let said =
                json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": wanted}});
            let keys = asked["inputRequests"].as_object().into_iter().flatten();
            let answers: serde_json::Map<String, Value> =
                keys.map(|(key, _)| (key.clone(), said.clone())).collect();
            let mut again = question;
            again["requestState"] = asked["requestState"].clone();
            again["inputResponses"] = answers.into();
            // The model is asked again, with what the tool has said.
            who.modern("tools/call", again).body
        },
    },
    Door { name: "resources/list", ask: |who, _| pages(who, "resources/list") },
    Door {
        name: "completion/complete of a template",
        ask: |who, pearl| {
            let of = json!({"type": "ref/resource", "uri": "memory://entities/{name}"});
            complete(who, &of, "name", pearl)
        },
    },
];

#[test]
fn a_memory_is_its_tenants_by_every_way_in() {
    let world = World::start("");
    let ann = world.gateway.as_user(ANN);
    let pearl = remember(&ann);
    // Who has an own memory is no less apart.
    remember_that(&world.gateway.as_user(CID), "kept by Cid");
    let mut faults = Vec::new();
    for door in DOORS {
        for user in [CID, MOVED] {
            let got = (door.ask)(&world.gateway.as_user(user), &pearl);
            // What was asked for may be repeated; what is known of it is something else.
            if got.contains("kept by Ann") || got.contains(&format!("memory://entities/{pearl}\"")) {
                faults.push(format!("{}: {} sees it: {got}", door.name, user.name));
            }
        }
        let nobody = (door.ask)(&world.gateway.nobody(), &pearl);
        if nobody.contains(&pearl) {
            faults.push(format!("{}: anybody sees it: {nobody}", door.name));
        }
        for user in [ANN, BOB] {
            let got = (door.ask)(&world.gateway.as_user(user), &pearl);
            if !got.contains(&pearl) {
                faults.push(format!("{}: {} does not see it: {got}", door.name, user.name));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Every request of either era, and one that nobody has.
const METHODS: [&str; 22] = [
    "initialize",
    "ping",
    "server/discover",
    "tools/list",
    "tools/call",
    "tools/call_batch",
    "prompts/list",
    "prompts/get",
    "resources/list",
    "resources/read",
    "resources/templates/list",
    "resources/subscribe",
    "resources/unsubscribe",
    "resources/directory/read",
    "completion/complete",
    "logging/setLevel",
    "subscriptions/listen",
    "tasks/get",
    "tasks/list",
    "tasks/cancel",
    "skills/list",
    "no/such/method",
];

#[test]
fn no_method_is_open() {
    let gateway = Gateway::start("http_sse = true\n");
    for method in METHODS {
        let params = json!({"name": "demo_echo", "arguments": {"message": "open"}, "uri": "demo://about", "taskId": "x",
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "n", "version": "1"}});
        let modern = gateway.nobody().modern(method, params.clone());
        assert_eq!(modern.status, 401, "{method}: {modern:?}");
        for body in [
            json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}),
            json!([{"jsonrpc": "2.0", "id": 1, "method": method, "params": params}]),
            json!({"jsonrpc": "2.0", "method": format!("notifications/{method}")}),
            json!({"jsonrpc": "2.0", "id": 1, "result": {}}),
        ] {
            let answer = gateway.nobody().send("POST", "/mcp", &[], &body.to_string());
            assert_eq!(answer.status, 401, "{method}: {answer:?}");
        }
    }
}

/// A way to call a tool.
type Way = (&'static str, fn(&Caller) -> Answer);

/// Ways to call a tool for which Ann's token lacks a scope.
const WAYS: &[Way] = &[
    ("tools/call", |who| who.call("demo_add", sum())),
    ("tools/call with a name in another spelling", |who| who.call("demo_Add", sum())),
    ("tools/call in a session", |who| who.in_session(&who.session(), "tools/call", add())),
    ("tools/call as a task", |who| {
        let mut call = add();
        call["task"] = json!({"ttl": 1000});
        who.in_session(&who.session(), "tools/call", call)
    }),
    ("tools/call without a session", |who| {
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": add()});
        who.send("POST", "/mcp", &[], &call.to_string())
    }),
    ("a batch of 2025-03-26", |who| {
        let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "n", "version": "1"}}});
        let opened = who.send("POST", "/mcp", &[], &initialize.to_string());
        let headers = [("Mcp-Session-Id", opened.header("mcp-session-id"))];
        let done = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        who.send("POST", "/mcp", &headers, &done.to_string());
        let calls = json!([{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": add()},
            {"jsonrpc": "2.0", "id": 2, "method": "ping"}]);
        who.send("POST", "/mcp", &headers, &calls.to_string())
    }),
    ("tools/call_batch", |who| who.modern("tools/call_batch", json!({"calls": [add()]}))),
    ("call_tool", |who| who.clone().at("/finder/mcp").call("call_tool", add())),
    ("call_tool in a batch", |who| {
        let call = json!({"name": "call_tool", "arguments": add()});
        who.clone().at("/finder/mcp").modern("tools/call_batch", json!({"calls": [call]}))
    }),
    ("HTTP+SSE", |who| {
        let body = over_http_sse(who, &[("tools/call", add())]);
        Answer { status: 200, head: String::new(), body }
    }),
];

/// What no id and no date happens to hold.
const SUM: &str = "918273645";

fn sum() -> Value {
    json!({"a": 900_000_000, "b": 18_273_645})
}

fn add() -> Value {
    json!({"name": "demo_add", "arguments": sum()})
}

#[test]
fn a_scope_is_needed_by_every_way_in() {
    let world = World::start("[endpoints.finder]\nmode = \"search\"\n");
    let gateway = &world.gateway;
    let audiences = json!([gateway.url(""), gateway.url("finder")]);
    let with = |scope: &str| {
        gateway.with_token(&gateway.token("", ANN, |claims| {
            claims["aud"] = audiences.clone();
            claims["scope"] = scope.into();
        }))
    };
    let (lacking, enough) = (with("mcp"), with("mcp files:write"));
    let mut faults = Vec::new();
    for (what, way) in WAYS {
        let refused = way(&lacking);
        if refused.body.contains(SUM) {
            faults.push(format!("{what}: done without the scope: {refused:?}"));
        }
        let done = way(&enough);
        let may_be_unknown =
            what.contains("spelling") || what.contains("as a task") || what.contains("without a session");
        if !done.body.contains(SUM) && !may_be_unknown {
            faults.push(format!("{what}: not done with the scope: {done:?}"));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn nobody_stops_the_call_of_another() {
    let gateway = Gateway::start("[demo]\npace = \"500ms\"\n");
    let ann = gateway.as_user(ANN);
    let session = ann.session();
    let count = json!({"name": "demo_count", "arguments": {"to": 6}, "_meta": {"progressToken": 7}});
    let mut legacy = ann.open_in_session(&session, "tools/call", count.clone());
    legacy.until("counted to 1");
    for user in [BOB, CID] {
        let other = gateway.as_user(user);
        let cancel = json!({"requestId": 2, "reason": "mine"});
        let progress = json!({"progressToken": 7, "progress": 99});
        // In a session of their own it is somebody else's request; hers they do not know.
        let own = other.session();
        assert_eq!(other.in_session(&own, "notifications/cancelled", cancel.clone()).status, 202);
        assert_eq!(other.in_session(&own, "notifications/progress", progress.clone()).status, 202);
        assert_eq!(other.in_session(&session, "notifications/cancelled", cancel).status, 404);
        assert_eq!(other.in_session(&session, "notifications/progress", progress).status, 404);
    }
    legacy.read_to_end();
    assert!(legacy.text().contains("Counted to 6"), "{}", legacy.text());
}

#[test]
fn pages_show_nothing_of_anybody() {
    let gateway = Gateway::start("");
    let pearl = remember(&gateway.as_user(ANN));
    // A browser cannot send a token with the address of a page: that of the memory is not there, nor a link to it.
    for (path, expected) in [("/", 200), ("/memory", 404)] {
        assert_eq!(gateway.nobody().send("GET", path, &[], "").status, 401, "{path}");
        let shown = gateway.as_user(CID).send("GET", path, &[], "");
        assert_eq!(shown.status, expected, "{path}");
        assert!(!shown.body.contains(&pearl) && !shown.body.contains("\"/memory\""), "{path}: {shown:?}");
    }
}

fn in_session(who: &Caller, method: &str, params: Value) -> String {
    let opened = who.initialize();
    let session = opened.header("mcp-session-id").to_owned();
    if session.is_empty() {
        return opened.body;
    }
    who.in_session(&session, "notifications/initialized", Value::Null);
    who.in_session(&session, method, params).body
}

/// All pages of a list.
fn pages(who: &Caller, method: &str) -> String {
    let (mut all, mut params) = (String::new(), json!({}));
    loop {
        let page = who.modern(method, params);
        all += &page.body;
        match &page.json()["result"]["nextCursor"] {
            Value::String(cursor) => params = json!({"cursor": cursor}),
            _ => return all,
        }
    }
}

fn complete(who: &Caller, of: &Value, argument: &str, typed: &str) -> String {
    // As a template is listed, which may have more to it.
    let templates = who.modern("resources/templates/list", json!({})).json();
    let uris = templates["result"]["resourceTemplates"].as_array().into_iter().flatten();
    let wanted = of["uri"].as_str().unwrap_or_default();
    let listed =
        uris.filter_map(|template| template["uriTemplate"].as_str()).find(|uri| uri.starts_with(wanted));
    let of = json!({"type": of["type"], "uri": listed.unwrap_or(wanted)});
    let typed = &typed[..typed.len() - 1];
    let params = json!({"ref": of, "argument": {"name": argument, "value": typed}});
    let answer = who.modern("completion/complete", params).json();
    // Told in the words of the other rows.
    let values = answer["result"]["completion"]["values"].as_array().into_iter().flatten();
    values.filter_map(Value::as_str).map(|name| format!("memory://entities/{name}\" ")).collect()
}

/// Opens a connection of the HTTP+SSE transport, makes these requests, and gives everything that came.
fn over_http_sse(who: &Caller, requests: &[(&str, Value)]) -> String {
    let mut stream = who.open("GET", "/sse", &[("Accept", "text/event-stream")], "");
    if stream.status() != 200 {
        return stream.text();
    }
    let opened = stream.until("data: ");
    let path =
        opened.split("data: ").nth(1).and_then(|rest| rest.split_whitespace().next()).unwrap_or_default();
    let path = path.find("/messages").map_or(path, |at| &path[at..]).to_owned();
    let post = |id: usize, method: &str, params: &Value| {
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        who.send("POST", &path, &[], &message.to_string())
    };
    let hello = json!({"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "n", "version": "1"}});
    post(100, "initialize", &hello);
    stream.until("\"id\":100");
    let told = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    who.send("POST", &path, &[], &told.to_string());
    for (at, (method, params)) in requests.iter().enumerate() {
        let answer = post(200 + at, method, params);
        if answer.status >= 300 {
            return answer.body;
        }
        stream.until(&format!("\"id\":{}", 200 + at));
        // The rest of the line.
        stream.until("\n\n");
    }
    stream.text()
}
