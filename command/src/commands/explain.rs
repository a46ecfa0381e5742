//! `tidegate explain`: what happened to a call, as a running gateway tells it, or the file that it has left.

mod story;

use axum::http::HeaderMap;
use clap::Args;
use serde_json::{Value, json};
use tidegate_config::StorySettings;
use tidegate_protocol::text::escaped_json;
use tidegate_telemetry::{Stories, Wanted};

use super::admin::client::{AdminClient, AskError};
use super::admin::presence::Presence;
use super::admin::target::GatewayArgs;
use super::exit::Exit;
use super::failure::Failure;
use super::output;
use super::serve::calls_api::PATH;
use crate::term::clean::line as clean;

/// Tell what happened to a call
///
/// Asks a running gateway, which remembers the latest calls ([telemetry] stories). If none answers, the file is read that it has written
/// (stories_file). The id of a call is in its answer (the header Tidegate-Correlation-Id, _meta["dev.tidegate/correlationId"] of a result,
/// data.correlationId of an error) and in the log.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Explain {
    /// The id of the call, or the number of its story [default: the latest calls]
    id: Option<String>,

    /// The latest call that failed
    #[arg(long)]
    last_error: bool,

    /// Only calls of this tool
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,

    /// How many calls at most
    #[arg(long, value_name = "COUNT", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,

    #[command(flatten)]
    gateway: GatewayArgs,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  tidegate explain 1794951658642-vxczgrt98
  tidegate explain --last-error
  tidegate explain --tool github_merge --limit 3
  tidegate explain --last-error --url https://mcp.example.com -H \"Authorization: Bearer $KEY\"";

impl Explain {
    fn limit(&self) -> usize {
        if self.last_error { 1 } else { self.limit.into() }
    }

    pub(crate) fn is_json(&self) -> bool {
        self.json
    }
}

pub(crate) async fn run(explain: Explain) -> Result<Exit, Failure> {
    let target = explain.gateway.find_all().await?;
    let client = &target.client;
    let kept = Some(&target.settings.telemetry.stories).filter(|kept| kept.file.is_some() && kept.room > 0);
    let (found, teller) = match (ask(&explain, client).await, kept) {
        (Err(error @ AskError::NoGateway(_)), Some(kept)) if explain.gateway.url.is_none() => {
            match read(&explain, kept) {
                Some(found) => found?,
                None => return Err(failure(client, error)),
            }
        }
        (Err(error), _) => return Err(failure(client, error)),
        (Ok(found), _) if !target.beside.is_empty() => {
            let all = with_those_beside(&explain, found, &target.beside).await?;
            (all, "none of the gateways with this configuration".to_owned())
        }
        (Ok(found), _) => (found, format!("the gateway at {}", client.place())),
    };
    let calls = found["calls"].as_array().cloned().unwrap_or_default();
    if explain.json {
        let lines: String =
            calls.iter().map(|call| format!("{}\n", escaped_json(&call.to_string()))).collect();
        output::text(&lines)?;
    } else {
        let stories: Vec<String> = calls.iter().filter(|call| call.is_object()).map(story::told).collect();
        output::text(&stories.join("\n"))?;
        // Calls of one trace share their id, and whoever calls can choose a trace.
        if let Some(more) = found["more"].as_u64().filter(|more| *more > 0 && explain.id.is_some()) {
            output::note(&format!(
                "There are {more} more calls with this id: use --limit, --last-error, or the number of one (#)."
            ));
        }
    }
    if calls.is_empty() {
        let near = match &explain.tool {
            Some(tool) => near(client, tool).await,
            None => None,
        };
        return Err(unknown(&explain, &teller, near));
    }
    Ok(Exit::Fine)
}

/// That there is no such call, in the words of what was asked for.
fn unknown(explain: &Explain, teller: &str, near: Option<String>) -> Failure {
    let failed = if explain.last_error { " that failed" } else { "" };
    let what = match (&explain.id, &explain.tool) {
        (Some(id), _) => format!("call {}{failed}", clean(id)),
        (None, Some(tool)) => format!("call of the tool {}{failed}", clean(tool)),
        (None, None) if explain.last_error => "call that failed".to_owned(),
        (None, None) => "call yet".to_owned(),
    };
    let knows = if teller.starts_with("none") { "knows a" } else { "knows no" };
    let failure = Failure::new(Exit::Usage, format!("{teller} {knows} {what}"));
    match near {
        Some(near) => failure.advise(format!("Did you mean --tool {}?", clean(&near))),
        None => failure.advise(
            "Only the latest calls are remembered: see stories and stories_file in [telemetry]. Older ones may be in the log or in the audit trail.",
        ),
    }
}

/// The tool of a call that is remembered whose name is most like this one.
async fn near(client: &AdminClient, tool: &str) -> Option<String> {
    let found = client.get(PATH, &[("limit", "1000".to_owned())]).await.ok()?;
    let tools = found["calls"].as_array()?.iter().filter_map(|call| call["tool"].as_str());
    tidegate_service::nearest_name(tool, tools).filter(|near| *near != tool).map(str::to_owned)
}

/// The same with what those know that run beside the one that is meant: the latest of all.
async fn with_those_beside(explain: &Explain, found: Value, beside: &[Presence]) -> Result<Value, Failure> {
    let mut calls = found["calls"].as_array().cloned().unwrap_or_default();
    let mut more = found["more"].as_u64().unwrap_or_default();
    for one in beside {
        // One that has ended meanwhile knows nothing.
        if let Ok(found) = ask(explain, &AdminClient::of(one, HeaderMap::new())?).await {
            calls.extend(found["calls"].as_array().cloned().unwrap_or_default());
            more += found["more"].as_u64().unwrap_or_default();
        }
    }
    // Times are written so that their order is that of the texts.
    calls.sort_by(|one, other| other["time"].as_str().cmp(&one["time"].as_str()));
    more += calls.len().saturating_sub(explain.limit()) as u64;
    calls.truncate(explain.limit());
    output::note(&format!("{} gateways run with this configuration; all were asked.", beside.len() + 1));
    Ok(json!({"calls": calls, "more": more}))
}

async fn ask(explain: &Explain, client: &AdminClient) -> Result<Value, AskError> {
    let mut query = Vec::new();
    query.extend(explain.id.iter().map(|id| ("id", id.clone())));
    query.extend(explain.tool.iter().map(|tool| ("tool", tool.clone())));
    if explain.last_error {
        query.push(("failed", "true".to_owned()));
    }
    query.push(("limit", explain.limit().to_string()));
    client.get(PATH, &query).await
}

fn failure(client: &AdminClient, error: AskError) -> Failure {
    match error {
        AskError::Refused(403 | 404, _) => {
            Failure::usage(format!("the gateway at {} does not tell of calls, or not to you", client.place())).advise(
                "With [auth], a rule of [policy] must allow page:/api/calls; without, only this machine is told. stories = 0 in [telemetry] remembers nothing.",
            )
        }
        other => client.failure(other, "tell of calls"),
    }
}

/// What the file of a gateway that does not run says, in the form in which it would answer; `None` if there is no file.
fn read(explain: &Explain, settings: &StorySettings) -> Option<Result<(Value, String), Failure>> {
    let path = settings.file.as_deref().filter(|path| path.exists())?;
    let shown = clean(&path.display().to_string());
    let stories = match Stories::read(path, settings.room) {
        Ok(stories) => stories,
        Err(error) => {
            return Some(Err(Failure::usage(format!("cannot read the stories in {shown}: {error}"))));
        }
    };
    let wanted =
        Wanted { id: explain.id.as_deref(), failed: explain.last_error, tool: explain.tool.as_deref() };
    let found = stories.find(&wanted, explain.limit());
    let calls: Vec<Value> = found.stories.iter().filter_map(|story| story.to().ok()).collect();
    output::note(&format!("No gateway answers; this is from {shown}."));
    Some(Ok((json!({"calls": calls, "more": found.more}), shown)))
}
