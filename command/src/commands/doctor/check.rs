//! Talks to one server and writes down what it finds.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use tidegate_client::{Client, EraChoice, ServerInfo, Target};

use super::SharedReport;
use super::report::{Level, Report};
use super::starts::Starts;
use super::{clients, entries, lists, tools};
use crate::commands::connection::{StartLimit, builder, connected};
use crate::commands::discover::{called, capabilities, era};
use crate::commands::exit::Exit;
use crate::commands::failure::Failure;
use crate::commands::resolve::ResolvedServer;
use crate::commands::target::ConnectionArgs;

/// How many times as long as one response everything after the start may take: there are several lists, and each may have
/// several pages.
const RESPONSES: u32 = 5;
/// How long the server may take to answer in the other era.
const OTHER_ERA: Duration = Duration::from_secs(5);
/// How often the time of a response is measured.
const PINGS: usize = 5;

/// Checks a server. It may take as long to start, and for each response, as its settings or the command line say.
pub(super) async fn server(server: ResolvedServer, common: &ConnectionArgs, starts: &Starts) -> Report {
    let report = Report {
        name: server.name.clone(),
        target: server.shown(),
        file: server.file.as_ref().map(|file| file.display().to_string()),
        ..Report::default()
    };
    let report: SharedReport = Arc::new(Mutex::new(report));
    let mut options = common.options(&server);
    options.list_faulty_tools = true;
    let limit = StartLimit::new(&options, common.timeout());
    let patience = options.timeout.saturating_mul(RESPONSES);
    match builder(&server, options, common.login).and_then(|(builder, stderr)| Ok((builder.lazy()?, stderr)))
    {
        Err(failure) => lock(&report).failure("", &failure),
        Ok((client, stderr)) => {
            let checked = async {
                let facts = start(&client, &server, limit, starts, &report).await?;
                let looked = look(&client, &server, common, &facts, &report);
                if tokio::time::timeout(patience, looked).await.is_err() {
                    let time = humantime::format_duration(patience);
                    let what =
                        format!("the check was stopped after {time}, so something may be missing here");
                    lock(&report).add(Level::Warning, "", what, "allow more time with --timeout");
                }
                Ok(())
            };
            let checked: Result<(), Failure> = checked.await;
            client.close().await;
            if let Err(failure) = checked {
                let failure = common.advised(advised(failure, &server)).with_stderr(stderr.get());
                lock(&report).failure("", &failure);
            }
        }
    }
    let mut report = lock(&report).clone();
    report.sort();
    report
}

fn lock(report: &SharedReport) -> MutexGuard<'_, Report> {
    report.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// What to do about a server that cannot be reached.
fn advised(failure: Failure, server: &ResolvedServer) -> Failure {
    match (failure.exit, &server.target) {
        (Exit::Unavailable, Target::Command(_)) => failure.advise(
            "Run the command by hand to see its output. Is the program installed? Are its environment variables set?",
        ),
        (Exit::Unavailable, Target::Url(_)) => failure.advise("Is the URL right, and is the server running?"),
        _ => failure,
    }
}

/// Connects.
async fn start(
    client: &Client,
    server: &ResolvedServer,
    limit: StartLimit,
    starts: &Starts,
    report: &SharedReport,
) -> Result<ServerInfo, Failure> {
    let (started, start) = (Instant::now(), starts.begin());
    let facts = connected(client, server, limit).await?;
    let mut report = lock(report);
    report.connected_in = Some(started.elapsed());
    report.started_alone = start.was_alone();
    report.called = called(&facts);
    report.era = Some(era(&facts));
    report.revision = Some(facts.revision.to_string());
    report.transport = Some(facts.transport);
    report.capabilities = capabilities(&facts);
    Ok(facts)
}

async fn look(
    client: &Client,
    server: &ResolvedServer,
    common: &ConnectionArgs,
    facts: &ServerInfo,
    report: &SharedReport,
) {
    everything(client, facts, report).await;
    match ping(client).await {
        Ok(time) => lock(report).ping = Some(time),
        Err(failure) => lock(report).failure("ping", &failure),
    }
    let other = other_era(server, common, facts).await;
    let mut report = lock(report);
    report.both_eras = other == Some(true);
    clients::check(&mut report, server, facts, other);
}

/// The shortest of several: a longer one says more about what else this machine is doing.
async fn ping(client: &Client) -> Result<Duration, Failure> {
    let mut shortest = Duration::MAX;
    for _ in 0..PINGS {
        let started = Instant::now();
        client.ping().await?;
        shortest = shortest.min(started.elapsed());
    }
    Ok(shortest)
}

/// Lists what the server declares.
async fn everything(client: &Client, facts: &ServerInfo, report: &SharedReport) {
    let (tools, resources, prompts) =
        (facts.has_capability("tools"), facts.has_capability("resources"), facts.has_capability("prompts"));
    if tools {
        let listed = lists::read(client, "tools/list", "tools").await;
        let mut report = lock(report);
        report.counts.tools = Some(listed.items.len());
        entries::check_list(&mut report, "tools/list", "tools", &listed);
        tools::check(&mut report, facts.era(), &listed.items);
    }
    if resources {
        let listed = lists::read(client, "resources/list", "resources").await;
        let mut report = lock(report);
        report.counts.resources = Some(listed.items.len());
        entries::check_list(&mut report, "resources/list", "resources", &listed);
        entries::check_each(&mut report, "resource", "uri", &listed.items);
    }
    if resources {
        let listed = lists::read(client, "resources/templates/list", "resourceTemplates").await;
        let mut report = lock(report);
        report.counts.templates = Some(listed.items.len());
        // Servers need not have templates just because they have resources.
        if !matches!(&listed.fault, Some(lists::ListFault::Failed(error)) if error.symbol == tidegate::Symbol::MethodNotFound)
        {
            entries::check_list(&mut report, "resources/templates/list", "resourceTemplates", &listed);
        }
        entries::check_each(&mut report, "resource template", "uriTemplate", &listed.items);
    }
    if prompts {
        let listed = lists::read(client, "prompts/list", "prompts").await;
        let mut report = lock(report);
        report.counts.prompts = Some(listed.items.len());
        entries::check_list(&mut report, "prompts/list", "prompts", &listed);
        entries::check_each(&mut report, "prompt", "name", &listed.items);
    }
    if !(tools || resources || prompts) {
        let what = "declares neither tools nor resources nor prompts, so there is nothing to use";
        lock(report).add(Level::Warning, "", what, "declare them in the server's capabilities");
    }
}

/// Whether the server speaks the other era too. Modern was tried first, so that only legacy is left to try.
async fn other_era(server: &ResolvedServer, common: &ConnectionArgs, facts: &ServerInfo) -> Option<bool> {
    if let Target::Local(_) = server.target {
        // It is part of this program, which speaks both.
        return None;
    }
    let mut options = common.options(server);
    if !facts.revision.is_modern() {
        return (options.era == EraChoice::Auto).then_some(false);
    }
    options.era = EraChoice::Legacy;
    options.timeout = options.timeout.min(OTHER_ERA);
    options.init_timeout = options.timeout;
    let (builder, _) = builder(server, options, false).ok()?;
    let client = builder.lazy().ok()?;
    let answered = client.server().await;
    client.close().await;
    match answered {
        Ok(_) => Some(true),
        Err(error) if error.original_code.is_some() => Some(false),
        Err(_) => None,
    }
}
