//! Where records go besides a file, and what is said about it.

use std::net::UdpSocket;

use serde_json::{Value, json};

use crate::http::{PATIENCE, until};
use crate::rig::Folder;

#[test]
fn records_alone_are_on_standard_output() {
    let folder = Folder::new("stdout = true");
    let ann = folder.key("ann");
    let served = folder.serve();
    assert!(served.call(Some(&ann), "demo_add", json!({"a": 1, "b": 2})).is_fine());
    served.stop();
    let out = folder.read("out");
    let kinds: Vec<Value> =
        out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["kind"].clone()).collect();
    assert_eq!(kinds, ["start", "call", "stop"]);
    let refused = folder.run(&["serve", "--stdio"]).exits(2);
    assert!(refused.err.contains("which belongs to the client with --stdio"), "{refused:?}");
}

#[test]
fn a_syslog_server_gets_what_the_file_has() {
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    server.set_read_timeout(Some(PATIENCE)).unwrap();
    let address = server.local_addr().unwrap();
    let folder = Folder::new(&format!(
        "file = \"audit.jsonl\"\nsyslog = \"udp://{address}\"\nfacility = \"local0\"\nwhen_full = \"refuse\""
    ));
    let ann = folder.key("ann");
    let served = folder.serve();
    assert!(served.call(Some(&ann), "demo_add", json!({"a": 1, "b": 2})).is_fine());
    served.stop();
    let (text, mut buffer) = (folder.read("audit.jsonl"), [0; 4096]);
    for line in text.lines().skip(1) {
        let length = server.recv(&mut buffer).unwrap();
        let message = String::from_utf8_lossy(&buffer[..length]).into_owned();
        assert!(message.starts_with("<134>1 ") && message.ends_with(&format!(" - {line}")), "{message}");
    }
    let checked = folder.run(&["check"]).exits(0).out;
    assert!(checked.contains("audit.jsonl, udp://127.0.0.1:"), "{checked}");
    assert!(checked.contains("calls are refused when it cannot be written"), "{checked}");
    assert_eq!(folder.run(&["check", "--json"]).exits(0).json()["audit"]["whenFull"], "refuse");
}

#[test]
fn another_place_needs_a_restart() {
    let folder = Folder::new("file = \"audit.jsonl\"");
    let served = folder.serve();
    let config = folder.read("tidegate.toml");
    folder.write("tidegate.toml", &config.replace("audit.jsonl", "other.jsonl"));
    until("it says so", || {
        folder.read("err").contains("Where the audit trail goes has changed ([audit]): restart")
    });
    served.stop();
    assert!(!folder.path("other.jsonl").exists());
}
