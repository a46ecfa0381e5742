//! What clients are told of changes: what servers say, and of what the gateway only infers, what is different.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use tidegate_edge::Eras;
use tidegate_protocol::Method;
use tidegate_server::{Server, ServerDoor};
use tidegate_service::{Call, Door, Outbox, Reply};

use crate::rig::*;

fn server() -> Server {
    Server::new("s", "1").tool(says("t", "t of s"))
}

/// A server, and how often its tools were listed.
fn counted(server: ServerDoor) -> (impl Door, Arc<AtomicUsize>) {
    let listed = Arc::new(AtomicUsize::new(0));
    let counting = listed.clone();
    let door = tower::service_fn(move |call: Call| {
        let server = server.clone();
        let is_list = call.method == Method::ToolsList;
        let counting = counting.clone();
        async move {
            let answer = server.answer(call).await;
            counting.fetch_add(usize::from(is_list), Ordering::SeqCst);
            answer
        }
    });
    (door, listed)
}

/// Told of changes of all lists.
async fn listening(gateway: &impl Door) -> Outbox {
    let wanted = json!({"toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true});
    match modern().ask(gateway, "subscriptions/listen", json!({"notifications": wanted})).await {
        Reply::Subscription(open) => open.events,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_server_that_is_there_again_is_news_only_if_it_lists_something_else() {
    for eras in [Eras::Modern, Eras::Legacy] {
        let (address, stop) = serve(server().build(), eras, ([127, 0, 0, 1], 0).into()).await;
        let gateway = gateway([at("s", address)]).await;
        let events = listening(&gateway).await;
        drop(stop);
        let (same, listed) = counted(server().build());
        let (_, stop) = serve(same, eras, address).await;
        until("that its tools are listed again", async || listed.load(Ordering::SeqCst) > 0).await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert_eq!(events.try_next(), None, "{eras:?}: nothing is different");
        drop(stop);
        let (other, _) = counted(server().tool(says("more", "more")).build());
        let _serving = serve(other, eras, address).await;
        crate::faults::told(&events).await;
        assert_eq!(modern().list(&gateway, "tools/list").await, ["s_t", "s_more"]);
        gateway.close().await;
    }
}

#[tokio::test]
async fn what_a_server_says_is_passed_on_whatever_it_lists() {
    for eras in [Eras::Modern, Eras::Legacy] {
        let server = server().build();
        let handle = server.handle();
        let (address, _stop) = serve(server, eras, ([127, 0, 0, 1], 0).into()).await;
        let gateway = gateway([at("s", address)]).await;
        let events = listening(&gateway).await;
        // A legacy session may hear of it only once its stream is open.
        let saying = async {
            loop {
                handle.tools_changed();
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        tokio::select! {
            () = saying => unreachable!(),
            () = crate::faults::told(&events) => {}
        }
        gateway.close().await;
    }
}
