//! `tidegate tools`: which tools a server has, and all about one of them.

use clap::Args;
use serde_json::{Value, json};
use tidegate::protocol::json::ObjectWriter;
use tidegate::protocol::{Json, Object};
use tidegate_client::AppError;
use tidegate_service::UNLISTED;

use super::connection::{Session, with_session};
use super::display::Display;
use super::failure::Failure;
use super::target::{ConnectionArgs, TargetArgs};
use super::{near, none_of, output};
use crate::term::render;
use crate::term::style::Paint;

/// List a server's tools, or show one with its schemas.
#[derive(Args)]
#[command(
    override_usage = "tidegate tools [OPTIONS] TARGET [NAME]\n       tidegate tools [OPTIONS] [NAME] -- COMMAND [ARG]...",
    after_help = super::exit::after_help()
)]
pub(crate) struct Tools {
    #[command(flatten)]
    words: TargetArgs,
    #[command(flatten)]
    pub(crate) common: ConnectionArgs,
}

pub(crate) async fn run(tools: Tools) -> Result<(), Failure> {
    let Tools { words, common } = tools;
    let (server, rest) = words.split(&common)?;
    let name = super::at_most_one(rest, "NAME")?;
    with_session(&server, &common, async |session: &Session, _: &Display| match name {
        Some(name) => one(session, &name, common.json).await,
        None => all(session, common.json).await,
    })
    .await
}

async fn all(session: &Session, json: bool) -> Result<(), Failure> {
    let tools = if session.facts.has_capability("tools") {
        session.client.tools().await?
    } else {
        none_of("tools");
        Vec::new()
    };
    if json {
        let definitions: Vec<Json> = tools.iter().map(|tool| tool.definition().clone()).collect();
        let mut object = ObjectWriter::new();
        object.json("tools", &Json::array(&definitions));
        return output::text(object.finish().as_str());
    }
    let definitions: Vec<Value> = tools.iter().filter_map(|tool| tool.definition().to().ok()).collect();
    output::text(&render::tools(&definitions, crate::term::width(), Paint::stdout()))
}

async fn one(session: &Session, name: &str, json: bool) -> Result<(), Failure> {
    let tool = definition(session, name).await.map_err(|error| unknown(session, error, name))?;
    if json {
        return output::text(tool.as_str());
    }
    let definition: Value = tool.to().unwrap_or_default();
    let mut shown = render::tool(&definition, crate::term::width(), Paint::stdout());
    let object = Object::of(&tool);
    for (member, title) in [("inputSchema", "Input schema"), ("outputSchema", "Output schema")] {
        if let Some(schema) = object.as_ref().and_then(|object| object.json(member)) {
            let schema = render::indented_json(schema.as_str());
            shown.push_str(&format!("\n{}\n{schema}\n", Paint::stdout().bold(title)));
        }
    }
    output::text(&shown)
}

/// The definition of a tool, also of one that the server has and does not list.
pub(crate) async fn definition(session: &Session, name: &str) -> Result<Json, AppError> {
    let unknown = match session.client.get_tool_schema(name).await {
        Ok(tool) => return Ok(tool.definition().clone()),
        Err(error) => error,
    };
    // Every server is asked: a gateway whose servers are still starting does not know yet that it has such tools, and any
    // other server lists what it lists.
    let asked = session.client.request("tools/list", json!({"_meta": {UNLISTED: name}})).await;
    let tools = asked.ok().and_then(|list| Object::of(&list)?.json("tools")?.elements()).unwrap_or_default();
    let named =
        |tool: &Json| Object::of(tool).and_then(|tool| tool.text("name")).is_some_and(|own| *own == *name);
    tools.into_iter().find(named).ok_or(unknown)
}

/// Whether the server says that it has tools which it does not list.
pub(crate) fn has_unlisted_tools(session: &Session) -> bool {
    let said = Object::of(&session.facts.capabilities).and_then(|all| all.object("experimental"));
    said.is_some_and(|said| said.has(UNLISTED))
}

/// The failure of a tool that the server does not have, with the name that may be meant.
pub(crate) fn unknown(session: &Session, error: AppError, name: &str) -> Failure {
    let failure = Failure::from(error);
    let tools = session.client.stale_tools().unwrap_or_default();
    match near(name, tools.iter().map(|tool| tool.name())) {
        Some(meant) if failure.symbol() == Some(tidegate::Symbol::ToolNotFound) => {
            failure.advise(format!("Did you mean {meant:?}?"))
        }
        _ => failure,
    }
}
