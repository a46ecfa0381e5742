//! When calls keep failing: how long a server is left alone, and what ends that.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use tidegate_gateway::{Health, ServerSettings};
use tidegate_protocol::{Error, Json, Limits, Method, Symbol};
use tidegate_service::layers::{BreakerSettings, BreakerState, RetryPolicy};
use tidegate_service::{Call, Reply};

use crate::rig::*;

/// A server that answers everything but calls of its tool, until it is well.
#[derive(Clone, Default)]
struct Patient {
    well: Arc<AtomicBool>,
    calls: Arc<AtomicUsize>,
}

impl Patient {
    fn settings(&self, symbol: Symbol, open_for: Duration) -> ServerSettings {
        let this = self.clone();
        let answering = tower::service_fn(move |call: Call| {
            let text = match call.method {
                Method::Discover => discovery(json!({})),
                Method::ToolsList => json!({"resultType": "complete", "ttlMs": 0, "cacheScope": "public",
                    "tools": [{"name": "t", "inputSchema": {"type": "object"}}]})
                .to_string(),
                Method::ToolsCall => {
                    this.calls.fetch_add(1, Ordering::SeqCst);
                    r#"{"resultType":"complete","content":[{"type":"text","text":"well"}]}"#.to_owned()
                }
                _ => return std::future::ready(Ok(Reply::method_not_found(&call.method))),
            };
            let reply = match call.method == Method::ToolsCall && !this.well.load(Ordering::SeqCst) {
                true => Reply::Error(Error::new(symbol, "it is ill")),
                false => Reply::Complete(Json::parse(text, &Limits::default()).expect("JSON")),
            };
            std::future::ready(Ok::<_, std::convert::Infallible>(reply))
        });
        let mut settings = door("s", answering);
        settings.options.breaker = Some(BreakerSettings::consecutive(2, open_for));
        settings.options.retry = RetryPolicy::never();
        settings
    }
}

#[tokio::test]
async fn what_failing_calls_opened_is_closed_by_a_trial_call_alone() {
    for symbol in [Symbol::Timeout, Symbol::Unavailable] {
        let patient = Patient::default();
        let open_for = Duration::from_secs(5);
        let gateway = gateway([patient.settings(symbol, open_for)]).await;
        let breaker = || gateway.status()[0].breaker;
        let call = async || {
            let result = modern().get(&gateway, "tools/call", json!({"name": "s_t", "arguments": {}})).await;
            let state = &result["_meta"]["dev.tidegate/error"]["data"]["circuitState"];
            (result["isError"] == true, state.as_str().map(str::to_owned))
        };
        assert_eq!(call().await, (true, Some("CLOSED".to_owned())));
        let opened = std::time::Instant::now();
        assert_eq!(call().await, (true, Some("OPEN".to_owned())));
        patient.well.store(true, Ordering::SeqCst);
        // The gateway looks after the server every second, and lists are asked for.
        while opened.elapsed() < open_for - Duration::from_secs(2) {
            assert_eq!(call().await, (true, Some("OPEN".to_owned())));
            assert_eq!(modern().list(&gateway, "tools/list").await, ["s_t"]);
            assert_eq!(health(&gateway, "s"), Health::Ready, "it answers what it is asked");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        assert_eq!(patient.calls.load(Ordering::SeqCst), 2, "nobody has called it");
        until("a trial", async || breaker() == BreakerState::HalfOpen).await;
        tokio::time::sleep(Duration::from_millis(1500)).await;
        modern().list(&gateway, "tools/list").await;
        assert_eq!(breaker(), BreakerState::HalfOpen, "only a trial call closes it");
        assert_eq!(call().await, (false, None));
        assert_eq!(breaker(), BreakerState::Closed);
        gateway.close().await;
    }
}
