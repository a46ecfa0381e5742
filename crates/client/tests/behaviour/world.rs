//! A server on loopback that can be stopped, changed and started again.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tidegate_client::{Client, ClientSettings};
use tidegate_edge::{Eras, http};
use tidegate_protocol::Method;
use tidegate_server::{Cx, Server, ServerDoor, ServerHandle, Structured, Tool, ToolError};
use tidegate_service::{Call, Door};
use tokio_util::sync::CancellationToken;
use tower::service_fn;

pub(crate) struct World {
    pub(crate) address: SocketAddr,
    pub(crate) handle: ServerHandle,
    /// How often tools were listed.
    pub(crate) listed: Arc<AtomicUsize>,
    /// How often tools were called.
    pub(crate) called: Arc<AtomicUsize>,
    door: ServerDoor,
    stop: CancellationToken,
}

/// A tool that says its name.
pub(crate) fn plain(name: &'static str) -> Tool {
    Tool::new(name)
        .description("Says its name")
        .handler(move |_: (), _: Cx| async move { Ok::<_, ToolError>(name) })
}

/// A tool that mirrors `region` into a header of this name.
pub(crate) fn mirrored(header: &'static str) -> Tool {
    let schema =
        json!({"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": header}}});
    Tool::raw("mirrored", schema).description("Mirrors its argument").handler_raw(|arguments, _| async move {
        Ok::<_, ToolError>(arguments["region"].as_str().unwrap_or("").to_owned())
    })
}

fn server() -> Server {
    let slow =
        Tool::new("slow").description("Takes a second and a half").handler(|_: (), cx: Cx| async move {
            for step in 1..=5 {
                tokio::time::sleep(Duration::from_millis(300)).await;
                cx.progress(f64::from(step), 5.0, None);
            }
            Ok::<_, ToolError>("done")
        });
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    let honest = Tool::new("honest").description("Keeps to its schema").output_schema(schema);
    let honest =
        honest.handler(|_: (), _: Cx| async move { Ok::<_, ToolError>(Structured(json!({"n": 1}))) });
    Server::new("world", "1.0").tool(plain("plain")).tool(slow).tool(honest).tool(mirrored("Region"))
}

impl World {
    pub(crate) async fn start(eras: Eras) -> World {
        let door = server().build();
        let mut world = World {
            address: ([127, 0, 0, 1], 0).into(),
            handle: door.handle(),
            listed: Arc::default(),
            called: Arc::default(),
            door,
            stop: CancellationToken::new(),
        };
        world.open(eras).await;
        world
    }

    async fn open(&mut self, eras: Eras) {
        let (door, listed, called) = (self.door.clone(), self.listed.clone(), self.called.clone());
        let watched = service_fn(move |call: Call| {
            match call.method {
                Method::ToolsList => _ = listed.fetch_add(1, Ordering::Relaxed),
                Method::ToolsCall => _ = called.fetch_add(1, Ordering::Relaxed),
                _ => {}
            }
            door.answer(call)
        });
        let listener = tokio::net::TcpListener::bind(self.address).await.unwrap();
        self.address = listener.local_addr().unwrap();
        let mut settings = http::Settings::default();
        settings.edge.eras = eras;
        let serving = http::serve_door(watched, listener, settings, std::future::pending());
        let stopped = self.stop.clone().cancelled_owned();
        tokio::spawn(async move {
            tokio::select! {
                _ = serving => {}
                () = stopped => {}
            }
        });
    }

    /// The same address, another server.
    pub(crate) async fn become_another(&mut self, eras: Eras) {
        self.stop.cancel();
        tokio::time::sleep(Duration::from_millis(50)).await;
        self.stop = CancellationToken::new();
        self.open(eras).await;
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    pub(crate) fn client(&self, change: impl FnOnce(&mut ClientSettings)) -> Client {
        let builder = Client::builder(self.url()).unwrap().settings(ClientSettings::default());
        builder.configure(change).lazy().unwrap()
    }

    pub(crate) fn lists(&self) -> usize {
        self.listed.load(Ordering::Relaxed)
    }

    pub(crate) fn calls(&self) -> usize {
        self.called.load(Ordering::Relaxed)
    }
}

/// Calls a tool without arguments and gives its text.
pub(crate) async fn said(client: &Client, tool: &str) -> String {
    let result = client.call(tool, Value::Null).await.unwrap();
    assert!(!result.is_error(), "{}", result.json());
    result.text()
}
