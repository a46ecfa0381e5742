//! Callers of both eras: real clients over HTTP, each with a name of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::json;
use tidegate_client::{AppError, Client, ClientSettings, ElicitAnswer, EraChoice, Handlers, ToolResult};
use tidegate_edge::http;
use tidegate_gateway::Gateway;
use tidegate_service::layers::RetryPolicy;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::{PATIENCE, SERVERS};

/// What came of all calls.
#[derive(Default)]
pub(crate) struct Tally {
    right: AtomicU64,
    failed: AtomicU64,
    wrong: std::sync::Mutex<Vec<String>>,
}

impl Tally {
    fn note(&self, wanted: &str, answer: Result<Result<ToolResult, AppError>, tokio::time::error::Elapsed>) {
        let wrong = |what: String| self.wrong.lock().unwrap().push(what);
        match answer {
            Ok(Ok(result)) if result.is_error() => _ = self.failed.fetch_add(1, Ordering::Relaxed),
            Ok(Ok(result)) if result.text() == wanted => _ = self.right.fetch_add(1, Ordering::Relaxed),
            Ok(Ok(result)) => wrong(format!("{:?} instead of {wanted:?}", result.text())),
            Ok(Err(_)) => _ = self.failed.fetch_add(1, Ordering::Relaxed),
            Err(_) => wrong(format!("no answer to {wanted:?}")),
        }
    }

    pub(crate) fn print(&self) {
        let (right, failed) = (self.right.load(Ordering::Relaxed), self.failed.load(Ordering::Relaxed));
        println!("{right} calls were answered, {failed} failed");
    }

    pub(crate) fn check(&self) {
        assert!(self.right.load(Ordering::Relaxed) > 0, "nothing worked at all");
        assert!(self.failed.load(Ordering::Relaxed) > 0, "there was no chaos");
        let wrong = self.wrong.lock().unwrap();
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}

/// Serves the gateway on a socket until the runtime ends.
pub(crate) async fn serve(gateway: &Gateway) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    tokio::spawn(http::serve_door(
        gateway.clone(),
        listener,
        http::Settings::default(),
        std::future::pending(),
    ));
    url
}

/// Somebody who calls one tool after the other.
pub(crate) struct Caller {
    over: CancellationToken,
    calling: std::sync::Mutex<Option<JoinHandle<()>>>,
}

impl Caller {
    pub(crate) fn start(
        number: usize,
        modern: bool,
        url: &str,
        mut random: fastrand::Rng,
        tally: Arc<Tally>,
    ) -> Caller {
        let over = CancellationToken::new();
        let (name, url, ending) = (format!("caller{number}"), url.to_owned(), over.clone());
        let calling = tokio::spawn(async move {
            let client = client(&name, modern, &url).await;
            for n in 0_u64.. {
                if ending.is_cancelled() {
                    break;
                }
                let server = random.usize(..SERVERS);
                let tool = if random.u8(..5) == 0 { "greet" } else { "echo" };
                let call = client.call(format!("s{server}_{tool}"), json!({"by": name, "n": n}));
                let answer = tokio::time::timeout(PATIENCE, call.into_future()).await;
                tally.note(&format!("{server} {name} {n}"), answer);
                tokio::time::sleep(Duration::from_millis(random.u64(..20))).await;
            }
            client.close().await;
        });
        Caller { over, calling: std::sync::Mutex::new(Some(calling)) }
    }

    pub(crate) async fn stop(&self) {
        self.over.cancel();
        let calling = self.calling.lock().unwrap().take();
        if let Some(calling) = calling {
            calling.await.unwrap();
        }
    }
}

/// A client that leaves retries to whoever is tested, and answers with its name.
async fn client(name: &str, modern: bool, url: &str) -> Client {
    let answer = name.to_owned();
    let handlers = Handlers::new().on_elicit(false, move |_| {
        let name = answer.clone();
        async move { ElicitAnswer::Accept([("name".to_owned(), name.into())].into_iter().collect()) }
    });
    let options = ClientSettings {
        era: if modern { EraChoice::Modern } else { EraChoice::Legacy },
        retry: RetryPolicy::never(),
        breaker: None,
        ..ClientSettings::default()
    };
    Client::builder(url).unwrap().settings(options).handlers(handlers).connect().await.unwrap()
}

/// Every tool of every server works, for a caller of either era.
pub(crate) async fn everything_works(url: &str) {
    for modern in [true, false] {
        let client = client("last", modern, url).await;
        for server in 0..SERVERS {
            for tool in ["echo", "greet"] {
                let result =
                    client.call(format!("s{server}_{tool}"), json!({"by": "last", "n": 1})).await.unwrap();
                assert_eq!(result.text(), format!("{server} last 1"), "{tool}, modern: {modern}");
            }
        }
        client.close().await;
    }
}
