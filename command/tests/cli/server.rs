//! A server in this process, for what the demonstration server does not do.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use tidegate::protocol::content::Content;
use tidegate::{Cx, Server, ServerDoor, Tool, ToolError};

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

#[derive(Deserialize, JsonSchema)]
struct Mixed {
    /// A number.
    count: u32,
    /// Several words.
    tags: Vec<String>,
    /// Yes or no.
    fast: bool,
}

/// What the server saw.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) started: AtomicUsize,
    pub(crate) dropped: AtomicUsize,
}

/// Counts when it goes: at the end of a call, or where that is cancelled.
struct Guard(Arc<Seen>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.dropped.fetch_add(1, Ordering::SeqCst);
    }
}

/// Starts the server; gives its address.
pub(crate) fn start() -> (String, Arc<Seen>) {
    let seen = Arc::new(Seen::default());
    let door = build(seen.clone());
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async move {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            sender.send(listener.local_addr().unwrap()).unwrap();
            let router = tidegate::http::router(door, tidegate::http::Settings::default());
            axum::serve(listener, router).await.unwrap();
        });
    });
    (format!("http://{}/mcp", receiver.recv().unwrap()), seen)
}

fn build(seen: Arc<Seen>) -> ServerDoor {
    let slow = seen;
    Server::new("tests", "1.0.0")
        .tool(Tool::new("slow").description("Never ends").handler(move |_: Nothing, _cx: Cx| {
            let seen = slow.clone();
            async move {
                seen.started.fetch_add(1, Ordering::SeqCst);
                let _guard = Guard(seen);
                tokio::time::sleep(Duration::from_secs(600)).await;
                "done"
            }
        }))
        .tool(Tool::new("fails").description("Fails").handler(|_: Nothing, _cx: Cx| async move {
            Err::<String, _>(ToolError::from("The tide is out"))
        }))
        .tool(Tool::new("picture").description("Paints").handler(|_: Nothing, _cx: Cx| async move {
            vec![Content::text("Here it is"), Content::image("iVBORw0KGgo=", "image/png")]
        }))
        .tool(Tool::new("mixed").description("Takes all kinds").handler(|args: Mixed, _cx: Cx| async move {
            format!("{} {} {}", args.count, args.tags.join("+"), args.fast)
        }))
        .tool(Tool::new("logs").description("Logs").handler(|_: Nothing, cx: Cx| async move {
            cx.info("the water rises");
            "logged"
        }))
        .build()
}
