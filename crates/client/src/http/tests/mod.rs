//! The client against servers that are written by hand, byte by byte.

mod answers;
mod credentials;
mod failures;
mod network;
mod redirects;
mod server;

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper_util::client::proxy::matcher::Matcher;

use self::server::Server;
use super::connect::Outside;
use super::*;

/// Nothing here takes long; what does is stuck.
async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(10), what).await.expect("this should not take that long")
}

fn remote(url: &str) -> Remote {
    Remote { url: Url::parse(url).unwrap(), headers: BTreeMap::new(), sse: false }
}

fn client(server: &Server) -> HttpClient {
    HttpClient::new(&remote(&server.url("/mcp")), None, &HttpSettings::default()).unwrap()
}

fn body() -> Bytes {
    Bytes::from_static(br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#)
}

async fn post(client: &HttpClient) -> Result<Answered, Error> {
    soon(client.post(body(), Headers::new())).await
}

/// The body in short: `empty`, the JSON, `events`, or content type and excerpt.
fn shown(body: &Body) -> String {
    match body {
        Body::Empty => "empty".to_owned(),
        Body::Json(json) => String::from_utf8_lossy(json).into_owned(),
        Body::Events(_) => "events".to_owned(),
        Body::Other { content_type, excerpt } => format!("{content_type}: {excerpt}"),
    }
}

/// The outcome in short.
fn outcome(answered: &Result<Answered, Error>) -> String {
    match answered {
        Ok(a) => format!("{} {}", a.status.as_u16(), shown(&a.body)),
        Err(e) => format!("{:?}, {}", e.symbol(), e.detail()),
    }
}

#[tokio::test]
async fn everything_can_go_to_other_threads() {
    fn is_send<T: Send>(_: &T) {}
    fn is_shared<T: Send + Sync + Clone>(_: &T) {}
    let client = HttpClient::new(&remote("http://localhost/"), None, &HttpSettings::default()).unwrap();
    is_shared(&client);
    is_send(&client.post(body(), Headers::new()));
    is_send(&async {
        let Ok(Answered { body: Body::Events(mut events), .. }) = client.get(Headers::new()).await else {
            return;
        };
        let _ = events.next().await;
    });
}
