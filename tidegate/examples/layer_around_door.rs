//! A layer of one's own around a server: everything that answers calls is a `tower::Service`, so what `tower` has, and what
//! you write, goes around it. This one says how long each call took and lets nobody delete anything.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use tidegate::edge::{http, stdio};
use tidegate::protocol::Method;
use tidegate::{Call, Door, Error, Reply, Server, Symbol, tool};
use tower::{Layer, Service};

/// Deletes a file.
#[tool]
async fn delete(
    /// Which one.
    path: String,
) -> String {
    format!("{path} would be gone now")
}

/// Says hello.
#[tool(read_only)]
async fn greet() -> String {
    "Hello!".to_owned()
}

struct WatchLayer;

#[derive(Clone)]
struct Watch<S>(S);

impl<S> Layer<S> for WatchLayer {
    type Service = Watch<S>;

    fn layer(&self, inner: S) -> Watch<S> {
        Watch(inner)
    }
}

impl<S: Door> Service<Call> for Watch<S> {
    type Response = Reply;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Reply, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: Call) -> Self::Future {
        let inner = self.0.clone();
        Box::pin(async move {
            let (method, began) = (call.method.clone(), Instant::now());
            // Who calls is in the context: an application would ask it here.
            let is_delete =
                method == Method::ToolsCall && call.params.str("name").as_deref() == Some("delete");
            let reply = match is_delete {
                true => Reply::Error(Error::new(Symbol::Unauthorized, "Nothing is deleted here")),
                false => {
                    let Ok(reply) = inner.answer(call).await;
                    reply
                }
            };
            tracing::info!(%method, took = ?began.elapsed(), "answered");
            Ok(reply)
        })
    }
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    tidegate::logging::init(Default::default(), None);
    let server = Server::new("careful", "1.0.0").tool(greet()).tool(delete()).build();
    let door = WatchLayer.layer(server);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:8765").await?;
    let shutdown = async {
        stdio::signals().await;
    };
    http::serve_door(door, listener, http::Settings::default(), shutdown).await
}
