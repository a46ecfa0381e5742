//! `tidegate logs`: what a running gateway has logged lately, and logs now; or the end of the log file, if none runs.

use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use tidegate_protocol::text::escaped_json;

use super::admin::client::{AdminClient, AskError};
use super::admin::target::{GatewayArgs, Target};
use super::exit::Exit;
use super::failure::Failure;
use super::interrupt::Interrupt;
use super::output;
use crate::term::clean::line as clean;
use crate::term::style::Paint;

/// Show what the gateway logs
///
/// Asks the running gateway, which keeps the latest lines. If none runs, shows the end of the log file, if the configuration has one.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Logs {
    /// Go on with the lines to come, until Ctrl-C
    #[arg(long, short)]
    follow: bool,

    /// Only lines that are at least as important: error, warn, info, debug or trace
    #[arg(long, value_name = "LEVEL", hide_possible_values = true)]
    level: Option<LineLevel>,

    /// Only lines about this server
    #[arg(long, value_name = "NAME")]
    server: Option<String>,

    /// Only lines about the call with this id
    #[arg(long, value_name = "ID")]
    id: Option<String>,

    /// How many lines at most
    #[arg(long, value_name = "COUNT", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: u32,

    /// Have the gateway log other lines until it restarts: a level, or a filter such as info,tidegate::wire=debug
    #[arg(long, value_name = "FILTER", conflicts_with_all = ["follow", "level", "server", "id"])]
    set_level: Option<String>,

    /// Have the gateway log what is configured again
    #[arg(long, conflicts_with_all = ["follow", "level", "server", "id", "set_level"])]
    reset_level: bool,

    #[command(flatten)]
    gateway: GatewayArgs,

    /// Print JSON, one line each
    #[arg(long)]
    pub(crate) json: bool,
}

const EXAMPLES: &str = "\
Examples:
  tidegate logs --follow
  tidegate logs --level warn --server github
  tidegate logs --set-level info,tidegate::wire=debug";

#[derive(Clone, Copy, ValueEnum, PartialEq, Eq, PartialOrd, Ord)]
enum LineLevel {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

impl LineLevel {
    fn as_str(self) -> &'static str {
        match self {
            LineLevel::Error => "error",
            LineLevel::Warn => "warn",
            LineLevel::Info => "info",
            LineLevel::Debug => "debug",
            LineLevel::Trace => "trace",
        }
    }

    fn of(word: &str) -> Option<LineLevel> {
        LineLevel::value_variants().iter().copied().find(|level| level.as_str().eq_ignore_ascii_case(word))
    }
}

pub(crate) async fn run(logs: Logs) -> Result<Exit, Failure> {
    let target = logs.gateway.find().await?;
    if logs.set_level.is_some() || logs.reset_level {
        return set_level(&logs, &target.client, logs.set_level.as_deref()).await;
    }
    if let Some(name) = &logs.server {
        check_server(&target, name).await?;
    }
    let mut query = logs.query();
    query.push(("limit", logs.limit.to_string()));
    let said = match target.client.get("/api/logs", &query).await {
        Ok(said) => said,
        Err(AskError::NoGateway(why)) if logs.gateway.url.is_none() && !logs.follow => {
            return from_file(&logs, &target, &why);
        }
        Err(error) => return Err(target.client.failure(error, "show its log")),
    };
    let lines = said["lines"].as_array().map(Vec::as_slice).unwrap_or_default();
    lines.iter().try_for_each(|line| logs.show(line))?;
    if !logs.follow {
        if lines.is_empty() {
            output::note("note: none of the latest lines is like that");
        }
        return Ok(Exit::Fine);
    }
    let after = said["next"].as_u64();
    let interrupt = Interrupt::listen();
    match interrupt.or(follow(&logs, &target.client, after)).await {
        // That is how one ends it.
        Err(failure) if failure.exit == Exit::Cancelled => Ok(Exit::Fine),
        other => other,
    }
}

/// Whether there is such a server: a typing error would look like one that has nothing to say.
async fn check_server(target: &Target, name: &str) -> Result<(), Failure> {
    match target.client.get(&super::operate::path(name, "")?, &[]).await {
        Err(error @ AskError::Refused(404, _)) => Err(target.client.failure(error, "know this server")),
        // Whoever may see the log need not see the servers.
        _ => Ok(()),
    }
}

/// Has the gateway log other lines; what is configured, if none are named.
async fn set_level(logs: &Logs, client: &AdminClient, filter: Option<&str>) -> Result<Exit, Failure> {
    let said = client.put("/api/log/level", &json!({"level": filter})).await;
    let said = said.map_err(|error| client.failure(error, "change what it logs"))?;
    match logs.json {
        true => output::text(&escaped_json(&said.to_string()))?,
        false => {
            let text = |name: &str| said[name].as_str().map(clean).unwrap_or_default();
            let how_long = if filter.is_some() { " until it restarts" } else { ", as configured" };
            let level = Paint::stdout().name(text("level"));
            output::text(&format!("The gateway logs {level}{how_long} (before: {})", text("before")))?;
        }
    }
    Ok(Exit::Fine)
}

async fn follow(logs: &Logs, client: &AdminClient, after: Option<u64>) -> Result<Exit, Failure> {
    let mut query = logs.query();
    query.extend(after.map(|after| ("after", after.to_string())));
    let events = client.follow("/api/logs/stream", &query).await;
    let mut events = events.map_err(|error| client.failure(error, "show its log"))?;
    loop {
        let next = events.next().await;
        match next
            .map_err(|why| Failure::new(Exit::Unavailable, format!("the gateway is gone: {}", clean(&why))))?
        {
            None => {
                output::note("note: the gateway has ended");
                return Ok(Exit::Fine);
            }
            Some(event) => {
                let said: Value = serde_json::from_str(&event.data).unwrap_or_default();
                match event.name.as_str() {
                    "log" => logs.show(&said)?,
                    "lost" => output::note(&format!("note: {} lines were missed", said["count"])),
                    _ => {}
                }
            }
        }
    }
}

/// Where the configuration keeps what is logged.
fn log_file(target: &Target) -> Option<&std::path::Path> {
    target.settings.log.file.as_ref().map(|file| &*file.path)
}

/// The end of the log file.
fn from_file(logs: &Logs, target: &Target, why: &str) -> Result<Exit, Failure> {
    let Some(path) = log_file(target) else {
        return Err(Failure::new(Exit::Unavailable, format!("there is nothing to show: {}", clean(why))).advise(
            "Start a gateway with tidegate serve. file = \"…\" in [log] of the configuration keeps what was logged.",
        ));
    };
    let place = clean(&path.display().to_string());
    if let Some(name) = &logs.server {
        let settings = &target.settings;
        let used = settings.servers.iter().map(|server| &*server.name);
        let names: Vec<&str> = used.chain(settings.disabled.iter().map(|server| &*server.name)).collect();
        if !names.contains(&name.as_str()) {
            let near = tidegate_service::nearest_name(name, names);
            let near = near.map(|near| format!("; did you mean {near:?}?")).unwrap_or_default();
            return Err(Failure::usage(clean(&format!("there is no server {name:?}{near}"))));
        }
    }
    if !path.exists() {
        let what = format!("there is nothing to show: {}, and {place} is not there", clean(why));
        return Err(Failure::new(Exit::Unavailable, what).advise("Start a gateway with tidegate serve."));
    }
    let text = end_of(path).map_err(|error| Failure::usage(format!("cannot read {place}: {error}")))?;
    let lines: Vec<&str> = text.lines().filter(|line| logs.wants(line)).collect();
    let first = lines.len().saturating_sub(logs.limit as usize);
    for line in &lines[first..] {
        match serde_json::from_str::<Value>(line) {
            Ok(said) if said.is_object() => logs.show(&said)?,
            _ if logs.json => output::text(&escaped_json(&json!({"line": line}).to_string()))?,
            _ => output::text(&clean(line))?,
        }
    }
    output::note(&format!("note: no gateway runs; this is the end of {place}"));
    Ok(Exit::Fine)
}

/// How much of the end of a file is looked at, in bytes.
const LOOKED_AT: u64 = 4 << 20;

/// The last lines of a file, from the beginning of one on.
fn end_of(path: &std::path::Path) -> std::io::Result<String> {
    use std::io::{Read as _, Seek as _};
    let mut file = std::fs::File::open(path)?;
    let about = file.metadata()?;
    if !about.is_file() {
        return Err(std::io::Error::other("it is no file"));
    }
    let skipped = about.len().saturating_sub(LOOKED_AT);
    file.seek(std::io::SeekFrom::Start(skipped))?;
    let mut bytes = Vec::new();
    file.take(LOOKED_AT).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let whole = if skipped == 0 { &*text } else { text.split_once('\n').map_or("", |(_, rest)| rest) };
    Ok(whole.to_owned())
}

impl Logs {
    fn query(&self) -> Vec<(&'static str, String)> {
        let level = self.level.map(|level| ("level", level.as_str().to_owned()));
        let server = self.server.clone().map(|server| ("server", server));
        let id = self.id.clone().map(|id| ("id", id));
        level.into_iter().chain(server).chain(id).collect()
    }

    /// Whether a line of a file is wanted. What is no JSON says nothing of the kind, but its words.
    fn wants(&self, line: &str) -> bool {
        let said: Value = serde_json::from_str(line).unwrap_or_default();
        if !said.is_object() {
            let has = |word: &Option<String>| word.as_ref().is_none_or(|word| line.contains(word.as_str()));
            let level = line.split_whitespace().take(4).find_map(LineLevel::of);
            let is_important = self.level.is_none_or(|wanted| level.is_none_or(|level| level <= wanted));
            return is_important && has(&self.server) && has(&self.id);
        }
        let is =
            |name: &str, wanted: &Option<String>| wanted.as_ref().is_none_or(|wanted| said[name] == **wanted);
        let level = said["level"].as_str().and_then(LineLevel::of);
        let is_important = self.level.is_none_or(|wanted| level.is_some_and(|level| level <= wanted));
        is_important && is("server", &self.server) && is("correlationId", &self.id)
    }

    fn show(&self, line: &Value) -> Result<(), Failure> {
        match self.json {
            true => output::text(&escaped_json(&line.to_string())),
            false => output::text(&pretty(line)),
        }
    }
}

/// A line for people: when, how important, what, and whatever else it says.
fn pretty(line: &Value) -> String {
    let paint = Paint::stdout();
    let text = |name: &str| line[name].as_str().map(clean).unwrap_or_default();
    let level = match text("level").to_ascii_uppercase() {
        error if error == "ERROR" => paint.bad(format!("{error:<5}")),
        warning if warning == "WARN" => paint.warning(format!("{warning:<5}")),
        other => paint.dim(format!("{other:<5}")),
    };
    let shown = ["number", "timestamp", "level", "target", "message"];
    let more: Vec<String> = (line.as_object().into_iter().flatten())
        .filter(|(name, _)| !shown.contains(&name.as_str()))
        .map(|(name, value)| match value {
            Value::String(value) => format!("{}={}", clean(name), clean(value)),
            other => format!("{}={}", clean(name), clean(&other.to_string())),
        })
        .collect();
    let more = if more.is_empty() { String::new() } else { format!("  {}", paint.dim(more.join(" "))) };
    format!("{} {level} {}{more}", text("timestamp"), text("message"))
}
