//! Clients that go away: nothing of them stays, whatever the server is doing.

use std::time::Duration;

use serde_json::json;
use tidegate_client::Filter;
use tidegate_protocol::Symbol;

use crate::rig::*;

#[test]
fn calls_in_flight_end_when_the_client_is_closed() {
    every(ALL, async |rig| {
        let client = rig.client().await;
        works(&client).await;
        let calls = (0..10).map(|_| {
            let client = client.clone();
            tokio::spawn(
                async move { call_within(&client, "hang", json!({}), Duration::from_secs(60)).await },
            )
        });
        let calls: Vec<_> = calls.collect();
        rig.until_seen("call hang", 10).await;
        bounded(Duration::from_secs(10), client.close()).await;
        for call in calls {
            let answer = bounded(Duration::from_secs(5), call).await.expect("no panic");
            assert_eq!(answer.expect_err("an error").symbol, Symbol::Unavailable);
        }
        let error = fails(&client, "echo", json!({}), "client is closed").await;
        assert_eq!(error.symbol, Symbol::Unavailable);
    });
}

#[test]
fn a_client_that_is_only_dropped_leaves_nothing() {
    every(ALL, async |rig| {
        let connecting = rig.builder(|_| {}).connect();
        let client = bounded(Duration::from_secs(20), connecting).await.expect("a connection");
        works(&client).await;
        let hanging = client.call("hang", json!({})).timeout(Duration::from_secs(60)).into_future();
        assert!(tokio::time::timeout(Duration::from_millis(300), hanging).await.is_err());
        drop(client);
        assert!(within(Duration::from_secs(10), || rig.processes().is_empty() && tasks() == 0).await);
    });
}

#[test]
fn a_subscription_ends_with_its_client() {
    every(MODERN_HTTP, async |rig| {
        let client = rig.client().await;
        let subscribed = bounded(PATIENCE, client.subscribe(Filter::lists())).await.expect("a subscription");
        client.close().await;
        assert_eq!(bounded(Duration::from_secs(5), subscribed.next()).await, None);
        rig.until_seen("subscription closed", 1).await;
    });
}
