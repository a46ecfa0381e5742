//! A collector that is not ours, and what it passes on.

use std::net::TcpListener;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use crate::meeting::eventually;
use crate::paths;

/// Rotel, and behind it a program that reads what it passes on with OpenTelemetry's own definitions. Dropping it ends both.
pub(crate) struct Collector {
    ports: [u16; 2],
    heard: Arc<Mutex<Vec<Value>>>,
    _processes: [Child; 2],
}

impl Collector {
    pub(crate) async fn start() -> Collector {
        let [python, script] = python("receiver.py");
        let mut receiver = spawn(Command::new(python).arg(script).stdout(Stdio::piped()));
        let mut lines = BufReader::new(receiver.stdout.take().expect("a pipe")).lines();
        let port = lines.next_line().await.expect("a line").expect("its port");
        let heard = Arc::<Mutex<Vec<Value>>>::default();
        let told = heard.clone();
        tokio::spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                told.lock().expect("nobody panics").push(serde_json::from_str(&line).expect("JSON"));
            }
        });
        let ports = [free_port(), free_port()];
        let [http, grpc] = ports.map(|port| format!("127.0.0.1:{port}"));
        let mut agent = Command::new(paths::telemetry_package("rotel/rotel-agent"));
        agent.args(["start", "--otlp-http-endpoint", &http, "--otlp-grpc-endpoint", &grpc]);
        agent.args(["--otlp-exporter-endpoint", &format!("http://127.0.0.1:{port}")]);
        agent.args(["--otlp-exporter-protocol", "http", "--batch-timeout", "200ms"]);
        let agent = spawn(agent.stdout(paths::log()).stderr(paths::log()));
        for address in [&http, &grpc] {
            eventually("the collector listens", async || std::net::TcpStream::connect(address).is_ok()).await;
        }
        Collector { ports, heard, _processes: [receiver, agent] }
    }

    /// Where it takes what is sent in this way.
    pub(crate) fn endpoint(&self, protocol: &str) -> String {
        let [http, grpc] = self.ports;
        format!("http://127.0.0.1:{}", if protocol == "grpc" { grpc } else { http })
    }

    pub(crate) fn spans(&self) -> Vec<Value> {
        self.of_kind("span")
    }

    pub(crate) fn metrics(&self) -> Vec<Value> {
        self.of_kind("metric")
    }

    fn of_kind(&self, kind: &str) -> Vec<Value> {
        let heard = self.heard.lock().expect("nobody panics");
        heard.iter().filter(|line| line["kind"] == kind).cloned().collect()
    }
}

fn spawn(command: &mut Command) -> Child {
    command.stdin(Stdio::null()).kill_on_drop(true).spawn().expect("it starts")
}

/// A port that nobody has at the moment.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("its address").port()
}

/// Python with what these tests need, and one of their scripts.
pub(crate) fn python(script: &str) -> [String; 2] {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("telemetry").join(script);
    [paths::telemetry_python(), script.to_str().expect("the path of this repository is UTF-8").to_owned()]
}
