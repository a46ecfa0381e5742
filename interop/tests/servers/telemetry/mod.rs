//! Traces and figures of the gateway at a collector that nobody here wrote (Rotel, from PyPI), read with OpenTelemetry's own
//! definitions; with the official Python SDK, which makes spans by itself, in front of the gateway and behind it.

mod rig;

use serde_json::{Value, json};

use crate::gateway::Gateway;
use crate::meeting::eventually;
use crate::telemetry::rig::{Collector, python};
use crate::{gateway, paths};

/// The gateway with the traced server behind it, and this collector.
async fn traced(collector: &Collector, protocol: &str) -> Gateway {
    let dir = paths::scratch(&format!("telemetry/{}", protocol.replace('/', "-")));
    let [python, script] = python("traced.py");
    let text = format!(
        r#"
        state_dir = {state}
        [telemetry.otlp]
        endpoint = {endpoint}
        protocol = {protocol}
        interval = "1s"
        [servers.traced]
        command = [{python}, {script}, "server"]
        env = {{ OTEL_EXPORTER_OTLP_ENDPOINT = {http}, OTEL_SERVICE_NAME = "server" }}
        "#,
        state = json!(dir.join("state")),
        endpoint = json!(collector.endpoint(protocol)),
        protocol = json!(protocol),
        python = json!(python),
        script = json!(script),
        http = json!(collector.endpoint("http/protobuf")),
    );
    let file = dir.join("tidegate.toml");
    std::fs::write(&file, text).expect("a writable target directory");
    let gateway = Gateway::start(&file).await;
    let url = tidegate_client::Target::parse(&gateway.url).expect("an address");
    gateway::tools(url, &["traced_".to_owned()]).await;
    gateway
}

/// The span of this side of this service whose name ends so, in this trace if one is given.
fn find<'a>(spans: &'a [Value], service: &str, side: &str, name: &str, trace: Option<&Value>) -> &'a Value {
    let found = spans.iter().find(|span| {
        span["service"] == service
            && span["side"] == side
            && span["name"].as_str().is_some_and(|own| own.ends_with(name))
            && trace.is_none_or(|trace| span["trace"] == *trace)
    });
    found.unwrap_or_else(|| panic!("no {side} span {name:?} of {service}: {spans:#?}"))
}

async fn one_trace(protocol: &str) {
    let collector = Collector::start().await;
    let gateway = traced(&collector, protocol).await;
    let [python, script] = python("traced.py");
    for (tool, arguments, said) in [
        ("traced_echo", r#"{"message":"over the reef"}"#, "over the reef"),
        ("traced_fail", "{}", "The tide is out"),
    ] {
        let mut client = tokio::process::Command::new(&python);
        client.arg(&script).args(["client", &gateway.url, tool, arguments]);
        client.env("OTEL_EXPORTER_OTLP_ENDPOINT", collector.endpoint("http/protobuf"));
        let done = client.env("OTEL_SERVICE_NAME", "client").output().await.expect("the client runs");
        let out = String::from_utf8_lossy(&done.stdout);
        assert!(done.status.success() && out.contains(said), "{done:?}");
    }
    let has = |name: &str, service: &str| {
        let is_it = |span: &Value| span["name"].as_str() == Some(name) && span["service"] == service;
        collector.spans().iter().any(is_it)
    };
    eventually("all spans have come", async || {
        has("tools/call traced_fail", "tidegate") && has("tools/call fail", "server")
    })
    .await;

    // One trace, from the client through the gateway to the server.
    let spans = collector.spans();
    for (tool, outcome, status) in [("echo", "ok", "unset"), ("fail", "tool_error", "error")] {
        let asked = find(&spans, "client", "client", &format!("tools/call traced_{tool}"), None);
        let trace = Some(&asked["trace"]);
        let taken = find(&spans, "tidegate", "server", &format!("tools/call traced_{tool}"), trace);
        let passed_on = find(&spans, "tidegate", "client", &format!("tools/call {tool}"), trace);
        let answered = find(&spans, "server", "server", &format!("tools/call {tool}"), trace);
        assert_eq!(taken["parent"], asked["span"]);
        assert_eq!(passed_on["parent"], taken["span"]);
        assert_eq!(answered["parent"], passed_on["span"]);
        for (attribute, expected) in [
            ("mcp.method.name", json!("tools/call")),
            ("gen_ai.tool.name", json!(format!("traced_{tool}"))),
            ("gen_ai.operation.name", json!("execute_tool")),
            ("mcp.protocol.version", json!("2026-07-28")),
            ("network.transport", json!("tcp")),
            ("tidegate.server", json!("traced")),
            ("tidegate.outcome", json!(outcome)),
        ] {
            assert_eq!(taken["attributes"][attribute], expected, "{attribute}: {taken:#}");
        }
        assert_eq!((&taken["status"], &passed_on["status"]), (&json!(status), &json!(status)), "{taken:#}");
        assert_eq!(passed_on["attributes"]["network.transport"], "pipe", "{passed_on:#}");
        assert!(
            taken["nanoseconds"].as_u64() >= passed_on["nanoseconds"].as_u64(),
            "{taken:#} {passed_on:#}"
        );
    }

    // The figures have the same names.
    let calls = |metric: &Value| {
        metric["name"] == "mcp.server.operation.duration"
            && metric["attributes"]["gen_ai.tool.name"] == "traced_echo"
            && metric["value"] == 1
    };
    eventually("the figures have come", async || collector.metrics().iter().any(calls)).await;
    let metrics = collector.metrics();
    let durations = metrics.iter().find(|metric| calls(metric)).expect("it has come");
    assert_eq!((&durations["data"], &durations["unit"]), (&json!("histogram"), &json!("s")), "{durations:#}");
    let counted: u64 =
        durations["buckets"].as_array().expect("buckets").iter().filter_map(Value::as_u64).sum();
    assert_eq!((counted, durations["bounds"].as_array().map(Vec::len)), (1, Some(14)), "{durations:#}");
    for (name, data) in
        [("tidegate.server.up", "gauge"), ("process.cpu", "sum"), ("tidegate.build_info", "gauge")]
    {
        assert!(metrics.iter().any(|metric| metric["name"] == name && metric["data"] == data), "{name}");
    }
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_trace_from_client_to_server_over_http() {
    one_trace("http/protobuf").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_trace_from_client_to_server_over_grpc() {
    one_trace("grpc").await;
}
