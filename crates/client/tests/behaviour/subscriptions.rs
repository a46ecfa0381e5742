//! Subscriptions: one call in both eras.

use std::time::Duration;

use tidegate_client::{Change, Filter, Subscribed};
use tidegate_edge::Eras;

use crate::world::{World, plain};

async fn next(subscribed: &Subscribed) -> Change {
    tokio::time::timeout(Duration::from_secs(10), subscribed.next())
        .await
        .expect("a change")
        .expect("still open")
}

#[tokio::test]
async fn changes_arrive_in_both_eras() {
    for eras in [Eras::Legacy, Eras::Modern] {
        let world = World::start(eras).await;
        let client = world.client(|_| {});
        let subscribed = client.subscribe(Filter::lists()).await.unwrap();
        assert_eq!(subscribed.acknowledged().as_str(), r#"{"toolsListChanged":true}"#);
        world.handle.add_tool(plain("more")).unwrap();
        assert_eq!(next(&subscribed).await, Change::Tools, "{eras:?}");
    }
}

#[tokio::test]
async fn a_subscription_outlives_its_server() {
    for eras in [Eras::Legacy, Eras::Modern] {
        let mut world = World::start(eras).await;
        let client = world.client(|_| {});
        let subscribed = client.subscribe(Filter::lists()).await.unwrap();
        world.become_another(eras).await;
        // What happened in the gap nobody knows, so it counts as a change.
        assert_eq!(next(&subscribed).await, Change::Tools, "{eras:?}");
    }
}

#[tokio::test]
async fn nothing_is_left_when_nobody_listens() {
    let world = World::start(Eras::Modern).await;
    let client = world.client(|_| {});
    let subscribed = client.subscribe(Filter::lists()).await.unwrap();
    assert_eq!(world.handle.subscriptions(), 1);
    drop(subscribed);
    for _ in 0..100 {
        if world.handle.subscriptions() == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the subscription is still open at the server");
}
