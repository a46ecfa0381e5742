//! What the server offers: functions.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tidegate_macros::{prompt, resource, tool};
use tidegate_server::{Cx, Elicit, Elicited, Structured};

/// Says back what it is told
#[tool(title = "Echo", read_only)]
pub(crate) fn echo(
    /// What to say back.
    message: String,
) -> String {
    message
}

#[derive(Serialize, JsonSchema)]
struct Sum {
    /// The sum of both.
    sum: f64,
}

/// Adds two numbers
#[tool(title = "Add", read_only)]
pub(crate) fn add(
    /// The first number.
    a: f64,
    /// The second number.
    b: f64,
) -> Structured<Sum> {
    Structured(Sum { sum: a + b })
}

/// Counts slowly and tells how far it is
#[tool(title = "Count", read_only)]
pub(crate) async fn count(
    #[state] pace: Duration,
    cx: Cx,
    /// How far to count, 1 to 100.
    #[schemars(range(min = 1, max = 100))]
    to: u32,
) -> String {
    for n in 1..=to {
        cx.progress(f64::from(n), Some(f64::from(to)), &*format!("counted to {n}"));
        tokio::time::sleep(pace).await;
    }
    format!("Counted to {to}")
}

#[derive(Deserialize, JsonSchema)]
struct Visitor {
    /// Your name.
    name: String,
}

/// Asks for a name, then greets
#[tool(title = "Greet")]
pub(crate) async fn greet(cx: Cx) -> String {
    match cx.elicit(Elicit::<Visitor>::form("What is your name?").key("name")).await {
        Elicited::Accept(visitor) => format!("Hello, {}!", visitor.name),
        Elicited::Decline | Elicited::Cancel => "Hello, whoever you are!".to_owned(),
    }
}

#[resource(uri = "demo://about", title = "About this server", mime_type = "text/plain")]
pub(crate) fn about() -> &'static str {
    "This is the demonstration server of Tidegate."
}

/// Asks for an explanation of a topic
#[prompt]
pub(crate) fn explain(
    /// What to explain
    topic: String,
) -> String {
    format!("Explain {topic} in plain words.")
}
