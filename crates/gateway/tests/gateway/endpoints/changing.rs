//! Endpoints while something changes: what a server lists, and what the configuration selects.

use std::time::Duration;

use serde_json::json;
use tidegate_gateway::{Gateway, Settings};
use tidegate_protocol::Symbol;
use tidegate_server::{Resource, Server, ServerDoor};
use tidegate_service::{Notice, Outbox, Reply};

use super::patterns;
use crate::rig::{Caller, door, endpoint, in_time, modern, says, settings, started, until};

fn server(name: &str) -> ServerDoor {
    Server::new(name, "1")
        .tool(says("read", "read"))
        .resource(Resource::text(format!("{name}://1"), "1", ""))
        .build()
}

fn world(servers: &[(&str, ServerDoor)]) -> Settings {
    let mut settings = settings(servers.iter().map(|(name, server)| door(name, server.clone())));
    let mut reading = endpoint("reading");
    reading.servers = patterns(["reef"]);
    reading.tools = patterns(["*_read*"]);
    reading.resources = patterns([]);
    let mut vault = endpoint("vault");
    vault.servers = patterns(["vault"]);
    settings.endpoints = vec![reading, vault];
    settings
}

async fn listening(caller: &Caller, gateway: &Gateway) -> Outbox {
    let wanted = json!({"toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true});
    match caller.ask(gateway, "subscriptions/listen", json!({"notifications": wanted})).await {
        Reply::Subscription(open) => open.events,
        other => panic!("{other:?}"),
    }
}

/// Everything that was told by the time that `last` has been.
async fn told_until(events: &Outbox, last: Notice) -> Vec<Notice> {
    let mut told = Vec::new();
    while told.last() != Some(&last) {
        told.push(in_time("what is told", events.next()).await.expect("it goes on"));
    }
    told
}

#[tokio::test]
async fn a_change_is_told_where_it_can_be_seen() {
    let (reef, vault) = (server("reef"), server("vault"));
    let gateway = started(world(&[("reef", reef.clone()), ("vault", vault.clone())])).await;
    let at = async |name: &str| listening(&modern().at(name), &gateway).await;
    let everywhere = listening(&modern(), &gateway).await;
    let (reading, of_vault, nowhere) = (at("reading").await, at("vault").await, at("nowhere").await);
    let lists = async |count: usize| {
        until("that it is listed", async || modern().list(&gateway, "tools/list").await.len() == count).await;
    };
    // Of the first three, nothing is there to see.
    vault.handle().add_tool(says("read_more", "more")).unwrap();
    lists(3).await;
    reef.handle().add_tool(says("write", "written")).unwrap();
    lists(4).await;
    reef.handle().add_resource(Resource::text("reef://2", "2", "")).unwrap();
    until("that it is listed", async || modern().list(&gateway, "resources/list").await.len() == 3).await;
    // What a server says without a difference is for those who see everything.
    reef.handle().tools_changed();
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(reading.try_next(), None, "nothing that is there has changed");
    reef.handle().add_tool(says("read_all", "all")).unwrap();
    lists(5).await;
    assert_eq!(told_until(&reading, Notice::ToolsChanged).await, [Notice::ToolsChanged]);
    assert_eq!(told_until(&of_vault, Notice::ToolsChanged).await, [Notice::ToolsChanged]);
    let mut told = vec![in_time("a change", everywhere.next()).await];
    while !(told.contains(&Some(Notice::ToolsChanged)) && told.contains(&Some(Notice::ResourcesChanged))) {
        told.push(in_time("another change", everywhere.next()).await);
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    for events in [&reading, &of_vault, &nowhere] {
        assert_eq!(events.try_next(), None);
    }
    gateway.close().await;
}

#[tokio::test]
async fn what_is_not_there_any_more_is_not_told_of() {
    let reef = server("reef");
    let before = world(&[("reef", reef.clone()), ("vault", server("vault"))]);
    let mut all = before.clone();
    all.endpoints = vec![endpoint("all"), endpoint("some")];
    let gateway = started(all.clone()).await;
    let follow = async |at: &str| {
        let wanted = json!({"notifications": {"resourceSubscriptions": ["reef://1"]}});
        match modern().at(at).ask(&gateway, "subscriptions/listen", wanted).await {
            Reply::Subscription(open) => open.events,
            other => panic!("{other:?}"),
        }
    };
    let (everything, some) = (follow("all").await, follow("some").await);
    all.endpoints[1].resources = patterns(["vault://*"]);
    gateway.reload(all).await.unwrap();
    reef.handle().resource_updated("reef://1");
    let updated = Notice::ResourceUpdated("reef://1".into());
    assert_eq!(told_until(&everything, updated.clone()).await, [updated]);
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(some.try_next(), None);
    gateway.close().await;
}

#[tokio::test]
async fn a_reload_changes_what_is_there() {
    let servers = [("reef", server("reef")), ("vault", server("vault"))];
    let mut before = world(&servers);
    before.tools.page_bytes = 1;
    before.endpoints.push(endpoint("all"));
    let gateway = started(before.clone()).await;
    let (reading, vault, all) = (modern().at("reading"), modern().at("vault"), modern().at("all"));
    let cursor = all.get(&gateway, "tools/list", json!({})).await["nextCursor"].clone();
    let (told_reading, told_vault) = (listening(&reading, &gateway).await, listening(&vault, &gateway).await);
    assert_eq!(modern().at("new").list(&gateway, "tools/list").await, [""; 0]);

    let mut after = before.clone();
    after.endpoints[0].servers = patterns(["vault"]);
    after.endpoints[2].servers = patterns(["reef"]);
    after.endpoints.push(endpoint("new"));
    gateway.reload(after.clone()).await.unwrap();
    assert_eq!(reading.list(&gateway, "tools/list").await, ["vault_read"]);
    assert_eq!(
        reading.fails(&gateway, "tools/call", json!({"name": "reef_read"})).await.symbol(),
        Symbol::ToolNotFound
    );
    assert_eq!(modern().at("new").call(&gateway, "reef_read").await.0, "read");
    let refused = all.fails(&gateway, "tools/list", json!({"cursor": cursor})).await;
    assert_eq!(refused.symbol(), Symbol::InvalidCursor, "the next page is of what is not there any more");
    assert_eq!(told_until(&told_reading, Notice::ToolsChanged).await, [Notice::ToolsChanged]);
    assert_eq!(told_vault.try_next(), None, "nothing has changed there");

    after.endpoints.clear();
    gateway.reload(after).await.unwrap();
    for gone in [&reading, &vault, &all] {
        assert_eq!(gone.list(&gateway, "tools/list").await, [""; 0]);
        let error = gone.fails(&gateway, "tools/call", json!({"name": "vault_read"})).await;
        assert_eq!(error.symbol(), Symbol::ToolNotFound, "an endpoint that is gone has nothing");
    }
    gateway.close().await;
}
