//! A legacy server with tasks, over HTTP in this process or over stdio in another.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tidegate_client::{Client, ClientDoor, ClientSettings, Command, Target};
use tidegate_edge::{Eras, http, stdio};
use tidegate_protocol::{ClientCapabilities, Error, Json, Limits, Method, Params, Symbol};
use tidegate_server::{Cx, Elicit, Server, TaskSupport, Tool, ToolError, schemars};
use tidegate_service::{Call, Context, Door, Principal, Reply};
use tokio::sync::Semaphore;

use crate::rig::Who;

/// Makes a process of this program the server.
const ASKED: &str = "BRIDGE_TASK_SERVER";

/// How the server is reached.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Over {
    Http,
    Stdio,
}

/// A server, and what its tools did, where they run in this process.
pub(crate) struct World {
    target: Target,
    acted: Arc<Mutex<Vec<&'static str>>>,
    pub(crate) gate: Arc<Gate>,
}

/// Closed until somebody opens it, and open from then on.
pub(crate) struct Gate(Semaphore);

impl Default for Gate {
    fn default() -> Gate {
        Gate(Semaphore::new(0))
    }
}

impl Gate {
    pub(crate) fn open(&self) {
        self.0.add_permits(1);
    }

    async fn pass(&self) {
        drop(self.0.acquire().await);
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Name {
    name: String,
}

/// Notes that a tool began, and that it was stopped before it was done.
struct Stopped(Arc<Mutex<Vec<&'static str>>>, bool);

impl Stopped {
    fn begin(acted: &Arc<Mutex<Vec<&'static str>>>) -> Stopped {
        acted.lock().unwrap().push("began");
        Stopped(acted.clone(), false)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        if !self.1 {
            self.0.lock().unwrap().push("stopped");
        }
    }
}

fn ask(key: &'static str, message: &'static str) -> Elicit<Name> {
    Elicit::form(message).key(key)
}

fn server(acted: &Arc<Mutex<Vec<&'static str>>>, gate: &Arc<Gate>) -> Server {
    let required = |name: &'static str| Tool::new(name).description(name).task(TaskSupport::Required);
    let long = acted.clone();
    let asking = acted.clone();
    let (waiting, opening) = (gate.clone(), gate.clone());
    Server::new("tasks", "1.0")
        .tool(required("quick").handler(|(), _: Cx| async { "done" }))
        .tool(required("long").handler(move |(), _: Cx| {
            let acted = long.clone();
            async move {
                let _stopped = Stopped::begin(&acted);
                std::future::pending::<&str>().await
            }
        }))
        .tool(required("gated").handler(move |(), _: Cx| {
            let gate = waiting.clone();
            async move {
                gate.pass().await;
                "open"
            }
        }))
        .tool(Tool::new("open").description("Opens the gate").handler(move |(), _: Cx| {
            opening.open();
            async { "opened" }
        }))
        .tool(required("asks").handler(move |(), cx: Cx| {
            let acted = asking.clone();
            async move {
                let mut stopped = Stopped::begin(&acted);
                let answer = cx.elicit(ask("who", "Who is there?")).await;
                stopped.1 = true;
                Ok::<_, ToolError>(format!("Hello, {}!", answer.accepted()?.name))
            }
        }))
        .tool(required("asks_twice").handler(|(), cx: Cx| async move {
            let one = cx.elicit(ask("one", "First?")).await.accepted()?;
            let two = cx.elicit(ask("two", "Second?")).await.accepted()?;
            Ok::<_, ToolError>(format!("{} then {}", one.name, two.name))
        }))
        .tool(required("asks_first").asks_first().handler(|(), cx: Cx| async move {
            let answer = cx.elicit(ask("who", "Who is there?")).await.accepted()?;
            cx.detach().await;
            Ok::<_, ToolError>(format!("Hello, {}!", answer.name))
        }))
        .tool(required("fails").handler(|(), _: Cx| async { Err::<(), _>(ToolError::from("It failed")) }))
        .tool(required("breaks").handler(|(), _: Cx| async {
            Err::<(), _>(ToolError::protocol(Error::new(Symbol::Internal, "It broke")))
        }))
        .tool(
            Tool::new("either")
                .description("Either")
                .task(TaskSupport::Optional)
                .handler(|(), _: Cx| async { "either" }),
        )
        .tool(Tool::new("never").description("Never").handler(|(), _: Cx| async { "never" }))
}

/// Runs the server on the standard streams if this process was started for that, and does not come back then.
pub(crate) fn run_if_asked() {
    if std::env::var_os(ASKED).is_none() {
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut settings = stdio::Settings::default();
    settings.edge.eras = Eras::Legacy;
    runtime.block_on(stdio::serve(server(&Arc::default(), &Arc::default()).build(), settings));
    std::process::exit(0);
}

/// Serves a door on loopback and says where.
pub(crate) async fn listen<D: Door>(door: D, eras: Eras) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let mut settings = http::Settings::default();
    settings.edge.eras = eras;
    tokio::spawn(http::serve_door(door, listener, settings, std::future::pending()));
    url
}

impl World {
    pub(crate) async fn start(over: Over) -> World {
        match over {
            Over::Http => World::of(Eras::Legacy).await,
            Over::Stdio => {
                let program = std::env::current_exe().unwrap().to_str().unwrap().to_owned();
                let args = ["stdio_server", "--exact", "--nocapture"].map(Into::into).into();
                let mut command = Command { program, args, ..Command::default() };
                command.env.extend([(ASKED.to_owned(), "1".to_owned())]);
                World { target: command.into(), acted: Arc::default(), gate: Arc::default() }
            }
        }
    }

    /// The same server over HTTP, in these eras.
    pub(crate) async fn of(eras: Eras) -> World {
        let (acted, gate) = (Arc::default(), Arc::default());
        let url = listen(server(&acted, &gate).build(), eras).await;
        World { target: Target::url(&url).unwrap(), acted, gate }
    }

    pub(crate) fn client(&self, change: impl FnOnce(&mut ClientSettings)) -> Client {
        let builder = Client::builder(self.target.clone()).unwrap().settings(ClientSettings::default());
        builder.configure(change).lazy().unwrap()
    }

    pub(crate) fn acted(&self) -> Vec<&'static str> {
        self.acted.lock().unwrap().clone()
    }

    /// Lets the tools at the gate go on, wherever they run.
    pub(crate) async fn open_gate(&self, door: &ClientDoor) {
        // On the caller's own session, because over stdio another one is another process.
        let opened = reply(door, call(&crate::rig::person("ann"), "open")).await.unwrap();
        assert_eq!(opened["content"][0]["text"], "opened");
    }
}

pub(crate) fn params(params: Value) -> Params {
    Params::parse(&params.into(), &Limits::default()).unwrap()
}

/// A call of somebody modern with these capabilities.
fn made(who: &Who, method: &str, given: Value, capabilities: &'static str) -> Call {
    let mut context = Context::local();
    context.capabilities = ClientCapabilities::from_json(Json::trusted(capabilities));
    context.caller = who.caller;
    context.principal = Principal { subject: who.subject.map(Into::into), ..Principal::default() };
    Call::new(Method::from_name(method), params(given), context)
}

/// A request of somebody who knows tasks.
pub(crate) fn request(who: &Who, method: &str, given: Value) -> Call {
    let able = r#"{"elicitation":{"form":{}},"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;
    made(who, method, given, able)
}

/// A request of somebody who does not.
pub(crate) fn calls_of(who: &Who, method: &str, given: Value) -> Call {
    made(who, method, given, r#"{"elicitation":{"form":{}}}"#)
}

/// A tool call of somebody who knows tasks.
pub(crate) fn call(who: &Who, tool: &str) -> Call {
    request(who, "tools/call", json!({"name": tool, "arguments": {}}))
}

/// A tool call of somebody who does not.
pub(crate) fn plain(who: &Who, tool: &str) -> Call {
    calls_of(who, "tools/call", json!({"name": tool, "arguments": {}}))
}

/// What a call is answered with, be it a result or a task.
pub(crate) async fn reply(door: &ClientDoor, call: Call) -> Result<Value, Error> {
    let reply = tokio::time::timeout(Duration::from_secs(20), door.answer(call)).await.expect("an answer");
    match reply.unwrap() {
        Reply::Complete(result) | Reply::Task(result) => Ok(result.to().unwrap()),
        Reply::Error(error) => Err(error),
        other => panic!("{other:?}"),
    }
}

/// Calls a tool that becomes a task.
pub(crate) async fn start(door: &ClientDoor, who: &Who, tool: &str) -> Value {
    let task = reply(door, call(who, tool)).await.unwrap();
    assert_eq!(task["resultType"], "task", "{task}");
    task
}

pub(crate) async fn get(door: &ClientDoor, who: &Who, id: &str) -> Value {
    reply(door, request(who, "tasks/get", json!({"taskId": id}))).await.unwrap()
}

/// Polls a task until it has this status.
pub(crate) async fn updated(door: &ClientDoor, who: &Who, id: &str, status: &str) -> Value {
    for _ in 0..400 {
        let task = get(door, who, id).await;
        if task["status"] == status {
            return task;
        }
        assert!(matches!(task["status"].as_str(), Some("working" | "input_required")), "{task}");
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("the task never was {status}");
}

pub(crate) async fn completed(door: &ClientDoor, who: &Who, id: &str) -> Value {
    updated(door, who, id, "completed").await
}
