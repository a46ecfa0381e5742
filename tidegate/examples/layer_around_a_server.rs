//! A layer around a server: it sees every call before the server does, and every reply after it.
//!
//! A server is a `tower::Service`, so any layer for such a service fits. This one refuses tools that destroy something
//! outside of working hours, and says how long the rest took.

use std::convert::Infallible;
use std::task::{Context, Poll};
use std::time::Instant;

use tidegate::protocol::Method;
use tidegate::{Call, Door, Error, Reply, Server, Symbol, http, tool};
use tower::{Layer, Service};

/// Wraps a server.
struct WorkingHours {
    open: bool,
}

impl<D> Layer<D> for WorkingHours {
    type Service = Guarded<D>;

    fn layer(&self, inner: D) -> Guarded<D> {
        Guarded { inner, open: self.open }
    }
}

#[derive(Clone)]
struct Guarded<D> {
    inner: D,
    open: bool,
}

impl<D: Door> Service<Call> for Guarded<D> {
    type Response = Reply;
    type Error = Infallible;
    type Future = std::pin::Pin<Box<dyn Future<Output = Result<Reply, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: Call) -> Self::Future {
        let tool = call.params.str("name").unwrap_or_default().into_owned();
        if call.method == Method::ToolsCall && tool.starts_with("delete_") && !self.open {
            let refused =
                Error::new(Symbol::Unauthorized, format!("{tool} can be called in working hours only"));
            return Box::pin(std::future::ready(Ok(Reply::Error(refused))));
        }
        let (started, method) = (Instant::now(), call.method.clone());
        let reply = self.inner.answer(call);
        Box::pin(async move {
            let reply = reply.await;
            tracing::info!(%method, took = ?started.elapsed(), "answered");
            reply
        })
    }
}

/// Deletes a note.
#[tool(destructive)]
async fn delete_note(title: String) -> String {
    format!("{title} is gone")
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    tidegate::logging::init(Default::default(), None);
    let server = Server::new("notes", "1.0.0").tool(delete_note()).build();
    let door = WorkingHours { open: false }.layer(server);
    let app = http::router(door, http::Settings::default());
    axum::serve(tokio::net::TcpListener::bind("127.0.0.1:8765").await?, app).await
}
