//! The small server that `tidegate serve` runs until there is something better to serve: a tool of each kind.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tidegate_protocol::Profile;
use tidegate_server::{
    Argument, Cx, Elicit, Elicited, Prompt, PromptMessage, Resource, Server, ServerDoor, Structured, Tool,
    ToolError,
};

#[derive(Deserialize, JsonSchema)]
struct Echo {
    /// What to say back.
    message: String,
}

#[derive(Deserialize, JsonSchema)]
struct Add {
    /// The first number.
    a: f64,
    /// The second number.
    b: f64,
}

#[derive(Serialize, JsonSchema)]
struct Sum {
    /// The sum of both.
    sum: f64,
}

#[derive(Deserialize, JsonSchema)]
struct Count {
    /// How far to count, 1 to 100.
    #[schemars(range(min = 1, max = 100))]
    to: u32,
}

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

#[derive(Deserialize, JsonSchema)]
struct Visitor {
    /// Your name.
    name: String,
}

/// The demonstration server, with the error numbers of `profile`.
pub fn server(profile: Profile) -> ServerDoor {
    Server::new("tidegate-demo", env!("CARGO_PKG_VERSION"))
        .title("Tidegate demonstration")
        .error_profile(profile)
        .instructions("A small server to try a client with: echo, add, count (with progress) and greet (asks a question).")
        .tool(
            Tool::new("echo")
                .title("Echo")
                .description("Says back what it is told")
                .read_only()
                .handler(|args: Echo, _cx: Cx| async move { args.message }),
        )
        .tool(
            Tool::new("add")
                .title("Add")
                .description("Adds two numbers")
                .read_only()
                .handler(|args: Add, _cx: Cx| async move { Structured(Sum { sum: args.a + args.b }) }),
        )
        .tool(
            Tool::new("count")
                .title("Count")
                .description("Counts slowly and tells how far it is")
                .read_only()
                .handler(|args: Count, cx: Cx| async move {
                    for n in 1..=args.to {
                        cx.progress(f64::from(n), Some(f64::from(args.to)), &*format!("counted to {n}"));
                        tokio::time::sleep(Duration::from_millis(100)).await;
                    }
                    format!("Counted to {}", args.to)
                }),
        )
        .tool(
            Tool::new("greet")
                .title("Greet")
                .description("Asks for a name, then greets")
                .handler(|_: Nothing, cx: Cx| async move {
                    let answer = cx.elicit(Elicit::<Visitor>::form("What is your name?").key("name")).await;
                    Ok::<_, ToolError>(match answer {
                        Elicited::Accept(visitor) => format!("Hello, {}!", visitor.name),
                        Elicited::Decline | Elicited::Cancel => "Hello, whoever you are!".to_owned(),
                    })
                }),
        )
        .resource(
            Resource::text("demo://about", "about", "This is the demonstration server of Tidegate.")
                .mime_type("text/plain")
                .title("About this server"),
        )
        .prompt(
            Prompt::new("explain")
                .description("Asks for an explanation of a topic")
                .argument(Argument::new("topic").required().description("What to explain"))
                .handler(|args: tidegate_server::PromptArgs, _cx: Cx| async move {
                    let topic = args.get("topic").unwrap_or_default();
                    Ok(vec![PromptMessage::user(format!("Explain {topic} in plain words."))])
                }),
        )
        .build()
}
