//! [`Rig`]: a misbehaving server with its clients, and a look at what they leave behind.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, RwLock};
use std::time::Duration;

use serde_json::{Value, json};
use tidegate_client::{AppError, Client, ClientBuilder, ClientSettings, Command, Target, ToolResult};
use tidegate_protocol::Symbol;
use tidegate_service::layers::RetryPolicy;
use tokio::time::timeout;

use crate::http_server::HttpServer;
use crate::stdio_server;
use crate::wire::Era;

/// How long a call may take that is going to be answered, however busy the machine is.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
/// How long a call may take that is not.
pub(crate) const SHORT: Duration = Duration::from_millis(1500);
/// How much later than its deadline a call may be answered on a machine that is busy with other things.
const MARGIN: Duration = Duration::from_secs(5);
/// How long one test may take with one server.
const WHOLE: Duration = Duration::from_secs(90);

/// A way to reach a server, and the era it speaks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kind {
    pub(crate) http: bool,
    pub(crate) era: Era,
}

const fn kind(http: bool, era: Era) -> Kind {
    Kind { http, era }
}

pub(crate) const STDIO: &[Kind] = &[kind(false, Era::Modern), kind(false, Era::Legacy)];
pub(crate) const HTTP: &[Kind] = &[kind(true, Era::Modern), kind(true, Era::Legacy)];
pub(crate) const LEGACY: &[Kind] = &[kind(false, Era::Legacy), kind(true, Era::Legacy)];
pub(crate) const MODERN_HTTP: &[Kind] = &[kind(true, Era::Modern)];
pub(crate) const LEGACY_HTTP: &[Kind] = &[kind(true, Era::Legacy)];
pub(crate) const ALL: &[Kind] =
    &[kind(false, Era::Modern), kind(false, Era::Legacy), kind(true, Era::Modern), kind(true, Era::Legacy)];

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} over {}", self.era, if self.http { "HTTP" } else { "stdio" })
    }
}

/// A server with the clients that were made for it.
pub(crate) struct Rig {
    pub(crate) kind: Kind,
    server: Server,
    clients: Mutex<Vec<Client>>,
}

enum Server {
    Stdio { log: String, start: String },
    Http(HttpServer),
}

/// Whoever measures memory wants to be alone.
static QUIET: RwLock<()> = RwLock::new(());
static RIGS: AtomicUsize = AtomicUsize::new(0);

/// Runs a test with a server of each kind.
pub(crate) fn every(kinds: &[Kind], test: impl AsyncFn(&Rig) + Sync) {
    every_started(kinds, "", test);
}

/// Runs a test with a server of each kind that does something wrong from its start.
pub(crate) fn every_started(kinds: &[Kind], start: &str, test: impl AsyncFn(&Rig) + Sync) {
    let _quiet = QUIET.read().unwrap_or_else(|poisoned| poisoned.into_inner());
    // Side by side, because most of it is waiting.
    std::thread::scope(|scope| {
        for kind in kinds {
            let test = &test;
            let thread = std::thread::Builder::new().name(kind.to_string());
            thread.spawn_scoped(scope, move || run(*kind, start, test)).expect("a thread");
        }
    });
}

/// The same while no other test runs.
pub(crate) fn every_alone(kinds: &[Kind], test: impl AsyncFn(&Rig)) {
    let _quiet = QUIET.write().unwrap_or_else(|poisoned| poisoned.into_inner());
    kinds.iter().for_each(|kind| run(*kind, "", &test));
}

fn run(kind: Kind, start: &str, test: &impl AsyncFn(&Rig)) {
    eprintln!("{kind}");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let rig = Rig::new(kind, start);
        timeout(WHOLE, test(&rig)).await.expect("the test came to an end");
        rig.clean_up().await;
    });
}

impl Rig {
    fn new(kind: Kind, start: &str) -> Rig {
        let server = if kind.http {
            Server::Http(HttpServer::start(kind.era, start))
        } else {
            let number = RIGS.fetch_add(1, Ordering::Relaxed);
            let log = format!("{}/faults-{}-{number}.log", env!("CARGO_TARGET_TMPDIR"), std::process::id());
            std::fs::remove_file(&log).ok();
            Server::Stdio { log, start: start.to_owned() }
        };
        Rig { kind, server, clients: Mutex::default() }
    }

    /// The server over HTTP.
    pub(crate) fn http(&self) -> &HttpServer {
        match &self.server {
            Server::Http(http) => http,
            Server::Stdio { .. } => panic!("not over HTTP"),
        }
    }

    fn target(&self) -> Target {
        match &self.server {
            Server::Http(http) => Target::url(&http.url()).expect("an address"),
            Server::Stdio { log, start } => {
                let program = std::env::current_exe().expect("a path").to_str().expect("text").to_owned();
                let mut args: Vec<String> = ["server", "--exact", "--nocapture"].map(Into::into).into();
                let mut command = Command { program: program.clone(), ..Command::default() };
                if start == "stubborn" {
                    args.splice(..0, ["-c".into(), "trap '' TERM; exec \"$0\" \"$@\"".into(), program]);
                    command.program = "sh".into();
                }
                let era = if self.kind.era == Era::Legacy { "legacy" } else { "modern" };
                let variables = [
                    (stdio_server::LOG, log.as_str()),
                    (stdio_server::ERA, era),
                    (stdio_server::START, start),
                ];
                command.args = args;
                command.env.extend(variables.map(|(name, value)| (name.to_owned(), value.to_owned())));
                command.into()
            }
        }
    }

    /// A client in the making, with short times, and neither retries nor a breaker.
    pub(crate) fn builder(&self, change: impl FnOnce(&mut ClientSettings)) -> ClientBuilder {
        let mut options = ClientSettings {
            timeout: PATIENCE,
            probe_timeout: Duration::from_secs(2),
            init_timeout: Duration::from_secs(8),
            connect_timeout: Duration::from_secs(3),
            retry: RetryPolicy::never(),
            breaker: None,
            name: Some("misbehaving".into()),
            ..ClientSettings::default()
        };
        change(&mut options);
        Client::builder(self.target()).expect("a target").settings(options)
    }

    /// Remembers a client, so that it is closed at the end.
    pub(crate) fn keep(&self, client: Client) -> Client {
        self.clients.lock().unwrap().push(client.clone());
        client
    }

    /// A client that is connected when it is first used.
    pub(crate) fn lazy(&self, change: impl FnOnce(&mut ClientSettings)) -> Client {
        self.keep(self.builder(change).lazy().expect("a client"))
    }

    /// A client that is connected.
    pub(crate) async fn client(&self) -> Client {
        self.client_with(|_| {}).await
    }

    pub(crate) async fn client_with(&self, change: impl FnOnce(&mut ClientSettings)) -> Client {
        let connecting = self.builder(change).connect();
        let client = timeout(Duration::from_secs(30), connecting).await.expect("connecting came to an end");
        self.keep(client.expect("a connection"))
    }

    /// What the server has seen, in its words.
    pub(crate) fn seen(&self) -> Vec<String> {
        match &self.server {
            Server::Http(http) => http.seen(),
            Server::Stdio { log, .. } => {
                std::fs::read_to_string(log).unwrap_or_default().lines().map(str::to_owned).collect()
            }
        }
    }

    /// How often the server has seen what begins like this.
    pub(crate) fn count(&self, what: &str) -> usize {
        self.seen().iter().filter(|line| line.starts_with(what)).count()
    }

    /// Waits until the server has seen something so many times.
    pub(crate) async fn until_seen(&self, what: &str, times: usize) {
        if !within(Duration::from_secs(10), || self.count(what) >= times).await {
            panic!("the server has not seen {what:?} {times} times, but {:?}", self.seen());
        }
    }

    /// Server processes that live.
    pub(crate) fn processes(&self) -> Vec<u32> {
        let Server::Stdio { log, .. } = &self.server else { return Vec::new() };
        let ours = |pid: &u32| {
            let variables = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            let lives = |stat: String| !stat.contains(") Z ");
            variables.windows(log.len()).any(|part| part == log.as_bytes())
                && std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(lives)
        };
        let all = std::fs::read_dir("/proc").expect("/proc").flatten();
        all.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(ours).collect()
    }

    /// Closes the clients. Neither a process nor a task may be left, even though somebody still holds on to them.
    async fn clean_up(&self) {
        let clients = std::mem::take(&mut *self.clients.lock().unwrap());
        for client in &clients {
            timeout(Duration::from_secs(20), client.close()).await.expect("closing came to an end");
        }
        // One that was only just being started ends in the background.
        assert!(within(Duration::from_secs(10), || self.processes().is_empty()).await, "a process is left");
        assert!(within(Duration::from_secs(4), || tasks() == 0).await, "{} tasks are left", tasks());
        if let Server::Stdio { log, .. } = &self.server {
            std::fs::remove_file(log).ok();
        }
    }
}

/// Tasks of this runtime that have not ended.
pub(crate) fn tasks() -> usize {
    tokio::runtime::Handle::current().metrics().num_alive_tasks()
}

/// Whether something comes true before long.
pub(crate) async fn within(time: Duration, come_true: impl Fn() -> bool) -> bool {
    let end = std::time::Instant::now() + time;
    while std::time::Instant::now() < end {
        if come_true() {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    come_true()
}

/// Calls a tool and gets its answer before its deadline, give or take a moment.
pub(crate) async fn call(client: &Client, tool: &str, arguments: Value) -> Result<String, AppError> {
    call_within(client, tool, arguments, PATIENCE).await
}

pub(crate) async fn call_within(
    client: &Client,
    tool: &str,
    arguments: Value,
    deadline: Duration,
) -> Result<String, AppError> {
    let answer = bounded(deadline, client.call(tool, arguments).timeout(deadline)).await;
    answer.map(|result: ToolResult| result.text())
}

/// Waits for an answer that has this much time.
pub(crate) async fn bounded<T>(deadline: Duration, answer: impl IntoFuture<Output = T>) -> T {
    timeout(deadline + MARGIN, answer).await.expect("an answer before the deadline")
}

/// The server still works, and so does the way to it.
pub(crate) async fn works(client: &Client) {
    let answer = call(client, "echo", json!({})).await;
    assert_eq!(answer.expect("a good answer"), "good");
}

/// The error of a call that must fail, whose sentence must have this in it.
pub(crate) async fn fails(client: &Client, tool: &str, arguments: Value, sentence: &str) -> AppError {
    let error = call(client, tool, arguments).await.expect_err("an error");
    assert!(error.message.contains(sentence), "{sentence:?} is not in {error}");
    error
}

/// A call whose time is over before it is answered.
pub(crate) async fn late(client: &Client, tool: &str, arguments: Value) -> AppError {
    let error = call_within(client, tool, arguments, SHORT).await.expect_err("a timeout");
    assert_eq!(error.symbol, Symbol::Timeout, "{error}");
    assert!(error.message.contains("did not answer within"), "{error}");
    error
}
