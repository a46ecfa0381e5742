//! `tidegate status`: what runs, and how it is; or that nothing does, and what files say.

use std::fmt::Write;
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use tidegate_protocol::text::escaped_json;

use super::admin::client::AskError;
use super::admin::files;
use super::admin::presence::Presence;
use super::admin::target::{GatewayArgs, Target, shown};
use super::exit::Exit;
use super::failure::Failure;
use super::list::table;
use super::output;
use crate::term::clean::line as clean;
use crate::term::style::Paint;

/// Show what runs and how it is
///
/// Asks the gateway that runs with the configuration, over HTTP or stdio. If none runs, shows what the configuration and the
/// last known lists say, and ends with 3.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Status {
    #[command(flatten)]
    gateway: GatewayArgs,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

const EXAMPLES: &str = "\
Examples:
  tidegate status
  tidegate status --json
  tidegate status --url https://mcp.example.com -H \"Authorization: Bearer $KEY\"";

pub(crate) async fn run(status: Status) -> Result<Exit, Failure> {
    let target = status.gateway.find().await?;
    match target.client.get("/api/status", &[]).await {
        Ok(mut said) => {
            said["running"] = true.into();
            said["beside"] = target.beside.iter().map(|other| other.pid).collect();
            let text = match status.json {
                true => escaped_json(&said.to_string()).into_owned(),
                false => report(&said, &target.beside),
            };
            output::text(&text)?;
            Ok(Exit::Fine)
        }
        Err(AskError::NoGateway(why)) if status.gateway.url.is_none() => {
            let text = if status.json { absent_json(&target, &why) } else { absent(&target, &why) };
            output::text(&text)?;
            Ok(Exit::Unavailable)
        }
        Err(error) => Err(target.client.failure(error, "tell how it is")),
    }
}

fn absent_json(target: &Target, why: &str) -> String {
    let config = target.file.as_ref().map(|file| file.display().to_string());
    let others: Vec<u32> = target.others.iter().map(|other| other.pid).collect();
    let servers = files::servers(&target.settings);
    let said = json!({"running": false, "why": why, "config": config, "servers": servers, "others": others});
    escaped_json(&said.to_string()).into_owned()
}

/// That none runs, and what files say.
fn absent(target: &Target, why: &str) -> String {
    let paint = Paint::stdout();
    let config = match &target.file {
        Some(file) => clean(&file.display().to_string()),
        None => "none: the built-in memory would be served".to_owned(),
    };
    let mut out = format!("{} ({})\n\n  Config    {config}\n", paint.bold("No gateway runs"), clean(why));
    for other in &target.others {
        // Writing to a string does not fail.
        let _ = writeln!(out, "  Another   {}", shown(other));
    }
    out + "\n" + &table(&files::servers(&target.settings))
}

fn report(said: &Value, beside: &[Presence]) -> String {
    let paint = Paint::stdout();
    let text = |value: &Value| value.as_str().map(clean).unwrap_or_default();
    let verdict = match text(&said["status"]) {
        fine if fine == "healthy" => paint.good(fine),
        other => paint.warning(other),
    };
    let up = Duration::from_secs(said["uptime"].as_u64().unwrap_or_default());
    let mut out = format!(
        "Tidegate {} is {verdict}: process {}, up {}\n\n",
        text(&said["version"]),
        said["pid"],
        humantime::format_duration(up),
    );
    let mut line = |title: &str, what: String| {
        let _ = writeln!(out, "  {title:<9} {what}");
    };
    let urls = said["urls"].as_array().map(Vec::as_slice).unwrap_or_default();
    urls.iter().for_each(|url| line("Endpoint", text(url)));
    if urls.is_empty() {
        line("Endpoint", text(&said["transport"]));
    }
    line("Config", said["config"].as_str().map_or_else(|| "none".to_owned(), clean));
    let sessions = match said["sessions"].as_u64() {
        Some(1) => "; 1 session".to_owned(),
        Some(sessions) => format!("; {sessions} sessions"),
        None => String::new(),
    };
    line(
        "Calls",
        format!("{} running, {} waiting{sessions}", said["calls"]["running"], said["calls"]["waiting"]),
    );
    beside.iter().for_each(|other| line("Beside", shown(other)));
    for (name, message) in said["alerts"].as_object().into_iter().flatten() {
        line("Alert", format!("{}: {}", clean(name), text(message)));
    }
    let servers = said["servers"].as_array().map(Vec::as_slice).unwrap_or_default();
    out + "\n" + &table(servers)
}
