//! How long calls may take.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::Value;
use tidegate_edge::Eras;

use crate::world::{World, said};

/// Less than the tool takes, and much more than it takes for one step, so that a busy machine changes nothing.
const SHORT: Duration = Duration::from_millis(1000);

#[tokio::test]
async fn a_tool_may_have_a_limit_of_its_own() {
    for eras in [Eras::Legacy, Eras::Modern] {
        let world = World::start(eras).await;
        let client = world.client(|options| {
            options.tool_timeouts.insert("slow".into(), SHORT);
            options.extend_on_progress = false;
            options.written_at = Some("servers.s".into());
        });
        let error = client.call("slow", Value::Null).await.unwrap_err();
        assert!(error.message.contains("raise servers.s.tools.slow.timeout"), "{error}");
        assert_eq!((error.code, error.retryable), ("E202", true), "{error}");
        assert_eq!(said(&client, "plain").await, "plain", "the others have more time");
    }
}

#[tokio::test]
async fn progress_gives_a_call_more_time_unless_that_is_switched_off() {
    for eras in [Eras::Legacy, Eras::Modern] {
        let world = World::start(eras).await;
        let client = world.client(|options| options.timeout = SHORT);
        assert_eq!(said(&client, "slow").await, "done");
        let client = world.client(|options| {
            (options.timeout, options.max_timeout) = (SHORT, SHORT);
            options.written_at = Some("servers.s".into());
        });
        let error = client.call("slow", Value::Null).await.unwrap_err();
        assert_eq!(error.code, "E202", "but not without end");
        assert!(
            error.message.contains("raise servers.s.timeout") || error.message.contains("max_timeout"),
            "{error}"
        );
        let client = world.client(|options| {
            (options.timeout, options.extend_on_progress) = (SHORT, false);
            options.written_at = Some("servers.s".into());
        });
        let error = client.call("slow", Value::Null).await.unwrap_err();
        assert!(error.message.contains("raise servers.s.timeout in the configuration"), "{error}");
    }
}

#[tokio::test]
async fn one_call_may_have_a_limit_of_its_own() {
    let world = World::start(Eras::Both).await;
    let client = world.client(|_| {});
    assert_eq!(client.call("slow", Value::Null).timeout(SHORT).await.unwrap_err().code, "E202");
    let steps = Arc::new(AtomicUsize::new(0));
    let counted = steps.clone();
    let call =
        client.call("slow", Value::Null).on_progress(move |_| _ = counted.fetch_add(1, Ordering::Relaxed));
    assert_eq!(call.await.unwrap().text(), "done");
    assert_eq!(steps.load(Ordering::Relaxed), 5);
}

#[tokio::test]
async fn a_call_can_be_cancelled() {
    for eras in [Eras::Legacy, Eras::Modern] {
        let world = World::start(eras).await;
        let client = world.client(|_| {});
        client.tools().await.unwrap();
        let token = tokio_util::sync::CancellationToken::new();
        let stop = token.clone();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(100)).await;
            stop.cancel();
        });
        let error = client.call("slow", Value::Null).cancel_with(token).await.unwrap_err();
        assert_eq!(error.code, "E206");
        assert_eq!(said(&client, "plain").await, "plain");
    }
}
