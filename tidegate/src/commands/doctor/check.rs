//! Talks to one server and writes down what it finds.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use tidegate_client::{Client, EraChoice, ServerFacts, Target};

use super::Shared;
use super::report::{Level, Report};
use super::{clients, lists, others, tools};
use crate::commands::connection::{builder, connected};
use crate::commands::discover::{called, capabilities, era};
use crate::commands::exit::Exit;
use crate::commands::failure::Failure;
use crate::commands::target::{Common, Place};

/// How long everything may take if nobody says so.
const USUAL: Duration = Duration::from_secs(60);
/// How much longer than a single thing everything may take, so that the single thing says what it was.
const MARGIN: Duration = Duration::from_millis(500);
/// How long the server may take to answer in the other era.
const OTHER_ERA: Duration = Duration::from_secs(5);
/// How often the time of an answer is taken.
const PINGS: usize = 5;

/// Checks a server, within the time that is given.
pub(super) async fn server(place: Place, common: &Common) -> Report {
    let report = Report {
        name: place.name.clone(),
        target: place.target.to_string(),
        file: place.file.as_ref().map(|file| file.display().to_string()),
        ..Report::default()
    };
    let report: Shared = Arc::new(Mutex::new(report));
    let time = common.timeout().unwrap_or(USUAL) + MARGIN;
    let mut options = common.options(&place.name);
    options.list_faulty_tools = true;
    match builder(&place, options, common.login).and_then(|(builder, words)| Ok((builder.lazy()?, words))) {
        Err(failure) => known(&report).failure("", &failure),
        Ok((client, words)) => {
            let checked = tokio::time::timeout(time, look(&client, &place, common, &report)).await;
            client.close().await;
            let failure = match checked {
                Ok(Ok(())) => None,
                Ok(Err(failure)) => Some(failure),
                Err(_) => Some(
                    Failure::new(
                        Exit::TimedOut,
                        format!("the check did not come to an end within {time:.1?}"),
                    )
                    .next("Give it more time with --timeout."),
                ),
            };
            if let Some(failure) = failure {
                known(&report).failure("", &mended(failure, &place).said(words.get()));
            }
        }
    }
    let mut report = known(&report).clone();
    report.sort();
    report
}

fn known(report: &Shared) -> MutexGuard<'_, Report> {
    report.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// How to mend a server that cannot be reached.
fn mended(failure: Failure, place: &Place) -> Failure {
    match (failure.exit, &place.target) {
        (Exit::Unavailable, Target::Command(_)) => {
            failure.next("Run the command by hand and see what it says; check that it is installed and gets its variables.")
        }
        (Exit::Unavailable, _) => failure.next("Check the address, and that the server runs."),
        _ => failure,
    }
}

async fn look(client: &Client, place: &Place, common: &Common, report: &Shared) -> Result<(), Failure> {
    let started = Instant::now();
    let facts = connected(client, common).await?;
    {
        let mut report = known(report);
        report.connected_in = Some(started.elapsed());
        report.called = called(&facts);
        report.era = Some(era(&facts));
        report.revision = Some(facts.revision.to_string());
        report.transport = Some(facts.transport);
        report.capabilities = capabilities(&facts);
    }
    match ping(client).await {
        Ok(time) => known(report).ping = Some(time),
        Err(failure) => known(report).failure("ping", &failure),
    }
    everything(client, &facts, report).await;
    let other = other_era(place, common, &facts).await;
    let mut report = known(report);
    report.both_eras = other == Some(true);
    clients::check(&mut report, &place.target, &facts, other);
    Ok(())
}

/// The median of several.
async fn ping(client: &Client) -> Result<Duration, Failure> {
    let mut times = Vec::with_capacity(PINGS);
    for _ in 0..PINGS {
        let started = Instant::now();
        client.ping().await?;
        times.push(started.elapsed());
    }
    times.sort();
    Ok(times[PINGS / 2])
}

/// Lists what the server declares.
async fn everything(client: &Client, facts: &ServerFacts, report: &Shared) {
    let (tools, resources, prompts) =
        (facts.has_capability("tools"), facts.has_capability("resources"), facts.has_capability("prompts"));
    if tools {
        let listed = lists::read(client, "tools/list", "tools").await;
        let mut report = known(report);
        report.counts.tools = Some(listed.items.len());
        others::list(&mut report, "tools/list", "tools", &listed);
        tools::check(&mut report, facts.era(), &listed.items);
    }
    if resources {
        let listed = lists::read(client, "resources/list", "resources").await;
        let mut report = known(report);
        report.counts.resources = Some(listed.items.len());
        others::list(&mut report, "resources/list", "resources", &listed);
        others::entries(&mut report, "resource", "uri", &listed.items);
    }
    if resources {
        let listed = lists::read(client, "resources/templates/list", "resourceTemplates").await;
        let mut report = known(report);
        report.counts.templates = Some(listed.items.len());
        // Servers need not have templates just because they have resources.
        if !matches!(&listed.fault, Some(lists::Fault::Failed(error)) if error.symbol == tidegate::Symbol::MethodNotFound)
        {
            others::list(&mut report, "resources/templates/list", "resourceTemplates", &listed);
        }
        others::entries(&mut report, "resource template", "uriTemplate", &listed.items);
    }
    if prompts {
        let listed = lists::read(client, "prompts/list", "prompts").await;
        let mut report = known(report);
        report.counts.prompts = Some(listed.items.len());
        others::list(&mut report, "prompts/list", "prompts", &listed);
        others::entries(&mut report, "prompt", "name", &listed.items);
    }
    if !(tools || resources || prompts) {
        let what = "it declares neither tools nor resources nor prompts, so there is nothing to use";
        known(report).add(Level::Warning, "", what, "declare what it has in its capabilities");
    }
}

/// Whether the server speaks the other era too. Modern was tried first, so that only legacy is left to try.
async fn other_era(place: &Place, common: &Common, facts: &ServerFacts) -> Option<bool> {
    let mut options = common.options(&place.name);
    if !facts.revision.is_modern() {
        return (options.era == EraChoice::Auto).then_some(false);
    }
    options.era = EraChoice::Legacy;
    options.timeout = options.timeout.min(OTHER_ERA);
    options.init_timeout = options.timeout;
    let (builder, _) = builder(place, options, false).ok()?;
    let client = builder.lazy().ok()?;
    let answered = client.server().await;
    client.close().await;
    match answered {
        Ok(_) => Some(true),
        Err(error) if error.original_code.is_some() => Some(false),
        Err(_) => None,
    }
}
