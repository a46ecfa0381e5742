//! This project's client, called with its defaults: ids, retries, breaker and bounds as anybody gets them.

use anyhow::Result;
use serde_json::json;
use tidegate_benches_common::plan::{Plan, Target};
use tidegate_benches_common::{MESSAGE, drive};
use tidegate_client::Client;

#[tokio::main]
async fn main() -> Result<()> {
    let plan = Plan::begin();
    let target = match plan.target() {
        Target::Url(url) => tidegate_client::Target::url(url)?,
        Target::Command(program, arguments) => tidegate_client::Target::command(program, arguments),
    };
    let client = Client::connect(target).await?;
    let revision = client.server().await?.revision;

    let call = {
        let client = client.clone();
        move || {
            let call = client.call("echo", json!({"message": MESSAGE}));
            async move { drive::check(Some(&call.await?.text())) }
        }
    };
    drive::run(&plan, revision.as_str(), call).await?.print()?;
    client.close().await;
    Ok(())
}
