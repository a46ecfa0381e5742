//! Progress and log messages of a running call.

mod common;

use common::{Client, drain, params};
use serde_json::json;
use tidegate_protocol::Level;
use tidegate_server::{Cx, Server, ServerDoor, Tool};
use tidegate_service::{Notice, Outbox};

fn door() -> ServerDoor {
    Server::new("s", "1")
        .tool(Tool::new("progress").handler(|(), cx: Cx| async move {
            cx.progress(0.0, 100.0, None);
            cx.progress(50.5, Some(100.0), "half");
            cx.progress(50.5, None, "again");
            cx.progress(10.0, None, "back");
            cx.progress(f64::NAN, None, "nonsense");
            cx.progress(100.0, None, None);
        }))
        .tool(Tool::new("logs").handler(|(), cx: Cx| async move {
            cx.debug("d");
            cx.info("i");
            cx.log(Level::Critical, "db", json!({"code": 7}));
            cx.warning("w");
            cx.error("e");
        }))
        .tool(Tool::new("close").handler(|(), cx: Cx| async move { cx.close_stream() }))
        .build()
}

#[tokio::test]
async fn progress_only_grows_and_carries_the_token_as_it_came() {
    let door = door();
    for (token, want) in [("0", json!(0)), ("\"t\\u0041\"", json!("tA"))] {
        let outbox = Outbox::default();
        Client::modern(&door).outbox(&outbox).progress(token).tool("progress", json!({})).await;
        assert_eq!(
            params(&outbox),
            [
                json!({"progressToken": want, "progress": 0, "total": 100}),
                json!({"progressToken": want, "progress": 50.5, "total": 100, "message": "half"}),
                json!({"progressToken": want, "progress": 100}),
            ]
        );
    }
    let outbox = Outbox::default();
    Client::modern(&door).outbox(&outbox).tool("progress", json!({})).await;
    assert!(drain(&outbox).is_empty(), "nobody asked for progress");
}

#[tokio::test]
async fn logs_have_a_threshold_and_are_off_without_one() {
    let door = door();
    let levels = |level: Option<Level>| {
        let (door, outbox) = (door.clone(), Outbox::default());
        async move {
            let mut client = Client::modern(&door).outbox(&outbox);
            client.context().log_level = level;
            client.tool("logs", json!({})).await;
            params(&outbox)
        }
    };
    assert_eq!(levels(None).await.len(), 0);
    assert_eq!(levels(Some(Level::Debug)).await.len(), 5);
    assert_eq!(
        levels(Some(Level::Error)).await,
        [
            json!({"level": "critical", "logger": "db", "data": {"code": 7}}),
            json!({"level": "error", "data": "e"})
        ]
    );
}

#[tokio::test]
async fn a_stream_can_be_let_go_of() {
    let (door, outbox) = (door(), Outbox::default());
    Client::legacy(&door).outbox(&outbox).tool("close", json!({})).await;
    assert_eq!(drain(&outbox), [Notice::CloseStream]);
}
