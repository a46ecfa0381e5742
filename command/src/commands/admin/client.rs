//! [`AdminClient`]: asks a gateway's admin API, over its socket or its URL.

use std::path::PathBuf;
use std::time::Duration;

use axum::body::Bytes;
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use serde_json::Value;
use tidegate_web::{Request, Settings, Web};
use url::Url;

use super::presence::Presence;
use crate::commands::exit::Exit;
use crate::commands::failure::Failure;
use crate::term::clean::line as clean;

/// Larger answers are none of a gateway.
const LARGEST: usize = 16 << 20;
/// How long an answer may take. A reset waits for its server.
const WITHIN: Duration = Duration::from_secs(30);
/// How long a stream may be silent: a comment comes more often.
const SILENCE: Duration = Duration::from_secs(60);
/// How long a stream may last.
const FOREVER: Duration = Duration::from_secs(30 * 24 * 3600);

/// Asks one gateway.
pub(crate) struct AdminClient {
    way: Way,
    headers: HeaderMap,
}

enum Way {
    Socket(PathBuf),
    Url(Url),
    /// What is at this address is another gateway.
    Nowhere(Url),
}

/// Why a question was not answered.
pub(crate) enum AskError {
    /// No gateway answers there.
    NoGateway(String),
    /// The gateway says no: the status, and its sentence.
    Refused(u16, String),
    /// It is no gateway, or something else is wrong.
    Failed(Failure),
}

impl AdminClient {
    /// A gateway that was found in the state directory.
    pub(crate) fn of(presence: &Presence, headers: HeaderMap) -> Result<AdminClient, Failure> {
        if let Some(socket) = &presence.socket {
            return Ok(AdminClient { way: Way::Socket(socket.clone()), headers: HeaderMap::new() });
        }
        let url = presence.url.as_deref().and_then(|url| Url::parse(url).ok());
        let url = url.ok_or_else(|| {
            let what = format!("the gateway with the process {} has no socket and no URL", presence.pid);
            Failure::new(Exit::Unavailable, what)
        })?;
        AdminClient::at(url, headers, presence.token.clone())
    }

    /// One at a URL. `token` is its token, if that is known.
    pub(super) fn at(
        url: Url,
        mut headers: HeaderMap,
        token: Option<String>,
    ) -> Result<AdminClient, Failure> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(Failure::usage(format!(
                "{} is no address of a gateway: use http or https",
                shown(&url)
            )));
        }
        if let Some(token) = token.filter(|_| !headers.contains_key(AUTHORIZATION))
            && let Ok(mut value) = HeaderValue::try_from(format!("Bearer {token}"))
        {
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        Ok(AdminClient { way: Way::Url(url), headers })
    }

    /// None: what is at the URL is another one.
    pub(super) fn nowhere(url: &Url) -> AdminClient {
        AdminClient { way: Way::Nowhere(url.clone()), headers: HeaderMap::new() }
    }

    /// Where it is, for people.
    pub(crate) fn place(&self) -> String {
        match &self.way {
            Way::Socket(path) => clean(&path.display().to_string()),
            Way::Url(url) | Way::Nowhere(url) => shown(url),
        }
    }

    /// Asks for something.
    pub(crate) async fn get(&self, path: &str, query: &[(&str, String)]) -> Result<Value, AskError> {
        self.ask(Method::GET, path, query, None).await
    }

    /// Has something done.
    pub(crate) async fn post(&self, path: &str) -> Result<Value, AskError> {
        self.ask(Method::POST, path, &[], None).await
    }

    /// Sets something.
    pub(crate) async fn put(&self, path: &str, body: &Value) -> Result<Value, AskError> {
        self.ask(Method::PUT, path, &[], Some(body.to_string())).await
    }

    async fn ask(
        &self,
        method: Method,
        path: &str,
        query: &[(&str, String)],
        body: Option<String>,
    ) -> Result<Value, AskError> {
        let mut answer = self.send(method, path, query, body, WITHIN).await?;
        let whole = tokio::time::timeout(WITHIN, answer.whole()).await;
        let whole = whole.unwrap_or_else(|_| Err("it did not answer in time".to_owned()));
        let bytes = whole.map_err(|error| self.unreachable(&error))?;
        let said: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        match answer.status() {
            StatusCode::OK if said.is_object() => Ok(said),
            StatusCode::OK => Err(AskError::Failed(self.no_gateway())),
            other => {
                let sentence = said["error"].as_str().or(said["error"]["message"].as_str());
                Err(AskError::Refused(other.as_u16(), sentence.unwrap_or_default().to_owned()))
            }
        }
    }

    /// Follows a stream of events.
    pub(crate) async fn follow(&self, path: &str, query: &[(&str, String)]) -> Result<EventStream, AskError> {
        let mut answer = self.send(Method::GET, path, query, None, FOREVER).await?;
        if answer.status() == StatusCode::OK {
            return Ok(EventStream { answer, rest: Vec::new() });
        }
        let bytes = answer.whole().await.map_err(|error| self.unreachable(&error))?;
        let said: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        let sentence = said["error"].as_str().or(said["error"]["message"].as_str()).unwrap_or_default();
        Err(AskError::Refused(answer.status().as_u16(), sentence.to_owned()))
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        query: &[(&str, String)],
        body: Option<String>,
        within: Duration,
    ) -> Result<Answer, AskError> {
        let mut headers = self.headers.clone();
        if body.is_some() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        let body = Bytes::from(body.unwrap_or_default());
        let with_query = |url: &Url| -> Result<Url, AskError> {
            let mut url = url.join(path).map_err(|error| {
                let what = format!("{} is no address of a gateway: {error}", shown(url));
                AskError::Failed(Failure::usage(what))
            })?;
            if !query.is_empty() {
                url.query_pairs_mut().extend_pairs(query);
            }
            Ok(url)
        };
        match &self.way {
            Way::Nowhere(url) => {
                let what = format!("the gateway at {} has another configuration", shown(url));
                Err(AskError::NoGateway(what))
            }
            Way::Url(url) => {
                let request = Request::new(method, with_query(url)?).headers(headers).body(body);
                let request = request.within(within).silence(SILENCE);
                let sent = Web::new(Settings::default()).send(request).await;
                sent.map(|answer| Answer::Web(Box::new(answer)))
                    .map_err(|error| self.unreachable(&error.to_string()))
            }
            Way::Socket(socket) => {
                // A URL only for its path and query.
                let local =
                    Url::parse("http://localhost").map_err(|error| self.unreachable(&error.to_string()))?;
                let url = with_query(&local)?;
                let sent = tokio::time::timeout(WITHIN, through_socket(socket, method, &url, headers, body));
                let sent = sent.await.unwrap_or_else(|_| Err("it did not answer in time".to_owned()));
                sent.map_err(|error| self.unreachable(&error))
            }
        }
    }

    fn unreachable(&self, error: &str) -> AskError {
        AskError::NoGateway(format!("no gateway answers at {}: {}", self.place(), clean(error)))
    }

    fn no_gateway(&self) -> Failure {
        Failure::new(Exit::Unavailable, format!("what answers at {} is no gateway of Tidegate", self.place()))
    }

    /// The failure of a command that needs an answer. `what` is what it would have been told or done.
    pub(crate) fn failure(&self, error: AskError, what: &str) -> Failure {
        let place = self.place();
        match error {
            AskError::NoGateway(sentence) => Failure::new(Exit::Unavailable, sentence)
                .advise("Start one with tidegate serve, or say where it is with --url."),
            AskError::Failed(failure) => failure,
            AskError::Refused(401, sentence) if sentence.starts_with("this needs the token") => {
                Failure::usage(format!("the gateway at {place} does not {what} without its token: {}", clean(&sentence)))
                    .advise("Ask it as the user that runs it, without --url. With state_dir = false there is no token, and no socket either.")
            }
            AskError::Refused(401, sentence) => {
                let why = if sentence.is_empty() { String::new() } else { format!(": {}", clean(&sentence)) };
                Failure::usage(format!("the gateway at {place} wants to know who asks{why}"))
                    .advise("Send a key: -H 'Authorization: Bearer KEY'.")
            }
            AskError::Refused(403 | 404, sentence) if !sentence.starts_with("there is no server") => {
                Failure::usage(format!("the gateway at {place} does not {what}, or not for you")).advise(
                    "With [auth], a rule of [policy] must allow it (docs/operating.md has the paths); without, only this machine is told. With listen in [admin], it is there and not where clients come.",
                )
            }
            AskError::Refused(404 | 409, sentence) => Failure::usage(clean(&sentence)),
            AskError::Refused(400, sentence) => Failure::usage(clean(&sentence)),
            AskError::Refused(status, sentence) if sentence.is_empty() => {
                Failure::new(Exit::Unavailable, format!("the gateway at {place} answered with HTTP {status}"))
            }
            AskError::Refused(_, sentence) => Failure::new(Exit::Unavailable, clean(&sentence)),
        }
    }
}

/// An address without what may be secret in it.
fn shown(url: &Url) -> String {
    clean(&url.origin().ascii_serialization())
}

/// An answer whose body is still to come.
enum Answer {
    Web(Box<tidegate_web::Answer>),
    #[cfg(unix)]
    Socket(Box<SocketAnswer>),
}

#[cfg(unix)]
struct SocketAnswer {
    status: StatusCode,
    body: hyper::body::Incoming,
    /// What drives the connection, for as long as there is an answer.
    _connection: tokio_util::task::AbortOnDropHandle<()>,
}

impl Answer {
    fn status(&self) -> StatusCode {
        match self {
            Answer::Web(answer) => answer.status(),
            #[cfg(unix)]
            Answer::Socket(answer) => answer.status,
        }
    }

    /// The next piece of the body; `None` at its end.
    async fn chunk(&mut self) -> Result<Option<Bytes>, String> {
        match self {
            Answer::Web(answer) => answer.chunk().await.map_err(|error| error.to_string()),
            #[cfg(unix)]
            Answer::Socket(answer) => {
                use http_body_util::BodyExt as _;
                loop {
                    let next = tokio::time::timeout(SILENCE, answer.body.frame()).await;
                    match next.map_err(|_| "it says nothing any more".to_owned())? {
                        None => return Ok(None),
                        Some(Err(error)) => return Err(error.to_string()),
                        Some(Ok(frame)) => {
                            if let Ok(data) = frame.into_data() {
                                return Ok(Some(data));
                            }
                        }
                    }
                }
            }
        }
    }

    async fn whole(&mut self) -> Result<Vec<u8>, String> {
        let mut all = Vec::new();
        while let Some(chunk) = self.chunk().await? {
            if all.len() + chunk.len() > LARGEST {
                return Err(format!("its answer has more than {LARGEST} bytes"));
            }
            all.extend_from_slice(&chunk);
        }
        Ok(all)
    }
}

#[cfg(unix)]
async fn through_socket(
    socket: &std::path::Path,
    method: Method,
    url: &Url,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Answer, String> {
    let told = |error: &dyn std::fmt::Display| error.to_string();
    let stream = tokio::net::UnixStream::connect(socket).await.map_err(|error| told(&error))?;
    let io = hyper_util::rt::TokioIo::new(stream);
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(io).await.map_err(|error| told(&error))?;
    let connection = tokio_util::task::AbortOnDropHandle::new(tokio::spawn(async move {
        let _ = connection.await;
    }));
    let target = match url.query() {
        Some(query) => format!("{}?{query}", url.path()),
        None => url.path().to_owned(),
    };
    let mut request = axum::http::Request::builder().method(method).uri(target).header("host", "localhost");
    if let Some(own) = request.headers_mut() {
        own.extend(headers);
    }
    let request = request.body(http_body_util::Full::new(body)).map_err(|error| told(&error))?;
    let response = sender.send_request(request).await.map_err(|error| told(&error))?;
    let status = response.status();
    Ok(Answer::Socket(Box::new(SocketAnswer { status, body: response.into_body(), _connection: connection })))
}

#[cfg(not(unix))]
async fn through_socket(
    _: &std::path::Path,
    _: Method,
    _: &Url,
    _: HeaderMap,
    _: Bytes,
) -> Result<Answer, String> {
    Err("there are no such sockets here".to_owned())
}

/// Events, one after the other.
pub(crate) struct EventStream {
    answer: Answer,
    rest: Vec<u8>,
}

/// One of them.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct StreamedEvent {
    pub(crate) name: String,
    pub(crate) data: String,
}

impl EventStream {
    /// The next event; `None` when the gateway has ended. Comments are passed over.
    pub(crate) async fn next(&mut self) -> Result<Option<StreamedEvent>, String> {
        loop {
            while let Some(end) = self.rest.windows(2).position(|two| two == b"\n\n") {
                let event: Vec<u8> = self.rest.drain(..end + 2).collect();
                if let Some(event) = parse(&String::from_utf8_lossy(&event)) {
                    return Ok(Some(event));
                }
            }
            if self.rest.len() > LARGEST {
                return Err("an event does not end".to_owned());
            }
            match self.answer.chunk().await? {
                Some(chunk) => self.rest.extend_from_slice(&chunk),
                None => return Ok(None),
            }
        }
    }
}

/// An event as a gateway writes it; `None` for a comment.
fn parse(text: &str) -> Option<StreamedEvent> {
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    Some(StreamedEvent {
        name: field("event").unwrap_or("message").to_owned(),
        data: field("data")?.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_and_comments_are_not() {
        let event =
            |name: &str, data: &str| Some(StreamedEvent { name: name.to_owned(), data: data.to_owned() });
        assert_eq!(parse("event: log\ndata: {\"a\":1}\n\n"), event("log", "{\"a\":1}"));
        assert_eq!(parse("data: x\n\n"), event("message", "x"));
        assert_eq!((parse(": following\n\n"), parse(":\n\n")), (None, None));
    }
}
