//! Prompts: without arguments, with some that can be completed, with other content than text, and one that asks.

use schemars::JsonSchema;
use serde::Deserialize;
use tidegate::{
    Argument, Completing, Content, Cx, Elicit, Prompt, PromptArgs, PromptMessage, ResourceContents, Server,
    ToolError,
};

use crate::media;

/// What the arguments of `test_prompt_with_arguments` can be completed to.
const COMPLETIONS: [&str; 3] = ["test", "testing", "tested"];

#[derive(Deserialize, JsonSchema)]
struct Context {
    /// What the prompt is about.
    context: String,
}

pub(crate) fn add(server: Server) -> Server {
    server
        .prompt(
            Prompt::new("test_simple_prompt")
                .title("Simple Test Prompt")
                .description("A simple prompt without arguments")
                .handler(|_: PromptArgs, _cx: Cx| async {
                    Ok(vec![PromptMessage::user("This is a simple prompt for testing.")])
                }),
        )
        .prompt(
            Prompt::new("test_prompt_with_arguments")
                .title("Prompt With Arguments")
                .description("A prompt with required arguments")
                .argument(completed("arg1").description("First test argument"))
                .argument(completed("arg2").description("Second test argument"))
                .handler(|args: PromptArgs, _cx: Cx| async move {
                    let text =
                        format!("Prompt with arguments: arg1='{}', arg2='{}'", &args["arg1"], &args["arg2"]);
                    Ok(vec![PromptMessage::user(text)])
                }),
        )
        .prompt(
            Prompt::new("test_prompt_with_embedded_resource")
                .title("Prompt With Embedded Resource")
                .description("A prompt that includes an embedded resource")
                .argument(Argument::new("resourceUri").required().description("URI of the resource to embed"))
                .handler(|args: PromptArgs, _cx: Cx| async move {
                    let resource = ResourceContents::text(
                        &args["resourceUri"],
                        "Embedded resource content for testing.",
                    )
                    .mime_type("text/plain");
                    Ok(vec![
                        PromptMessage::user(Content::resource(resource)),
                        PromptMessage::user("Please process the embedded resource above."),
                    ])
                }),
        )
        .prompt(
            Prompt::new("test_prompt_with_image")
                .title("Prompt With Image")
                .description("A prompt that includes image content")
                .handler(|_: PromptArgs, _cx: Cx| async {
                    Ok(vec![
                        PromptMessage::user(Content::image(media::PNG, "image/png")),
                        PromptMessage::user("Please analyze the image above."),
                    ])
                }),
        )
        .prompt(
            Prompt::new("test_input_required_result_prompt")
                .title("Prompt That Asks")
                .description("A prompt that requires elicitation input")
                .handler(|_: PromptArgs, cx: Cx| async move {
                    let question = Elicit::<Context>::form("What context should the prompt use?");
                    let answer = cx.elicit(question.key("user_context")).await.accepted()?;
                    let text = format!("Prompt with context: {}", answer.context);
                    Ok::<_, ToolError>(vec![PromptMessage::user(text)])
                }),
        )
}

fn completed(name: &str) -> Argument {
    Argument::new(name)
        .required()
        .complete(|typed: Completing, _cx: Cx| async move { typed.filter(COMPLETIONS) })
}
