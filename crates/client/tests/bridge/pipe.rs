//! A legacy server on a pipe that a test plays by hand: nothing that it says names a call.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tidegate_client::{Client, ClientBuilder, ClientSettings, Instances, Streams, Target};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf};
use tokio::sync::mpsc;

/// One session with the server, from the server's side.
pub(crate) struct Pipe {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    output: WriteHalf<DuplexStream>,
}

/// The sessions that a client opens, in their order.
pub(crate) struct Pipes(mpsc::UnboundedReceiver<Pipe>);

/// A client of such a server.
pub(crate) fn client(instances: Instances, change: impl FnOnce(&mut ClientSettings)) -> (Client, Pipes) {
    client_with(instances, |builder| builder.configure(change))
}

/// The same, built in another way.
pub(crate) fn client_with(
    instances: Instances,
    build: impl FnOnce(ClientBuilder) -> ClientBuilder,
) -> (Client, Pipes) {
    let (opened, pipes) = mpsc::unbounded_channel();
    let opened = Arc::new(Mutex::new(opened));
    let streams = Streams::new(move || {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let (input, output) = tokio::io::split(theirs);
        let pipe = Pipe { lines: BufReader::new(input).lines(), output };
        let _ = opened.lock().unwrap().send(pipe);
        Ok(tokio::io::split(ours))
    });
    let builder = Client::builder(Target::Streams(streams)).unwrap().settings(ClientSettings::default());
    let builder = builder.configure(|options| {
        options.era = tidegate_client::EraChoice::Legacy;
        options.sessions.instances = instances;
    });
    (build(builder).lazy().unwrap(), Pipes(pipes))
}

impl Pipes {
    /// The next session, after its handshake, whenever it comes; `None` when there is no client any more.
    pub(crate) async fn opened(&mut self) -> Option<Pipe> {
        let pipe = self.0.recv().await?;
        Some(shaken(pipe).await)
    }

    /// The next session, after its handshake.
    pub(crate) async fn next(&mut self) -> Pipe {
        let opened = tokio::time::timeout(Duration::from_secs(10), self.opened());
        opened.await.expect("a session").expect("a client")
    }

    /// Whether nobody has opened another.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Shakes hands.
async fn shaken(mut pipe: Pipe) -> Pipe {
    let hello = pipe.read().await;
    assert_eq!(hello["method"], "initialize");
    let capabilities = json!({"tools": {}, "logging": {}, "resources": {"subscribe": true}});
    let result = json!({"protocolVersion": "2025-11-25", "capabilities": capabilities,
            "serverInfo": {"name": "pipe", "version": "1"}});
    pipe.answer(&hello, result).await;
    assert_eq!(pipe.read().await["method"], "notifications/initialized");
    pipe
}

impl Pipe {
    /// The next message of the client, whenever it comes; `None` at the end.
    pub(crate) async fn try_read(&mut self) -> Option<Value> {
        let line = self.lines.next_line().await.ok()??;
        serde_json::from_str(&line).ok()
    }

    /// The next message of the client.
    pub(crate) async fn read(&mut self) -> Value {
        let line = tokio::time::timeout(Duration::from_secs(10), self.lines.next_line());
        let line = line.await.expect("a message").unwrap().expect("no end");
        serde_json::from_str(&line).unwrap()
    }

    /// The next request for this method; others before it are answered with nothing.
    pub(crate) async fn called(&mut self) -> Value {
        loop {
            let message = self.read().await;
            match message["method"].as_str() {
                Some("tools/call") => return message,
                _ if message["id"].is_null() => {}
                _ => self.answer(&message, json!({})).await,
            }
        }
    }

    pub(crate) async fn say(&mut self, message: Value) {
        // The client may have left.
        let _ = self.output.write_all(format!("{message}\n").as_bytes()).await;
    }

    pub(crate) async fn answer(&mut self, request: &Value, result: Value) {
        self.say(json!({"jsonrpc": "2.0", "id": request["id"], "result": result})).await;
    }

    pub(crate) async fn fail(&mut self, request: &Value, code: i64) {
        let error = json!({"code": code, "message": "it did not work"});
        self.say(json!({"jsonrpc": "2.0", "id": request["id"], "error": error})).await;
    }

    /// Asks something.
    pub(crate) async fn ask(&mut self, id: &str, method: &str) {
        let params = match method {
            "elicitation/create" => {
                json!({"message": id, "requestedSchema": {"type": "object", "properties": {}}})
            }
            "sampling/createMessage" => json!({"messages": [], "maxTokens": 1}),
            _ => json!({}),
        };
        self.say(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
    }
}
