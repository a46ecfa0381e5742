//! [`LoopbackBrowser`]: the browser of the person at this machine (RFC 8252).

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use ::http::{Method, Request, Response, StatusCode, header};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tidegate_protocol::Error;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use url::Url;

use super::{Browser, Visit};
use crate::oauth::fault::Fault;

/// How long a person may take to log in.
const PATIENCE: Duration = Duration::from_secs(300);
/// Where the browser is sent back to.
const PATH: &str = "/callback";

const DONE: &str = "Thank you, that is all. You may close this page.";
const REFUSED: &str = "The login was not completed. You may close this page.";
const STRANGE: &str = "This is not the login that is being waited for.";

type Show = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// Opens the login page in the browser of this machine, and listens on 127.0.0.1 for its return. The address of the
/// page goes to standard error too, for machines whose browser is elsewhere.
#[derive(Clone)]
pub struct LoopbackBrowser {
    patience: Duration,
    port: u16,
    show: Show,
}

impl LoopbackBrowser {
    /// The browser that the system opens pages in, a free port, and five minutes to log in.
    pub fn new() -> LoopbackBrowser {
        LoopbackBrowser {
            patience: PATIENCE,
            port: 0,
            show: Arc::new(|url| open::that_detached(url).is_ok()),
        }
    }

    /// The same, with this much time to log in.
    pub fn with_timeout(mut self, patience: Duration) -> LoopbackBrowser {
        self.patience = patience;
        self
    }

    /// The same, listening on this port, for clients that are registered with a fixed one.
    pub fn with_port(mut self, port: u16) -> LoopbackBrowser {
        self.port = port;
        self
    }

    /// The same, but pages are shown by `show`, which says whether it could.
    pub fn with_opener(mut self, show: impl Fn(&str) -> bool + Send + Sync + 'static) -> LoopbackBrowser {
        self.show = Arc::new(show);
        self
    }

    /// Listens at the registered port if that is free, because many authorization servers insist on it (although
    /// RFC 8252 section 7.3 says that they must not).
    async fn listen(&self, registered: Option<&str>) -> std::io::Result<TcpListener> {
        let registered = registered.and_then(|uri| Url::parse(uri).ok()).and_then(|url| url.port());
        if let (0, Some(port)) = (self.port, registered)
            && let Ok(listener) = TcpListener::bind(("127.0.0.1", port)).await
        {
            return Ok(listener);
        }
        TcpListener::bind(("127.0.0.1", self.port)).await
    }
}

impl Default for LoopbackBrowser {
    fn default() -> LoopbackBrowser {
        LoopbackBrowser::new()
    }
}

impl std::fmt::Debug for LoopbackBrowser {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoopbackBrowser").field("patience", &self.patience).field("port", &self.port).finish()
    }
}

impl Browser for LoopbackBrowser {
    fn prepare<'a>(&'a self, registered: Option<&'a str>) -> BoxFuture<'a, Result<Box<dyn Visit>, Error>> {
        Box::pin(async move {
            let cannot = |error| Fault::Browser(format!("cannot listen on 127.0.0.1: {error}"));
            let listener = self.listen(registered).await.map_err(cannot)?;
            let port = listener.local_addr().map_err(cannot)?.port();
            let redirect_uri = format!("http://127.0.0.1:{port}{PATH}");
            let listening =
                Listening { listener, redirect_uri, patience: self.patience, show: self.show.clone() };
            Ok(Box::new(listening) as Box<dyn Visit>)
        })
    }
}

struct Listening {
    listener: TcpListener,
    redirect_uri: String,
    patience: Duration,
    show: Show,
}

impl Visit for Listening {
    fn redirect_uri(&self) -> &str {
        &self.redirect_uri
    }

    fn visit(self: Box<Self>, url: String) -> BoxFuture<'static, Result<String, Error>> {
        Box::pin(async move {
            let state = Url::parse(&url).ok().and_then(|url| parameter(&url, "state"));
            if (self.show)(&url) {
                eprintln!("Log in with the browser. If none has opened, open this page:\n{url}");
            } else {
                eprintln!("Open this page to log in:\n{url}");
            }
            match tokio::time::timeout(self.patience, receive(self.listener, self.redirect_uri, state)).await
            {
                Ok(answer) => answer.map_err(Error::from),
                Err(_) => {
                    let what = format!("nobody logged in within {} s; try again", self.patience.as_secs());
                    Err(Fault::Browser(what).into())
                }
            }
        })
    }
}

/// Waits for a request that carries our state. Others are answered and forgotten: any page in any browser on this
/// machine can send them, and must not be able to end the login.
async fn receive(
    listener: TcpListener,
    redirect_uri: String,
    state: Option<String>,
) -> Result<String, Fault> {
    let (found, mut answers) = mpsc::channel(1);
    let expected = Arc::new((redirect_uri, state));
    // Dropped with this future, and all connections with it.
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((stream, _)) = accepted else { continue };
                let (expected, found) = (expected.clone(), found.clone());
                connections.spawn(async move {
                    let service = service_fn(|request| answer(request, expected.clone(), found.clone()));
                    let mut server = http1::Builder::new();
                    server.timer(TokioTimer::new()).header_read_timeout(Duration::from_secs(10)).keep_alive(false);
                    _ = server.serve_connection(TokioIo::new(stream), service).await;
                });
            }
            answer = answers.recv() => {
                // The page that says so is still on its way.
                let last = async { while connections.join_next().await.is_some() {} };
                _ = tokio::time::timeout(Duration::from_secs(1), last).await;
                return answer.ok_or_else(|| Fault::Browser("the listener stopped".to_owned()));
            }
        }
    }
}

async fn answer(
    request: Request<Incoming>,
    expected: Arc<(String, Option<String>)>,
    found: mpsc::Sender<String>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (redirect_uri, state) = &*expected;
    if request.uri().path() != PATH || request.method() != Method::GET {
        return Ok(page(StatusCode::NOT_FOUND, STRANGE));
    }
    let came = format!("{redirect_uri}?{}", request.uri().query().unwrap_or_default());
    let url = Url::parse(&came).ok();
    let of = |name| url.as_ref().and_then(|url| parameter(url, name));
    if of("state") != *state {
        return Ok(page(StatusCode::BAD_REQUEST, STRANGE));
    }
    let text = if of("code").is_some() { DONE } else { REFUSED };
    // Full means that an answer is there already.
    _ = found.try_send(came);
    Ok(page(StatusCode::OK, text))
}

fn parameter(url: &Url, name: &str) -> Option<String> {
    url.query_pairs().find(|(own, _)| own == name).map(|(_, value)| value.into_owned())
}

fn page(status: StatusCode, text: &str) -> Response<Full<Bytes>> {
    let html = format!("<!doctype html><meta charset=\"utf-8\"><title>Tidegate</title><p>{text}</p>\n");
    let mut response = Response::new(Full::new(Bytes::from(html)));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static("text/html; charset=utf-8"));
    // The address holds the code: nobody else is to learn it.
    headers.insert(header::REFERRER_POLICY, header::HeaderValue::from_static("no-referrer"));
    headers.insert(header::CACHE_CONTROL, header::HeaderValue::from_static("no-store"));
    headers.insert(
        header::CONTENT_SECURITY_POLICY,
        header::HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'"),
    );
    response
}
