//! Tasks of a legacy server: passed on to callers that know tasks, awaited for those that do not.

mod foreign;
mod old_clients;
mod world;

use std::time::Duration;

use serde_json::{Value, json};
use tidegate_client::Instances;
use tidegate_protocol::{ClientCapabilities, Json, Symbol};

use crate::rig::{Got, make, named, person, session, until};
pub(crate) use world::run_if_asked;
use world::{Over, World, call, calls_of, completed, get, plain, reply, request, start, updated};

/// The same over both transports: what belongs together is told apart by streams on the one, and only by names on the
/// other.
const BOTH: [Over; 2] = [Over::Http, Over::Stdio];

#[tokio::test]
async fn a_caller_that_knows_no_tasks_gets_the_result() {
    for over in BOTH {
        let world = World::start(over).await;
        let door = world.client(|_| {}).door();
        assert_eq!(make(&door, plain(&session(), "quick")).await, Got::Text("done".into()), "{over:?}");
    }
}

#[tokio::test]
async fn its_questions_are_those_of_the_call() {
    for over in BOTH {
        let world = World::start(over).await;
        let (client, ann) = (world.client(|_| {}), person("ann"));
        let door = client.door();
        let state = make(&door, plain(&ann, "asks")).await.state(&["who"]);
        assert_eq!(client.parked(), 1);
        let mut again = plain(&ann, "asks");
        again.params = world::params(json!({
            "name": "asks", "arguments": {}, "requestState": state, "inputResponses": {"who": named("Ann")},
        }));
        assert_eq!(make(&door, again).await, Got::Text("Hello, Ann!".into()), "{over:?}");
    }
}

#[tokio::test]
async fn a_caller_that_leaves_cancels_the_task() {
    let world = World::start(Over::Http).await;
    let door = world.client(|_| {}).door();
    let leaving = tokio::spawn({
        let door = door.clone();
        async move { make(&door, plain(&session(), "long")).await }
    });
    until("the tool begins", || world.acted() == ["began"]).await;
    leaving.abort();
    until("the tool is stopped", || world.acted() == ["began", "stopped"]).await;
}

#[tokio::test]
async fn a_task_whose_time_is_over_is_cancelled() {
    let world = World::start(Over::Http).await;
    let client = world.client(|options| options.timeout = Duration::from_millis(300));
    let late = make(&client.door(), plain(&session(), "long")).await.failure();
    assert!(late.contains("did not answer within"), "{late}");
    until("the tool is stopped", || world.acted() == ["began", "stopped"]).await;
}

#[tokio::test]
async fn a_parked_task_that_nobody_resumes_is_cancelled() {
    let world = World::start(Over::Http).await;
    let client = world.client(|options| options.park.time = Duration::from_millis(200));
    make(&client.door(), plain(&session(), "asks")).await.state(&["who"]);
    until("it is given up", || client.parked() == 0).await;
    until("the tool is stopped", || world.acted() == ["began", "stopped"]).await;
}

#[tokio::test]
async fn a_caller_that_knows_tasks_gets_the_task() {
    for over in BOTH {
        let world = World::start(over).await;
        let (client, ann) = (world.client(|_| {}), person("ann"));
        let door = client.door();
        let task = start(&door, &ann, "gated").await;
        assert_eq!((&task["resultType"], &task["status"]), (&json!("task"), &json!("working")), "{over:?}");
        assert_eq!(task["ttlMs"], 3_600_000, "what was asked for");
        let id = task["taskId"].as_str().unwrap();
        assert!(id.len() > 40, "it is not the server's own id: {id}");
        let working = get(&door, &ann, id).await;
        assert_eq!((&working["resultType"], &working["status"]), (&json!("complete"), &json!("working")));
        assert_eq!(working["taskId"], id);
        assert!(!client.rest().await, "the session lives as long as its task");
        world.open_gate(&door).await;
        let done = completed(&door, &ann, id).await;
        assert_eq!(done["result"]["content"], json!([{"type": "text", "text": "open"}]), "{over:?}");
        assert!(done["result"].get("_meta").is_none(), "{done}");
        assert_eq!(get(&door, &ann, id).await["status"], "completed", "it can be read again");
        assert!(client.rest().await);
        let gone = reply(&door, request(&ann, "tasks/get", json!({"taskId": id}))).await.unwrap_err();
        assert_eq!(gone.symbol(), Symbol::TaskNotFound, "it went with its session");
    }
}

#[tokio::test]
async fn somebody_elses_task_does_not_exist() {
    let world = World::start(Over::Http).await;
    let (door, ann, bob) = (world.client(|_| {}).door(), person("ann"), person("bob"));
    let id = start(&door, &ann, "gated").await["taskId"].as_str().unwrap().to_owned();
    for (who, id) in [(&bob, id.clone()), (&ann, format!("{id}x")), (&ann, "1".into())] {
        for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
            let params = json!({"taskId": id, "inputResponses": {}});
            let error = reply(&door, request(who, method, params)).await.unwrap_err();
            assert_eq!(error.symbol(), Symbol::TaskNotFound, "{method}");
        }
    }
    let mut unable = request(&ann, "tasks/get", json!({"taskId": id}));
    unable.context.capabilities = plain(&ann, "gated").context.capabilities.clone();
    let error = reply(&door, unable).await.unwrap_err();
    assert_eq!(error.symbol(), Symbol::MissingCapability);
}

#[tokio::test]
async fn the_questions_of_a_task_are_in_it() {
    for over in BOTH {
        let world = World::start(over).await;
        let (door, ann) = (world.client(|_| {}).door(), person("ann"));
        let id = start(&door, &ann, "asks_twice").await["taskId"].as_str().unwrap().to_owned();
        let asked = updated(&door, &ann, &id, "input_required").await;
        let keys: Vec<_> = asked["inputRequests"].as_object().unwrap().keys().collect();
        assert_eq!(keys, ["one"], "{over:?}");
        let question = &asked["inputRequests"]["one"];
        assert_eq!(question["method"], "elicitation/create");
        assert_eq!(question["params"]["message"], "First?");
        assert!(question["params"].get("_meta").is_none(), "what is ours stays with us: {question}");
        assert_eq!(
            get(&door, &ann, &id).await["inputRequests"],
            asked["inputRequests"],
            "until it is answered"
        );

        let update =
            |answers: Value| request(&ann, "tasks/update", json!({"taskId": id, "inputResponses": answers}));
        let wrong = reply(&door, update(json!({"one": {"action": "perhaps"}}))).await.unwrap_err();
        assert_eq!(wrong.symbol(), Symbol::InvalidParams);
        let taken = reply(&door, update(json!({"one": named("Ann"), "nobody asked": 1}))).await.unwrap();
        assert_eq!(taken, json!({"resultType": "complete"}));
        loop {
            let next = updated(&door, &ann, &id, "input_required").await;
            if next["inputRequests"].get("two").is_some() {
                assert!(next["inputRequests"].get("one").is_none(), "it was answered: {next}");
                break;
            }
        }
        reply(&door, update(json!({"two": named("Bob")}))).await.unwrap();
        let done = completed(&door, &ann, &id).await;
        assert_eq!(done["result"]["content"][0]["text"], "Ann then Bob", "{over:?}");
    }
}

#[tokio::test]
async fn a_caller_is_asked_only_what_it_can_answer() {
    let world = World::start(Over::Http).await;
    // In a session that all share everything was declared, whoever calls; each call says who can do what.
    let door = world.client(|options| options.sessions.instances = Instances::One).door();
    let ann = person("ann");
    let mut unable = call(&ann, "asks");
    let only_tasks = r#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;
    unable.context.capabilities = ClientCapabilities::from_json(Json::trusted(only_tasks));
    let task = reply(&door, unable).await.unwrap();
    let done = world::updated(&door, &ann, task["taskId"].as_str().unwrap(), "failed").await;
    assert_eq!((&done["status"], &done["error"]["code"]), (&json!("failed"), &json!(-32021)), "{done}");
}

#[tokio::test]
async fn a_task_that_asks_first_asks_in_the_call() {
    let world = World::start(Over::Http).await;
    let (door, ann) = (world.client(|_| {}).door(), person("ann"));
    let state = make(&door, call(&ann, "asks_first")).await.state(&["who"]);
    let mut again = call(&ann, "asks_first");
    again.params = world::params(json!({
        "name": "asks_first", "arguments": {}, "requestState": state, "inputResponses": {"who": named("Ann")},
    }));
    let task = reply(&door, again).await.unwrap();
    assert_eq!(task["resultType"], "task", "{task}");
    let done = completed(&door, &ann, task["taskId"].as_str().unwrap()).await;
    assert_eq!(done["result"]["content"][0]["text"], "Hello, Ann!");
}

#[tokio::test]
async fn a_task_can_be_cancelled() {
    let world = World::start(Over::Http).await;
    let (door, ann) = (world.client(|_| {}).door(), person("ann"));
    let id = start(&door, &ann, "long").await["taskId"].as_str().unwrap().to_owned();
    until("the tool begins", || world.acted() == ["began"]).await;
    for _ in 0..2 {
        let cancelled = reply(&door, request(&ann, "tasks/cancel", json!({"taskId": id}))).await.unwrap();
        assert_eq!(cancelled, json!({"resultType": "complete"}), "whether it runs or not");
    }
    assert_eq!(get(&door, &ann, &id).await["status"], "cancelled");
    until("the tool is stopped", || world.acted() == ["began", "stopped"]).await;
}

#[tokio::test]
async fn tasks_that_fail() {
    let world = World::start(Over::Http).await;
    let (door, ann) = (world.client(|_| {}).door(), person("ann"));
    let id = start(&door, &ann, "fails").await["taskId"].as_str().unwrap().to_owned();
    let failed = completed(&door, &ann, &id).await;
    assert_eq!(failed["result"]["isError"], true, "a tool that failed has completed: {failed}");
    let id = start(&door, &ann, "breaks").await["taskId"].as_str().unwrap().to_owned();
    let broken = updated(&door, &ann, &id, "failed").await;
    assert_eq!((&broken["error"]["code"], &broken["error"]["message"]), (&json!(-32603), &json!("It broke")));
    assert_eq!(make(&door, plain(&ann, "breaks")).await.failure(), "It broke");
}

#[tokio::test]
async fn what_need_not_be_a_task_is_none() {
    let world = World::start(Over::Http).await;
    let (door, ann) = (world.client(|_| {}).door(), person("ann"));
    for tool in ["either", "never"] {
        let mut asks = call(&ann, tool);
        asks.params = world::params(json!({"name": tool, "arguments": {}, "task": {"ttl": 5}}));
        assert_eq!(make(&door, asks).await, Got::Text(tool.into()), "SEP-2663: `task` is to be ignored");
    }
}

#[tokio::test]
async fn tasks_are_bounded_and_keep_their_session() {
    let world = World::start(Over::Http).await;
    let client = world.client(|options| (options.tasks.per_caller, options.sessions.max) = (1, 2));
    let (door, ann, bob) = (client.door(), person("ann"), person("bob"));
    let id = start(&door, &ann, "gated").await["taskId"].as_str().unwrap().to_owned();
    let full = make(&door, call(&ann, "gated")).await.failure();
    assert!(full.contains("Too many tasks"), "{full}");
    let other = start(&door, &bob, "gated").await["taskId"].as_str().unwrap().to_owned();
    let full = make(&door, plain(&person("eve"), "quick")).await.failure();
    assert!(full.contains("sessions with the server are in use"), "{full}");
    world.gate.open();
    for (who, id) in [(&ann, &id), (&bob, &other)] {
        completed(&door, who, id).await;
    }
    assert_eq!(make(&door, plain(&person("eve"), "quick")).await, Got::Text("done".into()));
}

#[tokio::test]
async fn the_servers_own_words_are_not_passed_on() {
    let world = World::start(Over::Http).await;
    let (door, ann) = (world.client(|_| {}).door(), person("ann"));
    let found = reply(&door, calls_of(&ann, "server/discover", json!({}))).await.unwrap();
    assert_eq!(found["capabilities"].get("tasks"), None);
    assert_eq!(found["capabilities"]["extensions"], json!({"io.modelcontextprotocol/tasks": {}}));
}
