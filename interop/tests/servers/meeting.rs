//! [`Meeting`]: our client with a server, and what it saw beside the responses.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::LocalBoxFuture;
use serde_json::{Value, json};
use tidegate_client::{
    Client, ClientBuilder, ClientSettings, ElicitAnswer, ElicitKind, EraChoice, Handlers, Root, Target,
};
use tidegate_protocol::{Json, Level};
use tidegate_service::Door as _;

use crate::server::{Program, Serving};

/// Nothing here takes seconds unless it hangs; the machine may be busy with other tests.
const PATIENCE: Duration = Duration::from_secs(30);

/// Where the client says that it works.
pub(crate) const ROOT: &str = "file:///tmp/tidegate";

/// How a server is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Over {
    Stdio,
    Http,
    Sse,
}

impl Over {
    /// As our client names it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Over::Stdio => "stdio",
            Over::Http => "http",
            Over::Sse => "sse",
        }
    }
}

/// What the client saw and was asked.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// What a person was asked.
    pub(crate) questions: Mutex<Vec<String>>,
    /// What a model was asked.
    pub(crate) samples: Mutex<Vec<Value>>,
    /// Log messages.
    pub(crate) logs: Mutex<Vec<Value>>,
    /// Whether the person says no.
    pub(crate) declines: Mutex<bool>,
}

/// Our client with a server.
pub(crate) struct Meeting {
    pub(crate) client: Client,
    pub(crate) seen: Arc<Seen>,
    /// The word in the command line of the process that our client started.
    pub(crate) mark: Option<String>,
    /// The process that listens, if our client did not start one.
    pub(crate) serving: Option<Serving>,
    /// The client between the one that asks and the server, if it goes through a [door](Client::door).
    pub(crate) between: Option<Client>,
}

impl Meeting {
    /// Starts the server and connects to it. `path` is where a listening one has its endpoint, below what it says.
    pub(crate) async fn open(program: &Program, over: Over, path: &str, era: EraChoice) -> Meeting {
        let (target, mark, serving) = start(program, over, path).await;
        let seen = Arc::new(Seen::default());
        let what = format!("connecting to {target}");
        let client =
            soon(&what, builder(target, &seen).configure(|options| patient(options, era)).connect()).await;
        let client = client.unwrap_or_else(|e| panic!("{what}: {e}"));
        Meeting { client, seen, mark, serving, between: None }
    }

    /// The same, but through the [door](Client::door) of a client that answers nothing itself, as a gateway has it: what
    /// the server asks is passed on.
    pub(crate) async fn behind_a_door(program: &Program, over: Over, path: &str, era: EraChoice) -> Meeting {
        let (target, mark, serving) = start(program, over, path).await;
        let what = format!("connecting to {target}");
        let between = Client::builder(target).expect("a target").configure(|options| patient(options, era));
        let between = soon(&what, between.connect()).await.unwrap_or_else(|e| panic!("{what}: {e}"));
        let seen = Arc::new(Seen::default());
        let client =
            builder(Target::Local(between.door().boxed()), &seen).connect().await.expect("it is here");
        Meeting { client, seen, mark, serving, between: Some(between) }
    }

    /// Ends the connection with the server.
    pub(crate) async fn close(&self) {
        self.client.close().await;
        if let Some(between) = &self.between {
            between.close().await;
        }
    }

    /// Calls a tool that works and returns its text.
    pub(crate) async fn text(&self, tool: &str, arguments: Value) -> String {
        let result = soon(tool, self.client.call(tool, arguments).into_future()).await;
        let result = result.unwrap_or_else(|e| panic!("{tool}: {e}"));
        assert!(!result.is_error(), "{tool}: {}", result.json());
        result.text()
    }
}

/// Starts the server, or leaves that to our client: the target, the mark of its process, or the process.
async fn start(program: &Program, over: Over, path: &str) -> (Target, Option<String>, Option<Serving>) {
    if over == Over::Stdio {
        let (program, mark) = program.clone().marked();
        return (program.target(), Some(mark), None);
    }
    let program = program.clone();
    let serving = tokio::task::spawn_blocking(move || Serving::start(&program)).await.expect("it starts");
    (serving.target(path).into(), None, Some(serving))
}

/// A machine that is busy with other tests may start a server slowly; the tests are about what it speaks.
fn patient(options: &mut ClientSettings, era: EraChoice) {
    options.era = era;
    options.probe_timeout = PATIENCE;
}

/// A client of ours that answers all questions.
pub(crate) fn builder(target: Target, seen: &Arc<Seen>) -> ClientBuilder {
    let (asked, sampled, logged) = (seen.clone(), seen.clone(), seen.clone());
    let handlers = Handlers::new()
        .on_elicit(true, move |question| {
            held(&asked.questions).push(question.message.clone());
            let mut form = question.defaults();
            if let ElicitKind::Form(_) = question.kind {
                form.insert("name".to_owned(), "Ada".into());
            }
            let declines = *held(&asked.declines);
            async move {
                // Nobody answers at once.
                tokio::time::sleep(Duration::from_millis(10)).await;
                if declines { ElicitAnswer::Decline } else { ElicitAnswer::Accept(form) }
            }
        })
        .on_sample(false, move |params| {
            held(&sampled.samples).push(params);
            let answer = json!({"role": "assistant", "content": {"type": "text", "text": "42"}, "model": "deep thought"});
            async move { Ok(answer) }
        })
        .roots(vec![Root { uri: ROOT.to_owned(), name: Some("tidegate".to_owned()) }]);
    let log = move |message: Json| held(&logged.logs).push(message.to().expect("JSON"));
    Client::builder(target).expect("a target").handlers(handlers).on_log(Level::Info, log)
}

/// A lock that no test panics with.
pub(crate) fn held<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().expect("no test panics while it holds this")
}

/// Waits, but not for ever.
pub(crate) async fn soon<T>(what: &str, work: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, work).await {
        Ok(value) => value,
        Err(_) => panic!("{what}: nothing came of it within {} seconds", PATIENCE.as_secs()),
    }
}

/// Waits until this holds: for what arrives beside a response, and so perhaps after it.
pub(crate) async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    soon(what, async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
}

/// One thing to try with a server.
pub(crate) type Scenario<M> = (&'static str, for<'a> fn(&'a M) -> LocalBoxFuture<'a, ()>);

/// Tries all scenarios with one server, and tells at the end which of them failed, and how.
pub(crate) async fn try_all<M>(what: &str, meeting: &M, scenarios: impl IntoIterator<Item = Scenario<M>>) {
    let mut failed = Vec::new();
    let mut passed = Vec::new();
    for (name, scenario) in scenarios {
        match AssertUnwindSafe(soon(name, scenario(meeting))).catch_unwind().await {
            Ok(()) => passed.push(name),
            // The panic itself has been printed where it happened.
            Err(panic) => {
                let said = panic.downcast_ref::<String>().cloned();
                let said = said.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
                failed.push(format!("{name}: {}", said.unwrap_or_default()));
            }
        }
    }
    eprintln!("{what}: {}", passed.join(", "));
    assert!(
        failed.is_empty(),
        "{what}: {} of {} failed\n{}",
        failed.len(),
        failed.len() + passed.len(),
        failed.join("\n")
    );
}
