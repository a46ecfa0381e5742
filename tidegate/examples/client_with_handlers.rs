//! A client that can be asked everything: a form, the model, and where it works. The server that asks is in this process, so
//! that the program needs nothing else; a command line or a URL in its place works the same, in both eras.
//!
//! ```sh
//! cargo run --features client --example client_with_handlers
//! ```

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tidegate::client::{Client, ElicitAnswer, ElicitKind, Elicitation, Handlers, Root, Target};
use tidegate::{Cx, Elicit, Elicited, Error, Sample, Server, Tool};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let handlers = Handlers::new()
        // `false`: this client fills in forms, but opens no web pages.
        .on_elicit(false, |question| async move { fill_in(&question) })
        // `false`: the model gets no tools of the server.
        .on_sample(false, |params| async move { ask_model(&params) })
        .roots(vec![Root { uri: "file:///home/me/tides".to_owned(), name: Some("Tides".to_owned()) }]);

    let client = Client::builder(Target::from_door(server()))?.handlers(handlers).connect().await?;
    let result = client.call("name_the_boat", json!({})).await?;
    print(&result.text());
    client.close().await;
    Ok(())
}

/// A real program shows the form; this one takes the first of the names that it is offered.
fn fill_in(question: &Elicitation) -> ElicitAnswer {
    let ElicitKind::Form(schema) = &question.kind else { return ElicitAnswer::Decline };
    print(&format!("The server asks: {}", question.message));
    let mut answer = question.defaults();
    for (field, _) in schema["properties"].as_object().into_iter().flatten() {
        answer.entry(field.clone()).or_insert_with(|| json!("Spring Tide"));
    }
    ElicitAnswer::Accept(answer)
}

/// A real program asks its model, after the user has seen what for.
fn ask_model(params: &Value) -> Result<Value, Error> {
    let asked = params["messages"][0]["content"]["text"].as_str();
    let asked = asked.ok_or_else(|| Error::invalid_params("the first message has no text"))?;
    print(&format!("The server asks the model: {asked}"));
    Ok(json!({
        "role": "assistant",
        "content": {"type": "text", "text": "May she never run aground."},
        "model": "a model of an example",
        "stopReason": "endTurn",
    }))
}

/// A server with a tool that asks for all three.
fn server() -> impl tidegate::Door {
    #[derive(Deserialize, JsonSchema)]
    struct Named {
        /// What she is called.
        name: String,
    }

    let tool = Tool::new("name_the_boat").description("Names a boat").handler(|(): (), cx: Cx| async move {
        let named = match cx.elicit(Elicit::<Named>::form("What is she called?").key("name")).await {
            Elicited::Accept(named) => named.name,
            _ => return "She has no name".to_owned(),
        };
        let wish =
            cx.sample(Sample::new().user(format!("A wish for {named}")).max_tokens(20).key("wish")).await;
        let roots = cx.roots().key("roots").await;
        let home = roots.first().map_or("nowhere", |root| root.uri.as_str());
        format!("{named} of {home}. {}", wish.text())
    });
    Server::new("boatyard", "1.0.0").tool(tool).build()
}

#[allow(clippy::print_stdout)] // this is what the program is for
fn print(line: &str) {
    println!("{line}");
}
