//! The filter of the log is changed while the program runs. One test, because a process has one log.

use std::convert::Infallible;

use futures_util::FutureExt;
use tidegate::logging::{self, FilterError, Format, RECENT_BYTES};
use tidegate_protocol::{Json, Method, Params};
use tidegate_service::layers::EventsLayer;
use tidegate_service::{Call, Context, Reply};
use tower::{Layer, Service};

/// Logs at several levels for several parts of the program, and makes a call.
fn happen() {
    tracing::debug!(target: "tidegate_edge", "edge");
    tracing::info!(target: "tidegate_gateway", "gateway");
    tracing::warn!(target: "tidegate_client", "client");
    let params = Json::trusted(r#"{"name":"echo"}"#);
    let params = Params::parse(&params, &Default::default()).unwrap();
    let call = Call::new(Method::ToolsCall, params, Context::local());
    let answer = |_: Call| async {
        tracing::debug!(target: "elsewhere", "inside");
        Ok::<_, Infallible>(Reply::Complete(Json::empty_object()))
    };
    EventsLayer.layer(tower::service_fn(answer)).call(call).now_or_never().unwrap().unwrap();
}

/// What was logged after this line, and the last one.
fn after(number: u64) -> (Vec<String>, u64) {
    let lines = logging::recent(Some(number), 100);
    let message = |line: &logging::LogLine| line.json.member_str("message").unwrap().into_owned();
    (lines.iter().map(message).collect(), lines.last().map_or(number, |line| line.number))
}

#[test]
fn the_filter_is_changed_while_it_runs() {
    assert_eq!((logging::set_filter("info"), logging::filter()), (Err(FilterError::NotOurs), String::new()));
    logging::init(Format::Json, Some("warn"));
    assert_eq!(logging::filter(), "warn");
    happen();
    assert!(logging::recent(None, 100).is_empty(), "nothing is kept unless somebody wants it");
    logging::keep_recent(RECENT_BYTES);
    let mut last = 0;
    let calls = "MCP tool called";
    for (filter, want) in [
        ("warn", vec!["client"]),
        ("info", vec!["gateway", "client", calls]),
        ("error,tidegate_edge=debug", vec!["edge"]),
        ("info,tidegate::access=off", vec!["gateway", "client"]),
        ("off,tidegate::access=info", vec![calls]),
        ("warn,[call{tool=echo}]=debug", vec!["client", "inside", calls]),
        ("off,[call{tool=other}]=debug", vec![]),
        ("info", vec!["gateway", "client", calls]),
        ("off", vec![]),
    ] {
        logging::set_filter(filter).unwrap();
        assert_eq!(logging::filter(), filter);
        happen();
        let (said, number) = after(last);
        assert_eq!(said, want, "{filter}");
        last = number;
    }
    for wrong in ["", "infoo", "tidegate_edge=loud"] {
        assert_eq!(logging::set_filter(wrong), Err(FilterError::Unclear));
    }
    assert_eq!(logging::filter(), "off", "what is wrong changes nothing");
}
