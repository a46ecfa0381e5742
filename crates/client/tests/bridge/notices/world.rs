//! A server that remembers what it is told and tells what nobody knows, over HTTP in this process or over stdio in
//! another.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tidegate_client::{Client, ClientDoor, ClientSettings, Command, Target};
use tidegate_edge::{Eras, http, stdio};
use tidegate_protocol::{ClientCapabilities, Error, Json, Limits, Method, Params};
use tidegate_server::{Cx, Server, ServerDoor, Tool};
use tidegate_service::{BoxDoor, Call, CallerId, Context, Door, Notice, Outbox, Principal, Reply};
use tower::service_fn;

use crate::rig::Who;

/// Makes a process of this program the server, in the era that it names.
const ASKED: &str = "BRIDGE_NOTICE_SERVER";

/// How the server is reached.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Over {
    Http,
    Stdio,
}

/// Something that came, and the session it came in.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) what: String,
    pub(crate) session: Option<CallerId>,
}

/// The session that a subscription came in, and what it is fed with.
type Listener = (Option<CallerId>, Outbox);

#[derive(Clone, Default)]
struct Memory {
    seen: Arc<Mutex<Vec<Seen>>>,
    /// The open subscriptions.
    listeners: Arc<Mutex<Vec<Listener>>>,
}

pub(crate) struct World {
    target: Target,
    memory: Memory,
}

fn door(memory: Memory) -> BoxDoor {
    let tool = |name: &'static str| Tool::new(name).description(name).handler(|(), _: Cx| async { "done" });
    let names = ["heard", "tells", "later", "changed"];
    let server =
        names.into_iter().fold(Server::new("notices", "1.0"), |server, name| server.tool(tool(name)));
    let server = server.build();
    service_fn(move |call: Call| {
        let (memory, server) = (memory.clone(), server.clone());
        async move { Ok::<_, std::convert::Infallible>(memory.answer(&server, call).await) }
    })
    .boxed()
}

impl Memory {
    async fn answer(&self, server: &ServerDoor, call: Call) -> Reply {
        let (revision, session) = (call.context.revision, call.context.caller);
        let note = |what: String| self.seen.lock().unwrap().push(Seen { what, session });
        let said = |text: String| {
            let content = json!([{"type": "text", "text": text}]);
            Reply::complete(revision, &format!("\"content\":{content}"))
        };
        if call.method.is_notification() {
            let k = call.params.meta().and_then(|meta| meta.get("k")).unwrap_or_default();
            note(format!("{} n={} k={k}", call.method, call.params.get("n").unwrap_or_default()));
            return Reply::method_not_found(&call.method);
        }
        let name = call.params.str("name").unwrap_or_default().into_owned();
        match (&call.method, &*name) {
            (Method::ToolsCall, "heard") => {
                let told = self.seen.lock().unwrap().clone();
                note("tools/call heard".into());
                let told =
                    told.into_iter().map(|seen| seen.what).filter(|what| what.starts_with("notifications/"));
                said(told.collect::<Vec<_>>().join("\n"))
            }
            (Method::ToolsCall, "tells") => {
                let params = call.params.json("arguments");
                let outbox = call.context.outbox.as_ref().expect("a place for notifications");
                outbox.push(Notice::Other { method: "notifications/vendor".into(), params });
                said("told".into())
            }
            (Method::ToolsCall, "later") => {
                let me = call.params.get("arguments").is_some_and(|to| to.contains("\"me\""));
                let listeners = self.listeners.lock().unwrap();
                let one = listeners.iter().find(|(whose, _)| !me || *whose == session).expect("a listener");
                let params = Some(Json::trusted(r#"{"n":2}"#));
                one.1.push(Notice::Other { method: "notifications/vendor".into(), params });
                said("told".into())
            }
            (Method::ToolsCall, "changed") => {
                server.handle().tools_changed();
                said("changed".into())
            }
            (Method::Listen, _) => {
                let Ok(reply) = server.answer(call).await;
                if let Reply::Subscription(subscription) = &reply {
                    self.listeners.lock().unwrap().push((session, subscription.events.clone()));
                }
                reply
            }
            _ => {
                let Ok(reply) = server.answer(call).await;
                reply
            }
        }
    }
}

/// Runs the server on the standard streams if this process was started for that, and does not come back then.
pub(crate) fn run_if_asked() {
    let Ok(eras) = std::env::var(ASKED) else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut settings = stdio::Settings::default();
    settings.edge.eras = eras.parse().unwrap();
    settings.edge.relays = true;
    runtime.block_on(stdio::serve(door(Memory::default()), settings));
    std::process::exit(0);
}

impl World {
    pub(crate) async fn start(over: Over, eras: Eras) -> World {
        let memory = Memory::default();
        if over == Over::Stdio {
            let program = std::env::current_exe().unwrap().to_str().unwrap().to_owned();
            let args = ["stdio_server", "--exact", "--nocapture"].map(Into::into).into();
            let mut command = Command { program, args, ..Command::default() };
            let eras = if eras == Eras::Legacy { "legacy" } else { "modern" };
            command.env.extend([(ASKED.to_owned(), eras.to_owned())]);
            return World { target: command.into(), memory };
        }
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let mut settings = http::Settings::default();
        settings.edge.eras = eras;
        settings.edge.relays = true;
        tokio::spawn(http::serve_door(door(memory.clone()), listener, settings, std::future::pending()));
        World { target: Target::url(&url).unwrap(), memory }
    }

    pub(crate) fn client(&self, change: impl FnOnce(&mut ClientSettings)) -> Client {
        let builder = Client::builder(self.target.clone()).unwrap().settings(ClientSettings::default());
        builder.configure(change).lazy().unwrap()
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.memory.seen.lock().unwrap().clone()
    }

    /// How many subscriptions there were.
    pub(crate) fn listeners(&self) -> usize {
        self.memory.listeners.lock().unwrap().len()
    }
}

/// A modern call of somebody who can be asked to fill in forms.
pub(crate) fn made(who: &Who, method: &str, params: Json) -> Call {
    let mut context = Context::local();
    context.capabilities = ClientCapabilities::from_json(Json::trusted(r#"{"elicitation":{"form":{}}}"#));
    context.caller = who.caller;
    context.principal = Principal { subject: who.subject.map(Into::into), ..Principal::default() };
    Call::new(Method::from_name(method), Params::parse(&params, &Limits::default()).unwrap(), context)
}

pub(crate) fn tool(who: &Who, name: &str) -> Call {
    made(who, "tools/call", json!({"name": name, "arguments": {}}).into())
}

pub(crate) async fn reply(door: &ClientDoor, call: Call) -> Result<Value, Error> {
    let reply = tokio::time::timeout(Duration::from_secs(20), door.answer(call)).await.expect("an answer");
    match reply.unwrap() {
        Reply::Complete(result) => Ok(result.to().unwrap()),
        Reply::Error(error) => Err(error),
        other => panic!("{other:?}"),
    }
}

/// The text that a tool answers with.
pub(crate) async fn say(door: &ClientDoor, call: Call) -> String {
    reply(door, call).await.unwrap()["content"][0]["text"].as_str().unwrap().to_owned()
}
