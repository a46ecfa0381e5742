//! Which era is spoken.

use tidegate_client::{Client, ClientSettings, EraChoice};
use tidegate_edge::Eras;
use tidegate_protocol::{Era, Revision};

use crate::world::{World, said};

#[tokio::test]
async fn the_newest_that_the_server_speaks() {
    for (eras, revision) in [
        (Eras::Both, Revision::V2026_07_28),
        (Eras::Modern, Revision::V2026_07_28),
        (Eras::Legacy, Revision::V2025_11_25),
    ] {
        let world = World::start(eras).await;
        let client = world.client(|_| {});
        let facts = client.server().await.unwrap();
        assert_eq!((facts.revision, facts.transport), (revision, "http"));
        assert_eq!(facts.name().as_deref(), Some("world"));
        assert_eq!(said(&client, "plain").await, "plain");
        assert!(client.has_capability("tools.listChanged").await.unwrap());
        assert!(!client.has_capability("prompts").await.unwrap());
        client.ping().await.unwrap();
    }
}

#[tokio::test]
async fn what_was_asked_for_and_nothing_else() {
    let world = World::start(Eras::Both).await;
    for revision in Revision::ALL {
        let client = world.client(|options| options.offer_revision(revision));
        assert_eq!(client.server().await.unwrap().revision, revision);
        assert_eq!(said(&client, "plain").await, "plain");
    }
    let old = World::start(Eras::Legacy).await;
    let refused = old.client(|options| options.era = EraChoice::Modern).server().await.unwrap_err();
    assert!(!refused.message.is_empty());
}

#[tokio::test]
async fn a_server_that_became_another_is_found_again() {
    for (before, after, era) in
        [(Eras::Modern, Eras::Legacy, Era::Legacy), (Eras::Legacy, Eras::Modern, Era::Modern)]
    {
        let mut world = World::start(before).await;
        let client = world.client(|_| {});
        assert_eq!(said(&client, "plain").await, "plain");
        world.become_another(after).await;
        let calls = world.calls();
        assert_eq!(said(&client, "plain").await, "plain", "{before:?} to {after:?}");
        assert_eq!(world.calls(), calls + 1, "nothing is executed twice");
        assert_eq!(client.server().await.unwrap().era(), era);
    }
}

#[tokio::test]
async fn a_probe_finds_a_server_that_became_another() {
    for (before, after, era) in
        [(Eras::Modern, Eras::Legacy, Era::Legacy), (Eras::Legacy, Eras::Modern, Era::Modern)]
    {
        let mut world = World::start(before).await;
        let client = world.client(|_| {});
        client.server().await.unwrap();
        world.become_another(after).await;
        client.probe(std::time::Duration::from_secs(10)).await.unwrap();
        assert_eq!(client.server().await.unwrap().era(), era);
    }
}

#[tokio::test]
async fn a_probe_of_a_server_in_this_process_asks_it() {
    let door = tidegate_server::Server::new("here", "1").tool(crate::world::plain("plain")).build();
    let mute = tower::service_fn(|_: tidegate_service::Call| {
        std::future::pending::<Result<tidegate_service::Reply, std::convert::Infallible>>()
    });
    let of = |target| Client::builder(target).unwrap().lazy().unwrap();
    let within = std::time::Duration::from_millis(200);
    of(tidegate_client::Target::from_door(door)).probe(within).await.unwrap();
    let late = of(tidegate_client::Target::from_door(mute)).probe(within).await.unwrap_err();
    assert_eq!(late.symbol, tidegate_protocol::Symbol::Timeout);
}

#[tokio::test]
async fn a_server_in_this_process() {
    let door = tidegate_server::Server::new("here", "1").tool(crate::world::plain("plain")).build();
    let target = tidegate_client::Target::from_door(door);
    let client =
        Client::builder(target).unwrap().settings(ClientSettings::default()).connect().await.unwrap();
    assert_eq!(client.server().await.unwrap().transport, "local");
    assert_eq!(said(&client, "plain").await, "plain");
    assert_eq!(client.tools().await.unwrap().len(), 1);
}
