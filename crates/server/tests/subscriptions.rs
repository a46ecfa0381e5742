//! Subscriptions and changes.

mod common;

use common::{Client, drain, error_code};
use serde_json::{Value, json};
use tidegate_server::{
    Cx, Principal, Prompt, PromptArgs, Resource, ResourceTemplate, Server, ServerDoor, TaskSupport, Tool,
    Vars,
};
use tidegate_service::{Notice, Reply};

fn tool(name: &str) -> Tool {
    Tool::new(name).handler(|(), _cx: Cx| async {})
}

fn prompt(name: &str) -> Prompt {
    Prompt::new(name).handler(|_: PromptArgs, _cx: Cx| async { Ok("") })
}

fn door() -> ServerDoor {
    Server::new("s", "1").tool(tool("t")).prompt(prompt("p")).resource(Resource::text("x:1", "x", "")).build()
}

fn everything() -> Value {
    json!({
        "toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true,
        "resourceSubscriptions": ["x:1", "x:2"],
    })
}

#[tokio::test]
async fn what_is_honoured_is_acknowledged() {
    let client = Client::modern(&door());
    let all = client.listen(everything()).await;
    assert_eq!(all.acknowledged.to::<Value>().unwrap(), everything());
    let some = client.listen(json!({"toolsListChanged": true, "promptsListChanged": false})).await;
    assert_eq!(some.acknowledged.as_str(), r#"{"toolsListChanged":true}"#);

    let only_tools = Server::new("s", "1").tool(tool("t")).build();
    let tools = Client::modern(&only_tools).listen(everything()).await;
    assert_eq!(
        tools.acknowledged.as_str(),
        r#"{"toolsListChanged":true}"#,
        "what is not on offer is left out"
    );
}

#[tokio::test]
async fn changes_reach_those_who_asked() {
    let door = door();
    let (client, handle) = (Client::modern(&door), door.handle());
    let all = client.listen(everything()).await;
    let prompts = client.listen(json!({"promptsListChanged": true})).await;

    handle.add_tool(tool("new")).unwrap();
    assert_eq!((drain(&all.events), drain(&prompts.events)), (vec![Notice::ToolsChanged], vec![]));
    handle.add_prompt(prompt("new")).unwrap();
    assert_eq!(drain(&all.events), [Notice::PromptsChanged]);
    assert_eq!(drain(&prompts.events), [Notice::PromptsChanged]);
    handle.add_resource(Resource::text("x:3", "x", "")).unwrap();
    assert_eq!(drain(&all.events), [Notice::ResourcesChanged]);
    handle
        .add_resource_template(
            ResourceTemplate::new("y:{z}", "y").reader(|_: Vars, _cx: Cx| async { Ok("") }),
        )
        .unwrap();
    assert_eq!(drain(&all.events), [Notice::ResourcesChanged]);
    assert!(handle.remove_tool("new") && handle.remove_prompt("new"));
    assert!(handle.remove_resource("x:3") && handle.remove_resource_template("y:{z}"));
    assert_eq!(drain(&all.events), [Notice::ToolsChanged, Notice::PromptsChanged, Notice::ResourcesChanged]);

    handle.resource_updated("x:1");
    handle.resource_updated("x:9");
    assert_eq!(drain(&all.events), [Notice::ResourceUpdated("x:1".into())]);
    handle.tools_changed();
    handle.prompts_changed();
    handle.resources_changed();
    assert_eq!(drain(&all.events).len(), 3);
}

#[tokio::test]
async fn what_belongs_to_somebody_is_told_to_nobody_else() {
    let door = door();
    let of = |subject: Option<&str>, tenant: Option<&str>| Principal {
        subject: subject.map(Into::into),
        tenant: tenant.map(Into::into),
        issuer: None,
    };
    let people = [
        of(Some("ann"), Some("acme")),
        of(Some("bob"), Some("acme")),
        of(Some("ann"), None),
        of(Some("acme"), None),
        of(None, None),
    ];
    let mut open = Vec::new();
    for principal in &people {
        let mut client = Client::modern(&door);
        client.context().principal = principal.clone();
        open.push(client.listen(everything()).await);
    }
    for (whose, hear) in [(0, vec![0, 1]), (1, vec![0, 1]), (2, vec![2]), (3, vec![3]), (4, vec![4])] {
        door.handle().resource_updated_for(&people[whose], "x:1");
        let heard: Vec<usize> = (0..people.len()).filter(|at| !drain(&open[*at].events).is_empty()).collect();
        assert_eq!(heard, hear, "{:?}", people[whose]);
    }
    door.handle().resource_updated_for(&people[0], "x:9");
    assert!(open.iter().all(|one| drain(&one.events).is_empty()), "nobody asked for that");
}

#[tokio::test]
async fn a_change_that_fails_changes_nothing_and_tells_nobody() {
    let door = door();
    let (client, handle) = (Client::modern(&door), door.handle());
    let all = client.listen(everything()).await;
    assert!(handle.add_tool(tool("t")).is_err(), "the name is taken");
    assert!(!handle.remove_tool("nothing"));
    assert!(drain(&all.events).is_empty());
}

#[tokio::test]
async fn what_was_added_can_be_used_and_what_was_removed_cannot() {
    let door = Server::new("s", "1").dynamic().build();
    let (client, handle) = (Client::modern(&door), door.handle());
    assert_eq!(client.request("tools/list", json!({})).await["tools"], json!([]));
    handle.add_tool(tool("t").alias("old")).unwrap();
    assert_eq!(client.request("tools/list", json!({})).await["tools"][0]["name"], "t");
    assert!(client.tool("old", json!({})).await.get("error").is_none());
    handle.remove_tool("t");
    assert_eq!(error_code(&client.tool("t", json!({})).await), Some(-32602));
    assert_eq!(error_code(&client.tool("old", json!({})).await), Some(-32602));
    handle.add_tool(tool("old")).unwrap();
}

#[tokio::test]
async fn who_leaves_is_forgotten() {
    let door = door();
    let (client, handle) = (Client::modern(&door), door.handle());
    let (closed, dropped, stays) = (
        client.listen(everything()).await,
        client.listen(everything()).await,
        client.listen(everything()).await,
    );
    assert_eq!(handle.subscriptions(), 3);
    closed.events.close();
    drop(dropped);
    assert_eq!(handle.subscriptions(), 1);
    drop(stays);
    assert_eq!(handle.subscriptions(), 0);
}

#[tokio::test]
async fn shutting_down_ends_them_gracefully() {
    let door = door();
    let (client, handle) = (Client::modern(&door), door.handle());
    let all = client.listen(everything()).await;
    handle.tools_changed();
    handle.shut_down();
    assert_eq!(all.events.next().await, Some(Notice::ToolsChanged), "what waited is still delivered");
    assert_eq!(all.events.next().await, None);
    let late = client.reply("subscriptions/listen", r#"{"notifications":{}}"#).await;
    assert!(matches!(late, Reply::Error(_)));
}

#[tokio::test]
async fn bad_filters_and_full_houses() {
    let door = Server::new("s", "1").tool(tool("t").task(TaskSupport::Optional)).max_subscriptions(1).build();
    let client = Client::modern(&door);
    for filter in [
        json!({}),
        json!({"notifications": 7}),
        json!({"notifications": {"toolsListChanged": "yes"}}),
        json!({"notifications": {"resourceSubscriptions": "x:1"}}),
        json!({"notifications": {"resourceSubscriptions": [7]}}),
    ] {
        let result = client.request("subscriptions/listen", filter.clone()).await;
        assert_eq!(error_code(&result), Some(-32602), "{filter}");
    }
    let tasks = json!({"notifications": {"taskIds": ["x"]}});
    let refused = client.request("subscriptions/listen", tasks).await;
    assert_eq!(error_code(&refused), Some(-32021));
    let able = client.clone().able().listen(json!({"taskIds": ["not mine"]})).await;
    assert_eq!(able.acknowledged.as_str(), r#"{"taskIds":[]}"#);
    let full = client.request("subscriptions/listen", json!({"notifications": {}})).await;
    assert_eq!(full["error"]["message"], "Too many subscriptions are open: close one first");
}
