//! What the server tells unasked: a legacy client subscribes to resources and hears of lists anyway, a modern one
//! listens for what it wants to hear.

use rmcp::model::{ServerNotification, SubscribeRequestParams, SubscriptionFilter};
use serde_json::{Value, json};

use crate::ways::{Connection, Way, compare, eventually, soon};

const WATCHED: &str = "memo://about";

#[tokio::test]
async fn changes_are_heard_once_by_those_who_want_to() {
    let heard = compare("changes", async |way| {
        let hearing = Box::pin(hear(way));
        Value::from(soon("hearing of changes", hearing).await)
    })
    .await;
    assert_eq!(heard, json!([WATCHED, "prompts", "resources", "tools"]));
}

/// Everything that changes, as this client hears it, sorted.
async fn hear(way: &Way) -> Vec<String> {
    let connection = Connection::open(way).await;
    let peer = connection.client.service.peer();
    let mut heard = if way.is_modern() {
        let filter = SubscriptionFilter::builder()
            .tools_list_changed()
            .prompts_list_changed()
            .resources_list_changed()
            .resource_subscription(WATCHED)
            .build();
        let mut subscription = peer.listen(filter).await.expect("a subscription");
        change(&connection);
        let mut heard = Vec::new();
        while heard.len() < 4 {
            heard.push(name(subscription.next().await.expect("a notification").expect("not the end")));
        }
        subscription.cancel().await.expect("cancelled");
        heard
    } else {
        // Over HTTP the stream for notifications is opened on the side, and nothing is kept for one that is not.
        eventually("a stream", || connection.handle.subscriptions() > 0).await;
        subscribe(&connection, WATCHED).await;
        change(&connection);
        eventually("four changes", || connection.client.seen.changes().len() >= 4).await;
        connection.client.seen.changes()
    };
    heard.sort_unstable();
    heard
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_missed_once_a_subscription_is_confirmed() {
    for way in Way::all().iter().filter(|way| !way.is_modern()) {
        let connection = Connection::open(way).await;
        eventually("a stream", || connection.handle.subscriptions() > 0).await;
        for n in 0..100 {
            let uri = format!("memo://{n}");
            soon("subscribing", subscribe(&connection, &uri)).await;
            connection.handle.resource_updated(&uri);
            eventually(&format!("{way:?}: {uri}"), || connection.client.seen.changes().contains(&uri)).await;
        }
    }
}

async fn subscribe(connection: &Connection, uri: &str) {
    #[allow(deprecated, reason = "it is how legacy clients subscribe")]
    let subscribed = connection.client.service.peer().subscribe(SubscribeRequestParams::new(uri)).await;
    subscribed.expect("a subscription");
}

/// Changes everything, and a resource that nobody watches.
fn change(connection: &Connection) {
    connection.handle.resource_updated("memo://dot");
    connection.handle.resource_updated(WATCHED);
    connection.handle.tools_changed();
    connection.handle.prompts_changed();
    connection.handle.resources_changed();
}

fn name(notification: ServerNotification) -> String {
    match notification {
        ServerNotification::ToolListChangedNotification(_) => "tools".to_owned(),
        ServerNotification::PromptListChangedNotification(_) => "prompts".to_owned(),
        ServerNotification::ResourceListChangedNotification(_) => "resources".to_owned(),
        ServerNotification::ResourceUpdatedNotification(updated) => updated.params.uri,
        other => panic!("not asked for: {other:?}"),
    }
}
