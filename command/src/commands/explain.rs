//! `tidegate explain`: what happened to a call, as a running gateway tells it.

use std::fmt::Write;
use std::path::PathBuf;

use clap::Args;
use serde_json::Value;
use tidegate_config::Config;
use tidegate_protocol::text::escaped_json;
use tidegate_web::{Request, Settings, Web};
use url::Url;

use super::exit::Exit;
use super::failure::Failure;
use super::header::Header;
use super::serve::calls_api::PATH;
use super::{configuration, output};
use crate::term::clean::line as clean;

/// Larger answers are none of a gateway.
const LARGEST: usize = 16 << 20;

/// Tell what happened to a call
///
/// Asks a running gateway, which remembers the latest calls ([telemetry] stories). The id of a call is in its error
/// (data.correlationId, or _meta["dev.tidegate/error"]) and in the log.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Explain {
    /// The id of the call [default: the latest calls]
    id: Option<String>,

    /// The latest call that failed
    #[arg(long, conflicts_with = "id")]
    last_error: bool,

    /// Only calls of this tool
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,

    /// How many calls at most
    #[arg(long, value_name = "COUNT", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,

    /// Where the gateway is [default: where the configuration says, else http://127.0.0.1:8765]
    #[arg(long, value_name = "URL")]
    url: Option<Url>,

    /// A header to send, such as 'Authorization: Bearer KEY' (repeatable)
    #[arg(long = "header", short = 'H', value_name = "NAME: VALUE")]
    headers: Vec<String>,

    /// The configuration [default: ./tidegate.toml, else the user's own]
    #[arg(long, value_name = "FILE", conflicts_with = "url")]
    config: Option<PathBuf>,

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
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }
}

pub(crate) async fn run(explain: Explain) -> Result<Exit, Failure> {
    let base = match &explain.url {
        Some(url) => url.clone(),
        None => configured(explain.config.as_deref())?,
    };
    let calls = ask(&explain, &base).await?;
    let base = shown(&base);
    let calls = calls["calls"].as_array().cloned().unwrap_or_default();
    if explain.json {
        let lines: String =
            calls.iter().map(|call| format!("{}\n", escaped_json(&call.to_string()))).collect();
        output::text(&lines)?;
    } else {
        let stories: Vec<String> = calls.iter().filter(|call| call.is_object()).map(story).collect();
        output::text(&stories.join("\n"))?;
        // Calls of one trace share their id, and whoever calls can choose a trace.
        if explain.id.is_some() && calls.len() == usize::from(explain.limit) {
            output::note("There may be more calls with this id: use --limit.");
        }
    }
    if calls.is_empty() {
        let what = match &explain.id {
            Some(id) => format!("the gateway at {base} knows no call {id}"),
            None => format!("the gateway at {base} knows no such call"),
        };
        return Err(Failure::new(Exit::Usage, what).advise(
            "It remembers the latest calls only, since it was started: see stories in [telemetry]. Older ones may be in the log or in the audit trail.",
        ));
    }
    Ok(Exit::Fine)
}

/// Where the gateway of a configuration is.
fn configured(file: Option<&std::path::Path>) -> Result<Url, Failure> {
    let listen = match Config::find(file) {
        Some(file) => configuration::load_unserved(&file)?.listen,
        None => tidegate_config::Settings::default().listen,
    };
    if let Some(url) = listen.public_url.as_deref().and_then(|url| Url::parse(url).ok()) {
        return Ok(url);
    }
    let scheme = if listen.tls.is_some() { "https" } else { "http" };
    let address = match listen.address.parse::<u16>() {
        Ok(port) => format!("127.0.0.1:{port}"),
        Err(_) => listen.address.clone(),
    };
    // Where everybody can reach it, so can this machine.
    let address = address.replace("0.0.0.0", "127.0.0.1").replace("[::]", "[::1]");
    let text = format!("{scheme}://{address}");
    Url::parse(&text).map_err(|error| Failure::usage(format!("{text} is no address of a gateway: {error}")))
}

/// An address without what may be secret in it.
fn shown(url: &Url) -> String {
    clean(&url.origin().ascii_serialization())
}

async fn ask(explain: &Explain, url: &Url) -> Result<Value, Failure> {
    let wrong = |why: String| Failure::usage(why);
    let base = shown(url);
    let mut url =
        url.join(PATH).map_err(|error| wrong(format!("{base} is no address of a gateway: {error}")))?;
    {
        let mut query = url.query_pairs_mut();
        if let Some(id) = &explain.id {
            query.append_pair("id", id);
        }
        if let Some(tool) = &explain.tool {
            query.append_pair("tool", tool);
        }
        if explain.last_error {
            query.append_pair("failed", "true");
        }
        let limit = if explain.last_error { 1 } else { explain.limit };
        query.append_pair("limit", &limit.to_string());
    }
    let mut request = Request::get(url);
    for header in &explain.headers {
        let Header { name, value, .. } = Header::parse(header)?;
        let (Ok(name), Ok(mut value)) =
            (name.parse::<axum::http::HeaderName>(), value.parse::<axum::http::HeaderValue>())
        else {
            return Err(wrong(format!("--header {name}: this is no value of a header")));
        };
        value.set_sensitive(true);
        request = request.header(name, value);
    }
    let unreachable = |error: &dyn std::fmt::Display| {
        Failure::new(Exit::Unavailable, format!("no gateway answers at {base}: {error}"))
            .advise("Start one with tidegate serve, or say where it is with --url.")
    };
    let answer = Web::new(Settings::default()).send(request).await.map_err(|error| unreachable(&error))?;
    let status = answer.status();
    let body = answer.whole(LARGEST).await.map_err(|error| unreachable(&error))?;
    match status.as_u16() {
        200 => serde_json::from_slice(&body)
            .map_err(|_| Failure::new(Exit::Unavailable, format!("what answers at {base} is no gateway of Tidegate"))),
        401 => Err(wrong(format!("the gateway at {base} wants to know who asks"))
            .advise("Send a key: -H 'Authorization: Bearer KEY'.")),
        403 | 404 => Err(wrong(format!("the gateway at {base} does not tell of calls, or not to you")).advise(
            "With [auth], a rule of [policy] must allow page:/api/calls; without, only this machine is told. stories = 0 in [telemetry] remembers nothing.",
        )),
        other => Err(Failure::new(Exit::Unavailable, format!("the gateway at {base} answered with HTTP {other}"))),
    }
}

/// A story for people: what was called, by whom, what was decided, where it went and how it ended.
fn story(call: &Value) -> String {
    let text = |name: &str| call[name].as_str().map(clean);
    let mut out = String::new();
    let mut line = |title: &str, what: String| {
        if !what.is_empty() {
            // Writing to a string does not fail.
            let _ = writeln!(out, "  {title:<9}{what}");
        }
    };
    let outcome = text("outcome").unwrap_or_default();
    let name = text("tool").or(text("name")).map(|name| format!(" {name}")).unwrap_or_default();
    line("called", format!("{}{name}", text("method").unwrap_or_default()));
    let who: Vec<String> = [
        ("subject", ""),
        ("tenant", "tenant "),
        ("issuer", "issuer "),
        ("client", "client "),
        ("endpoint", "endpoint "),
    ]
    .into_iter()
    .filter_map(|(name, title)| Some(format!("{title}{}", text(name)?)))
    .collect();
    line("by", who.join(", "));
    if let Some(decision) = text("decision") {
        let line_number = call["line"].as_u64().map(|line| format!(" (line {line})")).unwrap_or_default();
        line("policy", format!("{decision} by {}{line_number}", text("rule").unwrap_or_default()));
    }
    if call["limit"].is_object() {
        line("limit", clean(&call["limit"].to_string()));
    }
    if let Some(server) = text("server") {
        let revisions = match (text("revision"), text("serverRevision")) {
            (Some(own), Some(its)) if own != its => {
                format!(": it speaks {its}, the caller {own}; translated")
            }
            (_, Some(its)) => format!(": it speaks {its}, and so does the caller"),
            _ => String::new(),
        };
        line("sent to", format!("{server}{revisions}"));
    }
    for event in call["events"].as_array().into_iter().flatten() {
        let of = |name: &str| match &event[name] {
            Value::Null => None,
            Value::String(text) => Some(clean(text)),
            other => Some(other.to_string()),
        };
        let what = of("what").unwrap_or_default();
        let details: Vec<String> = ["attempt", "afterMs", "server", "state", "error", "bytes", "limit"]
            .into_iter()
            .filter_map(|name| Some(format!("{name} {}", of(name)?)))
            .collect();
        let details = if details.is_empty() { String::new() } else { format!(" ({})", details.join(", ")) };
        let why = of("why").map(|why| format!(": {why}")).unwrap_or_default();
        line("then", format!("{what}{details}{why}"));
    }
    let error = text("error").map(|error| format!(" {error}")).unwrap_or_default();
    let message = text("message").map(|message| format!(": {message}")).unwrap_or_default();
    line("ended", format!("{outcome}{error} after {} ms{message}", call["durationMs"]));
    format!("{}  {}\n{out}", text("id").unwrap_or_default(), text("time").unwrap_or_default())
}
