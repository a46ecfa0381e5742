//! HTTP clients that hand their requests to the router directly, without a socket.

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use http::{HeaderMap, Request};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tidegate_edge::http::{Settings, Site, router};
use tidegate_protocol::sse::{SseDecoder, SseEvent};
use tidegate_service::{BoxDoor, Principal};
use tower::ServiceExt;

use super::{Stub, in_time};

/// An HTTP client of one endpoint.
#[derive(Clone)]
pub(crate) struct Client {
    router: Router,
    path: String,
}

impl Client {
    pub(crate) fn new(stub: &Stub, settings: Settings) -> Client {
        Client { router: router(stub.door(), settings), path: "/mcp".to_owned() }
    }

    /// A client of a site that changes while it is served.
    pub(crate) fn of_site(site: Site<BoxDoor>) -> Client {
        Client { router: Router::new().fallback_service(site), path: "/mcp".to_owned() }
    }

    /// The same at another endpoint.
    pub(crate) fn at(&self, path: &str) -> Client {
        Client { path: path.to_owned(), ..self.clone() }
    }

    /// Any request. `localhost`, JSON in and everything out unless told otherwise.
    pub(crate) fn request(&self, method: &str, uri: &str) -> Ask {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("host", "localhost"),
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
        ] {
            headers.insert(name, value.parse().unwrap());
        }
        Ask {
            router: self.router.clone(),
            method: method.to_owned(),
            uri: uri.to_owned(),
            headers,
            principal: None,
            body: Body::empty(),
        }
    }

    pub(crate) fn post(&self, body: impl AsRef<[u8]>) -> Ask {
        self.request("POST", &self.path).body(body.as_ref().to_vec())
    }

    /// A modern request with the headers that mirror it.
    pub(crate) fn modern(&self, message: &Value) -> Ask {
        let params = &message["params"];
        let name = match message["method"].as_str().unwrap_or_default() {
            "tools/call" | "prompts/get" => params["name"].as_str(),
            "resources/read" => params["uri"].as_str(),
            "tasks/get" | "tasks/update" | "tasks/cancel" => params["taskId"].as_str(),
            _ => None,
        };
        let mut ask = self.post(message.to_string());
        if let Some(version) = params["_meta"][VERSION].as_str() {
            ask = ask.header("mcp-protocol-version", version);
        }
        if let Some(method) = message["method"].as_str() {
            ask = ask.header("mcp-method", method);
        }
        match name {
            Some(name) => ask.header("mcp-name", name),
            None => ask,
        }
    }

    /// The JSON answer to a modern request.
    pub(crate) async fn ask(&self, method: &str, params: Value) -> Value {
        self.modern(&modern(1, method, params)).send().await.json().await
    }
}

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";

/// A modern request: `_meta` is filled in where it is missing.
pub(crate) fn modern(id: impl Into<Value>, method: &str, mut params: Value) -> Value {
    let given = params["_meta"].take();
    params["_meta"] = meta_with(given);
    json!({"jsonrpc": "2.0", "id": id.into(), "method": method, "params": params})
}

/// The `_meta` of a modern request with these members too; `null` takes one away.
fn meta_with(more: Value) -> Value {
    let mut meta = json!({
        VERSION: "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    for (key, value) in more.as_object().into_iter().flatten() {
        if value.is_null() {
            meta.as_object_mut().unwrap().remove(key);
        } else {
            meta[key] = value.clone();
        }
    }
    meta
}

/// A request in the making.
pub(crate) struct Ask {
    router: Router,
    method: String,
    uri: String,
    headers: HeaderMap,
    principal: Option<Principal>,
    body: Body,
}

impl Ask {
    /// Sets a header.
    pub(crate) fn header(mut self, name: &str, value: impl AsRef<[u8]>) -> Ask {
        let name: http::HeaderName = name.parse().unwrap();
        self.headers.insert(name, http::HeaderValue::from_bytes(value.as_ref()).unwrap());
        self
    }

    /// Sends a header that is there already once more.
    pub(crate) fn again(mut self, name: &str, value: &str) -> Ask {
        let name: http::HeaderName = name.parse().unwrap();
        self.headers.append(name, value.parse().unwrap());
        self
    }

    /// Sends another body than the one the headers were made for.
    pub(crate) fn body(mut self, body: impl Into<Body>) -> Ask {
        self.body = body.into();
        self
    }

    /// Sends the body in pieces, without saying how long it will be. `None` is where the connection breaks.
    pub(crate) fn pieces(self, pieces: Vec<Option<String>>) -> Ask {
        let pieces = pieces.into_iter().map(|piece| piece.ok_or_else(|| std::io::Error::other("broken")));
        self.body(Body::from_stream(futures_util::stream::iter(pieces)))
    }

    pub(crate) fn without(mut self, name: &str) -> Ask {
        self.headers.remove(name);
        self
    }

    /// As some authentication in front of the endpoint would.
    pub(crate) fn signed_in(mut self, subject: &str) -> Ask {
        self.principal = Some(Principal::subject(subject));
        self
    }

    #[track_caller]
    pub(crate) fn send(self) -> impl Future<Output = Answer> {
        let mut request = Request::builder().method(&*self.method).uri(&self.uri).body(self.body).unwrap();
        *request.headers_mut() = self.headers;
        if let Some(principal) = self.principal {
            request.extensions_mut().insert(principal);
        }
        let answered = in_time("an HTTP response", self.router.oneshot(request));
        async move {
            let (parts, body) = answered.await.unwrap().into_parts();
            let (headers, extensions) = (parts.headers, parts.extensions);
            Answer { status: parts.status.as_u16(), headers, extensions, body }
        }
    }
}

/// An HTTP response whose body may still be coming.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    /// What the edge tells the layers around it.
    pub(crate) extensions: http::Extensions,
    body: Body,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("-", |v| v.to_str().unwrap())
    }

    pub(crate) fn is_stream(&self) -> bool {
        self.header("content-type") == "text/event-stream"
    }

    pub(crate) async fn text(self) -> String {
        let bytes = in_time("the end of the body", self.body.collect()).await.unwrap().to_bytes();
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    /// The body, which must be one JSON message.
    #[track_caller]
    pub(crate) fn json(self) -> impl Future<Output = Value> {
        let at = std::panic::Location::caller();
        async move {
            assert_eq!(self.header("content-type"), "application/json", "{at}");
            let text = self.text().await;
            serde_json::from_str(&text).unwrap_or_else(|e| panic!("{at}: {e}: {text:?}"))
        }
    }

    #[track_caller]
    pub(crate) fn events(self) -> Events {
        assert_eq!((self.status, self.header("content-type")), (200, "text/event-stream"));
        Events { body: self.body, decoder: SseDecoder::new(1 << 24) }
    }

    /// Status and body on one line, for tables.
    pub(crate) async fn line(self) -> String {
        let status = self.status;
        format!("{status} {}", self.text().await)
    }
}

/// An event stream being read.
pub(crate) struct Events {
    body: Body,
    decoder: SseDecoder,
}

impl Events {
    /// The next event of any kind; `None` when the stream has ended.
    #[track_caller]
    pub(crate) fn event(&mut self) -> impl Future<Output = Option<SseEvent>> {
        in_time("an event", async move {
            loop {
                if let Some(event) = self.decoder.next_event() {
                    return Some(event.unwrap());
                }
                match self.body.frame().await {
                    Some(frame) => self.decoder.push(&frame.unwrap().into_data().unwrap_or_default()),
                    None => return None,
                }
            }
        })
    }

    /// The next piece of the stream as it is sent.
    pub(crate) async fn raw(&mut self) -> String {
        let frame = in_time("a piece of the stream", self.body.frame()).await.expect("more").unwrap();
        String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap()
    }

    /// The next message; events without content are passed over.
    #[track_caller]
    pub(crate) fn next(&mut self) -> impl Future<Output = Option<Value>> {
        let at = std::panic::Location::caller();
        async move {
            loop {
                match self.event().await {
                    Some(event) if event.data.is_empty() => {}
                    Some(event) => {
                        return Some(
                            serde_json::from_str(&event.data)
                                .unwrap_or_else(|e| panic!("{at}: {e}: {event:?}")),
                        );
                    }
                    None => return None,
                }
            }
        }
    }

    /// The next message, which must come.
    #[track_caller]
    pub(crate) fn message(&mut self) -> impl Future<Output = Value> {
        let at = std::panic::Location::caller();
        async move { self.next().await.unwrap_or_else(|| panic!("{at}: the stream ended")) }
    }

    /// All messages up to the end of the stream.
    pub(crate) async fn rest(mut self) -> Vec<Value> {
        let mut all = Vec::new();
        while let Some(message) = self.next().await {
            all.push(message);
        }
        all
    }

    /// Whether nothing more comes, and the stream stays open.
    pub(crate) async fn is_quiet(&mut self) -> bool {
        tokio::time::timeout(Duration::from_secs(5), self.next()).await.is_err()
    }

    pub(crate) fn last_id(&self) -> &str {
        self.decoder.last_event_id().expect("an event with an id")
    }

    pub(crate) fn retry(&self) -> Option<u64> {
        self.decoder.retry()
    }
}

/// A legacy client after its handshake.
#[derive(Clone)]
pub(crate) struct Session {
    pub(crate) client: Client,
    pub(crate) id: String,
    pub(crate) revision: String,
}

impl Session {
    pub(crate) async fn open(client: &Client, revision: &str) -> Session {
        Session::with(client, revision, json!({"elicitation": {}, "sampling": {}, "roots": {}})).await
    }

    /// Shakes hands with these capabilities.
    pub(crate) async fn with(client: &Client, revision: &str, capabilities: Value) -> Session {
        let answer = client.post(initialize(revision, capabilities).to_string()).send().await;
        assert_eq!(answer.status, 200);
        let id = answer.header("mcp-session-id").to_owned();
        let session = Session { client: client.clone(), id, revision: revision.to_owned() };
        let told =
            session.post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).send().await;
        assert_eq!((told.status, &*told.text().await), (202, ""));
        session
    }

    fn signed(&self, ask: Ask) -> Ask {
        let ask = ask.header("mcp-session-id", &self.id);
        // The header came with 2025-06-18.
        if &*self.revision >= "2025-06-18" { ask.header("mcp-protocol-version", &self.revision) } else { ask }
    }

    pub(crate) fn post(&self, message: &Value) -> Ask {
        self.signed(self.client.post(message.to_string()))
    }

    pub(crate) fn request(&self, id: impl Into<Value>, method: &str, params: Value) -> Ask {
        self.post(&json!({"jsonrpc": "2.0", "id": id.into(), "method": method, "params": params}))
    }

    /// `tools/call`.
    pub(crate) fn call(&self, id: impl Into<Value>, name: &str, arguments: Value) -> Ask {
        self.request(id, "tools/call", json!({"name": name, "arguments": arguments}))
    }

    /// `tools/call` with a progress token.
    pub(crate) fn call_with_token(
        &self,
        id: impl Into<Value>,
        name: &str,
        arguments: Value,
        token: Value,
    ) -> Ask {
        let meta = json!({"progressToken": token});
        self.request(id, "tools/call", json!({"name": name, "arguments": arguments, "_meta": meta}))
    }

    /// A notification, which must be accepted.
    pub(crate) async fn notify(&self, method: &str, params: Value) {
        let message = json!({"jsonrpc": "2.0", "method": method, "params": params});
        assert_eq!(self.post(&message).send().await.status, 202);
    }

    /// Answers a question of the server.
    pub(crate) async fn answer(&self, question: &Value, result: Value) {
        let message = json!({"jsonrpc": "2.0", "id": question["id"], "result": result});
        assert_eq!(self.post(&message).send().await.status, 202);
    }

    /// Refuses a question of the server.
    pub(crate) async fn refuse(&self, question: &Value, message: &str) {
        let message =
            json!({"jsonrpc": "2.0", "id": question["id"], "error": {"code": -1, "message": message}});
        assert_eq!(self.post(&message).send().await.status, 202);
    }

    pub(crate) fn get(&self) -> Ask {
        self.signed(self.client.request("GET", &self.client.path)).header("accept", "text/event-stream")
    }

    pub(crate) fn get_from(&self, last: &str) -> Ask {
        self.get().header("last-event-id", last)
    }

    pub(crate) fn delete(&self) -> Ask {
        self.signed(self.client.request("DELETE", &self.client.path))
    }

    /// Whether the session still answers.
    pub(crate) async fn works(&self) -> bool {
        let answer = self.request("ping", "ping", json!({})).send().await;
        answer.status == 200 && answer.json().await["result"] == json!({})
    }
}

/// The request that opens a session.
pub(crate) fn initialize(revision: &str, capabilities: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": revision, "capabilities": capabilities, "clientInfo": {"name": "test", "version": "1"},
    }})
}
