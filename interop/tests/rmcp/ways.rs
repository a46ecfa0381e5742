//! The ways to connect, and the comparison between them.

use std::future::Future;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{ElicitResult, ProtocolVersion};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::{ClientLifecycleMode, ClientServiceExt};
use serde_json::Value;
use tidegate::edge::{http, stdio};
use tidegate::{Eras, ServerHandle};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::client::{Client, Op, Seen, User, declining};
use crate::fixture::{self, Probe};

/// Nothing here takes a second unless it hangs; the machine may be busy with other tests.
const PATIENCE: Duration = Duration::from_secs(20);

/// How the server is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transport {
    /// Streamable HTTP on the loopback.
    Http,
    /// What stdio speaks, over a pair of streams in this process.
    Streams,
}

impl Transport {
    /// All of them.
    pub(crate) const ALL: [Transport; 2] = [Transport::Http, Transport::Streams];
}

/// A transport, and the revision that is spoken over it.
#[derive(Debug, Clone)]
pub(crate) struct Way {
    pub(crate) transport: Transport,
    pub(crate) version: ProtocolVersion,
}

impl Way {
    /// Both eras over both transports.
    pub(crate) fn all() -> Vec<Way> {
        Way::over_all_transports([ProtocolVersion::V_2025_11_25, ProtocolVersion::V_2026_07_28])
    }

    /// These revisions over both transports.
    pub(crate) fn over_all_transports(versions: impl IntoIterator<Item = ProtocolVersion>) -> Vec<Way> {
        versions
            .into_iter()
            .flat_map(|version| Transport::ALL.map(|transport| Way { transport, version: version.clone() }))
            .collect()
    }

    /// Whether requests come without a handshake.
    pub(crate) fn is_modern(&self) -> bool {
        !self.version.has_initialize()
    }

    fn lifecycle(&self) -> ClientLifecycleMode {
        if self.is_modern() {
            ClientLifecycleMode::Discover { preferred_versions: vec![self.version.clone()] }
        } else {
            ClientLifecycleMode::Initialize
        }
    }
}

/// A server of its own, and a client that is connected to it.
pub(crate) struct Connection {
    pub(crate) client: Client,
    pub(crate) handle: ServerHandle,
    pub(crate) probe: Arc<Probe>,
    server: JoinHandle<()>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Connection {
    /// Connects, for a user who declines all questions.
    pub(crate) async fn open(way: &Way) -> Connection {
        Connection::with_user(way, declining()).await
    }

    /// Connects, for a user who answers all questions like this.
    pub(crate) async fn with_user(way: &Way, answer: ElicitResult) -> Connection {
        let seen = Arc::new(Seen::default());
        let user = User::new(way.version.clone(), answer, seen);
        Connection::new(way.transport, Eras::Both, user, way.lifecycle()).await
    }

    /// Connects a client that asks first which eras there are.
    pub(crate) async fn undecided(transport: Transport, eras: Eras) -> Connection {
        let lifecycle = ClientLifecycleMode::Auto {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            legacy_version: Some(ProtocolVersion::V_2025_11_25),
        };
        let user = User::new(ProtocolVersion::V_2026_07_28, declining(), Arc::default());
        Connection::new(transport, eras, user, lifecycle).await
    }

    async fn new(transport: Transport, eras: Eras, user: User, lifecycle: ClientLifecycleMode) -> Connection {
        let (door, probe) = fixture::server();
        let handle = door.handle();
        let seen = user.seen.clone();
        let what = format!("connecting over {transport:?} to {eras:?} with {lifecycle:?}");
        let (server, service) = match transport {
            Transport::Http => {
                let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
                let address = listener.local_addr().expect("a bound socket has an address");
                let settings = http::Settings::default().eras(eras);
                let serving = http::serve_door(door, listener, settings, std::future::pending());
                let server = tokio::spawn(async { serving.await.expect("serving the loopback") });
                // The memory wants reqwest with TLS and brings no provider for others, who have to name one.
                let _ = rustls::crypto::ring::default_provider().install_default();
                let transport = StreamableHttpClientTransport::from_uri(format!("http://{address}/mcp"));
                (server, soon(&what, user.serve_with_lifecycle(transport, lifecycle)).await)
            }
            Transport::Streams => {
                let (ours, theirs) = tokio::io::duplex(64 * 1024);
                let (input, output) = tokio::io::split(theirs);
                let mut settings = stdio::Settings::default();
                settings.edge.eras = eras;
                let server = tokio::spawn(async {
                    stdio::serve_streams(door, settings, input, output).await;
                });
                (server, soon(&what, user.serve_with_lifecycle(ours, lifecycle)).await)
            }
        };
        let service = service.unwrap_or_else(|e| panic!("{what}: {e}"));
        Connection { client: Client { service, seen }, handle, probe, server }
    }
}

/// Does this in all four ways, checks that they mean the same, and returns that meaning.
pub(crate) async fn everywhere(op: Op) -> Value {
    let what = format!("{op:?}");
    compare(&what, async |way| {
        let connection = Connection::open(way).await;
        soon(&what, connection.client.run(op.clone())).await
    })
    .await
}

/// Runs a scenario in all four ways and returns what all of them made of it.
pub(crate) async fn compare(what: &str, scenario: impl AsyncFn(&Way) -> Value) -> Value {
    let mut first: Option<(Way, Value)> = None;
    for way in Way::all() {
        let value = scenario(&way).await;
        match &first {
            None => first = Some((way, value)),
            Some((reference, expected)) => {
                assert_eq!(&value, expected, "{what}: {way:?} (left) differs from {reference:?} (right)");
            }
        }
    }
    first.expect("there are four ways").1
}

/// Waits, but not for ever.
pub(crate) async fn soon<T>(what: &str, work: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, work).await {
        Ok(value) => value,
        Err(_) => panic!("{what}: nothing came of it within {} seconds", PATIENCE.as_secs()),
    }
}

/// Waits until this holds: for what arrives beside a response, and so perhaps after it.
pub(crate) async fn eventually(what: &str, holds: impl Fn() -> bool) {
    soon(what, async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}
