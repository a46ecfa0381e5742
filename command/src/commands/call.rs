//! `tidegate call`: calls a tool, with everything that a call can lead to: questions, progress, log messages, Ctrl-C.

use std::io::Read;
use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};
use tidegate::protocol::{Json, Level};
use tidegate_client::ClientBuilder;

use super::connection::{Session, with_server};
use super::display::Display;
use super::exit::Exit;
use super::failure::Failure;
use super::target::{ConnectionArgs, TargetArgs};
use super::{elicit, output, save, tools};
use crate::term::style::Paint;
use crate::term::{args, clean, render, schema};

/// Call a tool.
///
/// Questions of the server (elicitation) are asked on the terminal, and Ctrl-C cancels the call. Without --timeout, progress
/// notifications extend the time limit.
#[derive(Args)]
#[command(
    override_usage = "tidegate call [OPTIONS] TARGET TOOL [ARGUMENT=VALUE]...\n       \
                      tidegate call [OPTIONS] TOOL [ARGUMENT=VALUE]... -- COMMAND [ARG]...",
    after_help = format!("{ARGUMENTS}\n\n{}", super::exit::after_help())
)]
pub(crate) struct Call {
    #[command(flatten)]
    words: TargetArgs,
    /// All arguments as one JSON object; @FILE reads it from a file, - from standard input.
    #[arg(long, value_name = "JSON")]
    args: Option<String>,

    /// Print the result exactly as received (the same as --json).
    #[arg(long)]
    pub(crate) raw: bool,

    /// Validate the result against the tool's output schema.
    #[arg(long)]
    validate: bool,

    /// Save images, audio and other files of the result in this directory.
    #[arg(long, value_name = "DIR")]
    save: Option<PathBuf>,

    /// A directory to offer to the server as a root. Can be repeated.
    #[arg(long = "root", value_name = "DIR")]
    roots: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) common: ConnectionArgs,
}

const ARGUMENTS: &str = "\
Arguments are converted to the types in the tool's schema:
  name=Ada         a string, number, boolean, object or array
  name:='[1, 2]'   literal JSON
  name=@notes.txt  the contents of a file as text (name:=@data.json: as JSON)
  a.b=1            a property of an object
  tag=x tag=y      an array
Or pass all arguments at once with --args '{\"name\": \"Ada\"}', --args @FILE or --args -";

pub(crate) async fn run(call: Call) -> Result<Exit, Failure> {
    let Call { words, mut common, args, raw, validate, save, roots } = call;
    common.json |= raw;
    let (server, mut rest) = words.split(&common)?;
    if rest.is_empty() {
        return Err(Failure::usage("TOOL is missing; run tidegate tools for a list"));
    }
    let tool = rest.remove(0);
    if args.is_some() && !rest.is_empty() {
        return Err(Failure::usage(format!("--args already has all arguments: leave out {:?}", rest[0])));
    }
    let given = args.as_deref().map(whole).transpose()?;
    let roots = roots.iter().map(|folder| elicit::root(folder)).collect::<Result<Vec<_>, _>>()?;
    let display = Display::new(common.verbose);
    let mut handlers = elicit::handlers(&server.name, &display);
    if !roots.is_empty() {
        handlers = handlers.roots(roots);
    }
    let prepare = |builder: ClientBuilder| {
        // Whoever tells how far they are has not hung up. A time that was given is meant, though.
        let extend = common.timeout().is_none();
        let builder = builder.handlers(handlers).configure(|options| options.extend_on_progress = extend);
        if common.verbose > 0 { builder.on_log(Level::Debug, |params| log(&params)) } else { builder }
    };
    with_server(&server, &common, &display, prepare, async |session: &Session| {
        let arguments = match given {
            Some(given) => given,
            None => guided(session, &tool, &rest).await?,
        };
        let validate = validate && has_schema(session, &tool).await?;
        display.waiting(&format!("Calling {tool}"));
        let shown = display.clone();
        let mut call =
            session.client.call(&tool, arguments).on_progress(move |params| shown.progress(&params));
        if validate {
            call = call.validate_output();
        }
        let result = call.await.map_err(|error| tools::unknown(session, error, &tool))?;
        display.clear();
        let exit = if result.is_error() { Exit::ToolError } else { Exit::Fine };
        if common.json {
            output::text(result.json().as_str())?;
        } else {
            let value: Value = result.json().to().unwrap_or_default();
            output::text(&render::tool_result(&value, Paint::stdout()))?;
        }
        if let Some(folder) = &save {
            let value: Value = result.json().to().unwrap_or_default();
            save::blocks(&value, &tool, folder)?;
        }
        Ok(exit)
    })
    .await
}

/// The arguments as the tool's schema has them.
async fn guided(session: &Session, tool: &str, words: &[String]) -> Result<Value, Failure> {
    let schema = match tools::definition(session, tool).await {
        Ok(definition) => definition.to::<Value>().unwrap_or_default()["inputSchema"].take(),
        // It may have the tool all the same. What is not written as JSON is then a text.
        Err(_) if tools::has_unlisted_tools(session) => {
            json!({"type": "object", "additionalProperties": {"type": "string"}})
        }
        Err(error) => return Err(tools::unknown(session, error, tool)),
    };
    match args::parse(words, &schema) {
        Ok(arguments) => Ok(Value::Object(arguments)),
        Err(error) => {
            let required = schema::required(&schema, &schema);
            let takes: Vec<String> = schema::property_names(&schema, &schema)
                .into_iter()
                .map(|name| {
                    let kind = schema::property(&schema, &schema, name);
                    let kind = kind.map(|kind| schema::describe(kind, &schema)).unwrap_or_default();
                    let text = format!("{}={kind}", clean::line(name));
                    if required.contains(&name) { text } else { format!("[{text}]") }
                })
                .collect();
            Err(Failure::from(error).advise(format!("{} takes: {}", clean::line(tool), takes.join(" "))))
        }
    }
}

/// Whether the result of a tool can be checked: the client knows the definitions of listed tools.
async fn has_schema(session: &Session, tool: &str) -> Result<bool, Failure> {
    let listed = session.client.get_tool_schema(tool).await;
    match listed {
        Ok(_) => Ok(true),
        Err(_) if tools::has_unlisted_tools(session) || tools::definition(session, tool).await.is_ok() => {
            let tool = clean::line(tool);
            output::note(&format!("note: {tool} is not listed, so its result is not validated"));
            Ok(false)
        }
        Err(error) => Err(tools::unknown(session, error, tool)),
    }
}

/// No arguments are larger.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// All arguments at once: JSON, `@file`, or `-` for standard input.
fn whole(text: &str) -> Result<Value, Failure> {
    let (json, from) = match text.strip_prefix('@') {
        _ if text == "-" => {
            let mut read = String::new();
            std::io::stdin().take(MAX_BYTES).read_to_string(&mut read).map_err(|error| {
                Failure::usage(format!("cannot read the arguments from standard input: {error}"))
            })?;
            (read, "standard input".to_owned())
        }
        Some(path) => {
            let read = tidegate_client::read_regular_text(path.as_ref(), MAX_BYTES).map_err(|error| {
                Failure::usage(format!("cannot read the arguments from {path:?}: {error}"))
            })?;
            (read, format!("{path:?}"))
        }
        None => (text.to_owned(), "--args".to_owned()),
    };
    match serde_json::from_str(&json) {
        Ok(arguments @ Value::Object(_)) => Ok(arguments),
        Ok(_) => Err(Failure::usage(format!(
            "the arguments in {from} must be a JSON object, such as {{\"a\": 1}}"
        ))),
        Err(error) => Err(Failure::usage(format!("the arguments in {from} are not valid JSON: {error}"))),
    }
}

/// Shows a log message of the server.
fn log(params: &Json) {
    let Ok(params) = params.to::<Value>() else { return };
    let text = |name: &str| params.get(name).and_then(Value::as_str).map(clean::line).unwrap_or_default();
    let data = params.get("data").map(schema::plain).unwrap_or_default();
    let logger = text("logger");
    let from = if logger.is_empty() { "server".to_owned() } else { format!("server {logger}") };
    output::note(&format!("{} {data}", Paint::stderr().dim(format!("{from} {}:", text("level")))));
}
