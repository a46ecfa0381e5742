//! [`Stub`]: a door whose tools do whatever a test needs, and that remembers what happened to it.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tidegate_protocol::{Capability, Error, Json, Level, Method, Object, Revision, Symbol};
use tidegate_service::{BoxDoor, Call, Door, InputRequired, Notice, Outbox, Question, Reply, Subscription};
use tokio::sync::{Semaphore, watch};
use tower::Layer;

use super::in_time;

/// A door for tests. Clones are the same stub.
#[derive(Clone)]
pub(crate) struct Stub(Arc<Inner>);

struct Inner {
    /// Lets waiting tools finish, one per permit.
    gate: Semaphore,
    counts: watch::Sender<Counts>,
    subscriptions: Mutex<Vec<(Object, Outbox)>>,
    tasks: Mutex<Vec<Task>>,
    calls: Mutex<Vec<String>>,
    endpoints: Mutex<Vec<String>>,
    /// Whether `server/discover` waits.
    held: watch::Sender<bool>,
}

/// What has become of the tools that ran.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counts {
    /// At work now.
    pub(crate) running: usize,
    /// Ended by themselves.
    pub(crate) finished: usize,
    /// Stopped from outside.
    pub(crate) stopped: usize,
}

/// A task that goes through a script of states. `working` passes with each look at it, `input_required` with an answer.
struct Task {
    id: String,
    script: VecDeque<String>,
    answers: Option<Json>,
    /// The call's token: work that a task does must not depend on it once the call is answered.
    token: tokio_util::sync::CancellationToken,
}

impl Stub {
    pub(crate) fn new() -> Stub {
        Stub(Arc::new(Inner {
            gate: Semaphore::new(0),
            counts: watch::channel(Counts::default()).0,
            subscriptions: Mutex::default(),
            tasks: Mutex::default(),
            calls: Mutex::default(),
            endpoints: Mutex::default(),
            held: watch::channel(false).0,
        }))
    }

    /// The stub as a door, behind the layer that every server has around it.
    pub(crate) fn door(&self) -> BoxDoor {
        let stub = self.clone();
        let door = tower::service_fn(move |call: Call| {
            let stub = stub.clone();
            async move { Ok::<_, Infallible>(stub.answer(call).await) }
        });
        tidegate_service::layers::PanicBoundaryLayer.layer(door).boxed()
    }

    /// Lets `n` waiting tools finish.
    pub(crate) fn release(&self, n: usize) {
        self.0.gate.add_permits(n);
    }

    /// Waits until the tools that ran are as told.
    #[track_caller]
    pub(crate) fn until(
        &self,
        what: &'static str,
        done: impl Fn(Counts) -> bool,
    ) -> impl Future<Output = Counts> {
        let mut counts = self.0.counts.subscribe();
        in_time(what, async move { *counts.wait_for(|c| done(*c)).await.expect("the stub lives") })
    }

    pub(crate) fn counts(&self) -> Counts {
        *self.0.counts.borrow()
    }

    /// How many subscriptions nobody has closed.
    pub(crate) fn subscriptions(&self) -> usize {
        let mut all = self.0.subscriptions.lock().unwrap();
        all.retain(|(_, events)| !events.is_closed());
        all.len()
    }

    /// Something changed: whoever wants to know is told.
    pub(crate) fn tell(&self, notice: &Notice) {
        for (filter, events) in self.0.subscriptions.lock().unwrap().iter() {
            let wanted = match notice {
                Notice::ToolsChanged => filter.get("toolsListChanged") == Some("true"),
                Notice::PromptsChanged => filter.get("promptsListChanged") == Some("true"),
                Notice::ResourcesChanged => filter.get("resourcesListChanged") == Some("true"),
                Notice::ResourceUpdated(uri) => filter
                    .json("resourceSubscriptions")
                    .and_then(|list| list.elements())
                    .is_some_and(|list| list.contains(&Json::string(uri))),
                _ => false,
            };
            if wanted {
                events.push(notice.clone());
            }
        }
    }

    /// The service ends all subscriptions.
    pub(crate) fn end_subscriptions(&self) {
        for (_, events) in self.0.subscriptions.lock().unwrap().drain(..) {
            events.close();
        }
    }

    /// Makes `server/discover`, and with it every handshake, wait.
    pub(crate) fn hold_discovery(&self, hold: bool) {
        self.0.held.send_replace(hold);
    }

    /// The calls that came, as `method` or `method name`.
    pub(crate) fn calls(&self) -> Vec<String> {
        self.0.calls.lock().unwrap().clone()
    }

    /// The endpoints at which they came since this was last asked, each once; `-` is the one without a name.
    pub(crate) fn endpoints(&self) -> Vec<String> {
        let mut endpoints = std::mem::take(&mut *self.0.endpoints.lock().unwrap());
        endpoints.dedup();
        endpoints
    }

    /// Whether the work of a task was cut off by the end of the call that started it.
    pub(crate) fn task_was_cut_off(&self) -> bool {
        self.0.tasks.lock().unwrap().iter().any(|task| task.token.is_cancelled())
    }

    /// The states that are left of each task's script.
    pub(crate) fn task_states(&self) -> Vec<String> {
        let all = self.0.tasks.lock().unwrap();
        all.iter().map(|task| task.script.iter().cloned().collect::<Vec<_>>().join(",")).collect()
    }

    async fn answer(&self, call: Call) -> Reply {
        let name = call.method.name_param().and_then(|param| call.params.str(param));
        let entry = match &name {
            Some(name) => format!("{} {name}", call.method),
            None => call.method.to_string(),
        };
        self.0.calls.lock().unwrap().push(entry);
        self.0.endpoints.lock().unwrap().push(call.context.endpoint.as_deref().unwrap_or("-").to_owned());
        match call.method {
            Method::Discover => {
                let _ = self.0.held.subscribe().wait_for(|held| !held).await;
                discover(call.context.revision)
            }
            Method::ToolsList => Reply::Complete(Json::trusted(TOOLS)),
            Method::ToolsCall => self.tool(call).await,
            Method::ResourcesList => complete(
                call.context.revision,
                json!({"resources": [{"uri": "mem:a", "name": "a", "title": "A"}]}),
            ),
            Method::ResourcesRead => match call.params.str("uri").as_deref() {
                Some("mem:a") => {
                    complete(call.context.revision, json!({"contents": [{"uri": "mem:a", "text": "A"}]}))
                }
                other => Reply::Error(Error::resource_not_found(other.unwrap_or_default())),
            },
            Method::PromptsGet => self.ask(&call),
            Method::Listen => self.listen(&call),
            Method::TasksGet | Method::TasksUpdate | Method::TasksCancel => self.task(&call),
            other => Reply::method_not_found(&other),
        }
    }

    async fn tool(&self, call: Call) -> Reply {
        let revision = call.context.revision;
        let name = call.params.str("name").unwrap_or_default().into_owned();
        let arguments: Value = call.params.json("arguments").and_then(|a| a.to().ok()).unwrap_or(json!({}));
        let n = arguments["n"].as_u64().unwrap_or(1);
        let work = Work::begin(&self.0);
        let reply = match &*name {
            "echo" => said(revision, arguments["text"].as_str().unwrap_or("nothing")),
            // What the call's context says, so that tests can see what the edge made of the request.
            "context" => said(revision, &describe(&call)),
            "slow" => {
                self.wait().await;
                said(revision, arguments["text"].as_str().unwrap_or("done"))
            }
            "never" => std::future::pending().await,
            // Stops by itself when told to, and says so.
            "polite" => {
                call.context.cancel.cancelled().await;
                Reply::Error(Error::new(Symbol::Cancelled, "The request was cancelled"))
            }
            "progress" => {
                for i in 1..=n {
                    progress(&call, i, n);
                    if arguments["wait"] == true {
                        self.wait().await;
                    }
                }
                if arguments["close"] == true {
                    push(&call, Notice::CloseStream);
                    self.wait().await;
                }
                said(revision, "done")
            }
            "log" => {
                for level in [Level::Debug, Level::Info, Level::Error] {
                    log(&call, level);
                }
                said(revision, "done")
            }
            // Something that no revision knows.
            "tells" => {
                let params = call.params.json("arguments");
                push(&call, Notice::Other { method: "notifications/vendor".into(), params });
                said(revision, "told")
            }
            "close_stream" => {
                push(&call, Notice::CloseStream);
                self.wait().await;
                said(revision, "after the break")
            }
            "close_outbox" => {
                if let Some(outbox) = &call.context.outbox {
                    outbox.close();
                }
                self.wait().await;
                said(revision, "done")
            }
            "ask" => self.ask(&call),
            "task" => self.start(&call, &arguments),
            "big" => said(revision, &"x".repeat(n as usize)),
            "pretty" => Reply::Complete(Json::trusted(format!(
                "{{\r\n  {}\"content\": [\n    {{\"type\": \"text\",\n \"text\": \"a\\nb\"}}\r]\n}}",
                if revision.is_modern() { "\"resultType\": \"complete\",\n" } else { "" }
            ))),
            // The arguments as they came, not as this stub read them.
            "raw" => {
                let arguments = call.params.get("arguments").unwrap_or("{}");
                Reply::complete(revision, &format!(r#""content":[],"structuredContent":{arguments}"#))
            }
            "content" => complete(revision, arguments),
            "needs_sampling" => Reply::Error(Error::missing_capabilities(&[Capability::Sampling])),
            "busy" => {
                let error = Error::new(Symbol::RateLimited, "Try again").as_protocol();
                Reply::Error(error.with_retry_after(std::time::Duration::from_millis(1500)))
            }
            "progress_then_fail" => {
                progress(&call, 1, 2);
                Reply::Error(Error::missing_capabilities(&[Capability::Sampling]))
            }
            "scoped" => {
                progress(&call, 1, 2);
                let data = Json::trusted(r#"{"requiredScopes":["mcp","files:write"]}"#);
                let error = Error::new(Symbol::InsufficientScope, "Forbidden: the token lacks files:write");
                Reply::Error(error.with_data(data))
            }
            "panic" => panic!("the stub was told to"),
            other => Reply::Error(Error::new(Symbol::ToolNotFound, format!("Unknown tool: {other}"))),
        };
        work.finish();
        reply
    }

    async fn wait(&self) {
        self.0.gate.acquire().await.expect("the gate stays open").forget();
    }

    /// Asks what `ask` names, in `rounds` rounds, and says what came back in the last.
    fn ask(&self, call: &Call) -> Reply {
        let arguments: Value = call.params.json("arguments").and_then(|a| a.to().ok()).unwrap_or(json!({}));
        let rounds = arguments["rounds"].as_u64().unwrap_or(1);
        let state = call.params.str("requestState").map(|s| s.into_owned());
        let answered = call.params.json("inputResponses");
        let round = match (&answered, &state) {
            (None, _) => 0,
            // Without a state the keys tell: each ends with its round.
            (Some(answers), None) => Object::of(answers)
                .and_then(|all| all.members().filter_map(|m| m.name.chars().last()?.to_digit(10)).max())
                .map_or(0, u64::from),
            (Some(_), Some(state)) => state.trim_start_matches("round ").parse().unwrap_or(99),
        };
        if round >= rounds {
            let got = json!({
                "answers": answered.and_then(|a| a.to::<Value>().ok()),
                "state": state,
            });
            return match call.method {
                Method::PromptsGet => {
                    complete(call.context.revision, json!({"messages": [], "description": got.to_string()}))
                }
                _ => said(call.context.revision, &got.to_string()),
            };
        }
        let wanted = arguments["ask"].as_array().cloned().unwrap_or(vec![json!("form")]);
        let questions = wanted.iter().filter_map(Value::as_str).map(|kind| question(kind, round)).collect();
        let state = (arguments["forget"] != round + 1).then(|| format!("round {}", round + 1).into());
        Reply::InputRequired(InputRequired { questions, state, original: None })
    }

    fn listen(&self, call: &Call) -> Reply {
        let filter = call.params.object().object("notifications").unwrap_or_else(Object::empty);
        // Log messages were never something to subscribe to: the part that is honoured leaves them out.
        let acknowledged = filter.without(&["logMessages"]);
        log(call, Level::Info);
        let events = Outbox::default();
        self.0.subscriptions.lock().unwrap().push((filter, events.clone()));
        Reply::Subscription(Subscription { acknowledged, events })
    }

    fn start(&self, call: &Call, arguments: &Value) -> Reply {
        let mut tasks = self.0.tasks.lock().unwrap();
        let id = format!("task-{}", tasks.len() + 1);
        let script =
            arguments["script"].as_array().cloned().unwrap_or(vec![json!("working"), json!("completed")]);
        let script = script.iter().filter_map(|s| s.as_str().map(str::to_owned)).collect();
        if arguments["announce"] == true {
            progress(call, 1, 2);
        }
        let task = Task { id, script, answers: None, token: call.context.cancel.clone() };
        let state = task.to_json("task");
        tasks.push(task);
        Reply::Task(state)
    }

    fn task(&self, call: &Call) -> Reply {
        let id = call.params.str("taskId").unwrap_or_default();
        let mut tasks = self.0.tasks.lock().unwrap();
        let Some(task) = tasks.iter_mut().find(|task| task.id == id) else {
            return Reply::Error(Error::new(Symbol::TaskNotFound, format!("Unknown task: {id}")));
        };
        match call.method {
            Method::TasksGet => {
                let state = task.to_json("complete");
                if task.status() == "working" && task.script.len() > 1 {
                    task.script.pop_front();
                }
                Reply::Complete(state)
            }
            Method::TasksUpdate => {
                task.answers = call.params.json("inputResponses");
                if task.status().starts_with("input_required") {
                    task.script.pop_front();
                }
                complete(Revision::LATEST_MODERN, json!({}))
            }
            _ => {
                task.script = ["cancelled".to_owned()].into();
                complete(Revision::LATEST_MODERN, json!({}))
            }
        }
    }
}

impl Task {
    fn status(&self) -> &str {
        self.script.front().map_or("completed", String::as_str)
    }

    fn to_json(&self, kind: &str) -> Json {
        // A state like `input_required form,roots` says what is asked.
        let (status, asked) = self.status().split_once(' ').unwrap_or((self.status(), "form"));
        let mut task = json!({
            "resultType": kind, "taskId": self.id, "status": status, "createdAt": "2026-01-01T00:00:00Z",
            "lastUpdatedAt": "2026-01-01T00:00:00Z", "ttlMs": 60000, "pollIntervalMs": 50,
        });
        match (kind, status) {
            ("complete", "completed") => {
                let answers = self.answers.as_ref().map_or("none".to_owned(), |a| a.as_str().to_owned());
                task["result"] =
                    json!({"resultType": "complete", "content": [{"type": "text", "text": answers}]});
            }
            ("complete", "failed") => {
                task["error"] = json!({"code": -32603, "message": "it broke", "data": {"why": "so"}});
            }
            ("complete", "input_required") => {
                let asked = asked.split(',').filter(|kind| *kind != "nothing");
                let questions: Vec<_> = asked.map(|kind| question(kind, 0)).collect();
                let mut map = Vec::new();
                Question::write_map(&questions, &mut map);
                task["inputRequests"] = serde_json::from_slice(&map).unwrap();
            }
            _ => {}
        }
        Json::of(&task).unwrap()
    }
}

/// Notes that a tool runs, and how it ended.
struct Work(Arc<Inner>, bool);

impl Work {
    fn begin(inner: &Arc<Inner>) -> Work {
        inner.counts.send_modify(|c| c.running += 1);
        Work(inner.clone(), false)
    }

    fn finish(mut self) {
        self.1 = true;
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        let done = self.1;
        self.0.counts.send_modify(|c| {
            c.running -= 1;
            *(if done { &mut c.finished } else { &mut c.stopped }) += 1;
        });
    }
}

fn complete(revision: Revision, members: Value) -> Reply {
    let text = members.to_string();
    Reply::complete(revision, &text[1..text.len() - 1])
}

fn said(revision: Revision, text: &str) -> Reply {
    complete(revision, json!({"content": [{"type": "text", "text": text}]}))
}

fn discover(revision: Revision) -> Reply {
    let mut capabilities = json!({
        "tools": {"listChanged": true}, "prompts": {"listChanged": true},
        "resources": {"subscribe": true, "listChanged": true}, "logging": {}, "completions": {},
    });
    if revision.is_modern() {
        capabilities["extensions"] = json!({"io.modelcontextprotocol/tasks": {}});
    } else {
        capabilities["tasks"] = json!({"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}});
    }
    complete(
        revision,
        json!({
            "supportedVersions": Revision::ALL.map(Revision::as_str), "capabilities": capabilities,
            "instructions": "Be kind", "ttlMs": 0, "cacheScope": "public",
            "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "stub", "version": "1", "title": "Stub"}},
        }),
    )
}

const TOOLS: &str = r#"{"resultType":"complete","tools":[{"name":"echo","title":"Echo","inputSchema":{"type":"object"},"outputSchema":{"type":"object"},"annotations":{"readOnlyHint":true},"icons":[{"src":"https://example.com/i.png"}]}],"ttlMs":0,"cacheScope":"public"}"#;

fn push(call: &Call, notice: Notice) {
    if let Some(outbox) = &call.context.outbox {
        outbox.push(notice);
    }
}

fn progress(call: &Call, n: u64, of: u64) {
    if let Some(token) = &call.context.progress_token {
        let message =
            format!(r#"{{"progressToken":{token},"progress":{n},"total":{of},"message":"step {n}"}}"#);
        push(call, Notice::Progress(Json::trusted(message)));
    }
}

fn log(call: &Call, level: Level) {
    if call.context.log_level.is_some_and(|least| level >= least) {
        let message = json!({"level": level.as_str(), "data": format!("a message at {}", level.as_str())});
        push(call, Notice::Log(Json::of(&message).unwrap()));
    }
}

fn describe(call: &Call) -> String {
    let context = &call.context;
    let raw = |json: Option<&Json>| json.map_or(Value::Null, |j| j.to().unwrap());
    json!({
        "revision": context.revision.as_str(),
        "clientInfo": raw(context.client_info.as_ref()),
        "capabilities": raw(Some(context.capabilities.as_json())),
        "logLevel": context.log_level.map(Level::as_str),
        "progressToken": raw(context.progress_token.as_ref()),
        "subject": context.principal.subject.as_deref(),
        "headers": context.param_headers.as_ref().map(|headers| {
            headers.0.iter().map(|(n, v)| format!("{n}={}", String::from_utf8_lossy(v))).collect::<Vec<_>>()
        }),
    })
    .to_string()
}

fn question(kind: &str, round: u64) -> Question {
    let (method, params) = match kind {
        "form" => (
            Method::ElicitCreate,
            json!({"message": "Name?", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}),
        ),
        "pick" => (
            Method::ElicitCreate,
            json!({"message": "Which?", "requestedSchema": {"type": "object", "properties": {
                "colours": {"type": "array", "items": {"type": "string", "enum": ["red", "green"]}}}}}),
        ),
        "url" => (
            Method::ElicitCreate,
            json!({"mode": "url", "message": "Sign in", "url": "https://example.com/"}),
        ),
        "sample" => (
            Method::SamplingCreate,
            json!({"messages": [{"role": "user", "content": {"type": "text", "text": "Hi"}}], "maxTokens": 9}),
        ),
        "roots" => (Method::RootsList, json!({})),
        other => panic!("no such question: {other}"),
    };
    Question { key: format!("{kind}{}", round + 1).into(), method, params: Json::of(&params).unwrap() }
}
