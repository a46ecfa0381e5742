//! What servers learn of callers, and what callers share there: nothing that is another's.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tidegate_client::{Authorizer, Challenge, Client, EraChoice};
use tidegate_edge::{Eras, http};
use tidegate_gateway::{Gateway, ServerSettings, Source};
use tidegate_protocol::Error;
use tidegate_service::{Claims, Principal};

use crate::front::{ask, meta};
use crate::rig::{Caller, at, endpoint, legacy, modern, settings, started};
use crate::world::child;

/// A server of one era that writes down what it gets, and says in which session it was called.
#[derive(Clone)]
struct Recorder {
    is_modern: bool,
    seen: Arc<Mutex<Vec<(HeaderMap, String)>>>,
    sessions: Arc<Mutex<usize>>,
}

impl Recorder {
    async fn start(is_modern: bool) -> (Recorder, SocketAddr) {
        let recorder = Recorder { is_modern, seen: Arc::default(), sessions: Arc::default() };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, answering) = (listener.local_addr().unwrap(), recorder.clone());
        let app = axum::Router::new().fallback(move |headers: HeaderMap, body: Bytes| {
            let recorder = answering.clone();
            async move { Ok::<_, Infallible>(recorder.answer(headers, &body)) }
        });
        tokio::spawn(async move { axum::serve(listener, app).await });
        (recorder, address)
    }

    fn answer(&self, headers: HeaderMap, body: &[u8]) -> Response<Body> {
        let text = String::from_utf8_lossy(body).into_owned();
        let session = headers.get("mcp-session-id").map_or("none", |id| id.to_str().unwrap()).to_owned();
        self.seen.lock().unwrap().push((headers, text.clone()));
        let respond = |status: StatusCode, body: Value| {
            let response = Response::builder().status(status).header("content-type", "application/json");
            response.body(Body::from(body.to_string())).unwrap()
        };
        let Ok(request) = serde_json::from_str::<Value>(&text) else {
            return respond(StatusCode::METHOD_NOT_ALLOWED, json!({}));
        };
        if request["id"].is_null() {
            return Response::builder().status(StatusCode::ACCEPTED).body(Body::empty()).unwrap();
        }
        let mut result = match request["method"].as_str().unwrap_or_default() {
            "server/discover" if self.is_modern => {
                json!({"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}})
            }
            "initialize" if !self.is_modern => {
                json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                "serverInfo": {"name": "recorder", "version": "1"}})
            }
            "tools/list" => json!({"tools": [{"name": "session", "inputSchema": {"type": "object"}}]}),
            "tools/call" => json!({"content": [{"type": "text", "text": session}]}),
            method => {
                let error = json!({"code": -32601, "message": format!("Method not found: {method}")});
                let status = if self.is_modern { StatusCode::NOT_FOUND } else { StatusCode::OK };
                return respond(status, json!({"jsonrpc": "2.0", "id": request["id"], "error": error}));
            }
        };
        if self.is_modern {
            (result["resultType"], result["ttlMs"], result["cacheScope"]) =
                (json!("complete"), json!(0), json!("public"));
        }
        let mut response =
            respond(StatusCode::OK, json!({"jsonrpc": "2.0", "id": request["id"], "result": result}));
        if request["method"] == "initialize" {
            let mut sessions = self.sessions.lock().unwrap();
            *sessions += 1;
            let id = HeaderValue::from_str(&format!("session-{sessions}")).unwrap();
            response.headers_mut().insert("mcp-session-id", id);
        }
        response
    }

    /// Everything that it got, as one text.
    fn everything(&self) -> String {
        self.seen.lock().unwrap().iter().map(|(headers, body)| format!("{headers:?} {body}\n")).collect()
    }

    /// The `Authorization` of each call of a tool.
    fn credentials(&self) -> Vec<String> {
        let seen = self.seen.lock().unwrap();
        let calls = seen.iter().filter(|(_, body)| body.contains("\"tools/call\""));
        calls
            .map(|(headers, _)| {
                headers.get("authorization").map_or("", |value| value.to_str().unwrap()).to_owned()
            })
            .collect()
    }
}

/// The place of a recorder in a configuration.
fn recorded(address: SocketAddr, is_modern: bool) -> ServerSettings {
    let mut settings = at("r", address);
    settings.options.era = if is_modern { EraChoice::Modern } else { EraChoice::Legacy };
    settings.seal()
}

/// Somebody of whom everything has a name that can be found again.
fn named(subject: &str, tenant: &str, base: Caller) -> Caller {
    let mut caller = base;
    caller.0.principal =
        Principal::subject(subject).in_tenant(tenant).issued_by("https://inbound-issuer.example");
    caller
}

#[tokio::test]
async fn nothing_of_a_request_but_its_message_goes_to_a_server() {
    for is_modern in [true, false] {
        let (recorder, address) = Recorder::start(is_modern).await;
        let gateway = started(settings([recorded(address, is_modern)])).await;
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let front = listener.local_addr().unwrap();
        let serving = http::Settings::default();
        let serving =
            tokio::spawn(http::serve_door(gateway.clone(), listener, serving, std::future::pending()));
        let secrets = "@authorization: Bearer inbound-secret@cookie: c=inbound-secret@proxy-authorization: Basic inbound-secret\
                       @x-api-key: inbound-secret@x-forwarded-for: 203.0.113.77@forwarded: for=203.0.113.77@dpop: inbound-secret";
        let call = json!({"name": "r_session", "arguments": {}});
        let body =
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": meta(&call)}).to_string();
        let head = format!(
            "POST /mcp{secrets}@mcp-protocol-version: 2026-07-28@mcp-method: tools/call@mcp-name: r_session"
        );
        assert_eq!(ask(front, &head, &body).await.0, 200);
        let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
        let (_, answered, _) = ask(front, &format!("POST /mcp{secrets}"), &hello.to_string()).await;
        let session =
            answered.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).unwrap().to_owned();
        let body = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}).to_string();
        assert_eq!(ask(front, &format!("POST /mcp{secrets}@mcp-session-id: {session}"), &body).await.0, 200);
        assert_eq!(recorder.credentials(), ["", ""]);
        let everything = recorder.everything();
        for secret in ["inbound-secret", "203.0.113.77", session.as_str()] {
            assert!(!everything.contains(secret), "{secret}: {everything}");
        }
        serving.abort();
        gateway.close().await;
    }
}

#[tokio::test]
async fn servers_are_not_told_who_calls_or_where() {
    for is_modern in [true, false] {
        let (recorder, address) = Recorder::start(is_modern).await;
        let mut settings = settings([recorded(address, is_modern)]);
        settings.endpoints = vec![endpoint("inbound-endpoint")];
        let gateway = started(settings).await;
        for base in [modern(), legacy()] {
            let mut caller = named("inbound-subject", "inbound-tenant", base).at("inbound-endpoint");
            let claims = Claims { roles: vec!["inbound-role".into()], ..Claims::default() };
            caller.0.claims = Some(Arc::new(claims));
            caller.call(&gateway, "r_session").await;
        }
        let everything = recorder.everything();
        assert!(everything.contains("\"tools/call\"") && !everything.contains("inbound-"), "{everything}");
        gateway.close().await;
    }
}

#[tokio::test]
async fn a_session_is_one_persons_at_all_of_their_endpoints() {
    let (_, address) = Recorder::start(false).await;
    let mut settings = settings([recorded(address, false)]);
    settings.endpoints = vec![endpoint("work"), endpoint("home")];
    let gateway = started(settings).await;
    let session = async |caller: Caller| caller.call(&gateway, "r_session").await.0;
    let (ann, bob) = (named("ann", "reef", modern()), named("bob", "reef", modern()));
    let of_ann = session(ann.clone()).await;
    for same in [ann.at("work"), ann.at("home"), named("ann", "reef", legacy()).at("work")] {
        assert_eq!(session(same).await, of_ann);
    }
    let mut all = vec![
        of_ann,
        session(bob).await,
        session(named("ann", "lake", modern())).await,
        session(modern()).await,
    ];
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 4, "other people and other tenants have others: {all:?}");
    gateway.close().await;
}

#[tokio::test]
async fn a_process_is_one_persons_at_all_of_their_endpoints() {
    let mut settings = settings([child("old", Eras::Legacy)]);
    settings.endpoints = vec![endpoint("work"), endpoint("home")];
    let gateway = started(settings).await;
    let process = async |caller: Caller| caller.call(&gateway, "old_pid").await.0;
    let (ann, bob) = (named("ann", "reef", modern()), named("ann", "lake", modern()));
    let (of_ann, of_bob) = (process(ann.clone()).await, process(bob.at("work")).await);
    assert_ne!(of_ann, of_bob);
    assert_eq!(process(ann.at("work")).await, of_ann);
    assert_eq!(process(bob.at("home")).await, of_bob);
    gateway.close().await;
}

/// Each caller has credentials of its own, those of the gateway are others.
struct OfCaller(String);

impl Authorizer for OfCaller {
    fn of_caller(&self, caller: &Principal) -> Option<Arc<dyn Authorizer>> {
        let tenant = caller.tenant.as_deref()?;
        let subject = caller.subject.as_deref().unwrap_or_default();
        Some(Arc::new(OfCaller(format!("Bearer {subject}-{tenant}"))))
    }

    fn authorization(&self) -> BoxFuture<'_, Result<Option<HeaderValue>, Error>> {
        async { Ok(HeaderValue::from_str(&self.0).ok()) }.boxed()
    }

    fn challenged(&self, _: Challenge) -> BoxFuture<'_, Result<(), Error>> {
        async { Err(Error::internal()) }.boxed()
    }
}

#[tokio::test]
async fn credentials_for_a_server_are_asked_for_with_the_caller_at_hand() {
    for is_modern in [true, false] {
        let (recorder, address) = Recorder::start(is_modern).await;
        let mut settings = settings([recorded(address, is_modern)]);
        settings.endpoints = vec![endpoint("work")];
        let dial = |server: &ServerSettings| {
            let Source::Target(target) = &server.source else { panic!("no other is configured") };
            let client = Client::builder(target.clone())?.settings(server.options.clone());
            Ok(client.authorizer(Arc::new(OfCaller("Bearer gateway".to_owned()))))
        };
        let gateway = Gateway::builder().settings(settings).dial(dial).start().unwrap();
        gateway.settled(crate::rig::PATIENCE).await;
        let (ann, other) = (named("ann", "reef", modern()), named("ann", "lake", modern()));
        for caller in [&ann, &other, &ann.at("work"), &modern()] {
            caller.call(&gateway, "r_session").await;
        }
        let used = ["Bearer ann-reef", "Bearer ann-lake", "Bearer ann-reef", "Bearer gateway"];
        assert_eq!(recorder.credentials(), used, "modern: {is_modern}");
        gateway.close().await;
    }
}
