//! [`Client`]: a connection to one server.

mod builder;
mod call;
mod changes;
mod door;
mod health;
mod lists;
mod result;

use std::convert::Infallible;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use futures_util::future::BoxFuture;
use tidegate_protocol::seal::Sealer;
use tidegate_protocol::{ClientCapabilities, Error, Json, Level, Limits, Method, Params, Revision};
use tidegate_service::layers::{Breaker, Circuit, Retry, ServerCalls, ToolFailureLayer};
use tidegate_service::{BoxDoor, Call, CallerId, Context, Door, Principal, Reply};
use tower::Layer;

pub use builder::ClientBuilder;
pub use call::CallTool;
pub use changes::{Change, Subscribed};
pub use door::{BareClientDoor, ClientDoor};
pub use health::InUse;
pub use result::ToolResult;

use crate::app_error::AppError;
use crate::cache::{Fetch, ToolCache};
use crate::handlers::Handlers;
use crate::require::require;
use crate::rounds;
use crate::server_info::ServerInfo;
use crate::settings::ClientSettings;
use crate::target::Target;
use crate::transport::InProcessDoor;
use crate::upstream::{Upstream, UpstreamDoor};

/// What the calls of a client go through: retries around the breaker around what tells how each call to the server ended.
type Policed<S> = Retry<Breaker<ServerCalls<S>>>;

/// A connection to one server, whichever era it speaks. Clones are handles on the same connection.
///
/// The connection opens with the first call and opens again when it is lost.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use tidegate_client::Client;
///
/// let client = Client::connect("npx -y @modelcontextprotocol/server-everything").await?;
/// for tool in client.tools().await? {
///     println!("{}", tool.name());
/// }
/// let result = client.call("echo", serde_json::json!({"message": "hello"})).await?;
/// println!("{}", result.text());
/// client.close().await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Client(Arc<ClientInner>);

struct ClientInner {
    server: Server,
    settings: Arc<ClientSettings>,
    cache: Arc<ToolCache>,
    circuit: Circuit,
    handlers: Option<Arc<Handlers>>,
    capabilities: ClientCapabilities,
    /// This client among the callers of a server.
    caller: CallerId,
    log_level: Option<Level>,
    on_log: Option<OnLog>,
    on_close: Option<OnClose>,
}

/// Takes the parameters of `notifications/message`.
type OnLog = Arc<dyn Fn(Json) + Send + Sync>;
/// Ends what the client does not know of.
type OnClose = Arc<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>;

/// What answers.
enum Server {
    Remote { upstream: Arc<Upstream>, door: Policed<UpstreamDoor> },
    Local { door: Policed<InProcessDoor>, bare: BoxDoor, sealer: Arc<ArcSwapOption<Sealer>> },
}

/// How far a client has come with its server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientState {
    /// Nothing is known about the server's tools yet.
    Connected,
    /// The server's tools are known.
    Ready,
}

impl Client {
    /// Connects with the defaults. A target is a command line, an address, an entry of a servers file or a service.
    pub async fn connect<T>(target: T) -> Result<Client, AppError>
    where
        T: TryInto<Target>,
        T::Error: std::fmt::Display,
    {
        Client::builder(target)?.connect().await
    }

    /// Everything that can be said about a connection before it is made.
    pub fn builder<T>(target: T) -> Result<ClientBuilder, AppError>
    where
        T: TryInto<Target>,
        T::Error: std::fmt::Display,
    {
        let target = target.try_into().map_err(|fault| {
            let error = Error::invalid_params(format_args!("the target cannot be used: {fault}"));
            AppError::from_error(&error, &Method::Initialize, Default::default(), Revision::INTERNAL)
        })?;
        Ok(ClientBuilder::new(target))
    }

    /// The context of this client's own calls.
    fn context(&self) -> Context {
        let mut context = Context::local();
        context.client_info = Some(self.0.settings.client_info.clone());
        context.capabilities = self.0.capabilities.clone();
        context.caller = Some(self.0.caller);
        if let Server::Remote { .. } = &self.0.server {
            // Results as they came, without what would make a modern one of a legacy one.
            context.revision = Revision::LATEST_LEGACY;
        }
        context
    }

    fn own_call(&self, method: Method, params: Params) -> Call {
        Call::new(method, params, self.context())
    }

    /// Makes a call of this client's own.
    async fn make(&self, call: Call) -> Reply {
        let reply: Result<Reply, Infallible> = match &self.0.server {
            Server::Remote { door, .. } => door.answer(call).await,
            Server::Local { door, .. } => match &self.0.handlers {
                Some(handlers) if call.method.may_ask() => {
                    let done = rounds::until_done(call, handlers, &self.0.settings, |call| {
                        let reply = door.answer(call.clone());
                        Box::pin(async move {
                            let Ok(reply) = reply.await;
                            Ok(reply)
                        })
                    });
                    Ok(Box::pin(done).await.unwrap_or_else(Reply::Error))
                }
                _ => door.answer(call).await,
            },
        };
        let Ok(reply) = reply;
        reply
    }

    /// Makes a call and takes its result, or the error as this client's users know it.
    async fn result(&self, call: Call) -> Result<Json, AppError> {
        let method = call.method.clone();
        match self.make(call).await {
            Reply::Complete(result) | Reply::Task(result) => Ok(result),
            Reply::Error(error) => Err(self.app_error(&error, &method)),
            Reply::InputRequired(input) => {
                let needed =
                    input.questions.iter().filter_map(|q| crate::connection::needed(&q.method, &q.params));
                let error = Error::missing_capabilities(&needed.collect::<Vec<_>>());
                Err(self.app_error(&error, &method))
            }
            Reply::Subscription(_) => Err(self.app_error(&Error::internal(), &method)),
        }
    }

    fn app_error(&self, error: &Error, method: &Method) -> AppError {
        AppError::from_error(error, method, self.0.settings.profile, Revision::INTERNAL)
    }

    /// Any request: the method's result as it came.
    pub async fn request(&self, method: &str, params: serde_json::Value) -> Result<Json, AppError> {
        let method = Method::from_name(method);
        let params = self.params(&method, params)?;
        self.result(self.own_call(method, params)).await
    }

    fn params(&self, method: &Method, params: serde_json::Value) -> Result<Params, AppError> {
        let limits = Limits { max_depth: 127, max_bytes: usize::MAX };
        Params::parse(&params.into(), &limits)
            .map_err(|fault| self.app_error(&Error::invalid_params(fault), method))
    }

    /// What the server says about itself.
    pub async fn server(&self) -> Result<ServerInfo, AppError> {
        let call = self.own_call(Method::Discover, Params::empty());
        match &self.0.server {
            Server::Remote { upstream, .. } => {
                upstream.server_info(&call).await.map_err(|error| self.app_error(&error, &Method::Discover))
            }
            Server::Local { .. } => {
                let result = self.result(call).await?;
                let result = tidegate_protocol::Object::of(&result);
                let result = result.ok_or_else(|| self.app_error(&Error::internal(), &Method::Discover))?;
                let server_info = ServerInfo::discovered(&result, Revision::INTERNAL, "local");
                let required = require(&server_info, &self.0.settings.require);
                required.map_err(|error| self.app_error(&error, &Method::Discover))?;
                Ok(server_info)
            }
        }
    }

    /// Whether the server declared a capability, by its path: `tools`, `resources.subscribe`.
    pub async fn has_capability(&self, path: &str) -> Result<bool, AppError> {
        Ok(self.server().await?.has_capability(path))
    }

    /// Whether the server answers.
    pub async fn ping(&self) -> Result<(), AppError> {
        // What is in this process has no session to ping in; what is asked is whether it answers.
        let method = match &self.0.server {
            Server::Remote { .. } => Method::Ping,
            Server::Local { .. } => Method::Discover,
        };
        self.result(self.own_call(method, Params::empty())).await.map(drop)
    }

    /// How far the client has come.
    pub fn state(&self) -> ClientState {
        match self.0.cache.stale(&Principal::default()) {
            Some(_) => ClientState::Ready,
            None => ClientState::Connected,
        }
    }

    /// The circuit breaker: its state, for health checks.
    pub fn circuit(&self) -> &Circuit {
        &self.0.circuit
    }

    /// The client as a service that answers calls of others: what fails in a tool, or on the way to it, becomes a
    /// result that the model can read.
    pub fn door(&self) -> ClientDoor {
        ToolFailureLayer.layer(self.bare_door())
    }

    /// The same for those who have a [front](tidegate_service::layers::front) of their own: what fails is an error.
    pub fn bare_door(&self) -> BareClientDoor {
        let door = match &self.0.server {
            Server::Remote { door, .. } => door.clone().boxed(),
            Server::Local { door, .. } => door.clone().boxed(),
        };
        BareClientDoor::new(self.clone(), door)
    }

    /// Tells legacy servers that the roots of this client have changed. Modern ones ask when they need them.
    pub fn roots_changed(&self) {
        if let Server::Remote { upstream, .. } = &self.0.server {
            upstream.tell_legacy("notifications/roots/list_changed");
        }
    }

    /// Ends the connection properly: sessions are closed and processes ended. Calls in flight fail.
    pub async fn close(&self) {
        if let Server::Remote { upstream, .. } = &self.0.server {
            upstream.close().await;
        }
        if let Some(end) = &self.0.on_close {
            end().await;
        }
    }

    /// How many calls wait for their callers to answer a question.
    pub fn parked(&self) -> usize {
        match &self.0.server {
            Server::Remote { upstream, .. } => upstream.parked.len(),
            Server::Local { .. } => 0,
        }
    }

    fn fetch(&self) -> Fetch {
        self.fetch_for(&self.context())
    }

    /// Fetches pages of the list of tools for a caller.
    fn fetch_for(&self, context: &Context) -> Fetch {
        let (client, mut context) = (self.clone(), context.clone());
        context.outbox = None;
        if let Server::Remote { .. } = &self.0.server {
            // As it came: what a legacy server does not say must not look as if it had said it.
            context.revision = Revision::LATEST_LEGACY;
        }
        Arc::new(move |cursor| {
            let (client, context) = (client.clone(), context.clone());
            Box::pin(async move {
                // Like any other call: with retries, and counted by the breaker.
                match client.make(Call::new(Method::ToolsList, crate::page_params(cursor)?, context)).await {
                    Reply::Complete(page) => Ok(page),
                    Reply::Error(error) => Err(error),
                    _ => Err(Error::internal()),
                }
            })
        })
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Client({})", self.0.circuit.name())
    }
}
