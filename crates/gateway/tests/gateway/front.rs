//! Layers of the application: what is put in front of a gateway sees everything, and who it is from.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use serde_json::{Value, json};
use tidegate_config::{CallSettings, ToolMode};
use tidegate_edge::{http, stdio};
use tidegate_gateway::Gateway;
use tidegate_protocol::{Error, Symbol};
use tidegate_server::{Argument, Cx, Prompt, PromptArgs, Resource, Server, Tool};
use tidegate_service::{BoxDoor, Call, Claims, Identity, Principal, Reply};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tower::{Layer, Service};

use crate::rig::{PATIENCE, in_time, local, modern, person, says, settings, until};

/// What has passed: the method, what it is about, and who it is from.
type Seen = Arc<Mutex<Vec<(String, String, Option<String>)>>>;

/// A layer for calls.
#[derive(Clone)]
struct Watch(Seen);

impl Layer<BoxDoor> for Watch {
    type Service = Watched;

    fn layer(&self, inner: BoxDoor) -> Watched {
        Watched(self.0.clone(), inner)
    }
}

#[derive(Clone)]
struct Watched(Seen, BoxDoor);

impl Service<Call> for Watched {
    type Response = Reply;
    type Error = Infallible;
    type Future = <BoxDoor as Service<Call>>::Future;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: Call) -> Self::Future {
        let name =
            call.method.name_param().and_then(|name| call.params.str(name).map(|name| name.into_owned()));
        let name = name.unwrap_or_default();
        let roles = call.context.claims.as_ref().map(|claims| claims.roles.concat());
        let who = call
            .context
            .principal
            .subject
            .as_ref()
            .map(|subject| subject.to_string() + &roles.unwrap_or_default());
        self.0.lock().unwrap().push((call.method.as_str().to_owned(), name.clone(), who));
        if name == "s_forbidden" {
            let refused = Error::new(Symbol::Unauthorized, "You may not do that");
            return Box::pin(std::future::ready(Ok(Reply::Error(refused))));
        }
        self.1.call(call)
    }
}

/// A layer for HTTP requests, which takes everybody at their word.
#[derive(Clone)]
struct Authenticated<S>(Seen, S);

impl<S: http::HttpService> Service<::http::Request<axum::body::Body>> for Authenticated<S> {
    type Response = ::http::Response<axum::body::Body>;
    type Error = Infallible;
    type Future =
        futures_util::future::Either<std::future::Ready<Result<Self::Response, Infallible>>, S::Future>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: ::http::Request<axum::body::Body>) -> Self::Future {
        let user = request.headers().get("x-user").map(|user| user.to_str().unwrap().to_owned());
        let path = request.uri().path().to_owned();
        self.0.lock().unwrap().push((format!("{} {path}", request.method()), String::new(), user.clone()));
        let Some(user) = user else {
            let challenge = http::Challenge::unauthenticated().scopes(["mcp"]).respond();
            return futures_util::future::Either::Left(std::future::ready(Ok(challenge)));
        };
        let claims = Claims { roles: vec!["!".into()], ..Claims::default() };
        let principal = Principal::subject(user);
        request.extensions_mut().insert(Identity { principal, claims: Some(Arc::new(claims)) });
        futures_util::future::Either::Right(self.1.call(request))
    }
}

async fn watched(mode: ToolMode) -> (Gateway, Seen) {
    let seen = Seen::default();
    let prompt = Prompt::new("greet").argument(Argument::new("who"));
    let server = Server::new("s", "1")
        .tool(says("echo", "hello"))
        .tool(says("forbidden", "never"))
        .prompt(prompt.handler(|_: PromptArgs, _: Cx| async { Ok("Hello") }))
        .resource(Resource::text("memo://a", "a", "text"));
    let mut settings = settings([local("s", server)]);
    settings.tools.mode = mode;
    let gateway = Gateway::builder().settings(settings).layer(Watch(seen.clone())).start().unwrap();
    gateway.settled(PATIENCE).await;
    (gateway, seen)
}

/// One request on a connection of its own: the status, the head and, unless it is a stream, the body.
pub(crate) async fn ask(address: SocketAddr, head: &str, body: &str) -> (u16, String, String) {
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let length = body.len();
    let (line, headers) = head.split_once('@').unwrap_or((head, "x-nothing: y"));
    let headers = headers.replace('@', "\r\n");
    let request = format!(
        "{line} HTTP/1.1\r\n{headers}\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    in_time("an answer", async {
        let mut piece = [0; 4096];
        loop {
            let read = stream.read(&mut piece).await.unwrap();
            answer.extend_from_slice(&piece[..read]);
            let text = String::from_utf8_lossy(&answer);
            // A subscription has no end of its own.
            if read == 0 || text.contains("subscriptions/acknowledged") {
                break;
            }
        }
    })
    .await;
    let text = String::from_utf8(answer).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    (head[9..12].parse().unwrap(), head.to_owned(), body.to_owned())
}

/// What a client may send, each with what the layer sees of it.
fn requests() -> Vec<(&'static str, Value, &'static str)> {
    vec![
        ("tools/list", json!({}), ""),
        ("prompts/list", json!({}), ""),
        ("resources/list", json!({}), ""),
        ("resources/templates/list", json!({}), ""),
        ("tools/call", json!({"name": "s_echo", "arguments": {}}), "s_echo"),
        ("prompts/get", json!({"name": "s_greet", "arguments": {}}), "s_greet"),
        ("resources/read", json!({"uri": "memo://a"}), "memo://a"),
        (
            "completion/complete",
            json!({"ref": {"type": "ref/prompt", "name": "s_greet"}, "argument": {"name": "who", "value": ""}}),
            "",
        ),
        ("tools/call_batch", json!({"calls": [{"name": "s_echo", "arguments": {}}]}), ""),
        ("vendor/method", json!({}), ""),
    ]
}

pub(crate) fn meta(params: &Value) -> Value {
    let mut params = params.clone();
    params["_meta"] = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {}});
    params
}

fn saw(seen: &Seen, method: &str, name: &str, who: &str) -> bool {
    let wanted = (method.to_owned(), name.to_owned(), Some(who.to_owned()));
    seen.lock().unwrap().contains(&wanted)
}

#[tokio::test]
async fn over_http_everything_passes_with_its_principal() {
    let (gateway, seen) = watched(ToolMode::All).await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let page = http::Page::new("/about", "text/html; charset=utf-8", "<p>about</p>");
    let settings = http::Settings::default().pages([page]);
    let front = http::front(gateway.clone(), &settings, |site| Authenticated(seen.clone(), site));
    let serving = tokio::spawn(http::serve(front, listener, settings, std::future::pending()));

    let (status, head, _) = ask(address, "POST /mcp", "{}").await;
    assert_eq!(status, 401, "{head}");
    assert!(head.contains("www-authenticate: Bearer scope=\"mcp\""), "{head}");
    assert_eq!(ask(address, "GET /about", "").await.0, 401, "pages are behind it too");
    assert_eq!(ask(address, "GET /about@x-user: ann", "").await.0, 200);
    assert!(saw(&seen, "GET /about", "", "ann"));

    for (id, (method, params, name)) in requests().into_iter().enumerate() {
        let body = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": meta(&params)}).to_string();
        let routing = match name {
            "" => String::new(),
            name => format!("@mcp-name: {name}"),
        };
        let head = format!(
            "POST /mcp@x-user: modern@mcp-protocol-version: 2026-07-28@mcp-method: {method}{routing}"
        );
        let (status, _, answer) = ask(address, &head, &body).await;
        assert!(matches!(status, 200 | 404), "{method}: {status} {answer}");
        assert!(saw(&seen, method, name, "modern!"), "{method}: {answer}");
    }
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen",
        "params": meta(&json!({"notifications": {"toolsListChanged": true}}))});
    let head = "POST /mcp@x-user: modern@mcp-protocol-version: 2026-07-28@mcp-method: subscriptions/listen";
    assert_eq!(ask(address, head, &body.to_string()).await.0, 200);
    assert!(saw(&seen, "subscriptions/listen", "", "modern!"));
    let body =
        json!({"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": meta(&json!({"taskId": "t"}))});
    let head = "POST /mcp@x-user: modern@mcp-protocol-version: 2026-07-28@mcp-method: tasks/get@mcp-name: t";
    ask(address, head, &body.to_string()).await;
    assert!(saw(&seen, "tasks/get", "t", "modern!"), "{:?}", seen.lock().unwrap());
    let told = json!({"jsonrpc": "2.0", "method": "notifications/vendor", "params": {}}).to_string();
    let head = "POST /mcp@x-user: modern@mcp-protocol-version: 2026-07-28";
    assert_eq!(ask(address, head, &told).await.0, 202);
    until("the notification passes", async || saw(&seen, "notifications/vendor", "", "modern!")).await;

    // The other era: a session of its own, the same calls.
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
    let (_, head, _) = ask(address, "POST /mcp@x-user: legacy", &hello.to_string()).await;
    let session = head.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).unwrap().to_owned();
    assert!(saw(&seen, "server/discover", "", "legacy!"));
    let head = format!("POST /mcp@x-user: legacy@mcp-session-id: {session}");
    for (id, (method, params, name)) in requests().into_iter().enumerate() {
        let body = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string();
        assert_eq!(ask(address, &head, &body).await.0, 200, "{method}");
        assert!(saw(&seen, method, name, "legacy!"), "{method}");
    }
    assert_eq!(ask(address, &head, &told).await.0, 202);
    until("the notification passes", async || saw(&seen, "notifications/vendor", "", "legacy!")).await;
    let stolen = format!("POST /mcp@x-user: eve@mcp-session-id: {session}");
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
    assert_eq!(ask(address, &stolen, &body).await.0, 404, "a session is its principal's");
    serving.abort();
    gateway.close().await;
}

#[tokio::test]
async fn over_stdio_everything_passes_with_its_principal() {
    let (gateway, seen) = watched(ToolMode::All).await;
    let (ours, theirs) = tokio::io::duplex(1 << 20);
    let (input, output) = tokio::io::split(theirs);
    let settings = stdio::Settings { principal: Principal::subject("local"), ..stdio::Settings::default() };
    let serving = tokio::spawn(stdio::serve_streams(gateway.clone(), settings, input, output));
    let (read, mut write) = tokio::io::split(ours);
    let mut lines = BufReader::new(read).lines();
    for (id, (method, params, name)) in requests().into_iter().enumerate() {
        let body = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": meta(&params)});
        write.write_all(format!("{body}\n").as_bytes()).await.unwrap();
        in_time(method, lines.next_line()).await.unwrap().unwrap();
        assert!(saw(&seen, method, name, "local"), "{method}");
    }
    let told = json!({"jsonrpc": "2.0", "method": "notifications/vendor", "params": {}});
    write.write_all(format!("{told}\n").as_bytes()).await.unwrap();
    until("the notification passes", async || saw(&seen, "notifications/vendor", "", "local")).await;
    drop((write, lines));
    in_time("the end", serving).await.unwrap();
    gateway.close().await;
}

#[tokio::test]
async fn what_holds_calls_has_each_of_them_pass() {
    let (gateway, seen) = watched(ToolMode::Search).await;
    let ann = person("ann");
    let batch = json!({"calls": [{"name": "s_echo"}, {"name": "s_forbidden"}]});
    let results = ann.get(&gateway, "tools/call_batch", batch).await;
    assert!(saw(&seen, "tools/call", "s_forbidden", "ann") && saw(&seen, "tools/call", "s_echo", "ann"));
    assert_eq!(results["results"][0]["result"]["content"][0]["text"], "hello");
    assert!(results["results"][1].to_string().contains("You may not do that"), "{results}");
    // A tool that is called through another.
    let bob = person("bob");
    for (tool, text) in [("s_echo", "hello"), ("s_forbidden", "You may not do that")] {
        let params = json!({"name": "call_tool", "arguments": {"name": tool, "arguments": {}}});
        let answer = match bob.ask(&gateway, "tools/call", params).await {
            Reply::Complete(result) => result.as_str().to_owned(),
            Reply::Error(error) => error.message().to_owned(),
            other => panic!("{other:?}"),
        };
        assert!(answer.contains(text), "{answer}");
        assert!(saw(&seen, "tools/call", tool, "bob"));
    }
    gateway.close().await;
}

#[tokio::test]
async fn calls_have_the_limits_of_the_settings() {
    let never = Tool::new("never").handler(|_: (), _: Cx| std::future::pending::<String>());
    let server = Server::new("s", "1").tool(says("short", "x")).tool(says("long", &"x".repeat(5_000)));
    let mut settings = settings([local("s", server.tool(never))]);
    settings.calls =
        CallSettings { max_calls: 1, max_result: 4_000, call_timeout: Duration::from_millis(500) };
    let gateway = Gateway::start(settings).unwrap();
    gateway.settled(PATIENCE).await;
    assert_eq!(modern().call(&gateway, "s_short").await, ("x".to_owned(), false));
    for (tool, part) in [("s_long", "more than the limit of 4000"), ("s_never", "within 0.5 s")] {
        let (text, is_error) = modern().call(&gateway, tool).await;
        assert!(is_error && text.contains(part), "{tool}: {text}");
    }
    // One runs, one waits, and there is no room for a third.
    let caller = modern();
    let calls = [(); 3].map(|()| caller.call(&gateway, "s_never"));
    let busy = futures_util::future::select_all(calls.map(Box::pin)).await.0;
    assert!(busy.0.contains("too many calls are waiting"), "{busy:?}");
    gateway.close().await;
}
