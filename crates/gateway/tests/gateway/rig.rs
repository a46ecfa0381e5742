//! Gateways, the servers behind them and the callers in front of them.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};
use tidegate_client::Target;
use tidegate_edge::{Eras, http};
use tidegate_gateway::{EndpointSettings, Gateway, Health, ServerSettings, Settings, Source};
use tidegate_protocol::{Error, Json, Limits, Method, Params, Revision};
use tidegate_server::{Cx, Server, Tool};
use tidegate_service::{Call, CallerId, Context, CorrelationId, Door, Principal, Reply};
use tokio_util::sync::{CancellationToken, DropGuard};

/// How long a test waits for what must come, however busy the machine is.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Waits for something that must come.
pub(crate) async fn in_time<F: Future>(what: &str, future: F) -> F::Output {
    match tokio::time::timeout(PATIENCE, future).await {
        Ok(done) => done,
        Err(_) => panic!("waited in vain for {what}"),
    }
}

/// Waits until something is so.
pub(crate) async fn until(what: &str, is_so: impl AsyncFn() -> bool) {
    in_time(what, async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
}

/// A configuration of these servers.
pub(crate) fn settings(servers: impl IntoIterator<Item = ServerSettings>) -> Settings {
    Settings { servers: servers.into_iter().collect(), drain: PATIENCE, ..Settings::default() }
}

/// An endpoint that has everything.
pub(crate) fn endpoint(name: &str) -> EndpointSettings {
    EndpointSettings {
        name: name.to_owned(),
        path: format!("/{name}/mcp"),
        servers: None,
        tools: None,
        prompts: None,
        resources: None,
        instructions: None,
        mode: None,
        audience: Vec::new(),
    }
}

/// A gateway that has asked these servers what they offer.
pub(crate) async fn gateway(servers: impl IntoIterator<Item = ServerSettings>) -> Gateway {
    started(settings(servers)).await
}

/// The same with other settings.
pub(crate) async fn started(settings: Settings) -> Gateway {
    let gateway = Gateway::start(settings).unwrap();
    gateway.settled(PATIENCE).await;
    gateway
}

/// A server in this process.
pub(crate) fn local(name: &str, server: Server) -> ServerSettings {
    door(name, server.build())
}

/// Anything in this process that answers calls.
pub(crate) fn door(name: &str, door: impl Door) -> ServerSettings {
    ServerSettings::new(name, Source::Target(Target::from_door(door)))
}

/// A server made of a function that gives the text of a result, or nothing for a method that it does not know. It says
/// of itself that it has everything.
pub(crate) fn scripted(
    name: &str,
    answer: impl Fn(&Call) -> Option<String> + Clone + Send + Sync + 'static,
) -> ServerSettings {
    let answering = tower::service_fn(move |call: Call| {
        let result = match &call.method {
            Method::Discover => answer(&call).or_else(|| Some(discovery(json!({})))),
            _ => answer(&call),
        };
        let reply = match result {
            Some(text) => Reply::Complete(Json::parse(text, &Limits::default()).expect("JSON")),
            None => Reply::method_not_found(&call.method),
        };
        std::future::ready(Ok::<_, std::convert::Infallible>(reply))
    });
    door(name, answering)
}

/// What a modern server says about itself.
pub(crate) fn discovery(more: Value) -> String {
    let mut all = json!({
        "resultType": "complete", "supportedVersions": ["2026-07-28"], "ttlMs": 0, "cacheScope": "public",
        "capabilities": {"tools": {}, "prompts": {}, "resources": {}, "completions": {}},
    });
    for (name, value) in more.as_object().unwrap() {
        all[name] = value.clone();
    }
    all.to_string()
}

/// A server on loopback.
pub(crate) struct Served {
    pub(crate) address: SocketAddr,
    _stop: DropGuard,
}

impl Served {
    /// Serves until it is dropped.
    pub(crate) async fn start(server: Server, eras: Eras) -> Served {
        let (address, stop) = serve(server.build(), eras, ([127, 0, 0, 1], 0).into()).await;
        Served { address, _stop: stop }
    }

    /// Its place in a configuration.
    pub(crate) fn named(&self, name: &str) -> ServerSettings {
        at(name, self.address)
    }
}

/// Serves a door over HTTP until the guard is dropped.
pub(crate) async fn serve(door: impl Door, eras: Eras, address: SocketAddr) -> (SocketAddr, DropGuard) {
    let listener = in_time("the address to be free", async {
        loop {
            match tokio::net::TcpListener::bind(address).await {
                Ok(listener) => return listener,
                // Whoever was there before is about to go.
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
    })
    .await;
    let address = listener.local_addr().unwrap();
    let stop = CancellationToken::new();
    let mut settings = http::Settings::default().eras(eras);
    settings.drain = Duration::ZERO;
    let stopped = stop.clone();
    tokio::spawn(async move {
        // Dropping it closes what is still open.
        tokio::select! {
            _ = http::serve_door(door, listener, settings, std::future::pending()) => {}
            () = stopped.cancelled() => {}
        }
    });
    (address, stop.drop_guard())
}

/// A server at an address, in a configuration.
pub(crate) fn at(name: &str, address: SocketAddr) -> ServerSettings {
    let target = Target::url(&format!("http://{address}/mcp")).unwrap();
    ServerSettings::new(name, Source::Target(target))
}

/// A tool that says a fixed text.
pub(crate) fn says(name: &str, text: &str) -> Tool {
    let text = text.to_owned();
    Tool::new(name)
        .description("Says something")
        .handler(move |_: (), _: Cx| std::future::ready(text.clone()))
}

/// Who calls.
#[derive(Debug, Clone)]
pub(crate) struct Caller(pub(crate) Context);

/// Somebody who speaks 2026-07-28.
pub(crate) fn modern() -> Caller {
    Caller(Context::local())
}

/// Somebody with a session of 2025-11-25.
pub(crate) fn legacy() -> Caller {
    let mut context = Context::new(CorrelationId::new(), Revision::LATEST_LEGACY);
    context.caller = Some(CallerId::new());
    Caller(context)
}

/// Somebody with a name who speaks 2026-07-28.
pub(crate) fn person(subject: &str) -> Caller {
    let mut caller = modern();
    caller.0.principal = Principal::subject(subject);
    caller
}

impl Caller {
    /// The same person with the same client, at an endpoint.
    pub(crate) fn at(&self, endpoint: &str) -> Caller {
        let mut caller = self.clone();
        caller.0.endpoint = Some(endpoint.into());
        caller
    }

    pub(crate) async fn ask(&self, door: &impl Door, method: &str, params: Value) -> Reply {
        let params = Params::parse(&params.into(), &Limits::default()).unwrap();
        let call = Call::new(Method::from_name(method), params, self.0.clone());
        let Ok(reply) = in_time(method, door.answer(call)).await;
        reply
    }

    /// The result of a call that must succeed.
    #[track_caller]
    pub(crate) fn get(&self, door: &impl Door, method: &str, params: Value) -> impl Future<Output = Value> {
        let at = std::panic::Location::caller();
        async move {
            match self.ask(door, method, params).await {
                Reply::Complete(result) => result.to().unwrap(),
                other => panic!("{at}: {method}: {other:?}"),
            }
        }
    }

    /// The error of a call that must fail.
    #[track_caller]
    pub(crate) fn fails(&self, door: &impl Door, method: &str, params: Value) -> impl Future<Output = Error> {
        let at = std::panic::Location::caller();
        async move {
            match self.ask(door, method, params).await {
                Reply::Error(error) => error,
                other => panic!("{at}: {method}: {other:?}"),
            }
        }
    }

    /// What a tool says, and whether that is a failure.
    #[track_caller]
    pub(crate) fn call(&self, door: &impl Door, tool: &str) -> impl Future<Output = (String, bool)> {
        let result = self.get(door, "tools/call", json!({"name": tool, "arguments": {}}));
        async move {
            let result = result.await;
            let text = result["content"][0]["text"].as_str().expect("a text").to_owned();
            (text, result["isError"] == true)
        }
    }

    /// What stands under `key` in a list.
    #[track_caller]
    pub(crate) fn list(&self, door: &impl Door, method: &str) -> impl Future<Output = Vec<String>> {
        let result = self.get(door, method, json!({}));
        async move { keys(&result.await) }
    }
}

/// By what the entries of a list are called.
pub(crate) fn keys(list: &Value) -> Vec<String> {
    let key = |entry: &Value| {
        let key = ["uriTemplate", "uri", "name"].into_iter().find_map(|key| entry[key].as_str());
        key.expect("a name or an address").to_owned()
    };
    let members = ["tools", "prompts", "resources", "resourceTemplates"];
    let entries = members.into_iter().find_map(|member| list[member].as_array()).expect("a list");
    entries.iter().map(key).collect()
}

/// How a server is doing.
pub(crate) fn health(gateway: &Gateway, server: &str) -> Health {
    let all = gateway.status();
    all.into_iter().find(|status| status.name == server).expect("it is mounted").health
}
