//! `tidegate explain`: what happened to a call, as a running gateway tells it, or the file that it has left.

mod story;

use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};
use tidegate_config::{Config, ListenSettings, StorySettings};
use tidegate_protocol::text::escaped_json;
use tidegate_telemetry::{Stories, Wanted};
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
    fn limit(&self) -> usize {
        if self.last_error { 1 } else { self.limit.into() }
    }

    pub(crate) fn is_json(&self) -> bool {
        self.json
    }
}

pub(crate) async fn run(explain: Explain) -> Result<Exit, Failure> {
    let place = match &explain.url {
        Some(url) => Place { url: url.clone(), file: None },
        None => configured(explain.config.as_deref())?,
    };
    let base = shown(&place.url);
    let (found, teller) = match (ask(&explain, &place.url).await, &place.file) {
        (Err(failure), Some(settings)) if failure.exit == Exit::Unavailable => {
            match read(&explain, settings) {
                Some(found) => found?,
                None => return Err(failure),
            }
        }
        (asked, _) => (asked?, format!("the gateway at {base}")),
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
        let what = match &explain.id {
            Some(id) => format!("{teller} knows no call {id}"),
            None => format!("{teller} knows no such call"),
        };
        return Err(Failure::new(Exit::Usage, what).advise(
            "It has the latest calls only: see stories and stories_file in [telemetry]. Older ones may be in the log or in the audit trail.",
        ));
    }
    Ok(Exit::Fine)
}

/// Who can tell of calls.
struct Place {
    url: Url,
    /// What is kept in a file, for when the gateway does not run.
    file: Option<StorySettings>,
}

/// Where the gateway of a configuration is.
fn configured(file: Option<&std::path::Path>) -> Result<Place, Failure> {
    let settings = match Config::find(file) {
        Some(file) => configuration::load_unserved(&file)?,
        None => tidegate_config::Settings::default(),
    };
    let stories =
        Some(settings.telemetry.stories).filter(|stories| stories.file.is_some() && stories.room > 0);
    Ok(Place { url: address(&settings.listen)?, file: stories })
}

fn address(listen: &ListenSettings) -> Result<Url, Failure> {
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
        query.append_pair("limit", &explain.limit().to_string());
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
