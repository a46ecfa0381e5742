//! Resources (fixed, computed, and by template), and a prompt whose argument can be completed.
//!
//! ```sh
//! cargo run --example resources_and_prompts
//! npx @modelcontextprotocol/inspector --cli http://127.0.0.1:8765/mcp --method resources/list
//! ```

use tidegate::{
    Argument, Completing, Cx, Prompt, PromptArgs, PromptMessage, Resource, ResourceContents,
    ResourceTemplate, Server, Vars,
};

const CITIES: [&str; 4] = ["Bergen", "Berlin", "Bern", "Lisbon"];

#[tokio::main]
async fn main() -> std::io::Result<()> {
    tidegate::logging::init(Default::default(), None);
    let server = Server::new("library", "1.0.0")
        .resource(
            Resource::text("library://welcome", "welcome", "Welcome to the library.").mime_type("text/plain"),
        )
        .resource(Resource::new("library://uptime", "uptime").mime_type("text/plain").reader(
            |cx: Cx| async move {
                let stats = cx.stats();
                Ok(ResourceContents::text(
                    "library://uptime",
                    format!("{} requests so far", stats.request_count),
                ))
            },
        ))
        .resource_template(
            ResourceTemplate::new("weather://{city}/today", "weather")
                .description("The weather of a city")
                .reader(|vars: Vars, _cx: Cx| async move {
                    let city = vars.get("city").unwrap_or_default();
                    Ok(ResourceContents::text(format!("weather://{city}/today"), format!("Mild in {city}.")))
                })
                .complete("city", |typed: Completing, _cx: Cx| async move { starting_with(&typed.value) }),
        )
        .prompt(
            Prompt::new("plan-a-trip")
                .description("Plans a trip to a city")
                .argument(
                    Argument::new("city")
                        .required()
                        .description("Where to go")
                        .complete(|typed: Completing, _cx: Cx| async move { starting_with(&typed.value) }),
                )
                .handler(|args: PromptArgs, _cx: Cx| async move {
                    let city = args.get("city").unwrap_or_default();
                    Ok(vec![PromptMessage::user(format!(
                        "Plan three days in {city}, with the weather in mind."
                    ))])
                }),
        )
        .build();
    tidegate::http::serve(server, "127.0.0.1:8765", Default::default()).await
}

fn starting_with(typed: &str) -> Vec<String> {
    CITIES
        .iter()
        .filter(|city| city.to_lowercase().starts_with(&typed.to_lowercase()))
        .map(ToString::to_string)
        .collect()
}
