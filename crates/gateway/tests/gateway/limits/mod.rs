//! How much callers may do, through a gateway with `[limits]`. One file for each theme.
//!
//! Rates are by the hour, so that nothing comes back while a test runs.

mod counted;
mod fairness;
mod nested;
mod places;
mod rates;
mod runs;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use serde_json::{Value, json};
use tidegate_config::{Config, Settings};
use tidegate_gateway::Gateway;
use tidegate_protocol::{Json, Limits, Method, Params, meta};
use tidegate_server::{
    Argument, Cx, Elicit, Prompt, PromptArgs, Resource, Server, Tool, ToolError, schemars,
};
use tidegate_service::{Call, Door, Principal, Reply};
use tokio::sync::Semaphore;

use crate::rig::{Caller, in_time, local, modern, settings, until};

/// How many call at once.
const MANY: usize = 64;

/// What the servers of a test have done.
#[derive(Clone)]
struct Meter(Arc<Measured>);

struct Measured {
    running: AtomicUsize,
    /// How many ran at once at most.
    most: AtomicUsize,
    /// Who was served by `work`, in this order.
    served: Mutex<Vec<String>>,
    /// What each call of `work` takes one of.
    permits: Semaphore,
    /// The gateway, for calls that make calls.
    gateway: OnceLock<Gateway>,
}

/// Counts a call for as long as it runs.
struct Running(Meter);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.0.running.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Arguments of any kind.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Anything {
    /// How large the result is to be.
    size: Option<usize>,
    #[serde(flatten)]
    _more: serde_json::Map<String, Value>,
}

impl Meter {
    /// One whose tool does so much before it waits.
    fn new(permits: usize) -> Meter {
        Meter(Arc::new(Measured {
            running: AtomicUsize::new(0),
            most: AtomicUsize::new(0),
            served: Mutex::default(),
            permits: Semaphore::new(permits),
            gateway: OnceLock::new(),
        }))
    }

    /// One whose tool never waits.
    fn free() -> Meter {
        Meter::new(Semaphore::MAX_PERMITS)
    }

    fn served(&self) -> Vec<String> {
        self.0.served.lock().unwrap().clone()
    }

    fn count(&self) -> usize {
        self.0.served.lock().unwrap().len()
    }

    fn most(&self) -> usize {
        self.0.most.load(Ordering::SeqCst)
    }

    /// Lets so many calls end.
    fn let_go(&self, calls: usize) {
        self.0.permits.add_permits(calls);
    }

    fn enter(&self, who: &str) -> Running {
        let now = self.0.running.fetch_add(1, Ordering::SeqCst) + 1;
        self.0.most.fetch_max(now, Ordering::SeqCst);
        self.0.served.lock().unwrap().push(who.to_owned());
        Running(self.clone())
    }

    /// Works, and waits until it is let go.
    fn work(&self, name: &str) -> Tool {
        let meter = self.clone();
        Tool::new(name).handler(move |arguments: Anything, cx: Cx| {
            let meter = meter.clone();
            async move {
                let _running = meter.enter(cx.principal().subject.as_deref().unwrap_or_default());
                meter.0.permits.acquire().await.unwrap().forget();
                "x".repeat(arguments.size.unwrap_or(1))
            }
        })
    }

    /// Asks who is there, and is served when that was answered.
    fn ask(&self) -> Tool {
        let meter = self.clone();
        Tool::new("ask").handler(move |_: Anything, cx: Cx| {
            let meter = meter.clone();
            async move {
                let schema = json!({"type": "object", "properties": {"who": {"type": "string"}}});
                cx.elicit(Elicit::form_schema("Who?", schema)).await.accepted()?;
                drop(meter.enter("asked"));
                Ok::<_, ToolError>("thanks")
            }
        })
    }

    /// Has another tool work, in the name of whoever calls, and says what came of it.
    fn agent(&self) -> Tool {
        let meter = self.clone();
        Tool::new("agent").handler(move |_: Anything, cx: Cx| {
            let gateway = meter.0.gateway.get().cloned().expect("a gateway");
            async move {
                let params = Json::from(json!({"name": "s_work", "arguments": {}}));
                let params = Params::parse(&params, &Limits::default()).unwrap();
                let Ok(reply) = gateway.answer(Call::new(Method::ToolsCall, params, cx.on_behalf())).await;
                match reply {
                    Reply::Complete(result) => result.to_string(),
                    other => format!("{other:?}"),
                }
            }
        })
    }

    fn server(&self) -> Server {
        let prompt = Prompt::new("greet").argument(Argument::new("who"));
        Server::new("s", "1")
            .tool(self.work("work"))
            .tool(self.work("other"))
            .tool(self.ask())
            .tool(self.agent())
            .prompt(prompt.handler(|_: PromptArgs, _: Cx| async { Ok("Hello") }))
            .resource(Resource::text("memo://a", "a", "text"))
    }

    /// The configuration of `text`, with this server twice.
    fn settings(&self, text: &str) -> Settings {
        let read = Config::parse(text, "tidegate.toml", &Default::default(), &|_| None);
        let read = read.unwrap_or_else(|error| panic!("{error}"));
        let servers = [local("s", self.server()), local("t", self.server())];
        Settings { servers: settings(servers).servers, drain: crate::rig::PATIENCE, ..read }
    }

    /// A gateway with these limits in front of it.
    async fn gateway(&self, text: &str) -> Gateway {
        let gateway = crate::rig::started(self.settings(text)).await;
        assert!(self.0.gateway.set(gateway.clone()).is_ok());
        gateway
    }
}

/// `TENANT/SUBJECT`, or a subject alone.
fn who(name: &str) -> Caller {
    let mut caller = modern();
    caller.0.principal = match name.split_once('/') {
        Some((tenant, subject)) => Principal::subject(subject).in_tenant(tenant),
        None => Principal::subject(name),
    };
    caller
}

/// Calls a tool, and gives the whole result.
async fn call(caller: &Caller, gateway: &Gateway, tool: &str, arguments: Value) -> Value {
    caller.get(gateway, "tools/call", json!({"name": tool, "arguments": arguments})).await
}

/// What a result says for machines about why a call was refused; null if it was not.
fn refusal(result: &Value) -> Value {
    result["_meta"][meta::ERROR].clone()
}

/// Whether a call was let through.
async fn passes(caller: &Caller, gateway: &Gateway, tool: &str) -> bool {
    let result = call(caller, gateway, tool, json!({})).await;
    match refusal(&result) {
        Value::Null => result["isError"] != true,
        refused => {
            assert_eq!(refused["symbol"], "RATE_LIMIT_ERROR", "{result}");
            false
        }
    }
}

/// Everybody calls a tool at once. What they got, one after the other.
async fn all_at_once(gateway: &Gateway, callers: Vec<Caller>, tool: &'static str) -> Vec<Value> {
    let begin = Arc::new(tokio::sync::Barrier::new(callers.len()));
    let tasks = callers.into_iter().map(|caller| {
        let (gateway, begin) = (gateway.clone(), begin.clone());
        tokio::spawn(async move {
            begin.wait().await;
            call(&caller, &gateway, tool, json!({})).await
        })
    });
    let mut results = Vec::new();
    for task in tasks.collect::<Vec<_>>() {
        results.push(in_time("an answer", task).await.unwrap());
    }
    results
}

/// Waits until nothing runs or waits any more.
async fn until_idle(gateway: &Gateway) {
    until("that nothing runs", async || {
        let depth = gateway.depth();
        depth.running == 0 && depth.waiting == 0 && gateway.queues().is_empty()
    })
    .await;
}
