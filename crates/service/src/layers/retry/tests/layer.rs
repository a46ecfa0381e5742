//! The layer, on a clock that only moves when everybody sleeps.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tidegate_protocol::{Error, Json, Limits, Method, Params, Symbol};
use tokio::time::{Instant, sleep};
use tower::{Layer, service_fn};

use crate::layers::{BreakerLayer, BreakerSettings, BreakerState, DeadlineLayer, RetryLayer, RetryPolicy};
use crate::{Call, Context, Door, Reply};

/// A policy whose delays are 1, 2 and 4 s.
fn policy() -> RetryPolicy {
    RetryPolicy { jitter: 0.0, ..RetryPolicy::default() }
}

fn call(method: Method) -> Call {
    Call::new(method, Params::empty(), Context::local())
}

fn tool(name: &str) -> Call {
    let params = Json::trusted(format!(r#"{{"name":"{name}","requestState":"s"}}"#));
    Call::new(Method::ToolsCall, Params::parse(&params, &Limits::default()).unwrap(), Context::local())
}

/// A door that fails a number of times before it answers, and counts its calls.
fn fails(times: usize, error: Error) -> (impl Door, Arc<AtomicUsize>) {
    let calls = Arc::new(AtomicUsize::new(0));
    let counter = calls.clone();
    let door = service_fn(move |_: Call| {
        let reply = match counter.fetch_add(1, Ordering::Relaxed) < times {
            true => Reply::Error(error.clone()),
            false => Reply::Complete(Json::trusted("{}")),
        };
        async move { Ok::<_, Infallible>(reply) }
    });
    (door, calls)
}

fn down() -> Error {
    Error::new(Symbol::Unavailable, "connection refused")
}

/// The symbol of the answer ("ok" if there is none), the number of attempts, and how many seconds it took.
async fn outcome(layer: RetryLayer, call: Call, times: usize, error: Error) -> (&'static str, usize, f64) {
    let (door, calls) = fails(times, error);
    let begun = Instant::now();
    let Ok(reply) = layer.layer(door).answer(call).await;
    let text = match reply {
        Reply::Error(error) => error.symbol().as_str(),
        _ => "ok",
    };
    // The timer is good to a millisecond.
    let took = (begun.elapsed().as_secs_f64() * 10.0).round() / 10.0;
    (text, calls.load(Ordering::Relaxed), took)
}

#[tokio::test(start_paused = true)]
async fn reads_are_tried_again() {
    let layer = || RetryLayer::new(policy());
    let list = || call(Method::ToolsList);
    assert_eq!(outcome(layer(), list(), 0, down()).await, ("ok", 1, 0.0));
    assert_eq!(outcome(layer(), list(), 1, down()).await, ("ok", 2, 1.0));
    assert_eq!(outcome(layer(), list(), 3, down()).await, ("ok", 4, 7.0));
    assert_eq!(outcome(layer(), list(), 4, down()).await, ("SERVICE_UNAVAILABLE", 4, 7.0));
}

#[tokio::test(start_paused = true)]
async fn tools_are_not_unless_they_surely_did_not_run() {
    let layer = || RetryLayer::new(policy());
    assert_eq!(outcome(layer(), tool("pay"), 1, down()).await, ("SERVICE_UNAVAILABLE", 1, 0.0));
    assert_eq!(outcome(layer(), tool("pay"), 1, down().unexecuted()).await, ("ok", 2, 1.0));
    assert_eq!(outcome(layer(), call(Method::Listen), 1, down()).await, ("SERVICE_UNAVAILABLE", 1, 0.0));
    assert_eq!(outcome(layer(), call(Method::Listen), 1, down().unexecuted()).await, ("ok", 2, 1.0));
}

#[tokio::test(start_paused = true)]
async fn tools_that_are_idempotent_are() {
    let layer =
        || RetryLayer::new(policy()).idempotent(|call| call.params.text("name").as_deref() == Some("search"));
    assert_eq!(outcome(layer(), tool("search"), 1, down()).await, ("ok", 2, 1.0));
    assert_eq!(outcome(layer(), tool("pay"), 1, down()).await, ("SERVICE_UNAVAILABLE", 1, 0.0));
    assert_eq!(outcome(layer(), call(Method::Ping), 1, down()).await, ("ok", 2, 1.0));
}

#[tokio::test(start_paused = true)]
async fn retries_can_be_turned_off() {
    let layer = RetryLayer::new(RetryPolicy::never());
    assert_eq!(outcome(layer, call(Method::Ping), 1, down()).await, ("SERVICE_UNAVAILABLE", 1, 0.0));
}

#[tokio::test(start_paused = true)]
async fn gives_up_rather_than_wait_beyond_the_deadline() {
    let mut list = call(Method::ToolsList);
    list.context.deadline = Some((Instant::now() + Duration::from_secs(5)).into_std());
    let took = outcome(RetryLayer::new(policy()), list, 9, down()).await;
    assert_eq!(took, ("SERVICE_UNAVAILABLE", 3, 3.0), "the third wait would be 4 s");
    let busy = Error::new(Symbol::RateLimited, "busy").with_retry_after(Duration::from_secs(61));
    let took = outcome(RetryLayer::new(policy()), call(Method::ToolsList), 9, busy).await;
    assert_eq!(took, ("RATE_LIMIT_ERROR", 1, 0.0));
}

#[tokio::test(start_paused = true)]
async fn waits_as_long_as_the_other_side_asks() {
    let busy = Error::new(Symbol::RateLimited, "busy").with_retry_after(Duration::from_secs(17));
    let took = outcome(RetryLayer::new(policy()), call(Method::ToolsList), 1, busy).await;
    assert_eq!(took, ("ok", 2, 17.0));
}

#[tokio::test(start_paused = true)]
async fn the_callers_own_timeout_is_final() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counter = calls.clone();
    let silent = service_fn(move |_: Call| {
        counter.fetch_add(1, Ordering::Relaxed);
        std::future::pending::<Result<Reply, Infallible>>()
    });
    let door = RetryLayer::new(policy()).layer(DeadlineLayer::new(Duration::from_secs(60)).layer(silent));
    let mut list = call(Method::ToolsList);
    list.context.deadline = Some((Instant::now() + Duration::from_secs(9)).into_std());
    let begun = Instant::now();
    assert!(matches!(door.answer(list).await, Ok(Reply::Error(e)) if e.symbol() == Symbol::Timeout));
    assert_eq!((calls.load(Ordering::Relaxed), begun.elapsed().as_secs()), (1, 9));
}

#[tokio::test(start_paused = true)]
async fn cancelling_ends_the_wait() {
    let (door, calls) = fails(9, down());
    let list = call(Method::ToolsList);
    let cancel = list.context.cancel.clone();
    let begun = Instant::now();
    let running = tokio::spawn(RetryLayer::new(policy()).layer(door).answer(list));
    sleep(Duration::from_millis(1500)).await;
    cancel.cancel();
    assert!(matches!(running.await.unwrap(), Ok(Reply::Error(e)) if e.symbol() == Symbol::Cancelled));
    assert_eq!(calls.load(Ordering::Relaxed), 2);
    assert!(begun.elapsed() < Duration::from_secs(2));
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_call_is_not_tried_again() {
    let list = call(Method::ToolsList);
    list.context.cancel.cancel();
    let took = outcome(RetryLayer::new(policy()), list, 1, down()).await;
    assert_eq!(took, ("SERVICE_UNAVAILABLE", 1, 0.0));
}

#[tokio::test(start_paused = true)]
async fn attempts_count_for_the_breaker_within_and_stop_when_it_opens() {
    let (door, calls) = fails(usize::MAX, down());
    let breaker = BreakerLayer::new("weather", BreakerSettings::consecutive(2, Duration::from_secs(5)));
    let circuit = breaker.circuit().clone();
    let door = breaker.layer(door);
    let list = || call(Method::ToolsList);
    let Ok(Reply::Error(error)) = RetryLayer::new(policy()).layer(door.clone()).answer(list()).await else {
        panic!("an error")
    };
    assert_eq!((error.symbol(), calls.load(Ordering::Relaxed)), (Symbol::CircuitOpen, 2));
    assert_eq!(circuit.state(), BreakerState::Open);

    let patient = RetryLayer::new(RetryPolicy { wait_for_circuit: true, max_retries: 1, ..policy() });
    let Ok(Reply::Error(error)) = patient.layer(door).answer(list()).await else { panic!("an error") };
    assert_eq!((error.symbol(), calls.load(Ordering::Relaxed)), (Symbol::Unavailable, 3));
}
