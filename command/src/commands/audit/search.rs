//! `tidegate audit search`.

use std::collections::VecDeque;

use clap::Args;
use tidegate_audit::search::{Query, search};
use tidegate_protocol::{Json, Limits, Object};

use super::times::moment;
use super::{Place, unreadable};
use crate::commands::exit::Exit;
use crate::commands::failure::Failure;
use crate::commands::output;
use crate::term::style::Paint;
use crate::term::table::Table;
use crate::term::width;

/// Find records of the trail, the newest last
///
/// Everything that is asked for must be so, exactly. To see whether records were changed, use tidegate audit verify.
#[derive(Args)]
pub(super) struct Search {
    #[command(flatten)]
    place: Place,

    /// The tenant of who called
    #[arg(long)]
    tenant: Option<String>,

    /// Who called
    #[arg(long)]
    subject: Option<String>,

    /// The OAuth client, or the name of the key
    #[arg(long)]
    client: Option<String>,

    /// The tool, prompt or resource that was called
    #[arg(long, visible_alias = "tool")]
    name: Option<String>,

    /// The server that it was sent to
    #[arg(long)]
    server: Option<String>,

    /// The endpoint that was called
    #[arg(long)]
    endpoint: Option<String>,

    /// The method, such as tools/call
    #[arg(long)]
    method: Option<String>,

    /// The rule that decided
    #[arg(long)]
    rule: Option<String>,

    /// What it decided: allowed, refused or would_refuse
    #[arg(long, hide_possible_values = true, value_parser = ["allowed", "refused", "would_refuse"])]
    decision: Option<String>,

    /// How it ended: ok, tool_error, input_required, task, subscribed, error or cancelled
    #[arg(long, hide_possible_values = true, value_parser = ["ok", "tool_error", "input_required", "task", "subscribed", "error", "cancelled"])]
    outcome: Option<String>,

    /// What failed, such as TIMEOUT_ERROR
    #[arg(long, value_name = "SYMBOL")]
    error: Option<String>,

    /// The correlation id, as in log lines and error messages
    #[arg(long)]
    id: Option<String>,

    /// The kind of record: call, login_refused, host_refused, policy, operation, start, stop, dropped or lost
    #[arg(long, hide_possible_values = true, value_parser = ["call", "login_refused", "host_refused", "policy", "operation", "start", "stop", "dropped", "lost"])]
    kind: Option<String>,

    /// The arguments of the call, which are found by their digest
    #[arg(long, value_name = "JSON")]
    args: Option<String>,

    /// Not before: a time in UTC, a day, or how long ago, such as 1h
    #[arg(long, value_name = "TIME", value_parser = moment)]
    since: Option<String>,

    /// Not after
    #[arg(long, value_name = "TIME", value_parser = moment)]
    until: Option<String>,

    /// At most so many, the newest
    #[arg(long, value_name = "COUNT", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    limit: u32,

    /// Print the records as they are, one JSON object for each line
    #[arg(long)]
    pub(super) json: bool,
}

impl Search {
    fn query(&self) -> Result<Query, Failure> {
        let digest = self.args.as_deref().map(digest).transpose()?;
        let asked = [
            ("tenant", &self.tenant),
            ("subject", &self.subject),
            ("client", &self.client),
            ("name", &self.name),
            ("server", &self.server),
            ("endpoint", &self.endpoint),
            ("method", &self.method),
            ("rule", &self.rule),
            ("decision", &self.decision),
            ("outcome", &self.outcome),
            ("error", &self.error),
            ("id", &self.id),
            ("kind", &self.kind),
            ("args", &digest),
        ];
        let members = asked.into_iter().filter_map(|(name, value)| Some((name, value.clone()?))).collect();
        Ok(Query { members, since: self.since.clone(), until: self.until.clone() })
    }
}

/// The digest of arguments, as records have it.
fn digest(text: &str) -> Result<String, Failure> {
    let arguments = Json::parse(text.to_owned(), &Limits::default());
    let arguments = arguments.map_err(|error| Failure::usage(format!("--args is not JSON: {error}")))?;
    let digest = tidegate_audit::arguments_digest(&arguments);
    Ok(digest.iter().map(|byte| format!("{byte:02x}")).collect())
}

pub(super) fn run(arguments: &Search) -> Result<Exit, Failure> {
    let (path, query) = (arguments.place.find()?, arguments.query()?);
    let (mut newest, mut more) = (VecDeque::new(), 0u64);
    let searched = search(&path, &query, |line, _| {
        if newest.len() == arguments.limit as usize {
            newest.pop_front();
            more += 1;
        }
        newest.push_back(line.to_owned());
        true
    });
    let searched = searched.map_err(|error| unreadable(&path, &error))?;
    match arguments.json {
        true => newest.iter().try_for_each(|line| output::text(line))?,
        false if newest.is_empty() => {
            output::note(&format!("None of {} records is like that.", searched.records))
        }
        false => output::text(&table(&newest).show(width(), Paint::stdout()))?,
    }
    if more > 0 {
        output::note(&format!("note: {more} older records match, too; --limit shows more of them"));
    }
    if searched.unreadable > 0 {
        let lines = searched.unreadable;
        output::note(&format!("note: {lines} lines are no records; tidegate audit verify says more"));
    }
    Ok(Exit::Fine)
}

fn table(lines: &VecDeque<String>) -> Table {
    let mut table = Table::new(&["SEQ", "TIME", "WHO", "WHAT", "SERVER", "OUTCOME"]);
    for line in lines {
        let Ok(record) = Object::parse(line.clone(), &Limits::default()) else { continue };
        let text = |name: &str| record.str(name).unwrap_or_default().into_owned();
        table.row([
            record.get("seq").unwrap_or_default().to_owned(),
            text("time"),
            who(&record),
            what(&record),
            text("server"),
            outcome(&record),
        ]);
    }
    table
}

/// Who called, for whom nobody else: `ann (reef)`, or where a request came from.
fn who(record: &Object) -> String {
    let subject = record.str("subject").or_else(|| record.str("address")).unwrap_or_default();
    match record.str("tenant") {
        Some(tenant) => format!("{subject} ({tenant})"),
        None => subject.into_owned(),
    }
}

/// What was called, or what else it was.
fn what(record: &Object) -> String {
    let kind = record.str("method").or_else(|| record.str("kind")).unwrap_or_default();
    match record.str("name").or_else(|| record.str("operation")) {
        Some(name) => format!("{kind} {name}"),
        None => kind.into_owned(),
    }
}

/// How it ended, and because of what.
fn outcome(record: &Object) -> String {
    let text = |name: &str| record.str(name).map(|text| text.into_owned());
    let decision = text("decision").filter(|decision| decision != "allowed");
    let decided = decision.map(|decision| format!("{decision} by {}", text("rule").unwrap_or_default()));
    let operated = text("path").map(|path| format!("{path} by {}", text("way").unwrap_or_default()));
    let detail = [text("outcome"), text("error"), decided, text("reason"), operated, text("detail")];
    detail.into_iter().flatten().collect::<Vec<_>>().join(", ")
}
