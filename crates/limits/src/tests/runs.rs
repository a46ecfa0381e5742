//! The budgets of runs, and calls that go round in circles.

use tidegate_config::{LimitScopes, Patterns, RateUnit::Hour, RunSettings};
use tidegate_protocol::Symbol;
use tidegate_service::CallerId;

use super::*;

const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const OTHER: &str = "00-1af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

fn rig(run: RunSettings) -> Rig {
    Rig::new(&LimitSettings { scopes: LimitScopes::default(), rules: Vec::new(), run: Some(run) })
}

fn arguments(text: &str) -> Call {
    call_with("reef/ann", &format!(r#"{{"name":"github_search","arguments":{text}}}"#))
}

fn traced(trace: &str) -> Call {
    call_with("reef/ann", &format!(r#"{{"name":"github_search","_meta":{{"traceparent":"{trace}"}}}}"#))
}

#[tokio::test(start_paused = true)]
async fn the_same_call_again_and_again() {
    let rig = rig(RunSettings::default());
    for text in [r#"{"q":"x","n":1}"#, r#"{"n":1.0, "q":"\u0078"}"#, r#"{"n":1e0,"q":"x"}"#] {
        rig.done(&arguments(text)).unwrap();
    }
    rig.done(&arguments(r#"{"q":"x","n":1}"#)).unwrap();
    rig.done(&arguments(r#"{"q":"x","n":1}"#)).unwrap();
    let error = rig.refused(&arguments(r#"{"q":"x","n":1}"#));
    assert_eq!(
        (error.symbol(), error.is_unexecuted(), error.in_tool()),
        (Symbol::BudgetExceeded, true, true)
    );
    assert_eq!(
        said(&error),
        r#"You have called github_search with these arguments 5 times in this run; the answer will not change. Use what you already have, change the arguments, or stop. {"symbol":"BUDGET_EXCEEDED","limit":{"scope":"run","repeats":5},"remaining":0}"#
    );
    // Something else may be done, and the same by others and later.
    rig.done(&arguments(r#"{"q":"y","n":1}"#)).unwrap();
    let other_tool = Target { tool: Some("github_read"), ..SEARCH };
    drop(rig.limits.enter(&rig.store, &arguments(r#"{"q":"x","n":1}"#), other_tool).unwrap());
    let other = Call { context: call("reef/bob").context, ..arguments(r#"{"q":"x","n":1}"#) };
    rig.done(&other).unwrap();
    tokio::time::advance(Duration::from_secs(599)).await;
    rig.refused(&arguments(r#"{"q":"x","n":1}"#));
    tokio::time::advance(Duration::from_secs(1)).await;
    rig.done(&arguments(r#"{"q":"x","n":1}"#)).unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_is_no_repetition() {
    let except = Patterns::new(["*_status"]).unwrap();
    let rig = rig(RunSettings { repeats: Some(1), except, ..RunSettings::default() });
    rig.done(&arguments("{}")).unwrap();
    rig.refused(&call("reef/ann")); // without arguments is as good as with none
    for more in [r#""requestState":"s""#, r#""inputResponses":{}"#] {
        let again = call_with("reef/ann", &format!(r#"{{"name":"github_search","arguments":{{}},{more}}}"#));
        rig.done(&again).unwrap();
        rig.done(&again).unwrap();
    }
    let status = Target { tool: Some("build_status"), ..SEARCH };
    for _ in 0..10 {
        drop(rig.limits.enter(&rig.store, &arguments("{}"), status).unwrap());
    }
    for method in [Method::TasksGet, Method::Listen] {
        let call = Call { method, ..arguments("{}") };
        rig.done(&call).unwrap();
    }
    let list = Call { method: Method::ToolsList, ..arguments("{}") };
    drop(rig.limits.enter(&rig.store, &list, Target::default()).unwrap());
}

#[tokio::test(start_paused = true)]
async fn budgets() {
    let none = || RunSettings { repeats: None, ..RunSettings::default() };
    let rig_of_calls = rig(RunSettings { calls: Some(2), ..none() });
    rig_of_calls.done(&arguments("{}")).unwrap();
    rig_of_calls.done(&arguments("{}")).unwrap();
    let error = rig_of_calls.refused(&arguments("{}"));
    assert_eq!(
        said(&error),
        r#"This run has made 2 calls, which is all that it may make in 10 min. Finish with what you already have, and say what is missing. {"symbol":"BUDGET_EXCEEDED","limit":{"scope":"run","calls":2},"remaining":0}"#
    );

    let rig_of_bytes = rig(RunSettings { bytes: Some(200), ..none() });
    rig_of_bytes.pass(&arguments("{}")).answered(&Reply::Complete(Json::string(&"x".repeat(130)))).unwrap();
    let error = rig_of_bytes.refused(&arguments(r#"{"more":"than is left of it"}"#));
    assert!(error.message().starts_with("This run has sent and received 17"), "{error}");

    let rig_of_time = rig(RunSettings { time: Some(Duration::from_secs(5)), ..none() });
    let pass = rig_of_time.pass(&arguments("{}"));
    tokio::time::advance(Duration::from_secs(4)).await;
    drop(pass); // it was cancelled, and took as long
    let pass = rig_of_time.pass(&arguments("{}"));
    tokio::time::advance(Duration::from_secs(2)).await;
    // The time of a part is that of the whole.
    let part = Target { is_part: true, ..SEARCH };
    drop(rig_of_time.limits.enter(&rig_of_time.store, &arguments("{}"), part).unwrap());
    drop(pass);
    let error = rig_of_time.refused(&arguments("{}"));
    assert!(
        error.message().starts_with("This run has spent 6 s in calls, which is all that it may in 10 min."),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn which_run_a_call_belongs_to() {
    let in_session = |caller: CallerId, mut call: Call| {
        call.context.caller = Some(caller);
        call
    };
    let (one, two) = (CallerId::new(), CallerId::new());
    let elsewhere = {
        let mut call = traced(TRACE);
        call.context.endpoint = Some("research".into());
        call
    };
    let others_trace = Call { context: call("reef/bob").context, ..traced(TRACE) };
    let rig = rig(RunSettings { calls: Some(1), repeats: None, ..RunSettings::default() });
    for call in [
        traced(TRACE),
        traced(OTHER),
        call("reef/ann"),
        in_session(one, call("reef/ann")),
        in_session(two, call("reef/ann")),
        elsewhere,
        others_trace,
    ] {
        rig.done(&call).unwrap();
        rig.refused(&call);
    }
    rig.refused(&in_session(CallerId::new(), traced(TRACE))); // the trace counts before the session
    rig.refused(&traced("no trace at all"));
    rig.refused(&traced("00-00000000000000000000000000000000-b7ad6b7169203331-01"));
}

#[tokio::test(start_paused = true)]
async fn what_was_refused_elsewhere_or_never_ran_does_not_count() {
    let run = RunSettings { repeats: Some(2), calls: Some(2), ..RunSettings::default() };
    let scopes = LimitScopes { user: rate(2, Hour), server: concurrent(1, 5), ..LimitScopes::default() };
    let rig = Rig::new(&LimitSettings { scopes, rules: Vec::new(), run: Some(run) });
    let running = rig.pass(&arguments("{}"));
    drop(rig.enter(&arguments("{}")).unwrap()); // it goes away while it waits
    for _ in 0..5 {
        assert_eq!(rig.refused(&arguments("{}")).symbol(), Symbol::RateLimited);
    }
    drop(running);
    tokio::time::advance(Duration::from_secs(500)).await;
    tokio::time::advance(Duration::from_secs(99)).await;
    assert_eq!(rig.refused(&arguments("{}")).symbol(), Symbol::RateLimited, "the budget is not used up");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_budget_holds_under_parallel_callers() {
    let rig = Arc::new(rig(RunSettings { calls: Some(100), repeats: Some(40), ..RunSettings::default() }));
    let tasks: Vec<_> = (0..64)
        .map(|task| {
            let rig = rig.clone();
            tokio::spawn(async move {
                let text = format!(r#"{{"n":{}}}"#, task % 2);
                (0..10).filter(|_| rig.done(&arguments(&text)).is_ok()).count()
            })
        })
        .collect();
    let mut passed = 0;
    for task in tasks {
        passed += task.await.unwrap();
    }
    assert_eq!(passed, 80);
}
