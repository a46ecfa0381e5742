//! The matrix: clients on the SDKs of others in front of servers on the SDKs of others, of both eras, and our gateway
//! between them with all the servers behind it at once.
//!
//! Each client does every [step](steps) with every [mount](mounts): it lists, calls, is asked, hears of progress, reads.
//! It answers what it is asked with its own name, so that an answer that goes astray is seen.

mod clients;
mod gateway;
mod mounts;
mod steps;
mod table;

use futures_util::future::join_all;

use crate::meeting::Over;
use crate::server::Program;
use crate::{paths, restart};
use clients::Client;
use gateway::Gateway;
use table::{Exception, Table};

/// What cannot work, and why. All the rest has to; and what is listed here must not work, or it need not be listed.
const EXCEPTIONS: &[Exception] = &[];

/// What a client is told whose question could have been another's, and what server-everything says without roots.
const REFUSALS: &[&str] = &["could be for several clients", "no roots are currently configured"];

/// Everybody does everything with everybody, two clients at a time, each with sessions of its own: legacy servers do not
/// say whom they ask.
#[tokio::test(flavor = "multi_thread")]
async fn everybody_with_everybody() {
    let gateway = Gateway::start(mounts::all(), "per-client").await;
    let mut table = Table::new(EXCEPTIONS);
    for pair in Client::all().chunks(2) {
        let outcomes = pair.iter().map(|client| {
            let steps = gateway.mounts().flat_map(|mount| mount.steps(client.name)).collect();
            let together = gateway.mounts().flat_map(|mount| mount.questions(client.name)).collect();
            client.run(&gateway, client.name, steps, together)
        });
        for (client, cells) in pair.iter().zip(join_all(outcomes).await) {
            table.add(client.name, cells);
        }
    }
    gateway.stop().await;
    table.verdict();
}

/// All clients at once, twice each, ask the same of the same servers. Only those servers take part that start quickly: to
/// a legacy server over stdio, each of them is a process.
#[tokio::test(flavor = "multi_thread")]
async fn everybody_at_once() {
    at_once("per-client", Table::new(EXCEPTIONS)).await;
}

/// The same as clients of one user, who share their sessions: nobody is asked what another should have been, but some are
/// told that nothing says whom a server asks.
#[tokio::test(flavor = "multi_thread")]
async fn everybody_at_once_as_one_user() {
    at_once("per-user", Table::new(EXCEPTIONS).or_refused(REFUSALS)).await;
}

/// The official SDK of either version, in both eras, when the gateway is killed and comes back.
#[tokio::test(flavor = "multi_thread")]
async fn the_sdk_goes_on_after_kill_9() {
    let client = |name, subscribes| {
        let program = Program::new(paths::node(), &[&paths::client("node/restart.mjs")])
            .env("TIDEGATE_NODE_MODULES", paths::npm().display().to_string());
        restart::Client { name, program, subscribes }
    };
    let clients =
        [client("typescript-1", true), client("typescript-2-legacy", true), client("typescript-2", false)];
    restart::go_on_after_kill_9(clients).await;
}

async fn at_once(instances: &str, mut table: Table) {
    let quick = |mount: &mounts::Mount| mount.over == Over::Http || mount.server.starts_with("rmcp");
    let gateway = Gateway::start(mounts::all().into_iter().filter(quick).collect(), instances).await;
    let clients = Client::all();
    let named: Vec<(&Client, String)> = clients
        .iter()
        .flat_map(|client| ["one", "two"].map(|which| (client, format!("{}-{which}", client.name))))
        .collect();
    let outcomes = named.iter().map(|(client, name)| {
        let together = gateway.mounts().flat_map(|mount| mount.questions(name)).collect();
        client.run(&gateway, name, Vec::new(), together)
    });
    for ((_, name), cells) in named.iter().zip(join_all(outcomes).await) {
        table.add(name, cells);
    }
    gateway.stop().await;
    table.verdict();
}
