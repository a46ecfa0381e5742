//! Whatever goes wrong with a call, `tidegate explain` tells the true cause, by the id that its caller got.

mod trouble;

use serde_json::{Value, json};

use crate::explain::{explain, told};
use crate::http::{Answer, until};
use crate::rig::{Caller, Gateway};
use trouble::{PROCESS, Trouble};

/// The servers in trouble, and the rules that calls can break.
fn config(legacy: &Trouble, modern: &Trouble, script: &str) -> String {
    let (legacy, modern) = (legacy.address, modern.address);
    format!(
        r#"
[servers.old]
url = "http://{legacy}/mcp"
retry = false
[servers.new]
url = "http://{modern}/mcp"
retry = false
breaker = false
[servers.late]
url = "http://{modern}/mcp"
timeout = "300ms"
retry = false
breaker = false
[servers.fragile]
url = "http://{modern}/mcp"
retry = false
breaker = {{ failures = 2, open_for = "10m" }}
[servers.again]
url = "http://{modern}/mcp"
trust_annotations = true
retry = {{ attempts = 2, base = "10ms" }}
[servers.process]
command = ["sh", {script:?}]
retry = false
[policy]
[[policy.rules]]
name = "small fish only"
deny = ["new_fine"]
when = 'has(args.size) && args.size > 10'
[[policy.rules]]
name = "secret things"
deny = ["new_refuses"]
[[policy.rules]]
name = "everybody"
allow = ["*"]
[endpoints.narrow]
tools = ["new_fine"]
[limits]
tenant = false
[[limits.rules]]
tools = ["old_fine"]
tool = {{ rate = "1/h" }}
[[limits.rules]]
tools = ["late_slow"]
tool = {{ concurrent = 1, queue = 0 }}
[[limits.rules]]
tools = ["new_large"]
tool = {{ response = "100kB" }}
[limits.run]
repeats = 3
except = ["late_*", "again_*", "fragile_*", "old_*", "new_large", "new_dies", "new_slow", "new_ask"]
[telemetry]
stories_file = "stories.jsonl"
"#
    )
}

/// The id that a caller got, wherever it stands. All that there are are the same.
#[track_caller]
fn id_of(answer: &Answer) -> String {
    let message = answer.json();
    let meta = &message["result"]["_meta"];
    let ids = [
        message["error"]["data"]["correlationId"].as_str(),
        meta["dev.tidegate/error"]["correlationId"].as_str(),
        meta["dev.tidegate/correlationId"].as_str(),
        Some(answer.header("tidegate-correlation-id")),
    ];
    let mut ids: Vec<&str> = ids.into_iter().flatten().collect();
    let in_message = ids.len() > 1;
    ids.dedup();
    assert!(in_message && ids.len() == 1, "{ids:?}: {message}");
    ids[0].to_owned()
}

/// A call with a trace of its own, by which its caller knows it even if it gets no answer.
fn traced(tool: &str, trace: &str) -> Value {
    let traceparent = format!("00-{trace}-00f067aa0ba902b7-01");
    json!({"name": tool, "arguments": {}, "_meta": {"traceparent": traceparent}})
}

/// Checks what is told about calls: by their ids, each part.
#[track_caller]
fn check(gateway: &Gateway, cases: &[(String, &[&str])]) {
    for (id, expected) in cases {
        let said = told(gateway, id, &[]);
        assert!(said.starts_with(id.as_str()), "{said}");
        for part in *expected {
            assert!(said.contains(part), "{part:?} is missing:\n{said}");
        }
        assert!(!said.contains("forged"), "{said}");
    }
}

fn start() -> (Gateway, [Trouble; 2]) {
    let (legacy, modern) = (Trouble::start(false), Trouble::start(true));
    let (folder, issuers) = Gateway::folder("");
    let script = folder.path().join("process.sh");
    std::fs::write(&script, PROCESS).unwrap();
    let config = config(&legacy, &modern, &script.display().to_string());
    crate::rig::write(folder.path(), "tidegate.toml", &format!("state_dir = \"state\"\n{config}"));
    let gateway =
        Gateway::try_start_in((folder, issuers), vec![]).unwrap_or_else(|ended| panic!("{ended:?}"));
    (gateway, [legacy, modern])
}

/// Calls a tool without arguments, and gives the id.
#[track_caller]
fn call(caller: &Caller, tool: &str) -> String {
    id_of(&caller.call(tool, json!({})))
}

#[test]
fn refusals_limits_and_what_is_hidden() {
    let (gateway, _servers) = start();
    let caller = gateway.nobody();
    let narrow = gateway.nobody().at("/narrow/mcp");
    call(&caller, "old_fine");
    let held = caller.open_modern("tools/call", traced("late_slow", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa1"));
    until("it runs", || gateway_runs(&caller, "late"));
    let queue_full = call(&caller, "late_slow");
    drop(held);
    let repeated: Vec<String> = (0..4).map(|_| id_of(&caller.call("new_fine", json!({"size": 1})))).collect();
    check(
        &gateway,
        &[
            (
                id_of(&caller.call("new_fine", json!({"size": 11}))),
                &["policy   refused by small fish only (line ", "ended    tool_error FORBIDDEN"],
            ),
            (call(&caller, "new_refuses"), &["policy   refused by secret things", "TOOL_NOT_FOUND"]),
            (
                call(&narrow, "old_fine"),
                &[
                    "endpoint narrow",
                    "then     is hidden (server old): the endpoint does not select it",
                    "TOOL_NOT_FOUND",
                ],
            ),
            (call(&caller, "nobody_has_this"), &["called   tools/call nobody_has_this", "TOOL_NOT_FOUND"]),
            (
                call(&caller, "old_fine"),
                &["policy   allowed by everybody", "limit    {", "\"rate\":\"1/h\"", "RATE_LIMIT_ERROR"],
            ),
            (queue_full, &["limit    {", "\"concurrent\":1", "RATE_LIMIT_ERROR"]),
            (
                repeated[3].clone(),
                &["limit    {\"repeats\":3,\"scope\":\"run\"}", "ended    tool_error BUDGET_EXCEEDED"],
            ),
            (
                repeated[0].clone(),
                &["asked    new (http): ok after ", "ended    ok with ", "at the server ", "deciding "],
            ),
            (
                call(&caller, "new_large"),
                &["asked    new (http): ok", "limit    {", "\"response\":100000", "tool_error TOO_LARGE"],
            ),
        ],
    );
}

fn gateway_runs(caller: &Caller, server: &str) -> bool {
    caller.send("GET", "/health", &[], "").json()["servers"][server]["running"] == 1
}

#[test]
fn servers_that_are_late_die_lie_or_refuse() {
    let (gateway, _servers) = start();
    let caller = gateway.nobody();
    let broken: Vec<String> = (0..3).map(|_| call(&caller, "fragile_dies")).collect();
    check(
        &gateway,
        &[
            (
                call(&caller, "late_slow"),
                &[
                    "sent to  late",
                    "asked    late (http): ",
                    "TIMEOUT_ERROR",
                    "did not",
                    "ended    tool_error TIMEOUT_ERROR",
                ],
            ),
            (
                broken[1].clone(),
                &[
                    "asked    fragile (http): error",
                    "then     circuit breaker (server fragile, state OPEN)",
                    "SERVICE_UNAVAILABLE",
                ],
            ),
            (broken[2].clone(), &["sent to  fragile", "CIRCUIT_BREAKER_OPEN", "circuit"]),
            (
                call(&caller, "again_flaky"),
                &[
                    "asked    again (http): error",
                    "then     is made again (attempt 2",
                    "asked    again (http): ok",
                    "between attempts ",
                    "ended    ok",
                ],
            ),
            (
                call(&caller, "new_dies"),
                &[
                    "asked    new (http): error",
                    "SERVICE_UNAVAILABLE",
                    "ended    tool_error SERVICE_UNAVAILABLE",
                ],
            ),
            (
                call(&caller, "new_garbage"),
                &["asked    new (http): error", "answer cannot be read", "ended    tool_error"],
            ),
            (
                call(&caller, "old_refuses"),
                &["asked    old (http): error", "code -32055", "out of fish", "ended    error"],
            ),
            (
                call(&caller, "process_end"),
                &[
                    "sent to  process",
                    "exited with status 3; it wrote: the disk is on fire",
                    "SERVICE_UNAVAILABLE",
                ],
            ),
        ],
    );
    let refused = told(&gateway, &call(&caller, "old_refuses"), &[]);
    assert!(!refused.contains("limit "), "a server has no limits of this gateway: {refused}");
    let last = explain(&gateway, &["--last-error", "--tool", "new_garbage"]);
    assert!(String::from_utf8_lossy(&last.stdout).contains("new_garbage"), "{last:?}");
}

#[test]
fn calls_between_the_eras_with_their_questions() {
    let (gateway, _servers) = start();
    let caller = gateway.nobody();
    let accepted = json!({"action": "accept", "content": {"a": "this"}});

    // A modern caller, a legacy server.
    let asked = caller.call("old_ask", json!({}));
    let first = id_of(&asked);
    let result = asked.json()["result"].clone();
    let key = result["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
    let retry = json!({"name": "old_ask", "arguments": {}, "requestState": result["requestState"],
        "inputResponses": {key: accepted}});
    let answered = caller.modern("tools/call", retry);
    assert!(
        answered.json()["result"]["content"][0]["text"].as_str().unwrap().contains("this"),
        "{answered:?}"
    );
    let second = id_of(&answered);
    check(
        &gateway,
        &[
            (
                first.clone(),
                &[
                    "sent to  old: it speaks 2025-11-25, the caller 2026-07-28; translated",
                    "sessions: the server has one, the caller has none",
                    "questions: asked by the server in its session, answered by the caller in another call",
                    "asks     the caller elicitation/create",
                    "ended    input_required",
                ],
            ),
            (second, &[&format!("answers  the questions of {first} (#"), "ended    ok", "translated"]),
        ],
    );

    // A legacy caller, a modern server: its request has one id, whatever it takes.
    let session = caller.session();
    let params = json!({"name": "new_ask", "arguments": {}});
    let mut stream = caller.open_in_session(&session, "tools/call", params);
    let question = question_in(&stream.until("elicitation/create"));
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": accepted});
    let headers = [("Mcp-Session-Id", &*session), ("MCP-Protocol-Version", "2025-11-25")];
    assert_eq!(caller.send("POST", "/mcp", &headers, &answer.to_string()).status, 202);
    let said = stream.until("dev.tidegate/correlationId");
    let (_, id) = said.split_once("\"dev.tidegate/correlationId\":\"").unwrap();
    let id = id.split_once('"').unwrap().0.to_owned();
    check(
        &gateway,
        &[(
            id.clone(),
            &[
                "sent to  new: it speaks 2026-07-28, the caller 2025-11-25; translated",
                "sessions: the caller has one, the server has none",
                "asked of the caller in its session, answered to the server in another call",
                "asks     the caller elicitation/create",
                &format!("answers  the questions of {id} (#"),
                "ended    ok",
            ],
        )],
    );

    // Who cannot be asked learns why nothing came of it under the same id.
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25",
        "capabilities": {}, "clientInfo": {"name": "mute", "version": "1"}}});
    let session = caller.send("POST", "/mcp", &[], &hello.to_string()).header("mcp-session-id").to_owned();
    let id = id_of(&caller.in_session(&session, "tools/call", json!({"name": "new_ask", "arguments": {}})));
    check(
        &gateway,
        &[(
            id.clone(),
            &[
                &format!("after    the questions of {id} (#"),
                "ended    error MISSING_CAPABILITY",
                "elicitation.form",
                "ended    input_required",
            ],
        )],
    );
}

/// The question on a stream.
fn question_in(stream: &str) -> Value {
    let events = stream.lines().filter_map(|line| line.strip_prefix("data: "));
    let mut messages = events.filter_map(|data| serde_json::from_str::<Value>(data).ok());
    messages.find(|message| message["id"].is_number()).unwrap_or_else(|| panic!("{stream}"))
}

#[test]
fn callers_who_leave_and_a_gateway_that_is_full() {
    let modern = Trouble::start(true);
    let address = modern.address;
    let gateway = Gateway::start_exactly(&format!(
        "max_calls = 1\n[servers.new]\nurl = \"http://{address}/mcp\"\n[telemetry]\nbodies = true\n"
    ));
    let caller = gateway.nobody();
    let (running, waiting) = ("bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb1", "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb2");
    let held = caller.open_modern("tools/call", traced("new_slow", running));
    until("it runs", || gateway_runs(&caller, "new"));
    let in_line = caller.open_modern("tools/call", traced("new_slow", waiting));
    until("it waits", || metric(&caller, "tidegate_calls_waiting") >= 1.0);
    let refused = call(&caller, "new_fine");
    drop(in_line);
    until("it has left", || metric(&caller, "tidegate_calls_waiting") == 0.0);
    drop(held);
    check(
        &gateway,
        &[
            (refused, &["ended    tool_error RATE_LIMIT_ERROR", "too many calls are waiting"]),
            (
                waiting.to_owned(),
                &["then     gave up waiting (for queue", "time     in line ", "ended    cancelled"],
            ),
            (running.to_owned(), &["asked    new (http): given up after", "ended    cancelled"]),
        ],
    );
    // Arguments and results, because somebody wants them, without what looks like a secret.
    let with = caller.call("new_fine", json!({"fish": "salmon", "api_key": "hunter22"}));
    let said = told(&gateway, &id_of(&with), &[]);
    assert!(said.contains("with     {") && said.contains("\"fish\":\"salmon\""), "{said}");
    assert!(said.contains("result   {") && !said.contains("hunter22"), "{said}");
    assert!(!gateway.log().contains("salmon"), "never in the log");
}

/// The sum of a series, whatever its labels.
fn metric(caller: &Caller, name: &str) -> f64 {
    let body = caller.send("GET", "/metrics", &[], "").body;
    let lines = body.lines().filter(|line| line.starts_with(name));
    lines.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok()).sum()
}

#[test]
fn stories_outlive_their_gateway() {
    let (mut gateway, _servers) = start();
    let caller = gateway.nobody();
    let failed = call(&caller, "new_dies");
    let before = told(&gateway, &failed, &[]);
    until("it is written", || {
        let file = std::fs::read_to_string(gateway.folder.path().join("stories.jsonl"));
        file.is_ok_and(|file| file.contains(&failed))
    });
    // As rudely as possible.
    gateway.child.kill().unwrap();
    gateway.child.wait().unwrap();
    let mut command = crate::rig::command(gateway.folder.path());
    let said = command.args(["explain", &failed]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&said.stdout), before, "{said:?}");
    assert!(String::from_utf8_lossy(&said.stderr).contains("this is from "), "{said:?}");
}
