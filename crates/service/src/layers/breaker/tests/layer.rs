//! The layer, on a clock that only moves when everybody sleeps.

use std::convert::Infallible;
use std::time::Duration;

use tidegate_protocol::{Error, Json, Method, Params, Symbol};
use tokio::time::{advance, sleep};
use tower::{Layer, service_fn};

use crate::layers::{BreakerLayer, BreakerSettings, BreakerState, Circuit, DeadlineLayer};
use crate::{Call, Context, Door, Outbox, Reply, Subscription};

fn circuit(settings: BreakerSettings) -> Circuit {
    Circuit::new("weather", settings)
}

fn call() -> Call {
    Call::new(Method::ToolsCall, Params::empty(), Context::local())
}

/// Makes one call through the circuit that is answered with `reply`.
async fn answered(circuit: &Circuit, reply: impl Fn() -> Reply + Clone + Send + Sync + 'static) -> Reply {
    let door = BreakerLayer::of(circuit.clone()).layer(service_fn(move |_: Call| {
        let reply = reply();
        async move { Ok::<_, Infallible>(reply) }
    }));
    let Ok(reply) = door.answer(call()).await;
    reply
}

async fn failing(circuit: &Circuit, symbol: Symbol) -> Error {
    match answered(circuit, move || Reply::Error(Error::new(symbol, "it broke"))).await {
        Reply::Error(error) => error,
        other => panic!("{other:?}"),
    }
}

async fn fine(circuit: &Circuit) -> Reply {
    answered(circuit, || Reply::Complete(Json::trusted("{}"))).await
}

/// A door that never answers.
fn silent() -> impl Door {
    service_fn(|_: Call| std::future::pending::<Result<Reply, Infallible>>())
}

#[tokio::test(start_paused = true)]
async fn refusals_say_why_and_when() {
    let circuit = circuit(BreakerSettings::default());
    for _ in 0..5 {
        assert_eq!(failing(&circuit, Symbol::Unavailable).await.symbol(), Symbol::Unavailable);
    }
    advance(Duration::from_millis(12_500)).await;
    let error = failing(&circuit, Symbol::Unavailable).await;
    assert_eq!(error.symbol(), Symbol::CircuitOpen);
    assert_eq!(
        error.message(),
        "Service temporarily unavailable (circuit open): weather failed 5 times in a row, the last time with: \
         it broke. It is tried again in 18 s"
    );
    assert!(error.is_unexecuted());
    assert_eq!(error.retry_after(), Some(Duration::from_millis(17_500)));

    advance(Duration::from_millis(17_500)).await;
    assert_eq!(circuit.state(), BreakerState::HalfOpen);
    assert!(matches!(fine(&circuit).await, Reply::Complete(_)));
    assert_eq!(circuit.state(), BreakerState::Closed);
}

#[tokio::test(start_paused = true)]
async fn what_counts() {
    use Symbol::*;
    let settings = BreakerSettings::consecutive(2, Duration::from_secs(30));
    for (symbol, failures) in [
        (Unavailable, 2),
        (Timeout, 2),
        // The server answered.
        (Internal, 0),
        (MethodNotFound, 0),
        (InvalidParams, 0),
        (ToolNotFound, 0),
        (ToolExecution, 0),
        (Validation, 0),
        (TooLarge, 0),
        (SessionNotFound, 0),
        // Nobody knows.
        (CircuitOpen, 1),
        (RateLimited, 1),
        (Cancelled, 1),
        (Unauthorized, 1),
    ] {
        let circuit = circuit(settings.clone());
        failing(&circuit, Unavailable).await;
        failing(&circuit, symbol).await;
        assert_eq!(circuit.report().failures, failures, "{symbol:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_opened_subscription_is_an_answer() {
    let circuit = circuit(BreakerSettings::default());
    failing(&circuit, Symbol::Unavailable).await;
    let open =
        || Reply::Subscription(Subscription { acknowledged: Json::trusted("{}"), events: Outbox::new(4) });
    assert!(matches!(answered(&circuit, open).await, Reply::Subscription(_)));
    assert_eq!(circuit.report().failures, 0);
}

#[tokio::test(start_paused = true)]
async fn one_trial_at_a_time_and_a_dropped_one_gives_its_place_back() {
    let circuit = circuit(BreakerSettings::consecutive(1, Duration::from_secs(30)));
    failing(&circuit, Symbol::Timeout).await;
    advance(Duration::from_secs(30)).await;

    let trial = tokio::spawn(BreakerLayer::of(circuit.clone()).layer(silent()).answer(call()));
    tokio::task::yield_now().await;
    let error = failing(&circuit, Symbol::Unavailable).await;
    assert_eq!(
        error.message(),
        "Service temporarily unavailable (circuit open): weather failed with: it broke. \
         It is being tried again at this moment"
    );
    assert_eq!(error.retry_after(), Some(Duration::from_secs(1)));

    trial.abort();
    let _ = trial.await;
    assert_eq!(circuit.state(), BreakerState::HalfOpen);
    fine(&circuit).await;
    assert_eq!(circuit.state(), BreakerState::Closed);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_nobody_waits_for_says_nothing() {
    let circuit = circuit(BreakerSettings::consecutive(1, Duration::from_secs(30)));
    let door = BreakerLayer::of(circuit.clone()).layer(silent());
    drop(door.answer(call()));
    assert!(tokio::time::timeout(Duration::from_secs(5), door.answer(call())).await.is_err());
    assert_eq!(circuit.report().failures, 0);
}

#[tokio::test(start_paused = true)]
async fn a_deadline_further_out_counts_as_a_failure() {
    let circuit = circuit(BreakerSettings::consecutive(3, Duration::from_secs(30)));
    let door = BreakerLayer::of(circuit.clone()).layer(silent());
    let door = DeadlineLayer::new(Duration::from_secs(60)).layer(door);
    for _ in 0..3 {
        let mut late = call();
        late.context.deadline = Some((tokio::time::Instant::now() + Duration::from_secs(10)).into_std());
        assert!(matches!(door.answer(late).await, Ok(Reply::Error(e)) if e.symbol() == Symbol::Timeout));
    }
    assert_eq!(circuit.state(), BreakerState::Open);
    assert_eq!(circuit.report().last_failure.as_deref(), Some("it did not answer in time"));
}

#[tokio::test(start_paused = true)]
async fn handles_share_one_circuit() {
    let layer = BreakerLayer::new("weather", BreakerSettings::devflow());
    let probe = layer.circuit().clone();
    assert_eq!(probe.name(), "weather");
    for _ in 0..3 {
        probe.report_failure("no pong");
    }
    assert_eq!(failing(layer.circuit(), Symbol::Unavailable).await.symbol(), Symbol::CircuitOpen);
    probe.report_success();
    assert_eq!(layer.circuit().state(), BreakerState::Closed);
    probe.report_failure("no pong");
    probe.reset();
    let report = layer.circuit().report();
    assert_eq!((report.state.as_str(), report.failures, report.opened), ("CLOSED", 0, 1));
}

#[tokio::test(start_paused = true)]
async fn many_callers_at_once() {
    let circuit = circuit(BreakerSettings::consecutive(1, Duration::from_secs(30)));
    failing(&circuit, Symbol::Unavailable).await;
    advance(Duration::from_secs(30)).await;
    let door = BreakerLayer::of(circuit.clone()).layer(service_fn(|_: Call| async {
        sleep(Duration::from_secs(2)).await;
        Ok::<_, Infallible>(Reply::Complete(Json::trusted("{}")))
    }));
    let replies = futures_util::future::join_all((0..50).map(|_| door.answer(call()))).await;
    let through = replies.iter().filter(|reply| matches!(reply, Ok(Reply::Complete(_)))).count();
    assert_eq!(through, 1);
    assert_eq!(circuit.state(), BreakerState::Closed);
}

#[tokio::test(start_paused = true)]
async fn errors_tell_the_state_of_the_circuit() {
    let circuit = circuit(BreakerSettings::consecutive(2, Duration::from_secs(30)));
    let told = |error: &Error| error.data().map(|data| data.as_str().to_owned());
    let state = |state: &str| Some(format!(r#"{{"circuitState":"{state}"}}"#));
    assert_eq!(told(&failing(&circuit, Symbol::Timeout).await), state("CLOSED"));
    assert_eq!(told(&failing(&circuit, Symbol::Timeout).await), state("OPEN"), "this one has opened it");
    assert_eq!(told(&failing(&circuit, Symbol::Timeout).await), state("OPEN"), "this one was refused");
    advance(Duration::from_secs(30)).await;
    let trial = circuit.begin().expect("a trial");
    assert_eq!(told(&failing(&circuit, Symbol::Timeout).await), state("HALF_OPEN"));
    trial.success();
    assert_eq!(told(&failing(&circuit, Symbol::ToolExecution).await), None, "a server that answers");
}

#[tokio::test(start_paused = true)]
async fn what_could_not_be_reached_is_told_from_what_failed() {
    for (unexecuted, unreachable) in [(true, true), (false, false)] {
        let circuit = circuit(BreakerSettings::consecutive(1, Duration::from_secs(30)));
        let down = service_fn(move |_: Call| async move {
            let error = Error::new(Symbol::Unavailable, "down");
            Ok::<_, Infallible>(Reply::Error(if unexecuted { error.unexecuted() } else { error }))
        });
        let _ = BreakerLayer::of(circuit.clone()).layer(down).answer(call()).await;
        assert_eq!(circuit.report().unreachable, unreachable);
        circuit.report_success();
        assert_eq!(circuit.state() == BreakerState::Closed, unreachable);
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_says_nothing_about_calls_that_hang() {
    let circuit = circuit(BreakerSettings::consecutive(3, Duration::from_secs(30)));
    let list = async |fails: bool| {
        let door = BreakerLayer::of(circuit.clone()).layer(service_fn(move |_: Call| async move {
            Ok::<_, Infallible>(match fails {
                true => Reply::Error(Error::new(Symbol::Timeout, "no list")),
                false => Reply::Complete(Json::empty_object()),
            })
        }));
        door.answer(Call::new(Method::ToolsList, Params::empty(), Context::local())).await
    };
    for _ in 0..3 {
        failing(&circuit, Symbol::Timeout).await;
        let _ = list(false).await;
    }
    assert_eq!(circuit.state(), BreakerState::Open, "a list between them does not make up for it");
    advance(Duration::from_secs(30)).await;
    let _ = list(false).await;
    assert_eq!(circuit.state(), BreakerState::HalfOpen, "nor is it a trial");
    circuit.begin().expect("a trial").success();
    assert_eq!(circuit.state(), BreakerState::Closed);
    for _ in 0..3 {
        let _ = list(true).await;
    }
    assert_eq!(circuit.state(), BreakerState::Open);
    advance(Duration::from_secs(30)).await;
    let _ = list(false).await;
    assert_eq!(circuit.state(), BreakerState::Closed, "what lists opened, a list closes");
}
