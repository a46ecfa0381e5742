//! Whatever is kept for a caller, one row each.

use serde_json::{Value, json};

use super::World;
use crate::http::{Stream, until};
use crate::issuer::fresh;
use crate::rig::{ANN, BOB, CID, Caller, MOVED, NAMESAKE, User};
use crate::upstreams::DONE;

/// Something that is Ann's.
struct Feature {
    name: &'static str,
    /// Who has no part in it.
    others: &'static [User],
    /// Makes it, as Ann.
    make: fn(&Caller) -> Kept,
    /// Uses it, and says what came of that.
    using: fn(&Caller, &Kept) -> String,
    /// What comes of it for her alone.
    gives: &'static str,
}

/// What Ann knows of it: ids, addresses, cursors. The others know all that too.
#[derive(Default)]
struct Kept {
    value: Value,
    /// What must stay open for it to be there.
    _open: Vec<Stream>,
}

impl From<Value> for Kept {
    fn from(value: Value) -> Kept {
        Kept { value, _open: Vec::new() }
    }
}

/// What is a person's own.
const EVERYBODY: &[User] = &[BOB, CID, NAMESAKE, MOVED];
/// What the people of a tenant share.
const OTHER_TENANTS: &[User] = &[CID, MOVED];

const FEATURES: &[Feature] = &[
    // Legacy sessions.
    Feature {
        name: "a session: POST",
        others: EVERYBODY,
        make: |ann| json!(ann.session()).into(),
        using: |who, kept| {
            let echo = json!({"name": "demo_echo", "arguments": {"message": "in her session"}});
            who.in_session(text(&kept.value), "tools/call", echo).body
        },
        gives: "in her session",
    },
    Feature {
        name: "a session: GET",
        others: EVERYBODY,
        make: |ann| json!(ann.session()).into(),
        using: |who, kept| status(who.stream(text(&kept.value), &[]).status()),
        gives: "status 200",
    },
    Feature {
        name: "a session: DELETE",
        others: EVERYBODY,
        make: |ann| json!(ann.session()).into(),
        using: |who, kept| status(who.end(text(&kept.value)).status),
        gives: "status 204",
    },
    Feature {
        name: "a session: resumption",
        others: EVERYBODY,
        make: |ann| {
            let session = ann.session();
            let count = json!({"name": "demo_count", "arguments": {"to": 2}, "_meta": {"progressToken": 1}});
            let counted = ann.in_session(&session, "tools/call", count).body;
            let event = counted.lines().find_map(|line| line.strip_prefix("id: ")).expect("events have ids");
            json!({"session": session, "event": event}).into()
        },
        using: |who, kept| {
            let event = [("Last-Event-ID", text(&kept.value["event"]))];
            let mut hers = who.stream(text(&kept.value["session"]), &event);
            if hers.status() == 200 {
                hers.until("Counted to 2");
            }
            // The same event, asked for in a session of one's own.
            let mut own = who.stream(&who.session(), &event);
            own.ends_within(std::time::Duration::from_millis(200));
            let own = own.text().replace(
                "Counted to 2",
                if hers.text().contains("Counted") { "hers" } else { "Counted to 2" },
            );
            hers.text() + &own
        },
        gives: "Counted to 2",
    },
    Feature {
        name: "a session: the answer to a question",
        others: EVERYBODY,
        make: |ann| {
            let session = ann.session();
            let mut call =
                ann.open_in_session(&session, "tools/call", json!({"name": "demo_greet", "arguments": {}}));
            let asked = call.until("elicitation/create");
            let question = asked.lines().find_map(|line| {
                let message: Value = serde_json::from_str(line.strip_prefix("data: ")?).ok()?;
                (message["method"] == "elicitation/create").then(|| message["id"].clone())
            });
            let value = json!({"session": session, "question": question.expect("its id")});
            Kept { value, _open: vec![call] }
        },
        using: |who, kept| {
            let answer = json!({"jsonrpc": "2.0", "id": kept.value["question"],
                "result": {"action": "accept", "content": {"name": "Mallory"}}});
            let headers =
                [("Mcp-Session-Id", text(&kept.value["session"])), ("MCP-Protocol-Version", "2025-11-25")];
            status(who.send("POST", "/mcp", &headers, &answer.to_string()).status)
        },
        gives: "status 202",
    },
    Feature {
        name: "HTTP+SSE: messages",
        others: EVERYBODY,
        make: |ann| {
            let mut stream = ann.open("GET", "/sse", &[("Accept", "text/event-stream")], "");
            let opened = stream.until("data: ");
            let path = opened.split("data: ").nth(1).and_then(|rest| rest.split_whitespace().next());
            let value = json!(path.expect("where messages go"));
            Kept { value, _open: vec![stream] }
        },
        using: |who, kept| {
            let path = text(&kept.value);
            // The event may be an address or a path.
            let path = path.find("/messages").map_or(path, |at| &path[at..]);
            let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
            status(who.send("POST", path, &[], &ping.to_string()).status)
        },
        gives: "status 202",
    },
    // Calls that wait for an answer.
    Feature {
        name: "a parked call of a server of the framework",
        others: EVERYBODY,
        make: |ann| parked(ann, "demo_greet"),
        using: answered,
        gives: "Hello, Pearl!",
    },
    Feature {
        name: "a parked call of a legacy server",
        others: EVERYBODY,
        make: |ann| parked(ann, "old_ask"),
        using: answered,
        gives: "Hello, Pearl!",
    },
    // Tasks.
    Feature {
        name: "a task of a modern server: tasks/get",
        others: EVERYBODY,
        make: |ann| finished(ann, "new_work"),
        using: |who, kept| who.modern("tasks/get", json!({"taskId": kept.value})).body,
        gives: DONE,
    },
    Feature {
        name: "a task of a legacy server: tasks/get",
        others: EVERYBODY,
        make: |ann| finished(ann, "old_work"),
        using: |who, kept| who.modern("tasks/get", json!({"taskId": kept.value})).body,
        gives: DONE,
    },
    Feature {
        name: "a task of a modern server: tasks/cancel",
        others: EVERYBODY,
        make: |ann| begun(ann, "new_wait"),
        using: |who, kept| fine(who.modern("tasks/cancel", json!({"taskId": kept.value})).is_fine()),
        gives: "fine",
    },
    Feature {
        name: "a task of a legacy server: tasks/cancel",
        others: EVERYBODY,
        make: |ann| begun(ann, "old_wait"),
        using: |who, kept| fine(who.modern("tasks/cancel", json!({"taskId": kept.value})).is_fine()),
        gives: "fine",
    },
    Feature {
        name: "a task that asks: tasks/update",
        others: EVERYBODY,
        make: |ann| {
            let kept = begun(ann, "new_work_and_ask");
            until("it asks", || {
                ann.modern("tasks/get", json!({"taskId": kept.value})).body.contains("input_required")
            });
            kept
        },
        using: |who, kept| {
            let answers = json!({"name": {"action": "accept", "content": {"name": "Pearl"}}});
            fine(
                who.modern("tasks/update", json!({"taskId": kept.value, "inputResponses": answers}))
                    .is_fine(),
            )
        },
        gives: "fine",
    },
    Feature {
        name: "a task: subscriptions/listen",
        others: EVERYBODY,
        make: |ann| begun(ann, "new_wait"),
        using: |who, kept| {
            let wanted = json!({"notifications": {"taskIds": [kept.value]}});
            let mut listening = who.open_modern("subscriptions/listen", wanted);
            if listening.status() == 200 {
                listening.until("acknowledged");
            }
            // What was granted is repeated: her task, or nothing.
            let told = listening.text();
            if told.contains(text(&kept.value)) {
                "it is told".to_owned()
            } else {
                "it is not told".to_owned()
            }
        },
        gives: "it is told",
    },
    Feature {
        name: "a legacy task: tasks/get",
        others: EVERYBODY,
        make: |ann| legacy_task(ann, "new_work"),
        using: |who, kept| fine(own_session(who, "tasks/get", &kept.value)),
        gives: "fine",
    },
    Feature {
        name: "a legacy task: tasks/result",
        others: EVERYBODY,
        make: |ann| legacy_task(ann, "old_work"),
        using: |who, kept| who.in_session(&who.session(), "tasks/result", json!({"taskId": kept.value})).body,
        gives: DONE,
    },
    Feature {
        name: "a legacy task: tasks/list",
        others: EVERYBODY,
        make: |ann| {
            let session = ann.session();
            json!({"task": legacy_task_in(ann, &session, "old_work").value, "session": session}).into()
        },
        using: |who, kept| {
            // In her session, which they know, and in one of their own.
            let sessions = [text(&kept.value["session"]).to_owned(), who.session()];
            let listed =
                sessions.map(|session| who.in_session(&session, "tasks/list", json!({})).body).concat();
            fine(listed.contains(text(&kept.value["task"])))
        },
        gives: "fine",
    },
    Feature {
        name: "a legacy task: tasks/cancel",
        others: EVERYBODY,
        make: |ann| legacy_task(ann, "old_wait"),
        using: |who, kept| fine(own_session(who, "tasks/cancel", &kept.value)),
        gives: "fine",
    },
    // Lists in pages.
    Feature {
        name: "a cursor of tools/list",
        others: EVERYBODY,
        make: |ann| cursor(ann, "tools/list"),
        using: |who, kept| fine(who.modern("tools/list", json!({"cursor": kept.value})).is_fine()),
        gives: "fine",
    },
    Feature {
        name: "a cursor of resources/list, which has her own",
        others: EVERYBODY,
        make: |ann| {
            for _ in 0..30 {
                remember(ann);
            }
            cursor(ann, "resources/list")
        },
        using: |who, kept| fine(who.modern("resources/list", json!({"cursor": kept.value})).is_fine()),
        gives: "fine",
    },
    Feature {
        name: "a cursor of read_graph",
        others: OTHER_TENANTS,
        make: |ann| {
            for _ in 0..3 {
                remember(ann);
            }
            let page = ann.call("read_graph", json!({"limit": 1})).json();
            found(&page, "nextCursor").expect("a graph in pages").clone().into()
        },
        using: |who, kept| {
            let page = who.call("read_graph", json!({"limit": 1, "cursor": kept.value})).body;
            if page.contains("pearl-") { "a pearl".to_owned() } else { page }
        },
        gives: "a pearl",
    },
    // What servers keep.
    Feature {
        name: "a session with a server behind the gateway",
        others: EVERYBODY,
        make: |ann| {
            assert!(ann.call("notebook_write", json!({"note": "Ann's own note"})).is_fine());
            Kept::default()
        },
        using: |who, _| who.call("notebook_read", json!({})).body,
        gives: "Ann's own note",
    },
    Feature {
        name: "an address that a server gave her",
        others: EVERYBODY,
        make: |ann| {
            let linked = ann.call("notebook_link", json!({"note": fresh()})).json();
            found(&linked, "uri").expect("a link").clone().into()
        },
        using: |who, kept| who.modern("resources/read", json!({"uri": kept.value})).body,
        gives: "what is at ",
    },
    // The memory.
    Feature {
        name: "an agent of hers: my-agents://list",
        others: EVERYBODY,
        make: agent,
        using: |who, kept| {
            let listed = who.modern("resources/read", json!({"uri": "my-agents://list"})).body;
            fine(listed.contains(text(&kept.value)))
        },
        gives: "fine",
    },
    Feature {
        name: "an agent of her tenant, by its address",
        others: OTHER_TENANTS,
        make: agent,
        using: |who, kept| {
            let uri = format!("agentlet://user/ann/{}", text(&kept.value));
            fine(who.modern("resources/read", json!({"uri": uri})).is_fine())
        },
        gives: "fine",
    },
    Feature {
        name: "an agent of hers: update_agent, which nobody lists",
        others: EVERYBODY,
        make: agent,
        using: |who, kept| {
            let uri = format!("agentlet://user/ann/{}", text(&kept.value));
            fine(
                who.call("update_agent", json!({"agent_uri": uri, "description": "Mallory was here"}))
                    .is_fine(),
            )
        },
        gives: "fine",
    },
    Feature {
        name: "an agent of hers: delete_agent, which nobody lists",
        others: EVERYBODY,
        make: agent,
        using: |who, kept| {
            let uri = format!("agentlet://user/ann/{}", text(&kept.value));
            fine(who.call("delete_agent", json!({"agent_uri": uri})).is_fine())
        },
        gives: "fine",
    },
    Feature {
        name: "the history of an agent, which nobody lists",
        others: OTHER_TENANTS,
        make: agent,
        using: |who, kept| {
            let uri = format!("agentlet://user/ann/{}", text(&kept.value));
            fine(who.call("get_agent_history", json!({"agent_uri": uri})).is_fine())
        },
        gives: "fine",
    },
    Feature {
        name: "the history of an entity",
        others: OTHER_TENANTS,
        make: |ann| json!(remember(ann)).into(),
        using: |who, kept| who.call("get_entity_history", json!({"entityName": kept.value})).body,
        gives: "kept by Ann",
    },
    Feature {
        name: "the list of changes",
        others: OTHER_TENANTS,
        make: |ann| json!(remember(ann)).into(),
        using: |who, kept| fine(who.call("list_changes", json!({})).body.contains(text(&kept.value))),
        gives: "fine",
    },
    Feature {
        name: "a document",
        others: OTHER_TENANTS,
        make: |ann| {
            let document = json!({"title": fresh(), "text": "Where the wreck lies is written here alone."});
            let kept = ann.call("ingest_document", document).json();
            found(&kept, "document_id").or_else(|| found(&kept, "id")).expect("its id").clone().into()
        },
        using: |who, kept| {
            let id = kept.value.as_str().map_or_else(|| kept.value.to_string(), str::to_owned);
            who.modern("resources/read", json!({"uri": format!("memory://documents/{id}")})).body
        },
        gives: "Where the wreck lies",
    },
    Feature {
        name: "a parked call of a modern server",
        others: EVERYBODY,
        make: |ann| parked(ann, "new_ask"),
        using: answered,
        gives: "Hello, Pearl!",
    },
];

#[test]
fn nobody_uses_what_is_anns() {
    let world = World::start("[tools]\npage_bytes = 2048\n");
    apart(&world, FEATURES);
    // Nobody's token went to a server.
    assert_eq!(world.notebook.credentials(), Vec::<String>::new());
    // A session each for the people, and one for the gateway itself.
    assert!(world.notebook.sessions() > EVERYBODY.len(), "{}", world.notebook.sessions());
}

/// Everybody else tries each of these, and then Ann does.
fn apart(world: &World, features: &[Feature]) {
    let mut faults = Vec::new();
    for feature in features {
        let ann = world.gateway.as_user(ANN);
        let kept = (feature.make)(&ann);
        for other in feature.others {
            let got = (feature.using)(&world.gateway.as_user(*other), &kept);
            if got.contains(feature.gives) {
                faults.push(format!("{}: {} gets it: {got}", feature.name, other.name));
            }
        }
        // Whatever the others tried, she still has it, also with a new token.
        let got = (feature.using)(&world.gateway.as_user(ANN), &kept);
        if !got.contains(feature.gives) {
            faults.push(format!("{}: Ann does not have it: {got}", feature.name));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("a text: {value}"))
}

fn status(status: u16) -> String {
    format!("status {status}")
}

fn fine(is_fine: bool) -> String {
    if is_fine { "fine" } else { "refused" }.to_owned()
}

/// A member of this name, however deep it is.
fn found<'a>(value: &'a Value, name: &str) -> Option<&'a Value> {
    match value {
        Value::Object(members) => {
            let own = members.get(name).filter(|value| !value.is_null());
            own.or_else(|| members.values().find_map(|member| found(member, name)))
        }
        Value::Array(items) => items.iter().find_map(|item| found(item, name)),
        _ => None,
    }
}

/// Calls a tool that asks; it waits for the answer now.
fn parked(ann: &Caller, tool: &str) -> Kept {
    let asked = ann.call(tool, json!({})).json()["result"].clone();
    assert_eq!(asked["resultType"], "input_required", "{tool}: {asked}");
    let questions = asked["inputRequests"].as_object().expect("questions").keys();
    let answer = json!({"action": "accept", "content": {"name": "Pearl"}});
    let answers: serde_json::Map<String, Value> =
        questions.map(|key| (key.clone(), answer.clone())).collect();
    json!({"name": tool, "arguments": {}, "requestState": asked["requestState"], "inputResponses": answers})
        .into()
}

/// Brings the answer.
fn answered(who: &Caller, kept: &Kept) -> String {
    who.modern("tools/call", kept.value.clone()).body
}

/// Calls a tool that becomes a task; gives its id.
fn begun(ann: &Caller, tool: &str) -> Kept {
    let task = ann.call(tool, json!({})).json();
    found(&task, "taskId").unwrap_or_else(|| panic!("{tool}: {task}")).clone().into()
}

/// The same, and waits until it is done.
fn finished(ann: &Caller, tool: &str) -> Kept {
    let kept = begun(ann, tool);
    until("it is done", || ann.modern("tasks/get", json!({"taskId": kept.value})).body.contains(DONE));
    kept
}

/// A task of a legacy client.
fn legacy_task(ann: &Caller, tool: &str) -> Kept {
    legacy_task_in(ann, &ann.session(), tool)
}

fn legacy_task_in(ann: &Caller, session: &str, tool: &str) -> Kept {
    let call = json!({"name": tool, "arguments": {}, "task": {"ttl": 600_000}});
    let task = ann.in_session(session, "tools/call", call).json();
    found(&task, "taskId").unwrap_or_else(|| panic!("{tool}: {task}")).clone().into()
}

/// A request about a task in a session of one's own.
fn own_session(who: &Caller, method: &str, task: &Value) -> bool {
    who.in_session(&who.session(), method, json!({"taskId": task})).is_fine()
}

fn cursor(ann: &Caller, method: &str) -> Kept {
    let page = ann.modern(method, json!({})).json();
    found(&page, "nextCursor").unwrap_or_else(|| panic!("{method} has one page: {page}")).clone().into()
}

/// Keeps an entity in the memory; gives its name.
pub(super) fn remember(ann: &Caller) -> String {
    remember_that(ann, "kept by Ann")
}

/// The same, and what is said of it.
pub(super) fn remember_that(who: &Caller, observation: &str) -> String {
    let name = fresh();
    let entity = json!({"name": name, "entityType": "pearl", "observations": [observation]});
    let kept = who.call("create_entities", json!({"entities": [entity]}));
    assert!(kept.is_fine(), "{kept:?}");
    name
}

/// Makes an agent; gives its name.
fn agent(ann: &Caller) -> Kept {
    let name = fresh();
    let made = ann.call("create_agent", agent_named(&name, "You are Ann's diver."));
    assert!(made.is_fine(), "{made:?}");
    json!(name).into()
}

fn agent_named(name: &str, description: &str) -> Value {
    let answer = json!({"type": "object", "properties": {"answer": {"type": "string"}}});
    json!({"agent_name": name, "description": description, "output_schema": answer})
}
