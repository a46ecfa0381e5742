//! The server under test: one of everything that a client can ask for.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tidegate::{
    Annotations, Argument, Completing, Content, Cx, Elicit, Elicited, Prompt, PromptArgs, PromptMessage,
    Resource, ResourceContents, ResourceLink, ResourceTemplate, Role, Server, ServerDoor, Structured, Tool,
    ToolError, Vars,
};
use tokio::sync::Notify;

const CITIES: [&str; 4] = ["Bergen", "Berlin", "Bern", "Lisbon"];

#[derive(Deserialize, JsonSchema)]
struct Echo {
    /// What to say back.
    message: String,
}

#[derive(Deserialize, JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}

#[derive(Serialize, JsonSchema)]
struct Sum {
    sum: i64,
}

#[derive(Deserialize, JsonSchema)]
struct Count {
    #[schemars(range(min = 1, max = 100))]
    to: u32,
}

#[derive(Deserialize, JsonSchema)]
struct Visitor {
    /// Your name.
    name: String,
    /// How old you are.
    age: Option<u32>,
}

/// What the `wait` tool tells the test about itself.
#[derive(Default)]
pub(crate) struct Probe {
    /// The tool runs.
    pub(crate) started: Notify,
    /// The tool's future is gone.
    pub(crate) stopped: Notify,
}

/// Notifies when it is dropped, that is, when the work around it has really ended.
struct Working(Arc<Probe>);

impl Drop for Working {
    fn drop(&mut self) {
        self.0.stopped.notify_one();
    }
}

/// The server, and the probe of its `wait` tool.
pub(crate) fn server() -> (ServerDoor, Arc<Probe>) {
    let probe = Arc::new(Probe::default());
    let server = Server::new("fixture", "1.2.3")
        .title("Fixture")
        .instructions("Ask for anything")
        .tool(echo())
        .tool(add())
        .tool(fail())
        .tool(count())
        .tool(greet())
        .tool(contents())
        .tool(wait(probe.clone()))
        .resource(
            Resource::text("memo://about", "about", "A fixture.")
                .mime_type("text/plain")
                .title("About")
                .priority(0.5),
        )
        .resource(Resource::blob("memo://dot", "dot", "image/png", [0x89, b'P', b'N', b'G']))
        .resource_template(weather())
        .prompt(explain())
        .build();
    (server, probe)
}

fn echo() -> Tool {
    Tool::new("echo")
        .title("Echo")
        .description("Says back what it is told")
        .read_only()
        .meta("example.com/colour", "blue")
        .handler(|args: Echo, _cx: Cx| async move { args.message })
}

fn add() -> Tool {
    Tool::new("add")
        .description("Adds two numbers")
        .handler(|args: Add, _cx: Cx| async move { Structured(Sum { sum: args.a + args.b }) })
}

fn fail() -> Tool {
    Tool::new("fail")
        .description("Never works")
        .handler(|_: (), _cx: Cx| async move { Err::<String, _>(ToolError::from("The tide is out")) })
}

fn count() -> Tool {
    Tool::new("count").description("Counts, with progress").handler(|args: Count, cx: Cx| async move {
        for n in 1..=args.to {
            cx.progress(f64::from(n), Some(f64::from(args.to)), &*format!("counted to {n}"));
        }
        format!("Counted to {}", args.to)
    })
}

fn greet() -> Tool {
    Tool::new("greet").description("Asks who is there").handler(|_: (), cx: Cx| async move {
        match cx.elicit(Elicit::<Visitor>::form("Who is there?").key("visitor")).await {
            Elicited::Accept(Visitor { name, age: None }) => format!("Hello, {name}!"),
            Elicited::Accept(Visitor { name, age: Some(age) }) => format!("Hello, {name} ({age})!"),
            Elicited::Decline => "Keep your secret.".to_owned(),
            Elicited::Cancel => "Never mind.".to_owned(),
        }
    })
}

fn contents() -> Tool {
    Tool::new("contents").description("Returns content of every type").handler(|_: (), _cx: Cx| async move {
        vec![
            Content::text("a text").annotations(Annotations::new().audience([Role::User]).priority(1.0)),
            Content::image_bytes(b"not really a picture", "image/png"),
            Content::audio_bytes(b"not really a sound", "audio/wav"),
            Content::link(ResourceLink::new("memo://about", "about").mime_type("text/plain").title("About")),
            Content::resource(ResourceContents::text("memo://inline", "inside").mime_type("text/plain")),
        ]
    })
}

fn wait(probe: Arc<Probe>) -> Tool {
    Tool::new("wait").description("Waits until it is cancelled").handler(move |_: (), _cx: Cx| {
        let working = Working(probe.clone());
        async move {
            working.0.started.notify_one();
            std::future::pending::<()>().await;
            drop(working);
        }
    })
}

fn weather() -> ResourceTemplate {
    ResourceTemplate::new("weather://{city}/today", "weather")
        .description("The weather of a city")
        .mime_type("text/plain")
        .reader(|vars: Vars, _cx: Cx| async move {
            Ok(format!("Mild in {}.", vars.get("city").unwrap_or_default()))
        })
        .complete("city", |typed: Completing, _cx: Cx| async move { typed.filter(CITIES) })
}

fn explain() -> Prompt {
    Prompt::new("explain")
        .title("Explain")
        .description("Asks for an explanation")
        .argument(
            Argument::new("city")
                .required()
                .description("Which city")
                .complete(|typed: Completing, _cx: Cx| async move { typed.filter(CITIES) }),
        )
        .handler(|args: PromptArgs, _cx: Cx| async move {
            let city = args.get("city").unwrap_or_default();
            Ok(vec![
                PromptMessage::user(format!("Explain {city}.")),
                PromptMessage::assistant("In plain words?"),
            ])
        })
}
