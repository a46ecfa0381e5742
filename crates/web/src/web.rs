//! [`Web`]: sends requests.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, StatusCode, Uri, header};
use http_body_util::Full;
use hyper_util::client::legacy::{self, Client};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tidegate_service::usage;
use tokio::time::{Instant, timeout_at};
use url::Url;

use crate::cache::{Cache, CacheLookup, Document};
use crate::dial::Dial;
use crate::error::causes;
use crate::{Answer, Error, Governor, Guard, Proxies, ProxyRoute, Rate, Redirects, Request};

/// How many hosts the rates of are remembered.
const HOSTS: usize = 1024;
/// How many documents are kept, and how many bytes of them.
const DOCUMENTS: usize = 64;
const DOCUMENT_BYTES: usize = 4 * 1024 * 1024;
/// How long a connection is kept while nobody uses it.
const IDLE: Duration = Duration::from_secs(90);

/// What holds for all requests of one [`Web`].
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where requests may go. Default: anywhere, for addresses from the configuration.
    pub guard: Guard,
    /// The proxies that they go through. Default: those of the environment. What a name stands for is then looked up by
    /// the proxy, past the guard.
    pub proxies: Proxies,
    /// How long connecting may take, TLS and proxy included. Default 10 s.
    pub connect: Duration,
    /// How many connections to each host are kept while nobody uses them. Default 8.
    pub idle: usize,
    /// How many requests go to one host. Default: as many as there are.
    pub rate: Option<Rate>,
    /// Whether HTTP/2 is spoken, and nothing else: gRPC needs it. Default: HTTP/1.1.
    pub http2: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            guard: Guard::anywhere(),
            proxies: Proxies::from_env(),
            connect: Duration::from_secs(10),
            idle: 8,
            rate: None,
            http2: false,
        }
    }
}

/// A client for any number of hosts. Clones share connections, rates and documents.
#[derive(Clone)]
pub struct Web(Arc<Inner>);

struct Inner {
    client: Client<Dial, Full<Bytes>>,
    proxies: Proxies,
    governor: Option<Mutex<Governor>>,
    cache: Mutex<Cache>,
}

impl Web {
    /// A client with these settings. Nothing is opened yet.
    pub fn new(settings: Settings) -> Web {
        let Settings { guard, proxies, connect, idle, rate, http2 } = settings;
        let client = Client::builder(TokioExecutor::new())
            .pool_max_idle_per_host(idle)
            .pool_idle_timeout(IDLE)
            .pool_timer(TokioTimer::new())
            .http2_only(http2)
            .build(Dial { guard, proxies: proxies.clone(), within: connect, http2 });
        let governor = rate.map(|rate| Mutex::new(Governor::new(rate, HOSTS)));
        let cache = Mutex::new(Cache::new(DOCUMENTS, DOCUMENT_BYTES));
        Web(Arc::new(Inner { client, proxies, governor, cache }))
    }

    /// Sends a request, follows redirects as it says, and gives the head of the answer. Every status is an answer.
    pub async fn send(&self, mut request: Request) -> Result<Answer, Error> {
        let until = Instant::now() + request.within;
        let mut redirects = Redirects::new(request.follow, request.hops);
        loop {
            self.turn(&request.url, until).await?;
            let answer =
                timeout_at(until, self.once(&request, until)).await.unwrap_or(Err(Error::Timeout))?;
            match redirects.next(&request.url, answer.status(), answer.headers()) {
                Ok(Some(next)) => request.moved(answer.status(), next),
                // One that is not followed is for the caller to judge.
                Ok(None) | Err(_) => return Ok(answer),
            }
        }
    }

    /// The whole answer to a GET, of at most `most` bytes. What the server allows to be kept is kept for the next who
    /// asks, unless the request holds credentials.
    pub async fn document(&self, request: Request, most: usize) -> Result<Document, Error> {
        let open = request.method == Method::GET
            && !request.headers.contains_key(header::AUTHORIZATION)
            && !request.headers.values().any(HeaderValue::is_sensitive);
        if !open {
            return whole(self.send(request).await?, most).await;
        }
        let url = request.url.to_string();
        let mut asked = request.clone();
        let kept = self.cache().look(&url, now());
        usage::Cache::Documents.looked_up(matches!(kept, CacheLookup::Fresh(_)));
        match kept {
            CacheLookup::Fresh(document) => return Ok(document),
            CacheLookup::Stale(tag) => asked = asked.header(header::IF_NONE_MATCH, tag),
            CacheLookup::Nothing => {}
        }
        let mut answer = self.send(asked).await?;
        if answer.status() == StatusCode::NOT_MODIFIED {
            if let Some(document) = self.cache().renew(&url, answer.headers(), now()) {
                return Ok(document);
            }
            answer = self.send(request).await?;
        }
        // What a redirect led to is kept by nobody: it may lead elsewhere next time.
        let direct = answer.url().as_str() == url;
        let document = whole(answer, most).await?;
        if direct {
            self.cache().keep(&url, &document, now());
        }
        Ok(document)
    }

    /// Waits until a request may go to this host.
    async fn turn(&self, url: &Url, until: Instant) -> Result<(), Error> {
        let (Some(governor), Some(host)) = (&self.0.governor, url.host_str()) else { return Ok(()) };
        let left = until.saturating_duration_since(Instant::now());
        let wait = lock(governor).take(host, now(), left).ok_or_else(|| Error::Busy(host.to_owned()))?;
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
        Ok(())
    }

    async fn once(&self, request: &Request, until: Instant) -> Result<Answer, Error> {
        if !matches!(request.url.scheme(), "http" | "https") {
            return Err(Error::Request("only http:// and https:// addresses can be requested"));
        }
        let uri: Uri =
            request.url.as_str().parse().map_err(|_| Error::Request("the address is not a valid URI"))?;
        let mut sent = http::Request::new(Full::new(request.body.clone()));
        *sent.method_mut() = request.method.clone();
        *sent.uri_mut() = uri;
        *sent.headers_mut() = request.headers.clone();
        let headers = sent.headers_mut();
        let agent = HeaderValue::from_static(concat!("tidegate/", env!("CARGO_PKG_VERSION")));
        headers.entry(header::USER_AGENT).or_insert(agent);
        headers.entry(header::ACCEPT).or_insert(HeaderValue::from_static("*/*"));
        if let ProxyRoute::Forward { credentials: Some(credentials), .. } =
            self.0.proxies.route(&request.url)?
        {
            headers.insert(header::PROXY_AUTHORIZATION, credentials);
        }
        let response = self.0.client.request(sent).await.map_err(|error| failed(&error))?;
        Ok(Answer::new(response, request.url.clone(), until, request.silence))
    }

    fn cache(&self) -> MutexGuard<'_, Cache> {
        lock(&self.0.cache)
    }
}

impl Default for Web {
    fn default() -> Web {
        Web::new(Settings::default())
    }
}

impl fmt::Debug for Web {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Web").field("proxies", &self.0.proxies).finish_non_exhaustive()
    }
}

async fn whole(answer: Answer, most: usize) -> Result<Document, Error> {
    let (status, headers) = (answer.status(), answer.headers().clone());
    Ok(Document { status, headers, body: answer.whole(most).await? })
}

/// What went wrong, without what hyper says around it.
fn failed(error: &legacy::Error) -> Error {
    let Some(cause) = std::error::Error::source(error) else { return Error::Broken(error.to_string()) };
    match cause.downcast_ref::<Error>() {
        Some(own) => own.clone(),
        None if error.is_connect() => Error::connect(cause),
        None => Error::Broken(causes(cause)),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn now() -> std::time::Instant {
    Instant::now().into_std()
}

#[cfg(test)]
mod tests;
