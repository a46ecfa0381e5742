//! What a record says of a call that really was made.

use std::convert::Infallible;
use std::sync::Arc;

use futures_util::future::{FutureExt, ready};
use serde_json::{Value, json};
use tidegate_protocol::{Error, Json, Limits, Method, Params, Symbol};
use tidegate_service::events::{self, Event, HostRefused, LoginRefused, Recorder};
use tidegate_service::{Call, Claims, Context, Current, Decision, Principal, Reply, layers};
use tower::{Layer, Service, service_fn};

use super::{PATIENCE, in_folder, settings, sound, text};
use crate::{Audit, arguments_digest};

fn call(name: &str, arguments: Value) -> Call {
    let params = Json::from(json!({"name": name, "arguments": arguments}));
    let mut context = Context::local();
    context.principal = Principal::subject("ann").in_tenant("reef").issued_by("https://id.example.com");
    context.claims = Some(Arc::new(Claims {
        client: Some("editor".into()),
        actors: vec!["robot".into(), "x\u{1b}[2J\n".into()],
        ..Claims::default()
    }));
    context.endpoint = Some("research".into());
    Call::new(Method::ToolsCall, Params::parse(&params, &Limits::default()).unwrap(), context)
}

/// Whatever answers, behind the layers that every call passes.
fn make(call: Call, reply: impl Fn() -> Reply + Clone + Send + Sync + 'static) {
    let door = service_fn(move |_: Call| {
        Current::sent_to(&Arc::from("demo"));
        Current::decided(&Arc::new(Decision {
            rule: "developers".into(),
            line: Some(3),
            is_allowed: false,
            is_enforced: false,
        }));
        ready(Ok::<_, Infallible>(reply()))
    });
    let mut front = layers::EventsLayer.layer(door);
    let _ = front.call(call).now_or_never().expect("it is answered at once");
}

#[test]
fn who_called_what_where_under_which_rule_and_how_it_ended() {
    let (_folder, path) = in_folder();
    let audit = Audit::start(&settings(Some(&path)), "1.2.3").unwrap();
    let recorder: Arc<dyn Recorder> = audit.recorder();
    events::add(recorder.clone());
    make(call("demo_add", json!({"b": 2, "a": 1.0})), || Reply::Complete(Json::trusted("{}")));
    make(call(&"x".repeat(1000), json!({})), || Reply::Error(Error::new(Symbol::Timeout, "too slow")));
    for is_one_of_many in [false, true] {
        events::emit(&Event::LoginRefused(LoginRefused {
            reason: "expired",
            endpoint: None,
            address: Some([192, 0, 2, 1].into()),
            detail: Some("key of \"bob\"\r\n"),
            is_one_of_many,
        }));
    }
    let why = "the host evil.example is not allowed";
    events::emit(&Event::HostRefused(HostRefused { why, address: None, is_one_of_many: true, untold: 0 }));
    events::remove(&recorder);
    audit.close(PATIENCE);
    sound(&path);
    let text = text(&path);
    assert!(!text.contains(['\u{1b}', '\r']));
    let records: Vec<Value> = text.lines().skip(1).map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: Vec<&str> = records.iter().map(|record| record["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["start", "call", "call", "login_refused", "login_refused", "host_refused", "stop"]);
    assert_eq!((&records[0]["version"], &records[0]["when_full"]), (&json!("1.2.3"), &json!("drop")));
    let done = &records[1];
    for (member, value) in [
        ("v", json!(1)),
        ("seq", json!(2)),
        ("issuer", json!("https://id.example.com")),
        ("subject", json!("ann")),
        ("tenant", json!("reef")),
        ("client", json!("editor")),
        ("actors", json!(["robot", "x\u{1b}[2J\n"])),
        ("endpoint", json!("research")),
        ("method", json!("tools/call")),
        ("name", json!("demo_add")),
        ("server", json!("demo")),
        ("rule", json!("developers")),
        ("decision", json!("would_refuse")),
        ("outcome", json!("ok")),
        ("error", Value::Null),
    ] {
        assert_eq!(done[member], value, "{member} in {done}");
    }
    let digest = arguments_digest(&Json::trusted(r#"{"a":1,"b":2}"#));
    assert_eq!(done["args"], crate::chain::hex_text(&digest));
    assert!(done["duration_ms"].is_number() && done["revision"].is_string() && done["id"].is_string());
    assert_eq!((&records[2]["outcome"], &records[2]["error"]), (&json!("error"), &json!("TIMEOUT_ERROR")));
    assert_eq!(records[2]["name"].as_str().unwrap().chars().count(), 257);
    assert_eq!((&records[3]["reason"], &records[3]["address"]), (&json!("expired"), &json!("192.0.2.1")));
    assert_eq!(records[3]["detail"], "key of \"bob\"\r\n");
    assert_eq!(records[5]["reason"], why);
}
