//! [`ClientDoor`]: a client that answers calls of others.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use serde_json::Value;
use tidegate_protocol::{Error, Method};
use tidegate_service::layers::ToolFailures;
use tidegate_service::{BoxDoor, Call, ParamHeaders, Reply};
use tower::Service;

use super::Client;
use crate::cache::ToolTable;

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

    /// Fetches the list of tools that headers are checked against.
    async fn fetch_tools(&self, call: &Call) -> Result<Arc<ToolTable>, Error> {
        let fetch = self.client.fetch_for(&call.context);
        self.client.0.cache.refresh(&call.context.principal, fetch).await
    }
}

/// Checks that the headers of a tool call say what its arguments say, as the server behind would: what it gets are
/// headers of our own, or none. A tool that nobody lists has nothing to check against; the call itself says what is wrong.
fn check_headers(call: &Call, headers: &ParamHeaders, tools: &ToolTable) -> Result<(), Error> {
    let tool = call.params.str("name").and_then(|name| tools.get(&name));
    match tool.map(|tool| &tool.headers) {
        Some(Ok(mirrored)) if !mirrored.is_empty() => {
            let arguments = call.params.json("arguments").and_then(|a| a.to::<Value>().ok());
            mirrored.check(arguments.as_ref(), |name| headers.get(name))
        }
        _ => Ok(()),
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
        let headers = match &call.context.param_headers {
            Some(headers) if call.method == Method::ToolsCall => headers.clone(),
            _ => return self.inner.call(call),
        };
        // The list is known for all calls but the first, and then nobody has to wait for anything.
        match self.client.0.cache.stale(&call.context.principal) {
            Some(tools) => match check_headers(&call, &headers, &tools) {
                Ok(()) => self.inner.call(call),
                Err(error) => Box::pin(std::future::ready(Ok(Reply::Error(error)))),
            },
            None => {
                let mut door = self.clone();
                Box::pin(async move {
                    let tools = door.fetch_tools(&call).await;
                    match tools.map_or(Ok(()), |tools| check_headers(&call, &headers, &tools)) {
                        Ok(()) => door.inner.call(call).await,
                        Err(error) => Ok(Reply::Error(error)),
                    }
                })
            }
        }
    }
}
