//! [`Pipe`]: a client at the other end of a stdio connection.

use serde_json::{Value, json};
use tidegate_edge::stdio::{Ended, Settings, serve_streams};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream};
use tokio::task::JoinHandle;

use super::http::initialize;
use super::{Stub, in_time, never};

pub(crate) struct Pipe {
    /// To the server. Dropping it is the end of its input.
    pub(crate) input: Option<DuplexStream>,
    pub(crate) output: BufReader<DuplexStream>,
    pub(crate) server: JoinHandle<Ended>,
}

impl Pipe {
    pub(crate) fn open(stub: &Stub, settings: Settings) -> Pipe {
        Pipe::with_buffer(stub, settings, 1 << 20)
    }

    /// A pipe that takes `size` bytes before its reader has to read.
    pub(crate) fn with_buffer(stub: &Stub, settings: Settings, size: usize) -> Pipe {
        let (input, server_input) = tokio::io::duplex(1 << 20);
        let (server_output, output) = tokio::io::duplex(size);
        let server = tokio::spawn(serve_streams(stub.door(), settings, server_input, server_output));
        Pipe { input: Some(input), output: BufReader::new(output), server }
    }

    /// A legacy client after its handshake.
    pub(crate) async fn legacy(stub: &Stub, settings: Settings, revision: &str) -> Pipe {
        let mut pipe = Pipe::open(stub, settings);
        let capabilities = json!({"elicitation": {}, "sampling": {}, "roots": {}});
        let hello = pipe.ask(&initialize(revision, capabilities)).await;
        assert_eq!(hello["result"]["protocolVersion"], revision, "{hello}");
        pipe.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        pipe
    }

    /// Writes bytes as they are.
    pub(crate) async fn write(&mut self, bytes: impl AsRef<[u8]>) {
        self.input.as_mut().expect("still open").write_all(bytes.as_ref()).await.unwrap();
    }

    pub(crate) async fn send(&mut self, message: &Value) {
        self.write(format!("{message}\n")).await;
    }

    /// The next line; `None` at the end.
    #[track_caller]
    pub(crate) fn line(&mut self) -> impl Future<Output = Option<String>> {
        in_time("a line", async move {
            let mut line = String::new();
            match self.output.read_line(&mut line).await.unwrap() {
                0 => None,
                _ => {
                    assert_eq!(line.pop(), Some('\n'), "a whole line: {line:?}");
                    Some(line)
                }
            }
        })
    }

    #[track_caller]
    pub(crate) fn recv(&mut self) -> impl Future<Output = Value> {
        let at = std::panic::Location::caller();
        let line = self.line();
        async move {
            let line = line.await.unwrap_or_else(|| panic!("{at}: the output ended"));
            serde_json::from_str(&line).unwrap_or_else(|e| panic!("{at}: {e}: {line:?}"))
        }
    }

    /// Sends a message and takes what comes next for its answer.
    pub(crate) async fn ask(&mut self, message: &Value) -> Value {
        self.send(message).await;
        self.recv().await
    }

    /// `tools/call` of a legacy client.
    pub(crate) async fn call(&mut self, id: impl Into<Value>, name: &str, arguments: Value) {
        self.request(id, "tools/call", json!({"name": name, "arguments": arguments})).await;
    }

    pub(crate) async fn request(&mut self, id: impl Into<Value>, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": id.into(), "method": method, "params": params})).await;
    }

    pub(crate) async fn cancel(&mut self, id: impl Into<Value>) {
        let params = json!({"requestId": id.into(), "reason": "changed my mind"});
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})).await;
    }

    /// Whether nothing more comes, and the connection stays open.
    pub(crate) async fn is_quiet(&mut self) -> bool {
        // Reading lines is not safe to cancel, but filling the buffer is.
        never(self.output.fill_buf()).await
    }

    /// Closes the input and takes what is still written, and why the connection ended.
    pub(crate) async fn finish(mut self) -> (Vec<Value>, Ended) {
        self.input = None;
        let mut rest = Vec::new();
        while let Some(line) = self.line().await {
            rest.push(serde_json::from_str(&line).unwrap());
        }
        (rest, in_time("the end of the connection", self.server).await.unwrap())
    }

    /// Waits for the connection to end by itself.
    pub(crate) async fn ended(self) -> Ended {
        in_time("the end of the connection", self.server).await.unwrap()
    }
}
