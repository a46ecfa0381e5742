//! A gateway with authentication, and its clients.

use std::convert::Infallible;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::body::Body;
use http::{HeaderMap, Request};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tempfile::TempDir;
use tidegate_auth::keys::{KeyFile, KeyFileError, NewKey};
use tidegate_auth::{Authenticate, Authenticator, ProtectedResource};
use tidegate_config::{AuthSettings, ClaimSettings, IntrospectionSettings};
use tidegate_edge::http::{ClientAddress, EndpointPath, Guard, Settings, Site, front};
use tidegate_protocol::{Json, Method};
use tidegate_service::secrets::Secret;
use tidegate_service::{BoxDoor, Call, Door, Outbox, Reply, Subscription, epoch_ms};
use tower::{Layer, Service};

/// Fails a test that waits for something that does not happen.
pub(crate) async fn in_time<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(30), future)
        .await
        .unwrap_or_else(|_| panic!("no {what} in time"))
}

/// A gateway with a file of keys.
pub(crate) struct Gateway {
    folder: TempDir,
    pub(crate) authenticator: Authenticator,
    front: Guard<Authenticate<Site<BoxDoor>>>,
    /// How many calls of `wait` are running.
    pub(crate) waiting: Arc<AtomicUsize>,
}

impl Gateway {
    /// With keys alone, and what `change` adds.
    pub(crate) async fn start(change: impl FnOnce(&mut AuthSettings)) -> Gateway {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys.toml");
        KeyFile::change(&path, |file| file.add(NewKey { name: "first".into(), ..NewKey::default() }, 0))
            .unwrap();
        let mut auth = AuthSettings { keys: Some(path), ..AuthSettings::default() };
        change(&mut auth);
        let authenticator = Authenticator::start(&auth, resources(), Some(folder.path())).unwrap();
        let waiting = Arc::new(AtomicUsize::new(0));
        let door = authenticator.scope_gate().layer(door(waiting.clone())).boxed();
        let mut settings = Settings { http_sse: true, ..Settings::default() };
        settings.endpoints = vec![EndpointPath::new("research", "/research/mcp")];
        let front = front(door, &settings, |site| {
            let sessions = site.clone();
            authenticator.on_revoked(move |principal| sessions.end_sessions_of(principal));
            authenticator.layer(site)
        });
        Gateway { folder, authenticator, front, waiting }
    }

    pub(crate) fn keys(&self) -> PathBuf {
        self.folder.path().join("keys.toml")
    }

    pub(crate) fn state_dir(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut KeyFile) -> Result<T, KeyFileError>) -> T {
        KeyFile::change(&self.keys(), change).unwrap()
    }

    /// A new key that the gateway knows already.
    pub(crate) async fn key(&self, new: NewKey) -> String {
        let key = self.change(|file| file.add(new, epoch_ms())).reveal().to_owned();
        self.until(&key, |status| status != 401).await;
        key
    }

    /// Waits until a key is answered in another way.
    pub(crate) async fn until(&self, key: &str, is_so: impl Fn(u16) -> bool) {
        let answered = async {
            while !is_so(self.get("/.tidegate-test").bearer(key).send().await.status) {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        in_time("change of the keys", answered).await;
    }

    pub(crate) fn connect(&self) -> Connection {
        Connection(self.front.clone())
    }

    pub(crate) fn get(&self, uri: &str) -> Ask {
        self.ask("GET", uri)
    }

    pub(crate) fn ask(&self, method: &str, uri: &str) -> Ask {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("host", "localhost"),
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
        ] {
            headers.insert(name, value.parse().unwrap());
        }
        Ask {
            front: self.front.clone(),
            method: method.into(),
            uri: uri.into(),
            headers,
            body: Body::empty(),
            client: None,
        }
    }

    /// A modern request.
    pub(crate) fn call(&self, path: &str, method: &str, mut params: Value) -> Ask {
        const VERSION: &str = "2026-07-28";
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": VERSION,
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let name = params["name"].as_str().map(str::to_owned);
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let mut ask =
            self.ask("POST", path).header("mcp-protocol-version", VERSION).header("mcp-method", method);
        if let Some(name) = name {
            ask = ask.header("mcp-name", &name);
        }
        ask.body = body.to_string().into();
        ask
    }

    /// Calls a tool.
    pub(crate) fn tool(&self, name: &str) -> Ask {
        self.call("/mcp", "tools/call", json!({"name": name, "arguments": {}}))
    }
}

pub(crate) fn resources() -> Vec<ProtectedResource> {
    let resource = |endpoint: Option<&str>, path: &str| ProtectedResource {
        endpoint: endpoint.map(Arc::from),
        path: path.into(),
        url: format!("https://mcp.example.com{path}"),
        audience: Vec::new(),
    };
    vec![resource(Some("research"), "/research/mcp"), resource(None, "/mcp")]
}

/// An authorization server that nobody can reach.
pub(crate) fn unreachable_issuer() -> IntrospectionSettings {
    IntrospectionSettings {
        issuer: "http://127.0.0.1:9".into(),
        url: "http://127.0.0.1:9/introspect".into(),
        client_id: "tidegate".into(),
        client_secret: Secret::new("a-secret-of-a-test"),
        audience: Vec::new(),
        claims: ClaimSettings::default(),
    }
}

/// `who` tells who calls, `wait` never ends; any number of subscriptions.
fn door(waiting: Arc<AtomicUsize>) -> BoxDoor {
    tower::service_fn(move |call: Call| {
        let waiting = waiting.clone();
        async move { Ok::<_, Infallible>(answer(call, waiting).await) }
    })
    .boxed()
}

async fn answer(call: Call, waiting: Arc<AtomicUsize>) -> Reply {
    match call.method {
        Method::Listen => {
            Reply::Subscription(Subscription { acknowledged: Json::trusted("{}"), events: Outbox::new(8) })
        }
        Method::ToolsCall if call.params.object().str("name").as_deref() == Some("wait") => {
            struct Running(Arc<AtomicUsize>);
            impl Drop for Running {
                fn drop(&mut self) {
                    self.0.fetch_sub(1, Ordering::SeqCst);
                }
            }
            waiting.fetch_add(1, Ordering::SeqCst);
            let _running = Running(waiting);
            std::future::pending().await
        }
        _ => {
            let who = &call.context.principal;
            let all = [&who.issuer, &who.subject, &who.tenant, &call.context.endpoint];
            let text = json!(all.map(|one| one.as_deref())).to_string();
            let result = json!({"content": [{"type": "text", "text": text}], "resultType": "complete"});
            Reply::Complete(Json::trusted(result.to_string()))
        }
    }
}

/// One connection: what is served over it may remember the request before.
#[derive(Debug)]
pub(crate) struct Connection(Guard<Authenticate<Site<BoxDoor>>>);

/// A request in the making.
pub(crate) struct Ask {
    front: Guard<Authenticate<Site<BoxDoor>>>,
    method: String,
    uri: String,
    headers: HeaderMap,
    body: Body,
    client: Option<ClientAddress>,
}

impl Ask {
    /// Says where it comes from.
    pub(crate) fn from(mut self, ip: IpAddr) -> Ask {
        self.client = Some(ClientAddress { ip, port: None, via_proxy: false, is_secure: false });
        self
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Ask {
        self.headers.append(name.parse::<http::HeaderName>().unwrap(), value.parse().unwrap());
        self
    }

    pub(crate) fn bearer(self, credential: &str) -> Ask {
        self.header("authorization", &format!("Bearer {credential}"))
    }

    pub(crate) fn body(mut self, body: &Value) -> Ask {
        self.body = body.to_string().into();
        self
    }

    pub(crate) async fn send(self) -> Answer {
        let mut connection = Connection(self.front.clone());
        self.send_over(&mut connection).await
    }

    /// Sends it over a connection that others went over before.
    pub(crate) async fn send_over(self, connection: &mut Connection) -> Answer {
        let mut request = Request::builder().method(&*self.method).uri(&self.uri).body(self.body).unwrap();
        *request.headers_mut() = self.headers;
        if let Some(client) = self.client {
            request.extensions_mut().insert(client);
        }
        let Ok(response) = in_time("response", connection.0.call(request)).await;
        let (parts, body) = response.into_parts();
        Answer { status: parts.status.as_u16(), headers: parts.headers, body }
    }

    /// Status and challenge.
    pub(crate) async fn challenge(self) -> String {
        let answer = self.send().await;
        format!("{} {}", answer.status, answer.header("www-authenticate"))
    }
}

/// A response whose body may still be coming.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Body,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("-", |value| value.to_str().unwrap())
    }

    pub(crate) async fn text(self) -> String {
        let bytes = in_time("end of the body", self.body.collect()).await.unwrap().to_bytes();
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    pub(crate) async fn json(self) -> Value {
        serde_json::from_str(&self.text().await).unwrap()
    }

    /// The caller as the tool `who` knows it.
    pub(crate) async fn who(self) -> Value {
        let answer = self.json().await;
        serde_json::from_str(answer["result"]["content"][0]["text"].as_str().unwrap()).unwrap()
    }
}
