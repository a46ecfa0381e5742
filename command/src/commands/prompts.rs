//! `tidegate prompts` and `tidegate prompt`: which prompts a server has, and one of them filled in.

use clap::Args;
use serde_json::{Map, Value, json};
use tidegate::protocol::Json;
use tidegate::protocol::json::ObjectWriter;

use super::connection::{Session, with_server, with_session};
use super::display::Display;
use super::failure::Failure;
use super::target::{ConnectionArgs, TargetArgs};
use super::{elicit, near, none_of, output, values};
use crate::term::style::Paint;
use crate::term::{args, render};

/// List a server's prompts.
#[derive(Args)]
#[command(
    override_usage = "tidegate prompts [OPTIONS] TARGET\n       tidegate prompts [OPTIONS] -- COMMAND [ARG]...",
    after_help = super::exit::after_help()
)]
pub(crate) struct Prompts {
    #[command(flatten)]
    words: TargetArgs,
    #[command(flatten)]
    pub(crate) common: ConnectionArgs,
}

/// Get a prompt with its arguments filled in.
#[derive(Args)]
#[command(
    override_usage = "tidegate prompt [OPTIONS] TARGET NAME [ARGUMENT=VALUE]...\n       \
                      tidegate prompt [OPTIONS] NAME [ARGUMENT=VALUE]... -- COMMAND [ARG]...",
    after_help = super::exit::after_help()
)]
pub(crate) struct Prompt {
    #[command(flatten)]
    words: TargetArgs,
    #[command(flatten)]
    pub(crate) common: ConnectionArgs,
}

pub(crate) async fn list(prompts: Prompts) -> Result<(), Failure> {
    let Prompts { words, common } = prompts;
    let (server, rest) = words.split(&common)?;
    super::nothing_more(rest)?;
    with_session(&server, &common, async |session: &Session, _: &Display| {
        let found = if session.facts.has_capability("prompts") {
            session.client.raw_prompts().await?
        } else {
            none_of("prompts");
            Vec::new()
        };
        if common.json {
            let mut object = ObjectWriter::new();
            object.json("prompts", &Json::array(&found));
            return output::text(object.finish().as_str());
        }
        output::text(&render::prompts(&values(&found), crate::term::width(), Paint::stdout()))
    })
    .await
}

pub(crate) async fn get(prompt: Prompt) -> Result<(), Failure> {
    let Prompt { words, common } = prompt;
    let (server, mut rest) = words.split(&common)?;
    if rest.is_empty() {
        return Err(Failure::usage("NAME is missing; run tidegate prompts for a list"));
    }
    let name = rest.remove(0);
    let display = Display::new(common.verbose);
    let handlers = elicit::handlers(&server.name, &display);
    let prepare = |builder: tidegate_client::ClientBuilder| builder.handlers(handlers);
    with_server(&server, &common, &display, prepare, async |session: &Session| {
        let arguments = arguments(session, &name, &rest).await?;
        display.waiting(&format!("Getting {name}"));
        let result = session.client.get_prompt(&name, arguments).await?;
        display.clear();
        if common.json {
            return output::text(result.json().as_str());
        }
        output::text(&render::prompt_result(&result.json().to().unwrap_or_default(), Paint::stdout()))
    })
    .await
}

/// The arguments as the prompt wants them: all are texts.
async fn arguments(session: &Session, name: &str, words: &[String]) -> Result<Value, Failure> {
    let all = values(&session.client.raw_prompts().await?);
    let names = || all.iter().filter_map(|prompt| prompt.get("name")?.as_str());
    let Some(prompt) = all.iter().find(|prompt| prompt.get("name").and_then(Value::as_str) == Some(name))
    else {
        // Perhaps it is one that the server does not list. It knows best.
        if let Some(meant) = near(name, names()) {
            output::note(&format!(
                "note: the server does not list the prompt {name:?}; did you mean {meant:?}?"
            ));
        }
        let given = args::parse(words, &json!({"additionalProperties": {"type": "string"}}))?;
        return Ok(if given.is_empty() { Value::Null } else { Value::Object(given) });
    };
    let declared = prompt.get("arguments").and_then(Value::as_array).into_iter().flatten();
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for argument in declared {
        let Some(name) = argument.get("name").and_then(Value::as_str) else { continue };
        properties.insert(name.to_owned(), json!({"type": "string"}));
        if argument.get("required").and_then(Value::as_bool) == Some(true) {
            required.push(name);
        }
    }
    let given =
        args::parse(words, &json!({"type": "object", "properties": properties, "required": required}))?;
    Ok(if given.is_empty() { Value::Null } else { Value::Object(given) })
}
