//! Tasks through the gateway: callers of both eras in front of servers of both eras.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tidegate_edge::Eras;
use tidegate_gateway::Gateway;
use tidegate_protocol::{ClientCapabilities, Json, Symbol};
use tidegate_server::{
    Content, Cx, Elicit, Resource, ResourceLink, Server, ServerDoor, TaskSupport, Tool, ToolError,
    ToolResult, schemars,
};
use tidegate_service::{Notice, Reply};
use tokio::sync::watch;
use tokio_util::sync::DropGuard;

use crate::callers::{REVISIONS, Wire};
use crate::rig::*;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Name {
    name: String,
}

/// Notes that a tool was stopped before it was done.
struct Stopped(Arc<Mutex<usize>>);

impl Drop for Stopped {
    fn drop(&mut self) {
        *self.0.lock().unwrap() += 1;
    }
}

/// A gateway in front of a server of each era, whose slow tools wait for a gate.
struct Rig {
    gateway: Gateway,
    gate: watch::Sender<bool>,
    stopped: Arc<Mutex<usize>>,
    _serving: Vec<(SocketAddr, DropGuard)>,
}

const SERVERS: [&str; 3] = ["here", "old", "new"];

impl Rig {
    async fn start() -> Rig {
        let (gate, stopped) = (watch::Sender::new(false), Arc::default());
        let server = |name: &str| server(name, &gate, &stopped);
        let old = serve(server("old"), Eras::Legacy, ([127, 0, 0, 1], 0).into()).await;
        let new = serve(server("new"), Eras::Modern, ([127, 0, 0, 1], 0).into()).await;
        let mut settings = settings([door("here", server("here")), at("old", old.0), at("new", new.0)]);
        settings.endpoints = vec![endpoint("work"), endpoint("home")];
        let gateway = started(settings).await;
        Rig { gateway, gate, stopped, _serving: vec![old, new] }
    }
}

fn server(name: &str, gate: &watch::Sender<bool>, stopped: &Arc<Mutex<usize>>) -> ServerDoor {
    let slow = |name: &str, support: TaskSupport| {
        let gate = gate.subscribe();
        Tool::new(name).task(support).handler(move |_: (), _: Cx| {
            let mut gate = gate.clone();
            async move {
                gate.wait_for(|open| *open).await.unwrap();
                let link = ResourceLink::new("memo://shared", "memo");
                ToolResult::text("open").content(Content::link(link))
            }
        })
    };
    let asks = |name: &str, support: TaskSupport| {
        Tool::new(name).task(support).handler(|_: (), cx: Cx| async move {
            let answer = cx.elicit(Elicit::<Name>::form("Who is there?").key("who")).await.accepted()?;
            Ok::<_, ToolError>(format!("Hello, {}!", answer.name))
        })
    };
    let noted = stopped.clone();
    let long = Tool::new("long").task(TaskSupport::Required).handler(move |_: (), _: Cx| {
        let stopped = Stopped(noted.clone());
        async move {
            std::future::pending::<()>().await;
            drop(stopped);
            "never"
        }
    });
    Server::new(name, "1.0")
        .resource(Resource::text("memo://shared", "memo", "text"))
        .tool(slow("slow", TaskSupport::Optional))
        .tool(slow("must", TaskSupport::Required))
        .tool(asks("asks", TaskSupport::Optional))
        .tool(asks("must_ask", TaskSupport::Required))
        .tool(long)
        .build()
}

/// Somebody who knows tasks and can be asked.
fn knowing(subject: &str) -> Caller {
    let mut caller = person(subject);
    let declared = r#"{"elicitation":{"form":{}},"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;
    caller.0.capabilities = ClientCapabilities::from_json(Json::trusted(declared));
    caller
}

/// Calls a tool that becomes a task.
async fn begin(caller: &Caller, rig: &Rig, tool: &str) -> Value {
    match caller.ask(&rig.gateway, "tools/call", json!({"name": tool, "arguments": {}})).await {
        Reply::Task(task) => task.to().unwrap(),
        other => panic!("{tool}: {other:?}"),
    }
}

/// Looks at a task until it is in this state.
async fn state(caller: &Caller, rig: &Rig, id: &Value, status: &str) -> Value {
    let seen = Mutex::new(Value::Null);
    until(status, async || {
        let task = caller.get(&rig.gateway, "tasks/get", json!({"taskId": id})).await;
        assert_eq!(task["taskId"], *id);
        let there = task["status"] == status;
        *seen.lock().unwrap() = task;
        there
    })
    .await;
    seen.into_inner().unwrap()
}

#[tokio::test]
async fn a_modern_caller_gets_tasks_of_every_server() {
    let rig = Rig::start().await;
    let (ann, bob) = (knowing("ann"), knowing("bob"));
    for server in SERVERS {
        rig.gate.send_replace(false);
        let task = begin(&ann, &rig, &format!("{server}_must")).await;
        let id = &task["taskId"];
        assert_eq!((&task["resultType"], &task["status"]), (&json!("task"), &json!("working")), "{server}");
        state(&ann, &rig, id, "working").await;
        for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
            let params = json!({"taskId": id, "inputResponses": {}});
            let error = bob.fails(&rig.gateway, method, params).await;
            assert_eq!(error.symbol(), Symbol::TaskNotFound, "{server}: {method}");
        }
        rig.gate.send_replace(true);
        let done = state(&ann, &rig, id, "completed").await;
        assert_eq!(done["result"]["content"][0]["text"], "open", "{server}");
        assert_eq!(done["result"]["content"][1]["uri"], format!("{server}+memo://shared"), "{server}");

        let asking = begin(&ann, &rig, &format!("{server}_must_ask")).await["taskId"].clone();
        let asked = state(&ann, &rig, &asking, "input_required").await;
        assert_eq!(asked["inputRequests"]["who"]["method"], "elicitation/create", "{server}: {asked}");
        let answers = json!({"who": {"action": "accept", "content": {"name": "Ann"}}});
        let update = json!({"taskId": asking, "inputResponses": answers});
        ann.get(&rig.gateway, "tasks/update", update).await;
        let done = state(&ann, &rig, &asking, "completed").await;
        assert_eq!(done["result"]["content"][0]["text"], "Hello, Ann!", "{server}");

        let before = *rig.stopped.lock().unwrap();
        let long = begin(&ann, &rig, &format!("{server}_long")).await["taskId"].clone();
        ann.get(&rig.gateway, "tasks/cancel", json!({"taskId": long})).await;
        state(&ann, &rig, &long, "cancelled").await;
        until("its end", async || *rig.stopped.lock().unwrap() > before).await;
    }
    rig.gateway.close().await;
}

#[tokio::test]
async fn a_task_is_unknown_at_other_endpoints() {
    let rig = Rig::start().await;
    let ann = knowing("ann");
    for server in SERVERS {
        let (work, home) = (ann.at("work"), ann.at("home"));
        let id = begin(&work, &rig, &format!("{server}_must")).await["taskId"].clone();
        state(&work, &rig, &id, "working").await;
        for elsewhere in [&home, &ann] {
            for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
                let params = json!({"taskId": id, "inputResponses": {}});
                let error = elsewhere.fails(&rig.gateway, method, params).await;
                assert_eq!(error.symbol(), Symbol::TaskNotFound, "{server}: {method}");
            }
            let wanted = json!({"notifications": {"taskIds": [id]}});
            let Reply::Subscription(open) = elsewhere.ask(&rig.gateway, "subscriptions/listen", wanted).await
            else {
                panic!("{server}: refused")
            };
            let acknowledged: Value = open.acknowledged.to().unwrap();
            assert_eq!(acknowledged["taskIds"].as_array().map_or(0, Vec::len), 0, "{server}: {acknowledged}");
            open.events.close();
        }
        let id = begin(&ann, &rig, &format!("{server}_must")).await["taskId"].clone();
        let error = work.fails(&rig.gateway, "tasks/get", json!({"taskId": id})).await;
        assert_eq!(error.symbol(), Symbol::TaskNotFound, "{server}: of the default endpoint");
    }
    rig.gateway.close().await;
}

#[tokio::test]
async fn a_modern_caller_is_told_of_its_tasks() {
    let rig = Rig::start().await;
    let ann = knowing("ann");
    for server in ["here", "new"] {
        rig.gate.send_replace(false);
        let id = begin(&ann, &rig, &format!("{server}_slow")).await["taskId"].clone();
        let wanted = json!({"notifications": {"taskIds": [id]}});
        let Reply::Subscription(open) = ann.ask(&rig.gateway, "subscriptions/listen", wanted).await else {
            panic!()
        };
        rig.gate.send_replace(true);
        in_time("its end", async {
            loop {
                let Some(Notice::Task { id: told, task }) = open.events.next().await else { panic!() };
                assert_eq!(*told, *id.as_str().unwrap());
                let task: Value = task.to().unwrap();
                assert_eq!(task["taskId"], id);
                if task["status"] == "completed" {
                    return;
                }
            }
        })
        .await;
        open.events.close();
    }
    rig.gateway.close().await;
}

#[tokio::test]
async fn callers_that_know_no_tasks_wait_for_the_result() {
    let rig = Rig::start().await;
    rig.gate.send_replace(true);
    for server in SERVERS {
        for revision in REVISIONS {
            let at = format!("{revision} in front of {server}");
            let mut caller = Wire::open(&rig.gateway, "Ann", revision).await;
            assert_eq!(caller.call(&format!("{server}_slow")).await.0, "open", "{at}");
            assert_eq!(caller.call(&format!("{server}_asks")).await.0, "Hello, Ann!", "{at}");
            // What a server does only as a task, it does for whoever is of the other era.
            if server == "old" || server == "new" && !caller.is_modern() {
                assert_eq!(caller.call(&format!("{server}_must")).await.0, "open", "{at}");
                assert_eq!(caller.call(&format!("{server}_must_ask")).await.0, "Hello, Ann!", "{at}");
            }
        }
    }
    rig.gateway.close().await;
}

#[tokio::test]
async fn a_legacy_caller_gets_tasks_of_every_server() {
    let rig = Rig::start().await;
    let mut caller = Wire::open(&rig.gateway, "Ann", "2025-11-25").await;
    let mut other = Wire::open(&rig.gateway, "Bob", "2025-11-25").await;
    let mut ids = Vec::new();
    for server in SERVERS {
        rig.gate.send_replace(false);
        let begin =
            |tool: &str| json!({"name": format!("{server}_{tool}"), "arguments": {}, "task": {"ttl": 60000}});
        let created = caller.request("tools/call", begin("slow")).await;
        let task = &created["result"]["task"];
        assert_eq!(task["status"], "working", "{server}: {created}");
        let id = json!({"taskId": task["taskId"]});
        let got = caller.request("tasks/get", id.clone()).await;
        assert_eq!(got["result"]["status"], "working", "{server}: {got}");
        assert_eq!(got["result"]["taskId"], id["taskId"]);
        rig.gate.send_replace(true);
        let result = caller.request("tasks/result", id.clone()).await;
        assert_eq!(result["result"]["content"][0]["text"], "open", "{server}: {result}");
        assert_eq!(result["result"]["content"][1]["uri"], format!("{server}+memo://shared"), "{server}");
        let got = caller.request("tasks/get", id.clone()).await;
        assert_eq!(got["result"]["status"], "completed", "{server}");
        ids.push(id["taskId"].clone());

        let asking = caller.request("tools/call", begin("asks")).await["result"]["task"]["taskId"].clone();
        caller.asked.clear();
        let result = caller.request("tasks/result", json!({"taskId": asking})).await;
        assert_eq!(result["result"]["content"][0]["text"], "Hello, Ann!", "{server}: {result}");
        assert_eq!(caller.asked, ["elicitation/create"]);
        ids.push(asking);

        let before = *rig.stopped.lock().unwrap();
        let long = caller.request("tools/call", begin("long")).await["result"]["task"]["taskId"].clone();
        let cancelled = caller.request("tasks/cancel", json!({"taskId": long})).await;
        assert_eq!(cancelled["result"]["status"], "cancelled", "{server}: {cancelled}");
        until("its end", async || *rig.stopped.lock().unwrap() > before).await;
        ids.push(long);
    }
    let listed = caller.request("tasks/list", json!({})).await;
    let listed: Vec<_> =
        listed["result"]["tasks"].as_array().unwrap().iter().map(|t| t["taskId"].clone()).collect();
    assert_eq!(listed, ids);
    assert_eq!(other.request("tasks/list", json!({})).await["result"]["tasks"], json!([]));
    rig.gateway.close().await;
}
