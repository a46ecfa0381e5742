//! `[telemetry.otlp]`: collectors that take what they get, and those that are away, hang or lie. What a collector of somebody else makes of it
//! is in `interop/tests/servers/telemetry`.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Mutex};

use serde_json::json;

use crate::http::until;
use crate::rig::{Caller, Gateway, SERVERS};
use crate::{get, metrics};

/// What is answered to each request; `None` for nothing at all.
type Answers = Option<&'static [u8]>;

const TAKEN: Answers = Some(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");

/// The path and the body of a request.
type Got = (String, Vec<u8>);

/// A collector, and what it was sent.
struct Collector {
    address: SocketAddr,
    got: Arc<Mutex<Vec<Got>>>,
    answers: Arc<Mutex<Answers>>,
}

impl Collector {
    fn start(answers: Answers) -> Collector {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let collector = Collector {
            address: listener.local_addr().unwrap(),
            got: Arc::default(),
            answers: Arc::new(Mutex::new(answers)),
        };
        let (got, answers) = (collector.got.clone(), collector.answers.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (got, answers) = (got.clone(), answers.clone());
                std::thread::spawn(move || _ = serve(stream, &got, &answers));
            }
        });
        collector
    }

    /// Whether a request to this path has this text in it.
    fn has(&self, path: &str, text: &str) -> bool {
        let got = self.got.lock().unwrap();
        let has = |body: &[u8]| body.windows(text.len()).any(|window| window == text.as_bytes());
        got.iter().any(|(to, body)| to == path && has(body))
    }

    fn answer(&self, answers: Answers) {
        *self.answers.lock().unwrap() = answers;
    }
}

/// Reads requests and answers them, until the other side has enough.
fn serve(mut stream: TcpStream, got: &Mutex<Vec<Got>>, answers: &Mutex<Answers>) -> std::io::Result<()> {
    loop {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte)?;
            head.push(byte[0]);
        }
        let head = String::from_utf8_lossy(&head).to_lowercase();
        let length = head.split("content-length: ").nth(1).and_then(|rest| rest.split("\r\n").next());
        let mut body = vec![0; length.and_then(|length| length.parse().ok()).unwrap_or(0)];
        stream.read_exact(&mut body)?;
        let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
        got.lock().unwrap().push((path, body));
        let answer = *answers.lock().unwrap();
        match answer {
            Some(answer) => stream.write_all(answer)?,
            None => std::thread::sleep(std::time::Duration::from_secs(120)),
        }
    }
}

fn gateway(endpoint: SocketAddr, more: &str) -> Gateway {
    Gateway::start_exactly(&format!(
        "[telemetry.otlp]\nendpoint = \"http://{endpoint}/base\"\ntimeout = \"500ms\"\ninterval = \"1s\"\n{more}\n{SERVERS}"
    ))
}

fn add(caller: &Caller) {
    let answer = caller.call("demo_add", json!({"a": 1, "b": 2}));
    assert!(answer.is_fine(), "{answer:?}");
}

/// Ends it, and says whether it ended well.
fn ends_well(gateway: &mut Gateway) -> bool {
    let id = gateway.child.id().to_string();
    assert!(Command::new("kill").arg(id).status().unwrap().success());
    let mut ended = None;
    until("it ends", || {
        ended = gateway.child.try_wait().unwrap();
        ended.is_some()
    });
    ended.is_some_and(|status| status.success())
}

#[test]
fn spans_and_figures_are_sent_and_what_is_left_at_the_end() {
    let collector = Collector::start(TAKEN);
    let mut gateway =
        gateway(collector.address, "service_name = \"reef-gate\"\nattributes = { team = \"reef\" }");
    let caller = gateway.nobody();
    add(&caller);
    until("the span is sent", || collector.has("/base/v1/traces", "tools/call demo_add"));
    // What the server was asked is another span.
    assert!(collector.has("/base/v1/traces", "tidegate.server"));
    until("the figures are sent", || collector.has("/base/v1/metrics", "mcp.server.operation.duration"));
    for said in ["service.name", "reef-gate", "team", "service.instance.id"] {
        assert!(collector.has("/base/v1/traces", said), "{said}");
    }
    let traced = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";
    caller.modern("prompts/list", json!({"_meta": {"traceparent": traced}}));
    assert!(ends_well(&mut gateway));
    assert!(collector.has("/base/v1/traces", "prompts/list"), "what was left is sent at the end");
    assert!(gateway.log().matches("cannot be sent").count() == 0, "{}", gateway.log());
}

#[test]
fn sampling_follows_the_caller_or_a_share() {
    let collector = Collector::start(TAKEN);
    let mut gateway = gateway(collector.address, "sample = 0.0\nmetrics = false");
    let caller = gateway.nobody();
    add(&caller);
    let modern = |method: &str, flags: &str| {
        let traced = format!("00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-{flags}");
        caller.modern(method, json!({"_meta": {"traceparent": traced}}));
    };
    modern("prompts/list", "00");
    modern("resources/list", "01");
    assert!(ends_well(&mut gateway));
    assert!(collector.has("/base/v1/traces", "resources/list"));
    assert!(
        !collector.has("/base/v1/traces", "demo_add") && !collector.has("/base/v1/traces", "prompts/list")
    );
    assert!(!collector.has("/base/v1/metrics", "tidegate"));
}

#[test]
fn a_collector_that_is_away_or_wrong_costs_spans_and_no_call() {
    // A port at which nobody listens.
    let away = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let endless = Some(&b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffff\r\nxxxx"[..]);
    let refused = Some(&b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"[..]);
    let gibberish = Some(&b"\x00\x01\x02 no HTTP at all\r\n\r\n"[..]);
    let collectors = [None, endless, refused, gibberish].map(Collector::start);
    let endpoints = collectors.iter().map(|collector| collector.address).chain([away]);
    for endpoint in endpoints {
        let mut gateway = gateway(endpoint, "");
        let caller = gateway.nobody();
        (0..20).for_each(|_| add(&caller));
        // One that answers something else than it should has still taken it.
        if endpoint != collectors[1].address {
            until("somebody is told", || gateway.log().contains("cannot be sent to"));
        }
        (0..20).for_each(|_| add(&caller));
        assert_eq!(get(&caller, "/health").status, 200);
        assert!(ends_well(&mut gateway), "{}", gateway.log());
        let told = gateway.log().matches("Spans cannot be sent").count();
        assert!(told <= 1, "once is enough: {}", gateway.log());
    }
}

#[test]
fn what_is_lost_is_counted_and_said_when_it_is_over() {
    let collector = Collector::start(Some(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"));
    let gateway = gateway(collector.address, "buffer = \"64KiB\"\nmetrics = false");
    let caller = gateway.nobody();
    until("somebody is told", || {
        add(&caller);
        gateway.log().contains("cannot be sent to")
    });
    until("the buffer is full", || {
        (0..50).for_each(|_| add(&caller));
        metrics(&caller)["tidegate_spans_dropped_total"] > 0.0
    });
    collector.answer(TAKEN);
    until("there is something to send, and it is taken", || {
        add(&caller);
        gateway.log().contains(" again; ")
    });
    assert!(gateway.log().contains("were lost"), "{}", gateway.log());
}

#[test]
fn what_makes_no_sense_is_refused_with_its_line() {
    for (text, said) in [
        ("sample = 0.1", "needs endpoint"),
        ("endpoint = \"localhost:4318\"", "must be the URL of a collector"),
        ("endpoint = \"http://u:p@localhost\"", "must not have a user name"),
        ("endpoint = \"http://localhost:4318/v1/traces\"", "must not end with /v1/traces"),
        ("endpoint = \"http://localhost\"\nsample = 2", "must be from 0 to 1"),
        ("endpoint = \"http://localhost\"\nprotocol = \"http/json\"", "http/protobuf"),
        ("endpoint = \"http://localhost\"\nbuffer = 5", "must be from"),
        ("endpoint = \"http://localhost\"\ntimeout = \"5m\"", "must be from"),
        ("endpoint = \"http://localhost\"\nheaders = { \"a b\" = \"c\" }", "not a valid name"),
    ] {
        match Gateway::try_start(&format!("[telemetry.otlp]\n{text}\n{SERVERS}")) {
            Ok(_) => panic!("it serves with {text:?}"),
            Err((code, log)) => {
                assert!(code == 2 && log.contains(said) && log.contains("tidegate.toml:"), "{text:?}: {log}")
            }
        }
    }
}
