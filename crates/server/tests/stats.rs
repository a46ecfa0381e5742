//! Statistics and health of a running server.

mod common;

use std::time::Duration;

use common::Client;
use serde_json::json;
use tidegate_server::{
    BreakerState, CacheStats, Cx, Limits, Server, Status, Thresholds, Tool, log_periodically,
};

fn tool(name: &str) -> Tool {
    Tool::raw(name, json!({"type": "object", "properties": {"n": {"type": "integer"}}}))
        .handler_raw(|_, _cx: Cx| async {})
}

#[tokio::test]
async fn every_answer_is_counted_once() {
    let door = Server::new("s", "1")
        .tool(tool("a"))
        .tool(tool("b").alias("old_b"))
        .tool(Tool::new("fails").handler(|(), _cx: Cx| async { Err::<(), _>("no") }))
        .build();
    let client = Client::modern(&door);
    let stats = door.handle().stats();
    assert_eq!((stats.request_count, stats.success_rate()), (0, 100.0));

    client.tool("a", json!({})).await;
    client.tool("b", json!({})).await;
    client.tool("old_b", json!({})).await;
    client.tool("fails", json!({})).await;
    client.tool("a", json!({"n": "wrong"})).await;
    client.tool("unknown", json!({})).await;
    client.request("tools/list", json!({})).await;
    client.request("prompts/list", json!({})).await;

    let stats = door.handle().stats();
    assert_eq!((stats.request_count, stats.success_count, stats.error_count), (8, 4, 4));
    let tools: Vec<_> = stats.tool_executions.iter().map(|(name, n)| (name.as_str(), *n)).collect();
    assert_eq!(tools, [("b", 2), ("a", 1), ("fails", 1)], "what was refused did not run");
    let json = stats.to_json();
    assert_eq!(json["toolExecutions"], json!({"a": 1, "b": 2, "fails": 1}));
    assert_eq!((&json["requestCount"], &json["errorCount"]), (&json!(8), &json!(4)));
    assert!(json["startTime"].as_str().unwrap().ends_with('Z'));
}

#[tokio::test]
async fn what_the_layers_refuse_counts_as_failed_and_what_is_dropped_as_neither() {
    let limits = Limits { deadline: Duration::from_millis(100), ..Limits::default() };
    let door = Server::new("s", "1")
        .limits(limits)
        .tool(
            Tool::new("slow")
                .handler(|(), _cx: Cx| async { tokio::time::sleep(Duration::from_secs(9)).await }),
        )
        .build();
    let client = Client::modern(&door);
    assert_eq!(client.tool("slow", json!({})).await["isError"], true);
    let dropped = tokio::time::timeout(Duration::from_millis(10), client.tool("slow", json!({}))).await;
    assert!(dropped.is_err());
    let stats = door.handle().stats();
    assert_eq!((stats.request_count, stats.success_count, stats.error_count), (2, 0, 1));
}

#[tokio::test]
async fn counters_survive_a_tool_that_comes_back() {
    let door = Server::new("s", "1").tool(tool("a")).build();
    let (client, handle) = (Client::modern(&door), door.handle());
    client.tool("a", json!({})).await;
    handle.remove_tool("a");
    handle.add_tool(tool("a")).unwrap();
    client.tool("a", json!({})).await;
    assert_eq!(handle.stats().tool_executions, [("a".to_owned(), 2)]);
}

#[tokio::test]
async fn reports_and_health_include_what_the_server_stands_behind() {
    let door = Server::new("s", "1")
        .breaker(|| BreakerState::HalfOpen)
        .cache_stats(|| CacheStats { size: 1024, item_count: 3 })
        .health_thresholds(Thresholds { warn: 100.0, degraded: 40.0, unhealthy: 10.0 })
        .tool(tool("a"))
        .build();
    Client::modern(&door).tool("a", json!({})).await;
    assert_eq!(
        door.handle().report(),
        json!({
            "uptime": "0 minutes",
            "requests": {"total": 1, "successful": 1, "failed": 0, "successRate": "100.00%"},
            "topTools": [{"name": "a", "count": 1}],
            "circuitBreaker": {"state": "HALF_OPEN"},
            "cache": {"size": 1024, "itemCount": 3},
        })
    );
    let health = door.handle().health();
    assert_eq!((health.status, health.warn), (Status::Degraded, false));
    let json = health.to_json();
    assert_eq!((&json["status"], &json["circuitBreaker"]), (&json!("degraded"), &json!("HALF_OPEN")));
    assert_eq!(json["stats"]["requestCount"], 1);
}

#[tokio::test(start_paused = true)]
async fn handlers_can_read_the_statistics() {
    let door = Server::new("s", "1")
        .tool(Tool::new("stats").handler(|(), cx: Cx| async move { cx.stats().request_count.to_string() }))
        .build();
    assert_eq!(Client::modern(&door).tool_text("stats", json!({})).await, "1");
    // Nothing to see but the log; it must keep going.
    let logging = tokio::time::timeout(
        Duration::from_secs(1000),
        log_periodically(door.handle(), Duration::from_secs(300)),
    );
    assert!(logging.await.is_err());
}
