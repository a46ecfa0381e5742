//! `tidegate resources` and `tidegate read`: which resources a server has, and what is in one.

use std::path::PathBuf;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use clap::Args;
use serde_json::Value;
use tidegate::Symbol;
use tidegate::protocol::Json;
use tidegate::protocol::json::ObjectWriter;
use tidegate_client::AppError;

use super::connection::{Session, with_session};
use super::display::Display;
use super::failure::Failure;
use super::save;
use super::target::{ConnectionArgs, TargetArgs};
use super::{none_of, output, values};
use crate::term::render;
use crate::term::style::Paint;

/// List a server's resources and resource templates.
#[derive(Args)]
#[command(
    override_usage = "tidegate resources [OPTIONS] TARGET\n       tidegate resources [OPTIONS] -- COMMAND [ARG]...",
    after_help = super::exit::after_help()
)]
pub(crate) struct Resources {
    #[command(flatten)]
    words: TargetArgs,
    #[command(flatten)]
    pub(crate) common: ConnectionArgs,
}

/// Read a resource.
///
/// Written to a pipe or a file, the contents are unchanged.
#[derive(Args)]
#[command(
    override_usage = "tidegate read [OPTIONS] TARGET URI\n       tidegate read [OPTIONS] URI -- COMMAND [ARG]...",
    after_help = super::exit::after_help()
)]
pub(crate) struct Read {
    #[command(flatten)]
    words: TargetArgs,
    /// Save the contents in this directory.
    #[arg(long, value_name = "DIR")]
    save: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) common: ConnectionArgs,
}

pub(crate) async fn list(resources: Resources) -> Result<(), Failure> {
    let Resources { words, common } = resources;
    let (server, rest) = words.split(&common)?;
    super::nothing_more(rest)?;
    with_session(&server, &common, async |session: &Session, _: &Display| {
        let (mut found, mut templates) = (Vec::new(), Vec::new());
        if session.facts.has_capability("resources") {
            found = session.client.raw_resources().await?;
            templates = templates_of(session.client.raw_resource_templates().await)?;
        } else {
            none_of("resources");
        }
        if common.json {
            let mut object = ObjectWriter::new();
            object
                .json("resources", &Json::array(&found))
                .json("resourceTemplates", &Json::array(&templates));
            return output::text(object.finish().as_str());
        }
        let (width, paint) = (crate::term::width(), Paint::stdout());
        let mut shown = render::resources(&values(&found), width, paint);
        if !templates.is_empty() {
            shown.push_str(&format!("\n{}\n", paint.bold("Templates")));
            shown.push_str(&render::resource_templates(&values(&templates), width, paint));
        }
        output::text(&shown)
    })
    .await
}

/// Servers need not have templates just because they have resources.
fn templates_of(listed: Result<Vec<Json>, AppError>) -> Result<Vec<Json>, AppError> {
    match listed {
        Err(error) if error.symbol == Symbol::MethodNotFound => Ok(Vec::new()),
        listed => listed,
    }
}

pub(crate) async fn read(read: Read) -> Result<(), Failure> {
    let Read { words, common, save } = read;
    let (server, rest) = words.split(&common)?;
    let uri = super::exactly_one(rest, "URI", "tidegate resources")?;
    with_session(&server, &common, async |session: &Session, display: &Display| {
        display.waiting(&format!("Reading {uri}"));
        let result = session.client.read(&uri).await?;
        display.clear();
        if common.json {
            return output::text(result.json().as_str());
        }
        let result: Value = result.json().to().unwrap_or_default();
        if let Some(folder) = &save {
            return save::contents(&result, folder);
        }
        match exact(&result) {
            Some(bytes) if !output::is_terminal() => output::bytes(&bytes),
            _ => output::text(&render::read_result(&result, Paint::stdout())),
        }
    })
    .await
}

/// The bytes of a resource that consists of one piece.
fn exact(result: &Value) -> Option<Vec<u8>> {
    let [only] = result.get("contents")?.as_array()?.as_slice() else { return None };
    match only.get("text").and_then(Value::as_str) {
        Some(text) => Some(text.as_bytes().to_vec()),
        None => STANDARD.decode(only.get("blob")?.as_str()?).ok(),
    }
}
