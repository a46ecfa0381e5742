//! A legacy server on loopback, and a client in front of it as a door.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tidegate_client::{Client, ClientDoor, ClientSettings};
use tidegate_edge::{Eras, http};
use tidegate_protocol::{ClientCapabilities, Json, Limits, Method, Params};
use tidegate_server::{Cx, Elicit, Server, Tool, ToolError, schemars};
use tidegate_service::{Call, CallerId, Context, Door, Principal, Reply};
use tower::service_fn;

/// A server, and what it has seen.
pub(crate) struct Rig {
    pub(crate) address: SocketAddr,
    /// The capabilities that each handshake declared.
    pub(crate) handshakes: Arc<Mutex<Vec<String>>>,
    /// Which session each tool call came over.
    pub(crate) sessions: Arc<Mutex<Vec<Option<CallerId>>>>,
    /// How often `act` was executed, and how often it was stopped.
    pub(crate) acted: Arc<Mutex<Vec<&'static str>>>,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Name {
    name: String,
}

fn ask(key: &'static str, message: &'static str) -> Elicit<Name> {
    Elicit::form(message).key(key)
}

/// Notes that a tool was stopped before it was done.
struct Stopped(Arc<Mutex<Vec<&'static str>>>, bool);

impl Drop for Stopped {
    fn drop(&mut self) {
        if !self.1 {
            self.0.lock().unwrap().push("stopped");
        }
    }
}

fn server(acted: Arc<Mutex<Vec<&'static str>>>) -> Server {
    let greet = Tool::new("greet").description("Asks who is there").handler(|_: (), cx: Cx| async move {
        let answer = cx.elicit(ask("who", "Who is there?")).await.accepted()?;
        Ok::<_, ToolError>(format!("Hello, {}!", answer.name))
    });
    let pair =
        Tool::new("pair").description("Asks for two names at once").handler(|_: (), cx: Cx| async move {
            let (one, two) = tokio::join!(cx.elicit(ask("one", "First?")), cx.elicit(ask("two", "Second?")));
            Ok::<_, ToolError>(format!("{} and {}", one.accepted()?.name, two.accepted()?.name))
        });
    let chain = Tool::new("chain").description("Asks twice").handler(|_: (), cx: Cx| async move {
        let one = cx.elicit(ask("one", "First?")).await.accepted()?;
        let two = cx.elicit(ask("two", "Second?")).await.accepted()?;
        Ok::<_, ToolError>(format!("{} then {}", one.name, two.name))
    });
    let act = Tool::new("act").description("Takes a while").handler(move |_: (), _: Cx| {
        let acted = acted.clone();
        async move {
            let mut stopped = Stopped(acted.clone(), false);
            acted.lock().unwrap().push("began");
            tokio::time::sleep(Duration::from_secs(20)).await;
            stopped.1 = true;
            Ok::<_, ToolError>("done")
        }
    });
    Server::new("rig", "1.0").tool(greet).tool(pair).tool(chain).tool(act)
}

impl Rig {
    pub(crate) async fn start(eras: Eras) -> Rig {
        let rig = Rig {
            address: ([127, 0, 0, 1], 0).into(),
            handshakes: Arc::default(),
            sessions: Arc::default(),
            acted: Arc::default(),
        };
        let door = server(rig.acted.clone()).build();
        let (handshakes, sessions) = (rig.handshakes.clone(), rig.sessions.clone());
        let watched = service_fn(move |call: Call| {
            match call.method {
                Method::Discover => {
                    handshakes.lock().unwrap().push(call.context.capabilities.as_json().to_string());
                }
                Method::ToolsCall => sessions.lock().unwrap().push(call.context.caller),
                _ => {}
            }
            door.answer(call)
        });
        let listener = tokio::net::TcpListener::bind(rig.address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut settings = http::Settings::default();
        settings.edge.eras = eras;
        tokio::spawn(http::serve_door(watched, listener, settings, std::future::pending()));
        Rig { address, ..rig }
    }

    pub(crate) fn client(&self, change: impl FnOnce(&mut ClientSettings)) -> Client {
        let url = format!("http://{}/mcp", self.address);
        let builder = Client::builder(url.as_str()).unwrap().settings(ClientSettings::default());
        builder.configure(change).lazy().unwrap()
    }

    pub(crate) fn door(&self, change: impl FnOnce(&mut ClientSettings)) -> ClientDoor {
        self.client(change).door()
    }
}

/// Who calls.
#[derive(Clone, Default)]
pub(crate) struct Who {
    pub(crate) caller: Option<CallerId>,
    pub(crate) subject: Option<&'static str>,
}

pub(crate) fn session() -> Who {
    Who { caller: Some(CallerId::new()), subject: None }
}

pub(crate) fn person(subject: &'static str) -> Who {
    Who { caller: None, subject: Some(subject) }
}

/// A modern tool call of somebody who can be asked to fill in forms.
pub(crate) fn call(who: &Who, tool: &str, rest: Value) -> Call {
    let mut params = json!({"name": tool, "arguments": {}});
    for (name, value) in rest.as_object().unwrap() {
        params[name] = value.clone();
    }
    let mut context = Context::local();
    context.capabilities = ClientCapabilities::from_json(Json::trusted(r#"{"elicitation":{"form":{}}}"#));
    context.caller = who.caller;
    context.principal = Principal { subject: who.subject.map(Into::into), ..Principal::default() };
    Call::new(Method::ToolsCall, Params::parse(&params.into(), &Limits::default()).unwrap(), context)
}

/// What a call came to, for comparison.
#[derive(Debug, PartialEq)]
pub(crate) enum Got {
    Text(String),
    Failed(String),
    Asks(Vec<String>, String),
}

pub(crate) async fn make(door: &ClientDoor, call: Call) -> Got {
    let reply = tokio::time::timeout(Duration::from_secs(10), door.answer(call)).await.expect("an answer");
    match reply.unwrap() {
        Reply::Complete(result) => {
            let result: Value = result.to().unwrap();
            let text = result["content"][0]["text"].as_str().unwrap().to_owned();
            if result["isError"] == true { Got::Failed(text) } else { Got::Text(text) }
        }
        Reply::InputRequired(input) => {
            let keys = input.questions.iter().map(|q| q.key.to_string()).collect();
            Got::Asks(keys, input.state.map(|s| s.to_string()).unwrap_or_default())
        }
        Reply::Error(error) => Got::Failed(error.message().to_owned()),
        other => panic!("{other:?}"),
    }
}

impl Got {
    /// The state that the call has to be made again with.
    pub(crate) fn state(self, keys: &[&str]) -> String {
        match self {
            Got::Asks(asked, state) if asked == keys => state,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn failure(self) -> String {
        match self {
            Got::Failed(sentence) => sentence,
            other => panic!("{other:?}"),
        }
    }
}

/// The answer to a form.
pub(crate) fn named(name: &str) -> Value {
    json!({"action": "accept", "content": {"name": name}})
}

/// Waits until something is so.
pub(crate) async fn until(what: &str, is_so: impl Fn() -> bool) {
    for _ in 0..200 {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("it never came: {what}");
}
