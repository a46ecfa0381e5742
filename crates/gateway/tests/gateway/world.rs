//! The server behind the gateway in the tests of eras and faults: it asks, reports, waits and changes. It runs in this
//! process, on loopback, and as a process of its own, in which this program runs again.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tidegate_client::Command;
use tidegate_edge::{Eras, stdio};
use tidegate_gateway::{ServerSettings, Source};
use tidegate_server::{Cx, Elicit, Level, Resource, Sample, Server, Tool, ToolError, schemars};

/// How a process is told that it is a server, and of which eras.
const ERAS: &str = "GATEWAY_TEST_SERVER";

/// What a server has seen.
pub(crate) type Seen = Arc<Mutex<Vec<String>>>;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Name {
    name: String,
}

/// Who calls, as the server knows it.
fn client(cx: &Cx) -> String {
    let info: Option<Value> = cx.client_info().and_then(|info| info.to().ok());
    info.and_then(|info| Some(info["name"].as_str()?.to_owned())).unwrap_or_default()
}

/// Notes how a call ended that was not to end by itself.
struct Waiting(Seen, String);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.lock().unwrap().push(format!("stopped {}", self.1));
    }
}

fn die_now() -> String {
    std::process::exit(7)
}

pub(crate) fn world(name: &'static str, seen: Seen) -> Server {
    let greet = Tool::new("greet").handler(|_: (), cx: Cx| async move {
        let answer = cx.elicit(Elicit::<Name>::form("Who is there?")).await.accepted()?;
        Ok::<_, ToolError>(format!("Hello, {}!", answer.name))
    });
    let chain = Tool::new("chain").handler(|_: (), cx: Cx| async move {
        let name = cx.elicit(Elicit::<Name>::form("Who is there?")).await.accepted()?.name;
        let thought = cx.sample(Sample::new().user("hm").max_tokens(9)).await.text();
        Ok::<_, ToolError>(format!("{name}: {thought}"))
    });
    let think = Tool::new("think").handler(|_: (), cx: Cx| async move {
        cx.sample(Sample::new().user("hi").max_tokens(9)).await.text()
    });
    let look = Tool::new("look").handler(|_: (), cx: Cx| async move {
        cx.roots().await.into_iter().map(|root| root.uri).collect::<Vec<_>>().join(" ")
    });
    let who = Tool::new("who").handler(|_: (), cx: Cx| async move { client(&cx) });
    let pid = Tool::new("pid").handler(|_: (), _: Cx| async { std::process::id().to_string() });
    let die = Tool::new("die").handler(|_: (), _: Cx| async { die_now() });
    let work = Tool::new("work").handler(|_: (), cx: Cx| async move {
        for (n, level) in [(1.0, Level::Debug), (2.0, Level::Info), (3.0, Level::Error)] {
            cx.progress(n, 3.0, "working");
            cx.log(level, "world", level.as_str());
        }
        "done"
    });
    let noted = seen.clone();
    let wait = Tool::new("wait").handler(move |_: (), cx: Cx| {
        let noted = noted.clone();
        async move {
            let who = client(&cx);
            noted.lock().unwrap().push(format!("began {who}"));
            let _waiting = Waiting(noted, who);
            tokio::time::sleep(Duration::from_secs(600)).await;
            "never"
        }
    });
    let grow = Tool::new("grow").handler(|_: (), cx: Cx| async move {
        let grown = Tool::new("grown").handler(|_: (), _: Cx| async { "grown" });
        cx.server().add_tool(grown).map_or_else(|error| error.to_string(), |()| "grew".to_owned())
    });
    let touch = Tool::new("touch").handler(move |_: (), cx: Cx| async move {
        cx.server().resource_updated(&format!("{name}://memo"));
        "touched"
    });
    let all = [greet, chain, think, look, who, pid, die, work, wait, grow, touch];
    let server = Server::new(name, "1.0").dynamic();
    let server = server.resource(Resource::text(format!("{name}://memo"), "memo", format!("memo of {name}")));
    all.into_iter().fold(server, Server::tool)
}

/// A process with such a server.
pub(crate) fn child(name: &str, eras: Eras) -> ServerSettings {
    let program = std::env::current_exe().unwrap().to_str().unwrap().to_owned();
    let args = ["server", "--exact", "--nocapture"].map(Into::into).into();
    let eras = match eras {
        Eras::Both => "both",
        Eras::Legacy => "legacy",
        Eras::Modern => "modern",
    };
    let env = [(ERAS.to_owned(), eras.to_owned())].into();
    ServerSettings::new(name, Source::Target(Command { program, args, env, cwd: None }.into()))
}

/// Runs the server if this process was started for that, and does not come back then.
pub(crate) fn run_if_asked() {
    crate::raw::run_if_asked();
    let Ok(eras) = std::env::var(ERAS) else { return };
    let mut settings = stdio::Settings::default();
    settings.edge.eras = eras.parse().unwrap();
    settings.drain = Duration::ZERO;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(stdio::serve(world("child", Seen::default()).build(), settings));
    std::process::exit(0);
}
