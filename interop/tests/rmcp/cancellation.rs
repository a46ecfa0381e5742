//! A client that no longer wants an answer: the work stops, and the connection goes on.

use std::time::Duration;

use rmcp::model::{CallToolRequest, ClientRequest};
use rmcp::service::PeerRequestOptions;
use serde_json::json;

use crate::client::{Op, call};
use crate::ways::{Connection, Way, soon};

/// How the client gives up.
#[derive(Debug, Clone, Copy)]
enum By {
    /// It says so.
    Cancelling,
    /// Its caller drops the future of the call.
    Dropping,
    /// The time that it had runs out.
    RunningOut,
}

#[tokio::test]
async fn a_cancelled_call_stops_the_work_and_nothing_else() {
    for how in [By::Cancelling, By::Dropping, By::RunningOut] {
        for way in Way::all() {
            let what = format!("{how:?}, {way:?}");
            let connection = Connection::open(&way).await;
            soon(&what, give_up(&connection, how)).await;
            soon(&format!("{what}: the end of the work"), connection.probe.stopped.notified()).await;
            let after =
                soon(&what, connection.client.run(Op::Call("echo", json!({"message": "still here"})))).await;
            assert_eq!(after["content"][0]["text"], "still here", "{what}");
        }
    }
}

/// Calls `wait`, and gives up once it runs.
async fn give_up(connection: &Connection, how: By) {
    let peer = connection.client.service.peer();
    let request = ClientRequest::CallToolRequest(CallToolRequest::new(call("wait", json!({}))));
    let started = connection.probe.started.notified();
    match how {
        By::Cancelling => {
            let options = PeerRequestOptions::no_options();
            let handle = peer.send_cancellable_request(request, options).await.expect("sent");
            started.await;
            handle.cancel(Some("no longer wanted".to_owned())).await.expect("cancelled");
        }
        By::Dropping => {
            tokio::select! {
                outcome = connection.client.service.call_tool(call("wait", json!({}))) => panic!("it ended: {outcome:?}"),
                () = started => {}
            }
        }
        By::RunningOut => {
            let options = PeerRequestOptions::with_timeout(Duration::from_millis(300));
            let handle = peer.send_cancellable_request(request, options).await.expect("sent");
            started.await;
            handle.await_response().await.expect_err("the time is over");
        }
    }
}
