//! [`ClientDoor`]: a client that answers calls of others.

use std::convert::Infallible;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use serde_json::Value;
use tidegate_protocol::{Error, Method};
use tidegate_service::layers::ToolFailures;
use tidegate_service::{BoxDoor, Call, Reply};
use tower::Service;

use super::Client;

/// A [`Client`] as a service: see [`Client::door`].
pub type ClientDoor = ToolFailures<BareClientDoor>;

/// A [`Client`] as a service: see [`Client::bare_door`].
#[derive(Clone)]
pub struct BareClientDoor {
    client: Client,
    inner: BoxDoor,
}

impl BareClientDoor {
    pub(super) fn new(client: Client, door: BoxDoor) -> BareClientDoor {
        BareClientDoor { client, inner: door }
    }

    /// Checks that the headers of a tool call say what its arguments say, as the server behind would: what it gets are
    /// headers of our own, or none.
    async fn check_headers(&self, call: &Call) -> Result<(), Error> {
        let (Some(headers), Some(name)) = (&call.context.param_headers, call.params.str("name")) else {
            return Ok(());
        };
        let (cache, whose) = (&self.client.0.cache, &call.context.principal);
        let table = match cache.stale(whose) {
            Some(table) => Ok(table),
            None => cache.refresh(whose, self.client.fetch_for(&call.context)).await,
        };
        // A server whose tools cannot be listed has nothing to check against; the call itself says what is wrong.
        let Some(tool) = table.ok().and_then(|table| table.get(&name).cloned()) else { return Ok(()) };
        match &tool.headers {
            Ok(mirrored) if !mirrored.is_empty() => {
                let arguments = call.params.json("arguments").and_then(|a| a.to::<Value>().ok());
                mirrored.check(arguments.as_ref(), |name| headers.get(name))
            }
            _ => Ok(()),
        }
    }
}

/// Methods that belong to a session. Inside there are none: they never go beyond an edge.
fn is_of_a_session(method: &Method) -> bool {
    matches!(
        method,
        Method::Initialize
            | Method::Ping
            | Method::SetLevel
            | Method::ResourcesSubscribe
            | Method::ResourcesUnsubscribe
            | Method::TasksResult
            | Method::TasksList
            | Method::Initialized
            | Method::Cancelled
            | Method::Progress
    )
}

impl Service<Call> for BareClientDoor {
    type Response = Reply;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Reply, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: Call) -> Self::Future {
        if is_of_a_session(&call.method) {
            return Box::pin(std::future::ready(Ok(Reply::method_not_found(&call.method))));
        }
        if call.method.is_notification() {
            let client = self.client.clone();
            return Box::pin(async move {
                let revision = call.context.revision;
                client.pass_on(call).await;
                Ok(Reply::complete(revision, ""))
            });
        }
        if call.method != Method::ToolsCall || call.context.param_headers.is_none() {
            return self.inner.call(call);
        }
        let mut door = self.clone();
        Box::pin(async move {
            match door.check_headers(&call).await {
                Ok(()) => door.inner.call(call).await,
                Err(error) => Ok(Reply::Error(error)),
            }
        })
    }
}
