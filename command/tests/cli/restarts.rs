//! A gateway that is killed and started again: legacy clients go on with the session that they have.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};

use serde_json::{Value, json};

use crate::rig::{Folder, PATIENCE, until};
use crate::serve::Served;

/// One configuration with its state, at one port, whichever process serves it.
struct Place {
    folder: Folder,
    port: String,
}

impl Place {
    fn start(&mut self) -> (Served, SocketAddr) {
        let config = self.folder.path().join("tidegate.toml");
        let args = ["serve", "--config", config.to_str().unwrap(), "--listen", &self.port];
        let served = Served::start(Folder::new(), &args);
        let address = served.address();
        self.port = address.port().to_string();
        (served, address)
    }
}

/// The answer to a message, or to a GET or a DELETE without one: head and body.
fn send(to: SocketAddr, verb: &str, session: &str, more: &str, body: &str) -> (TcpStream, String) {
    let mut stream = TcpStream::connect_timeout(&to, PATIENCE).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let session = if session.is_empty() { String::new() } else { format!("Mcp-Session-Id: {session}\r\n") };
    write!(
        stream,
        "{verb} /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: application/json, text/event-stream\r\n\
         Content-Type: application/json\r\nConnection: close\r\n{session}{more}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut head = String::new();
    let mut byte = [0];
    while !head.ends_with("\r\n\r\n") && stream.read(&mut byte).unwrap() == 1 {
        head.push(char::from(byte[0]));
    }
    (stream, head)
}

fn status(head: &str) -> u16 {
    head.split(' ').nth(1).unwrap().parse().unwrap()
}

fn request(to: SocketAddr, session: &str, method: &str, params: Value) -> (String, Value) {
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
    let (mut stream, head) = send(to, "POST", session, "", &message);
    let mut body = String::new();
    stream.read_to_string(&mut body).unwrap();
    (head, serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error}: {body:?}")))
}

/// Opens a session.
fn initialize(to: SocketAddr) -> String {
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}});
    let (head, _) = request(to, "", "initialize", hello);
    let id = head.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).unwrap().to_owned();
    let told = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    assert_eq!(status(&send(to, "POST", &id, "", told).1), 202);
    id
}

/// The next notification of a stream, and the id of its event.
fn next(stream: &mut BufReader<TcpStream>) -> (String, Value) {
    let mut id = String::new();
    loop {
        let mut line = String::new();
        assert_ne!(stream.read_line(&mut line).unwrap(), 0, "the stream ended");
        if let Some(event) = line.strip_prefix("id: ") {
            id = event.trim().to_owned();
        }
        if let Some(data) = line.strip_prefix("data: ").map(str::trim).filter(|data| !data.is_empty()) {
            return (id, serde_json::from_str(data).unwrap());
        }
    }
}

const GRAPH: &str = "memory://knowledge-graph";

fn remember(to: SocketAddr, session: &str, name: &str) {
    let entity = json!({"name": name, "entityType": "thing", "observations": []});
    let call = json!({"name": "create_entities", "arguments": {"entities": [entity]}});
    let (_, answer) = request(to, session, "tools/call", call);
    assert!(answer["result"]["isError"] != true && answer["error"].is_null(), "{answer}");
}

/// Reads until a resource is told to have changed.
fn updated(stream: &mut BufReader<TcpStream>) -> String {
    loop {
        let (id, told) = next(stream);
        if told["method"] == "notifications/resources/updated" {
            assert_eq!(told["params"]["uri"], GRAPH);
            return id;
        }
    }
}

#[test]
fn sessions_go_on_after_kill_9_and_what_was_deleted_stays_dead() {
    let folder = Folder::new();
    folder.write(
        "tidegate.toml",
        "state_dir = \"state\"\n[servers.memory]\nbuiltin = \"memory\"\nprefix = \"\"\n[memory]\nstore = \"memory.db\"\n",
    );
    let mut place = Place { folder, port: "0".to_owned() };
    let (served, to) = place.start();
    let (lives, deleted) = (initialize(to), initialize(to));
    assert!(lives.len() <= 1024 && lives.bytes().all(|byte| byte.is_ascii_graphic()), "{lives}");
    for session in [&lives, &deleted] {
        request(to, session, "logging/setLevel", json!({"level": "warning"}));
        assert_eq!(request(to, session, "resources/subscribe", json!({"uri": GRAPH})).1["result"], json!({}));
    }
    remember(to, &lives, "before");
    let stream = send(to, "GET", &lives, "", "").0;
    let mut stream = BufReader::new(stream);
    remember(to, &lives, "heard");
    let last = updated(&mut stream);
    // Within a second it is on the disk; the end is there before it is confirmed.
    let state =
        || std::fs::read_dir(place.folder.path().join("state/sessions/state")).map_or(0, |all| all.count());
    until(|| state() == 2);
    assert_eq!(status(&send(to, "DELETE", &deleted, "", "").1), 204);
    drop(served); // kill -9

    let (served, to) = place.start();
    remember(to, &lives, "after");
    let resume = format!("Last-Event-ID: {last}\r\n");
    let (stream, head) = send(to, "GET", &lives, &resume, "");
    assert_eq!(status(&head), 200, "{head}");
    let mut stream = BufReader::new(stream);
    let told: Vec<Value> = (0..3).map(|_| next(&mut stream).1["method"].clone()).collect();
    let lists =
        ["tools", "prompts", "resources"].map(|list| json!(format!("notifications/{list}/list_changed")));
    assert_eq!(told, lists);
    updated(&mut stream);
    // It is not only said to be subscribed.
    remember(to, &lives, "again");
    updated(&mut stream);
    for verb in ["POST", "GET", "DELETE"] {
        let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        assert_eq!(status(&send(to, verb, &deleted, "", ping).1), 404, "{verb}");
    }
    assert_eq!(status(&send(to, "DELETE", &lives, "", "").1), 204);
    drop(served);

    // With another key nobody's id is known.
    let (served, to) = place.start();
    let other = initialize(to);
    assert_eq!(status(&request(to, &other, "ping", json!({})).0), 200);
    assert_eq!(status(&request(to, &lives, "ping", json!({})).0), 404);
    drop(served);
    std::fs::remove_file(place.folder.path().join("state/sealing.key")).unwrap();
    let (_served, to) = place.start();
    assert_eq!(status(&request(to, &other, "ping", json!({})).0), 404);
}
