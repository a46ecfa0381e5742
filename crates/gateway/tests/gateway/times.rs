//! How long calls of servers in this process may take: as long as the configuration says, like any other.

use std::time::Duration;

use serde_json::json;
use tidegate_server::{Cx, Server, Tool};
use tidegate_service::Outbox;

use crate::rig::*;

/// A server whose tool takes a second and a half, and tells how far it is.
fn slow() -> Server {
    let tool = Tool::new("t").handler(|_: (), cx: Cx| async move {
        for step in 1..=15 {
            tokio::time::sleep(Duration::from_millis(100)).await;
            cx.progress(f64::from(step), 15.0, None);
        }
        "done".to_owned()
    });
    Server::new("s", "1").tool(tool)
}

#[tokio::test]
async fn the_configured_times_hold_in_this_process_too() {
    let short = Duration::from_millis(600);
    let mut whole = local("whole", slow());
    whole.options.timeout = short;
    let mut one = local("one", slow());
    one.options.tool_timeouts.insert("t".to_owned(), short);
    let mut most = local("most", slow());
    (most.options.timeout, most.options.max_timeout) = (short, Duration::from_secs(1));
    let gateway = gateway([whole, one, most, local("usual", slow())]).await;
    for (tool, setting) in [("whole_t", "servers.whole.timeout"), ("one_t", "servers.one.tools.t.timeout")] {
        let (text, failed) = modern().call(&gateway, tool).await;
        assert!(failed && text.contains("did not answer within 0.6 s"), "{text}");
        assert!(text.contains(&format!("raise {setting} in the configuration")), "{text}");
    }
    assert_eq!(modern().call(&gateway, "usual_t").await, ("done".to_owned(), false));

    // Whoever is told how far it is gives it more time, but not without end.
    let mut listening = modern();
    listening.0.outbox = Some(Outbox::default());
    listening.0.progress_token = Some(tidegate_protocol::Json::trusted("1"));
    assert_eq!(listening.call(&gateway, "whole_t").await, ("done".to_owned(), false));
    let result = listening.get(&gateway, "tools/call", json!({"name": "most_t", "arguments": {}})).await;
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("raise servers.most.max_timeout"), "{text}");
    gateway.close().await;
}
