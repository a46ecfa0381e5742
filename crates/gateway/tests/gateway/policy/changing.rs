//! Another policy, put in force while somebody is there.

use serde_json::{Value, json};
use tidegate_protocol::Symbol;
use tidegate_service::{Notice, Outbox, Reply};

use super::{World, listening, policy, role, roles, rule, without_devs};
use crate::rig::in_time;

/// Everything that was told so far. What is told of a reload is told before the reload is over.
fn told(events: &Outbox) -> Vec<Notice> {
    std::iter::from_fn(|| events.try_next()).collect()
}

#[tokio::test]
async fn a_list_has_changed_for_those_for_whom_it_has() {
    let world = World::start(roles()).await;
    let lists = json!({"toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true});
    let mut events = Vec::new();
    for who in ["admin", "dev", "guest", "nobody"] {
        events.push(listening(&role(who), &world.gateway, lists.clone()).await.1);
    }
    let all = [Notice::ToolsChanged, Notice::PromptsChanged, Notice::ResourcesChanged];
    let told = || -> Vec<Vec<Notice>> { events.iter().map(told).collect() };
    let none = Vec::new;
    world.reload(roles()).await;
    assert_eq!(told(), [none(), none(), none(), none()], "nothing is different");
    world.reload(without_devs()).await;
    assert_eq!(told(), [none(), all.to_vec(), none(), none()]);
    let mut more = without_devs();
    more.rules.push(rule("more", 50, &["guest"]).allow(&["prompt:reef_review"]).0);
    world.reload(more.clone()).await;
    assert_eq!(told(), [none(), none(), vec![Notice::PromptsChanged], none()]);
    // What depends on arguments is listed all the same.
    more.rules[1].when = Some("args.where == \"x\"".to_owned());
    world.reload(more).await;
    assert_eq!(told(), [none(), none(), none(), none()]);
    world.reload(super::in_shadow(roles())).await;
    assert_eq!(told(), [none(), all.to_vec(), all.to_vec(), none()]);
    world.gateway.close().await;
}

#[tokio::test]
async fn updates_end_with_the_permission() {
    let world = World::start(roles()).await;
    let handle = world.reef.handle();
    let wanted = json!({"resourceSubscriptions": ["reef://open"]});
    let (_, of_dev) = listening(&role("dev"), &world.gateway, wanted.clone()).await;
    let (_, of_admin) = listening(&role("admin"), &world.gateway, wanted).await;
    let updated = Some(Notice::ResourceUpdated("reef://open".into()));
    handle.resource_updated("reef://open");
    assert_eq!(in_time("an update", of_dev.next()).await, updated);
    assert_eq!(in_time("an update", of_admin.next()).await, updated);
    world.reload(without_devs()).await;
    handle.resource_updated("reef://open");
    assert_eq!(in_time("an update", of_admin.next()).await, updated);
    world.reload(roles()).await;
    handle.resource_updated("reef://open");
    assert_eq!(in_time("an update", of_dev.next()).await, updated);
    assert_eq!(of_dev.try_next(), None, "the one in between is nobody's but the admin's");
    world.gateway.close().await;
}

#[tokio::test]
async fn a_task_ends_with_the_permission_for_its_tool() {
    let world = World::start(roles()).await;
    let dev = role("dev");
    let Reply::Task(task) = dev.ask(&world.gateway, "tools/call", json!({"name": "reef_long"})).await else {
        panic!("no task")
    };
    let id = task.to::<Value>().unwrap()["taskId"].clone();
    let (acknowledged, events) = listening(&dev, &world.gateway, json!({"taskIds": [id]})).await;
    assert_eq!(acknowledged["taskIds"], json!([id]));
    // The server stays known, and the tool does not.
    let others = policy([rule("dev", 20, &["dev"]).allow(&["reef_read", "resource:reef://open"])]);
    world.reload(others).await;
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let error = dev.fails(&world.gateway, method, json!({"taskId": id, "inputResponses": {}})).await;
        assert_eq!(error.symbol(), Symbol::TaskNotFound, "{method}");
    }
    let (acknowledged, _) = listening(&dev, &world.gateway, json!({"taskIds": [id]})).await;
    assert_eq!(acknowledged["taskIds"].as_array().map_or(0, Vec::len), 0);
    world.reload(roles()).await;
    assert!(dev.get(&world.gateway, "tasks/get", json!({"taskId": id})).await["status"] == "working");
    dev.get(&world.gateway, "tasks/cancel", json!({"taskId": id})).await;
    let Some(Notice::Task { id: told, .. }) = in_time("its end", events.next()).await else { panic!() };
    assert_eq!(*told, *id.as_str().unwrap());
    world.gateway.close().await;
}

#[tokio::test]
async fn nothing_is_told_of_a_task_whose_tool_may_no_longer_be_called() {
    let world = World::start(roles()).await;
    let dev = role("dev");
    let mut ids = Vec::new();
    world.reload(policy([rule("dev", 20, &["dev"]).allow(&["reef_long", "reef_longer"])])).await;
    for tool in ["reef_long", "reef_longer"] {
        let Reply::Task(task) = dev.ask(&world.gateway, "tools/call", json!({"name": tool})).await else {
            panic!("no task")
        };
        ids.push(task.to::<Value>().unwrap()["taskId"].clone());
    }
    let (_, events) = listening(&dev, &world.gateway, json!({"taskIds": ids})).await;
    world.reload(policy([rule("dev", 20, &["dev"]).allow(&["reef_longer"])])).await;
    // What the server tells of the first, it tells before it tells of the second.
    world.done.end("reef_long").await;
    world.done.end("reef_longer").await;
    let mut told = Vec::new();
    while told.last() != ids.last() {
        let Some(Notice::Task { id, .. }) = in_time("the end", events.next()).await else { continue };
        told.push(json!(*id));
    }
    assert!(!told.contains(&ids[0]), "{told:?}");
    world.gateway.close().await;
}
