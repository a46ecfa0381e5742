//! What lines look like, whoever wrote what is in them.

use std::io::Write;
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tidegate_service::layers::EventsLayer;
use tidegate_service::wire_trace;
use tidegate_service::{Call, Context, Reply};
use tower::{Layer, Service};
use tracing_subscriber::layer::SubscriberExt;

use super::Format;
use super::lines::Lines;
use super::outputs::Outputs;

#[derive(Clone, Default)]
pub(super) struct Captured(Arc<Mutex<Vec<u8>>>);

impl Captured {
    pub(super) fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Captured {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// What has lines written there.
pub(super) fn dispatch(outputs: Arc<Outputs>) -> tracing::Dispatch {
    tracing_subscriber::registry().with(Lines(outputs)).into()
}

/// What is written of what this logs.
fn written(format: Format, log: impl FnOnce()) -> String {
    let captured = Captured::default();
    let outputs = Outputs::new(captured.clone(), format, None);
    tracing::dispatcher::with_default(&dispatch(Arc::new(outputs)), log);
    captured.text()
}

/// What is logged by `log` while a call is under way, by this subscriber.
fn logged(format: Format) -> String {
    let answer = |_: Call| async {
        tracing::info!(count = 3, "counted");
        Ok::<_, std::convert::Infallible>(Reply::Complete(tidegate_protocol::Json::empty_object()))
    };
    let params = tidegate_protocol::Json::from(serde_json::json!({"name": "e\ncho"}));
    let params = tidegate_protocol::Params::parse(&params, &Default::default()).unwrap();
    let call = Call::new(tidegate_protocol::Method::ToolsCall, params, Context::local());
    let lines = written(format, || {
        let mut door = EventsLayer.layer(tower::service_fn(answer));
        futures_util::FutureExt::now_or_never(door.call(call)).unwrap().unwrap();
    });
    // The record of the call is another line.
    lines.lines().find(|line| line.contains("counted")).map(|line| format!("{line}\n")).unwrap()
}

#[test]
fn lines_say_which_call_they_belong_to() {
    let line = logged(Format::Pretty);
    assert!(line.contains("counted count=3 correlationId="), "{line}");
    assert!(line.ends_with("method=tools/call tool=e\\ncho\n"), "no name can forge a line: {line}");
    let line: Value = serde_json::from_str(&logged(Format::Json)).unwrap();
    assert_eq!((&line["tool"], &line["method"]), (&Value::from("e\ncho"), &Value::from("tools/call")));
    assert!(line["correlationId"].is_string());
}

#[test]
fn json_lines_are_flat_and_carry_the_correlation_id() {
    let text = written(Format::Json, || {
        let span = tracing::info_span!("call", correlationId = "1-a", tool = "echo");
        span.in_scope(|| tracing::info!(count = 3, "Tool invocation started"));
    });
    let line: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(line["message"], "Tool invocation started");
    assert_eq!((&line["correlationId"], &line["tool"]), (&Value::from("1-a"), &Value::from("echo")));
    assert_eq!((&line["level"], &line["count"]), (&Value::from("info"), &Value::from(3)));
    assert_eq!(line["timestamp"].as_str().unwrap().len(), 19);
}

#[test]
fn nothing_that_others_wrote_forges_a_line_or_shows_a_secret() {
    tidegate_service::secrets::register("sk-logging-0001");
    let forged = "x\n2026-07-28T12:00:00Z ERROR all is lost\u{1b}[2J\u{9b}31m\u{202e} sk-logging-0001";
    let error = tidegate_protocol::Error::internal();
    for format in [Format::Pretty, Format::Json] {
        let text = written(format, || {
            let span = tracing::info_span!("call", of = forged);
            span.in_scope(
                || tracing::warn!(name = forged, shown = %forged, seen = ?forged, %error, "down: {forged}"),
            );
        });
        assert_eq!(text.matches('\n').count(), 1, "{text:?}");
        assert!(!text.trim_end().contains(|c: char| c.is_control() || c == '\u{202e}'), "{text:?}");
        assert!(!text.contains("logging-0001") && text.contains("***"), "{text:?}");
        assert!(text.contains("all is lost"));
    }
}

/// What somebody at a terminal sees of this.
fn at_a_terminal(colours: bool, log: impl FnOnce()) -> String {
    let captured = Captured::default();
    let outputs = Outputs::new(captured.clone(), Format::Pretty, Some(colours));
    tracing::dispatcher::with_default(&dispatch(Arc::new(outputs)), log);
    let text = captured.text();
    // The time is another each time.
    let times = |line: &str| match line.split_at_checked(8) {
        Some((time, rest)) if !colours && time.matches(':').count() == 2 => format!("12:00:00{rest}\n"),
        _ => format!("{line}\n"),
    };
    text.lines().map(times).collect()
}

#[test]
fn lines_at_a_terminal_are_short() {
    let seen = at_a_terminal(false, || {
        let error = "no such file";
        tracing::info!(target: "tidegate::lifecycle", server = "time", tools = 2, "ready: 2 tools (0.4 s)");
        tracing::warn!(target: "tidegate::lifecycle", server = "github", "not available: {error}");
        tracing::info!(target: "tidegate::child", server = "time", "listening on stdio");
        tracing::error!(%error, "The configuration was not changed");
        tracing::warn!(seconds = 60, "the deadline passed");
        tracing::debug!(target: wire_trace::TARGET, bytes = 2, content = "{}", "received");
        tracing::debug!(target: wire_trace::TARGET, server = "time", bytes = 2, content = "{}", "sent");
    });
    insta::assert_snapshot!(seen, @r"
    12:00:00 [time] ready: 2 tools (0.4 s)
    12:00:00 WARN [github] not available: no such file
    12:00:00 [time] listening on stdio
    12:00:00 ERROR The configuration was not changed: no such file
    12:00:00 WARN the deadline passed (seconds=60)
    12:00:00 [client] received {}
    12:00:00 [time] sent {}
    ");
}

#[test]
fn nothing_that_others_wrote_drives_a_terminal() {
    tidegate_service::secrets::register("sk-logging-0002");
    let forged = "x\n12:00:00 ERROR all is lost\u{1b}[2J\u{9b}31m\u{202e} sk-logging-0002";
    for colours in [true, false] {
        let seen = at_a_terminal(colours, || {
            tracing::warn!(server = forged, error = %forged, other = ?forged, content = forged, "down: {forged}");
        });
        assert_eq!(seen.matches('\n').count(), 1, "{seen:?}");
        assert!(!seen.contains("[2J") || seen.contains("\\u{1b}[2J"), "{seen:?}");
        let ours = ["\u{1b}[0m", "\u{1b}[2m", "\u{1b}[33m", "\u{1b}[36m"];
        let rest = ours.iter().fold(seen.trim_end().to_owned(), |seen, ours| seen.replace(ours, ""));
        assert!(!rest.contains(|c: char| c.is_control() || c == '\u{202e}'), "{rest:?}");
        assert!(!seen.contains("logging-0002") && seen.contains("***"), "{seen:?}");
    }
}

#[test]
fn json_keeps_the_direction_and_the_content_of_a_message() {
    let text = written(Format::Json, || {
        wire_trace::received(br#"{"id":1,"password":"p"}"#);
        wire_trace::sent_to("time", br#"{"id":2}"#);
    });
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |n: usize| (lines[n]["message"].clone(), lines[n]["content"].clone(), lines[n]["bytes"].clone());
    assert_eq!(of(0), ("received".into(), r#"{"id":1,"password":"***"}"#.into(), 23.into()));
    assert_eq!(of(1), ("sent".into(), r#"{"id":2}"#.into(), 8.into()));
    assert_eq!((&lines[0]["server"], &lines[1]["server"]), (&Value::Null, &Value::from("time")));
}
