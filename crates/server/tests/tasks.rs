//! Tasks: the modern extension, and what 2025-11-25 clients get of it.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::{Client, accept, drain, error_code, text_of};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tidegate_server::{
    Cx, Elicit, Error, Server, ServerDoor, Structured, Symbol, TaskSettings, TaskSupport, Tool, ToolError,
};
use tidegate_service::{Notice, Reply};
use tokio::time::sleep;

#[derive(Deserialize, JsonSchema)]
struct Name {
    name: String,
}

#[derive(Deserialize, JsonSchema)]
struct Confirm {
    confirm: bool,
}

fn tools() -> Server {
    Server::new("s", "1")
        .tool(Tool::new("sync").handler(|(), _cx: Cx| async { "done" }))
        .tool(Tool::new("slow").task(TaskSupport::Optional).handler(|(), cx: Cx| async move {
            cx.progress(1.0, None, "half way");
            sleep(Duration::from_secs(5)).await;
            "done"
        }))
        .tool(
            Tool::new("required")
                .task(TaskSupport::Required)
                .handler(|(), _cx: Cx| async { Err::<(), _>(ToolError::from("It failed")) }),
        )
        .tool(Tool::new("broken").task(TaskSupport::Optional).handler(|(), _cx: Cx| async {
            Err::<(), _>(ToolError::protocol(Error::new(Symbol::Internal, "It broke")))
        }))
        .tool(Tool::new("panics").task(TaskSupport::Optional).handler(|(), _cx: Cx| async {
            if true {
                panic!()
            }
        }))
        .tool(Tool::new("asks").task(TaskSupport::Optional).handler(|(), cx: Cx| async move {
            let (name, confirm) = tokio::join!(
                cx.elicit(Elicit::<Name>::form("Name?").key("name")),
                cx.elicit(Elicit::<Confirm>::form("Sure?").key("confirm")),
            );
            let again = cx.elicit(Elicit::<Name>::form("Name again?").key("name")).await;
            let (name, again) = (name.accepted()?.name, again.accepted()?.name);
            Ok::<_, ToolError>(format!("{name} {again} {}", confirm.accepted()?.confirm))
        }))
        .tool(Tool::new("asks_first").task(TaskSupport::Required).asks_first().handler(
            |(), cx: Cx| async move {
                let user = cx.elicit(Elicit::<Name>::form("Name?").key("user_name")).await.accepted()?;
                cx.detach().await;
                sleep(Duration::from_secs(1)).await;
                Ok::<_, ToolError>(format!("Hello, {}!", user.name))
            },
        ))
        .tool(Tool::new("maybe_first").task(TaskSupport::Optional).asks_first().handler(
            |(), cx: Cx| async move {
                cx.detach().await;
                sleep(Duration::from_secs(1)).await;
                "done"
            },
        ))
}

fn door() -> ServerDoor {
    tools().build()
}

async fn start(client: &Client, tool: &str) -> String {
    let task = client.tool(tool, json!({})).await;
    assert_eq!(task["resultType"], "task", "{task}");
    task["taskId"].as_str().unwrap().to_owned()
}

async fn get(client: &Client, id: &str) -> Value {
    client.request("tasks/get", json!({"taskId": id})).await
}

/// Waits until the task has another status than `working`.
async fn settled(client: &Client, id: &str) -> Value {
    for _ in 0..100 {
        let task = get(client, id).await;
        if task["status"] != "working" {
            return task;
        }
        sleep(Duration::from_millis(500)).await;
    }
    panic!("still working");
}

async fn update(client: &Client, id: &str, responses: Value) -> Value {
    client.request("tasks/update", json!({"taskId": id, "inputResponses": responses})).await
}

#[tokio::test(start_paused = true)]
async fn a_task_from_creation_to_result() {
    let door = door();
    let client = Client::modern(&door).able();
    let created = client.tool("slow", json!({})).await;
    let members: Vec<_> = created.as_object().unwrap().keys().map(String::as_str).collect();
    for member in ["resultType", "taskId", "status", "createdAt", "lastUpdatedAt", "ttlMs", "pollIntervalMs"]
    {
        assert!(members.contains(&member), "{member}");
    }
    assert_eq!(
        (members.len(), &created["status"], &created["ttlMs"]),
        (8, &json!("working"), &json!(3600000))
    );
    let created_at = created["createdAt"].as_str().unwrap();
    assert!(created_at.len() == 24 && created_at.ends_with('Z') && created_at.as_bytes()[10] == b'T');

    let id = created["taskId"].as_str().unwrap();
    sleep(Duration::from_secs(1)).await;
    let working = get(&client, id).await;
    assert_eq!((&working["resultType"], &working["status"]), (&json!("complete"), &json!("working")));
    assert_eq!(working["statusMessage"], "half way", "progress becomes the status message");
    let done = settled(&client, id).await;
    assert_eq!(done["status"], "completed");
    assert_eq!(done["result"]["content"], json!([{"type": "text", "text": "done"}]));
    assert!(done.get("error").is_none() && done.get("inputRequests").is_none());
}

#[tokio::test(start_paused = true)]
async fn who_does_not_know_tasks_waits_or_is_refused() {
    let door = door();
    let client = Client::modern(&door);
    assert_eq!(client.tool_text("slow", json!({})).await, "done");
    assert_eq!(client.tool_text("maybe_first", json!({})).await, "done");
    let tasks = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    for (method, params) in [
        ("tools/call", json!({"name": "required"})),
        ("tasks/get", json!({"taskId": "x"})),
        ("tasks/update", json!({"taskId": "x", "inputResponses": {}})),
        ("tasks/cancel", json!({"taskId": "x"})),
    ] {
        let result = client.request(method, params).await;
        assert_eq!(error_code(&result), Some(-32021), "{method}");
        assert_eq!(result["error"]["data"]["requiredCapabilities"], tasks);
    }
    // SEP-2663: the parameter of 2025-11-25 is ignored.
    let able = client.clone().able();
    let ignored = able.request("tools/call", json!({"name": "sync", "task": {"ttl": 1000}})).await;
    assert_eq!(ignored["content"][0]["text"], "done");
}

#[tokio::test(start_paused = true)]
async fn tool_failures_complete_and_protocol_errors_fail() {
    let door = door();
    let client = Client::modern(&door).able();
    let id = start(&client, "required").await;
    let failed = settled(&client, &id).await;
    assert_eq!((&failed["status"], &failed["result"]["isError"]), (&json!("completed"), &json!(true)));
    for (tool, message) in [("broken", "It broke"), ("panics", "Internal error")] {
        let id = start(&client, tool).await;
        let task = settled(&client, &id).await;
        assert_eq!(task["status"], "failed", "{tool}");
        assert_eq!(task["error"], json!({"code": -32603, "message": message}));
        assert!(task.get("result").is_none());
    }
}

#[tokio::test(start_paused = true)]
async fn questions_wait_inside_the_task() {
    let door = door();
    let client = Client::modern(&door).able();
    let id = start(&client, "asks").await;
    let task = settled(&client, &id).await;
    assert_eq!(task["status"], "input_required");
    assert_eq!(task["inputRequests"]["name"]["method"], "elicitation/create");
    assert_eq!(task["inputRequests"]["confirm"]["params"]["message"], "Sure?");

    let ignored = update(&client, &id, json!({"unknown": {"ignored": true}})).await;
    assert_eq!(ignored["resultType"], "complete");
    assert!(ignored.get("taskId").is_none() && ignored.get("status").is_none(), "just an acknowledgement");
    let wrong = update(&client, &id, json!({"name": accept(json!({"name": 7}))})).await;
    assert_eq!(error_code(&wrong), Some(-32602));
    assert_eq!(error_code(&update(&client, &id, json!(null)).await), Some(-32602));

    update(&client, &id, json!({"name": accept(json!({"name": "Ann"}))})).await;
    let partly = get(&client, &id).await;
    let open: Vec<_> = partly["inputRequests"].as_object().unwrap().keys().collect();
    assert_eq!(partly["status"], "input_required");
    assert_eq!(open, ["confirm"]);
    update(
        &client,
        &id,
        json!({"confirm": accept(json!({"confirm": true})), "name": accept(json!({"name": "Eve"}))}),
    )
    .await;
    let again = settled(&client, &id).await;
    let open: Vec<_> = again["inputRequests"].as_object().unwrap().keys().collect();
    assert_eq!(open, ["name-2"], "a key is never used twice");
    update(&client, &id, json!({"name-2": accept(json!({"name": "Bob"}))})).await;
    assert_eq!(settled(&client, &id).await["result"]["content"][0]["text"], "Ann Bob true");
}

#[tokio::test(start_paused = true)]
async fn a_task_that_cannot_ask_fails() {
    let door = door();
    let client = Client::modern(&door).can(json!({"extensions": {"io.modelcontextprotocol/tasks": {}}}));
    let id = start(&client, "asks").await;
    let task = settled(&client, &id).await;
    assert_eq!((&task["status"], &task["error"]["code"]), (&json!("failed"), &json!(-32021)));
}

#[tokio::test(start_paused = true)]
async fn asking_first_and_going_on_as_a_task() {
    let door = door();
    let client = Client::modern(&door).able();
    let first = client.asked("tools/call", json!({"name": "asks_first"})).await;
    assert_eq!(&*first.questions[0].key, "user_name");
    let created = client
        .request(
            "tools/call",
            json!({
                "name": "asks_first", "arguments": {}, "requestState": first.state.as_deref(),
                "inputResponses": {"user_name": accept(json!({"name": "Alice"}))},
            }),
        )
        .await;
    assert_eq!((&created["resultType"], &created["status"]), (&json!("task"), &json!("working")));
    assert!(created.get("requestState").is_none() && created.get("inputRequests").is_none());
    let done = settled(&client, created["taskId"].as_str().unwrap()).await;
    assert_eq!(done["result"]["content"][0]["text"], "Hello, Alice!");
}

#[tokio::test(start_paused = true)]
async fn cancelling_stops_the_work_and_is_final() {
    struct Guard(Arc<AtomicBool>);
    impl Drop for Guard {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let stopped = Arc::new(AtomicBool::new(false));
    let flag = stopped.clone();
    let door = tools()
        .tool(Tool::new("guarded").task(TaskSupport::Optional).handler(move |(), _cx: Cx| {
            let guard = Guard(flag.clone());
            async move {
                sleep(Duration::from_secs(60)).await;
                drop(guard);
            }
        }))
        .build();
    let client = Client::modern(&door).able();
    let id = start(&client, "guarded").await;
    sleep(Duration::from_secs(1)).await;
    assert!(!stopped.load(Ordering::Relaxed));
    let other_capabilities =
        Client::modern(&door).can(json!({"extensions": {"io.modelcontextprotocol/tasks": {}}, "roots": {}}));
    let cancelled = other_capabilities.request("tasks/cancel", json!({"taskId": id})).await;
    assert_eq!(cancelled["resultType"], "complete");
    assert!(cancelled.get("status").is_none() && cancelled.get("taskId").is_none());
    sleep(Duration::from_millis(1)).await;
    assert!(stopped.load(Ordering::Relaxed));
    sleep(Duration::from_secs(100)).await;
    let task = get(&client, &id).await;
    assert_eq!(task["status"], "cancelled");
    assert!(task.get("result").is_none());
    let again = client.request("tasks/cancel", json!({"taskId": id})).await;
    assert_eq!(again["resultType"], "complete", "also when it has ended");
}

#[tokio::test(start_paused = true)]
async fn a_task_outlives_the_request_that_made_it() {
    let door = door();
    let mut client = Client::modern(&door).able();
    let token = client.context().cancel.clone();
    let id = start(&client, "slow").await;
    token.cancel();
    assert_eq!(settled(&client, &id).await["status"], "completed");
}

#[tokio::test(start_paused = true)]
async fn tasks_belong_to_their_principal() {
    let door = door();
    let (ann, bob) = (Client::modern(&door).able().named("ann"), Client::modern(&door).able().named("bob"));
    let id = start(&ann, "slow").await;
    assert_eq!(id.len(), 32);
    for (method, params) in [
        ("tasks/get", json!({"taskId": id})),
        ("tasks/cancel", json!({"taskId": id})),
        ("tasks/update", json!({"taskId": id, "inputResponses": {}})),
    ] {
        let theirs = bob.request(method, params.clone()).await;
        let none = bob.request(method, json!({"taskId": "nothing", "inputResponses": {}})).await;
        assert_eq!(error_code(&theirs), Some(-32602), "{method}");
        assert_eq!(theirs, none, "somebody else's task does not exist");
    }
    assert_eq!(settled(&ann, &id).await["status"], "completed");
    assert_eq!(error_code(&ann.request("tasks/get", json!({})).await), Some(-32602));
}

#[tokio::test]
async fn tasks_are_bounded_and_expire() {
    let settings = TaskSettings {
        ttl: Duration::from_millis(100),
        max_per_principal: 2,
        max_total: 3,
        ..TaskSettings::default()
    };
    let door = tools().tasks(settings).build();
    let client = |name: &str| Client::modern(&door).able().named(name);
    let first = start(&client("ann"), "slow").await;
    start(&client("ann"), "slow").await;
    let third = client("ann").tool("slow", json!({})).await;
    assert_eq!(text_of(&third), Some("You have too many tasks: wait until some have expired"), "{third}");
    assert_eq!(third["isError"], true);
    start(&client("bob"), "slow").await;
    let fourth = client("eve").tool("slow", json!({})).await;
    assert_eq!(text_of(&fourth), Some("The server has too many tasks: wait until some have expired"));
    sleep(Duration::from_millis(150)).await;
    assert_eq!(error_code(&get(&client("ann"), &first).await), Some(-32602), "expired");
    start(&client("eve"), "slow").await;
}

#[tokio::test(start_paused = true)]
async fn results_that_do_not_fit_fail_their_task() {
    let settings = TaskSettings { max_held_bytes: 200, ..TaskSettings::default() };
    let door = tools().tasks(settings).build();
    let client = Client::modern(&door).able();
    let first = start(&client, "slow").await;
    assert_eq!(settled(&client, &first).await["status"], "completed");
    let second = start(&client, "slow").await;
    let full = settled(&client, &second).await;
    assert_eq!((&full["status"], &full["error"]["code"]), (&json!("failed"), &json!(-32603)));
}

#[tokio::test(start_paused = true)]
async fn status_changes_reach_those_who_listen() {
    let door = door();
    let client = Client::modern(&door).able();
    let id = start(&client, "asks").await;
    let subscription = client.listen(json!({"taskIds": [id, "other"]})).await;
    assert_eq!(subscription.acknowledged.to::<Value>().unwrap(), json!({"taskIds": [id]}));
    settled(&client, &id).await;
    let notices = drain(&subscription.events);
    let Some(Notice::Task { task, .. }) = notices.last() else { panic!("{notices:?}") };
    let told: Value = task.to().unwrap();
    let mut asked = get(&client, &id).await;
    for member in ["resultType", "_meta"] {
        asked.as_object_mut().unwrap().remove(member);
    }
    assert_eq!(told, asked, "exactly what tasks/get would have said");
    client.request("tasks/cancel", json!({"taskId": id})).await;
    let notices = drain(&subscription.events);
    assert!(
        matches!(&notices[..], [Notice::Task { task, .. }] if task.as_str().contains("\"cancelled\"")),
        "{notices:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn shutting_down_cancels_tasks() {
    let door = door();
    let client = Client::modern(&door).able();
    let id = start(&client, "slow").await;
    door.handle().shut_down();
    assert_eq!(get(&client, &id).await["status"], "cancelled");
}

#[tokio::test(start_paused = true)]
async fn in_2025_11_25_the_client_decides() {
    let door = door();
    let client = Client::legacy(&door).askable();
    let with_task = |name: &str| json!({"name": name, "task": {"ttl": 5000}});
    let Reply::Task(created) = client.reply("tools/call", &with_task("slow").to_string()).await else {
        panic!()
    };
    let created: Value = created.to().unwrap();
    assert_eq!(created["ttlMs"], 5000);
    let id = created["taskId"].as_str().unwrap();
    assert_eq!(get(&client, id).await["status"], "working", "no extension needed");
    client.request("tasks/cancel", json!({"taskId": id})).await;
    let again = client.request("tasks/cancel", json!({"taskId": id})).await;
    assert_eq!(error_code(&again), Some(-32602), "what has ended cannot be cancelled");

    assert_eq!(client.tool_text("slow", json!({})).await, "done", "not asked for, not made");
    for params in [with_task("sync"), json!({"name": "required"})] {
        assert_eq!(error_code(&client.request("tools/call", params.clone()).await), Some(-32601), "{params}");
    }
    let without =
        Server::new("s", "1").tool(Tool::new("sync").handler(|(), _cx: Cx| async { "done" })).build();
    let result = Client::legacy(&without).request("tools/call", with_task("sync")).await;
    assert_eq!(result["content"][0]["text"], "done", "a server without tasks ignores the wish");

    let listed = client.request("tools/list", json!({})).await;
    let support = |name: &str| {
        let tool = listed["tools"].as_array().unwrap().iter().find(|t| t["name"] == name).unwrap();
        tool["execution"]["taskSupport"].clone()
    };
    assert_eq!(
        (support("sync"), support("slow"), support("required")),
        (Value::Null, json!("optional"), json!("required"))
    );
    let modern = Client::modern(&door).request("tools/list", json!({})).await;
    assert!(!modern.to_string().contains("taskSupport"));
}

#[tokio::test(start_paused = true)]
async fn bad_arguments_make_no_task() {
    let door = tools()
        .tool(
            Tool::new("typed")
                .task(TaskSupport::Required)
                .handler(|args: Name, _cx: Cx| async move { Structured(args.name) }),
        )
        .build();
    let client = Client::modern(&door).able();
    assert_eq!(client.tool("typed", json!({})).await["isError"], true);
    let id = client.tool("typed", json!({"name": "Ann"})).await["taskId"].as_str().unwrap().to_owned();
    assert_eq!(settled(&client, &id).await["result"]["structuredContent"], "Ann");
}

#[tokio::test(start_paused = true)]
async fn a_timeout_does_not_count_the_time_a_person_takes() {
    let door = Server::new("s", "1")
        .tool(Tool::new("asks").timeout(Duration::from_secs(2)).task(TaskSupport::Required).handler(
            |(), cx: Cx| async move {
                let name = cx.elicit(Elicit::<Name>::form("Name?").key("name")).await.accepted()?.name;
                if name == "slow" {
                    sleep(Duration::from_secs(10)).await;
                }
                Ok::<_, ToolError>(name)
            },
        ))
        .build();
    let client = Client::modern(&door).able();
    for (name, want) in [("Ann", "Ann"), ("slow", "asks did not finish within 2.0 s and was stopped")] {
        let id = start(&client, "asks").await;
        sleep(Duration::from_secs(60)).await;
        assert_eq!(get(&client, &id).await["status"], "input_required");
        update(&client, &id, json!({"name": accept(json!({"name": name}))})).await;
        assert_eq!(settled(&client, &id).await["result"]["content"][0]["text"], want);
    }
}
