//! Connections that are only there to be in the way.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::http;
use crate::rig::{Gateway, until};

const MEMORY: &str = "[servers.memory]\nbuiltin = \"memory\"\nprefix = \"\"\n";

/// Somebody asks something and keeps the connection.
fn keep_alive(gateway: &Gateway) -> TcpStream {
    let mut stream = http::connect(gateway.address);
    let body = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    stream.write_all(http::head("POST", &[], body.len()).as_bytes()).unwrap();
    stream.write_all(body).unwrap();
    let mut answer = [0; 512];
    assert!(stream.read(&mut answer).unwrap() > 0);
    stream
}

/// Whether the other side has closed.
fn is_closed(stream: &mut TcpStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    let closed = match stream.read(&mut [0; 4096]) {
        Ok(read) => read == 0,
        Err(error) => error.kind() != std::io::ErrorKind::WouldBlock,
    };
    stream.set_nonblocking(false).unwrap();
    closed
}

#[test]
fn idle_connections_lock_nobody_out() {
    let mut gateway = Gateway::start(&format!("max_connections = 50\nconnection_idle = \"3s\"\n{MEMORY}"));
    // Twice as many as there is room for, and all of them want to stay.
    let mut idle: Vec<TcpStream> = (0..100).map(|_| keep_alive(&gateway)).collect();
    for _ in 0..5 {
        gateway.answers_others();
    }
    let left = idle.iter_mut().map(is_closed).filter(|closed| !closed).count();
    assert!((40..=50).contains(&left), "{left} are left");
    until("the rest end by themselves", || idle.iter_mut().all(is_closed));
    gateway.ends_cleanly();
}

#[test]
fn silent_connections_lock_nobody_out() {
    let mut gateway = Gateway::start(&format!("max_connections = 50\nrequest_within = \"3s\"\n{MEMORY}"));
    let mut silent: Vec<TcpStream> = (0..60).map(|_| http::connect(gateway.address)).collect();
    for _ in 0..3 {
        gateway.answers_others();
    }
    until("they are closed", || silent.iter_mut().all(is_closed));
    gateway.ends_cleanly();
}

#[test]
fn trickled_requests_end_in_time() {
    let mut gateway = Gateway::start(&format!("request_within = \"2s\"\n{MEMORY}"));
    let mut trickles: Vec<(TcpStream, &str)> = (0..200)
        .map(|n| {
            let mut stream = http::connect(gateway.address);
            let head = http::head("POST", &[], 1 << 20);
            let (begun, byte) = match n % 2 {
                0 => (&head[..40], "a"),
                _ => (&*head, " "),
            };
            stream.write_all(begun.as_bytes()).unwrap();
            (stream, byte)
        })
        .collect();
    let started = Instant::now();
    let mut answers = Vec::new();
    while !trickles.is_empty() {
        assert!(started.elapsed() < Duration::from_secs(20), "{} go on", trickles.len());
        trickles.retain_mut(|(stream, byte)| {
            let goes_on = stream.write_all(byte.as_bytes()).is_ok();
            stream.set_nonblocking(true).unwrap();
            let mut answer = [0; 4096];
            let read = stream.read(&mut answer);
            stream.set_nonblocking(false).unwrap();
            if let Ok(read @ 1..) = read {
                answers.push(String::from_utf8_lossy(&answer[..read]).into_owned());
                return false;
            }
            goes_on && read.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
        });
        gateway.answers_others();
        std::thread::sleep(Duration::from_millis(50));
    }
    // A body that did not come is said to be missing; headers that did not come leave nobody to say it to.
    assert!(answers.len() > 50, "{} were answered", answers.len());
    assert!(answers.iter().all(|answer| answer.starts_with("HTTP/1.1 408 ")), "{:?}", answers.first());
    assert!(gateway.peak() < 200, "{} MiB", gateway.peak());
    gateway.ends_cleanly();
}

#[test]
fn quiet_streams_do_not_delay_the_end() {
    let mut gateway = Gateway::start(&format!("drain = \"50s\"\nhttp_sse = true\n{MEMORY}"));
    let session = gateway.initialize("2025-11-25");
    let body = http::modern(1, "subscriptions/listen", json!({"notifications": {"toolsListChanged": true}}));
    let listen = [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "subscriptions/listen")];
    let requests = [
        [http::head("GET", &[("Mcp-Session-Id", &session)], 0).into_bytes(), Vec::new()].concat(),
        [http::head("POST", &listen, body.len()).into_bytes(), body].concat(),
        b"GET /sse HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n".to_vec(),
    ];
    let _streams: Vec<TcpStream> = requests
        .iter()
        .map(|request| {
            let mut stream = http::connect(gateway.address);
            stream.write_all(request).unwrap();
            let mut answer = [0; 4096];
            let read = stream.read(&mut answer).unwrap();
            assert!(answer[..read].starts_with(b"HTTP/1.1 200"));
            stream
        })
        .collect();
    let started = Instant::now();
    gateway.ends_cleanly();
    assert!(started.elapsed() < Duration::from_secs(25), "it took {:?}", started.elapsed());
}

#[test]
fn descriptors_are_not_what_is_short() {
    // A soft limit that is far below the hard one, as most systems have it.
    let mut gateway = Gateway::start_with(MEMORY, |command| {
        let serve = std::mem::replace(command, std::process::Command::new("sh"));
        command.args(["-c", "ulimit -S -n 128; exec \"$@\"", "sh"]).arg(serve.get_program());
        command.args(serve.get_args()).env_clear().current_dir(serve.get_current_dir().unwrap());
        command.envs(serve.get_envs().filter_map(|(name, value)| Some((name, value?))));
    });
    let open: Vec<TcpStream> = (0..300).map(|_| keep_alive(&gateway)).collect();
    gateway.answers_others();
    assert!(!gateway.log().contains("cannot accept"), "{}", gateway.log());
    drop(open);
    gateway.ends_cleanly();
}

#[test]
fn quiet_streams_lock_nobody_out() {
    let mut gateway = Gateway::start(&format!("max_connections = 20\n{MEMORY}"));
    let mut streams = Vec::new();
    for _ in 0..40 {
        let session = gateway.initialize("2025-11-25");
        let mut stream = http::connect(gateway.address);
        stream.write_all(http::head("GET", &[("Mcp-Session-Id", &session)], 0).as_bytes()).unwrap();
        streams.push(stream);
    }
    gateway.answers_others();
    assert!(gateway.peak() < 200, "{} MiB", gateway.peak());
    gateway.ends_cleanly();
}
