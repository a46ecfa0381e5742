//! Tools that answer `input_required` to a modern client: the same questions as elsewhere, under the keys that the
//! suite answers, in one round and in several.

use schemars::JsonSchema;
use serde::Deserialize;
use tidegate::{Capability, Cx, Elicit, Sample, Tool, ToolError};

#[derive(Deserialize, JsonSchema)]
struct Name {
    /// Your name.
    name: String,
}

#[derive(Deserialize, JsonSchema)]
struct Colour {
    /// Your favourite colour.
    color: String,
}

#[derive(Deserialize, JsonSchema)]
struct Confirmation {
    /// Whether it is all right.
    ok: bool,
}

#[derive(Deserialize, JsonSchema)]
struct Anything {
    /// Whatever you like.
    value: String,
}

pub(super) fn tools() -> Vec<Tool> {
    vec![
        Tool::new("test_input_required_result_elicitation")
            .description("Asks for a name, then greets")
            .handler(|(), cx: Cx| async move {
                let user = cx.elicit(ask_name("What is your name?").key("user_name")).await.accepted()?;
                Ok::<_, ToolError>(format!("Hello, {}!", user.name))
            }),
        Tool::new("test_input_required_result_sampling")
            .description("Asks the client's model for the capital of France")
            .handler(|(), cx: Cx| async move {
                let question = Sample::new().user("What is the capital of France?").max_tokens(100);
                cx.sample(question.key("capital_question")).await.text()
            }),
        Tool::new("test_input_required_result_list_roots")
            .description("Asks for the client's roots and counts them")
            .handler(|(), cx: Cx| async move {
                let roots = cx.roots().key("client_roots").await;
                let uris: Vec<&str> = roots.iter().map(|root| root.uri.as_str()).collect();
                format!("Found {} root(s): {}", roots.len(), uris.join(", "))
            }),
        Tool::new("test_input_required_result_request_state")
            .description("Asks for a confirmation and checks the state that comes back with it")
            .handler(|(), cx: Cx| async move {
                let confirmation = confirm(&cx).await?;
                Ok::<_, ToolError>(format!("state-ok: confirmed={}", confirmation.ok))
            }),
        Tool::new("test_input_required_result_tampered_state")
            .description("Asks for a confirmation and refuses a state that was tampered with")
            .handler(|(), cx: Cx| async move {
                confirm(&cx).await?;
                Ok::<_, ToolError>("integrity-ok: state verified")
            }),
        Tool::new("test_input_required_result_multiple_inputs")
            .description("Asks the person, the model and for the roots, all in one round")
            .handler(|(), cx: Cx| async move {
                let greeting = Sample::new().user("Generate a greeting").max_tokens(50).key("greeting");
                let (user, greeting, roots) = tokio::join!(
                    cx.elicit(ask_name("What is your name?").key("user_name")),
                    cx.sample(greeting),
                    cx.roots().key("client_roots"),
                );
                let name = user.accepted()?.name;
                Ok::<_, ToolError>(format!("{} ({name}, {} root(s))", greeting.text(), roots.len()))
            }),
        Tool::new("test_input_required_result_multi_round")
            .description("Asks for a name, then for a colour, one round each")
            .handler(|(), cx: Cx| async move {
                let user = cx.elicit(ask_name("Step 1: What is your name?").key("step1")).await.accepted()?;
                let question = Elicit::<Colour>::form("Step 2: What is your favorite color?");
                let favourite = cx.elicit(question.key("step2")).await.accepted()?;
                Ok::<_, ToolError>(format!("{} likes {}", user.name, favourite.color))
            }),
        Tool::new("test_input_required_result_capabilities")
            .description("Asks only what the client has declared that it can answer")
            .handler(|(), cx: Cx| async move {
                let form = async {
                    let question = Elicit::<Anything>::form("Please enter a value").key("elicit_input");
                    cx.elicit(question).await.accept().map(|answer| answer.value)
                };
                let sample = async {
                    let question = Sample::new().user("Sample request").max_tokens(50).key("sample_input");
                    cx.sample(question).await.text()
                };
                let (value, text) = tokio::join!(
                    if_able(cx.can(Capability::ElicitForm), form),
                    if_able(cx.can(Capability::Sampling), sample),
                );
                format!("elicited {:?}, sampled {text:?}", value.flatten())
            }),
    ]
}

fn ask_name(message: &str) -> Elicit<Name> {
    Elicit::form(message)
}

async fn confirm(cx: &Cx) -> Result<Confirmation, ToolError> {
    cx.elicit(Elicit::<Confirmation>::form("Please confirm").key("confirm")).await.accepted()
}

async fn if_able<T>(able: bool, question: impl Future<Output = T>) -> Option<T> {
    if able { Some(question.await) } else { None }
}
