//! Tools that ask in the middle of a call: the client's model, or a person with every kind of form field.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tidegate::{Capability, Cx, Elicit, Elicited, Sample, Tool};

pub(super) fn tools() -> Vec<Tool> {
    vec![
        Tool::new("test_sampling")
            .description("Tests server-initiated sampling (LLM completion request)")
            .handler(|args: SamplingArgs, cx: Cx| async move {
                let answer = cx.sample(Sample::new().user(args.prompt).max_tokens(100)).await;
                format!("LLM response: {}", answer.text())
            }),
        Tool::new("test_elicitation")
            .description("Tests server-initiated elicitation (user input request)")
            .handler(|args: ElicitationArgs, cx: Cx| async move {
                let answer = cx.elicit(Elicit::<User>::form(args.message)).await;
                told("User response", &answer)
            }),
        Tool::new("test_elicitation_sep1034_defaults")
            .description("Tests elicitation with default values per SEP-1034")
            .handler(|(), cx: Cx| async move {
                let form = Elicit::<Defaults>::form("Please review and update the form fields with defaults");
                told("Elicitation completed", &cx.elicit(form).await)
            }),
        Tool::new("test_elicitation_sep1330_enums")
            .description("Tests elicitation with enum schema improvements per SEP-1330")
            .handler(|(), cx: Cx| async move {
                let form = Elicit::<Choices>::form("Please select options from the enum fields");
                told("Elicitation completed", &cx.elicit(form).await)
            }),
        Tool::new("test_streaming_elicitation")
            .description("Tells its progress, then asks: no request of its own may appear on the stream")
            .handler(|(), cx: Cx| async move {
                cx.progress(1.0, 2.0, "About to ask");
                let answer = cx.elicit(Elicit::<User>::form("Who are you?").key("user")).await;
                told("User response", &answer)
            }),
        Tool::new("test_missing_capability")
            .description("Needs a client that can sample")
            .handler(|(), cx: Cx| async move { cx.require(Capability::Sampling).map(|()| "Success") }),
    ]
}

/// An answer in the words that the suite looks for.
fn told<T: Serialize>(what: &str, answer: &Elicited<T>) -> String {
    let content = match answer {
        Elicited::Accept(content) => serde_json::json!(content),
        Elicited::Decline | Elicited::Cancel => serde_json::json!({}),
    };
    format!("{what}: action={}, content={content}", answer.action())
}

#[derive(Deserialize, JsonSchema)]
struct SamplingArgs {
    /// The prompt to send to the LLM
    prompt: String,
}

#[derive(Deserialize, JsonSchema)]
struct ElicitationArgs {
    /// The message to show the user
    message: String,
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct User {
    /// User's name
    username: String,
    /// User's email address
    email: String,
}

/// SEP-1034: a default for each type of field.
#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(default)]
struct Defaults {
    /// User name
    name: String,
    /// User age
    age: i64,
    /// User score
    score: f64,
    /// User status
    status: Status,
    /// Verification status
    verified: bool,
}

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Status {
    Active,
    Inactive,
    Pending,
}

impl Default for Defaults {
    fn default() -> Self {
        Defaults { name: "John Doe".into(), age: 30, score: 95.5, status: Status::Active, verified: true }
    }
}

/// SEP-1330: the five ways to offer a choice.
#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Choices {
    /// Select one option
    untitled_single: Option<Untitled>,
    /// Select one option by its title
    titled_single: Option<TitledOption>,
    /// Select one option (the way of 2025-06-18)
    #[schemars(extend("enumNames" = ["Option One", "Option Two", "Option Three"]))]
    legacy_enum: Option<Legacy>,
    /// Select one to three options
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 3))]
    untitled_multi: Vec<Untitled>,
    /// Select one to three options by their titles
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 3))]
    titled_multi: Vec<TitledChoice>,
}

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Untitled {
    Option1,
    Option2,
    Option3,
}

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum TitledOption {
    /// First Option
    Value1,
    /// Second Option
    Value2,
    /// Third Option
    Value3,
}

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum TitledChoice {
    /// First Choice
    Value1,
    /// Second Choice
    Value2,
    /// Third Choice
    Value3,
}

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Legacy {
    Opt1,
    Opt2,
    Opt3,
}
