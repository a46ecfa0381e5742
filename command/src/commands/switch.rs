//! `tidegate enable` and `tidegate disable`: servers that are used, or not for now.

use std::time::{Duration, Instant};

use clap::Args;
use serde_json::json;
use tidegate_config::edit;
use tidegate_protocol::text::escaped_json;

use super::admin::client::AskError;
use super::admin::target::{GatewayArgs, Target};
use super::exit::Exit;
use super::failure::Failure;
use super::operate::path;
use super::{configuration, output};
use crate::term::clean::line as clean;
use crate::term::style::Paint;

/// How long a running gateway takes to read its file, usually.
const READS_WITHIN: Duration = Duration::from_secs(3);
/// How long a running gateway may take to follow its file.
const FOLLOWS_WITHIN: Duration = Duration::from_secs(10);

/// Use a server again that was disabled
///
/// Changes the configuration, and the running gateway follows.
#[derive(Args)]
pub(crate) struct Enable {
    #[command(flatten)]
    on: On,
}

/// Do not use a server for now
///
/// Its tools leave all lists; calls that are running may finish. Changes the configuration (enabled = false), and the running
/// gateway follows.
#[derive(Args)]
pub(crate) struct Disable {
    #[command(flatten)]
    on: On,
}

#[derive(Args)]
struct On {
    /// The name of the server
    name: String,

    /// Tell only the running gateway, and leave the configuration as it is
    #[arg(long)]
    until_restart: bool,

    #[command(flatten)]
    gateway: GatewayArgs,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Enable {
    pub(crate) fn is_json(&self) -> bool {
        self.on.json
    }
}

impl Disable {
    pub(crate) fn is_json(&self) -> bool {
        self.on.json
    }
}

pub(crate) async fn enable(enable: Enable) -> Result<Exit, Failure> {
    switch(&enable.on, true).await
}

pub(crate) async fn disable(disable: Disable) -> Result<Exit, Failure> {
    switch(&disable.on, false).await
}

/// What became of the running gateway.
enum Followed {
    Yes,
    /// There is none.
    Absent,
    /// It does what its file says, sooner or later, and why nobody knows yet.
    Later(String),
}

async fn switch(on: &On, is_on: bool) -> Result<Exit, Failure> {
    // All of them follow their file.
    let target = if on.until_restart { on.gateway.find().await? } else { on.gateway.find_all().await? };
    let path = path(&on.name, if is_on { "enable" } else { "disable" })?;
    let (file, followed) = match on.until_restart {
        true => {
            target
                .client
                .post(&path)
                .await
                .map_err(|error| target.client.failure(error, "switch servers"))?;
            (None, Followed::Yes)
        }
        false => {
            let file = changeable(on, &target)?;
            edit::set_enabled(&file, &on.name, is_on)?;
            (Some(file), tell(&target, on, &path, is_on).await)
        }
    };
    if on.json {
        let is_running = !matches!(followed, Followed::Absent);
        let config = file.map(|file| file.display().to_string());
        let said = json!({
            "server": on.name, "enabled": is_on, "config": config, "running": is_running,
            "followed": matches!(followed, Followed::Yes),
        });
        output::text(&escaped_json(&said.to_string()))?;
        return Ok(Exit::Fine);
    }
    let paint = Paint::stdout();
    let word = if is_on { "Enabled" } else { "Disabled" };
    let place = match &file {
        Some(file) => format!(" in {}", paint.dim(clean(&file.display().to_string()))),
        None => " until the gateway restarts".to_owned(),
    };
    output::text(&format!("{} {}{place}", paint.good(word), paint.name(clean(&on.name))))?;
    match followed {
        Followed::Yes => {}
        Followed::Absent => output::note("note: no gateway runs; the next one will do so"),
        Followed::Later(why) => {
            output::note(&format!("note: the running gateway follows its file: {}", clean(&why)))
        }
    }
    Ok(Exit::Fine)
}

/// The configuration that is to be changed: that of the gateway which is meant.
fn changeable(on: &On, target: &Target) -> Result<std::path::PathBuf, Failure> {
    match (&target.file, &on.gateway.url) {
        (Some(file), _) => Ok(file.clone()),
        (None, Some(_)) => {
            Err(Failure::usage("the configuration of that gateway is not on this machine, or not yours")
                .advise("Change it where it is, or use --until-restart."))
        }
        (None, None) => configuration::existing(on.gateway.config.as_deref()),
    }
}

/// Has the running gateway do at once what its file says now.
async fn tell(target: &Target, on: &On, path: &str, is_on: bool) -> Followed {
    let begun = Instant::now();
    let server = format!("/api/servers/{}", on.name);
    // What the file says is the better reason to be off. It is soon read.
    while !is_on && begun.elapsed() < READS_WITHIN {
        match target.client.get(&server, &[]).await {
            Ok(said) if said["state"] == "disabled" => return Followed::Yes,
            Ok(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            Err(_) => break,
        }
    }
    loop {
        let why = match target.client.post(path).await {
            Ok(_) => return Followed::Yes,
            Err(AskError::NoGateway(_)) => return Followed::Absent,
            // It has not read its file yet, or the file has another reason.
            Err(AskError::Refused(404 | 409, why)) if is_on => why,
            Err(AskError::Refused(_, why)) => return Followed::Later(why),
            Err(AskError::Failed(failure)) => return Followed::Later(failure.line()),
        };
        let is_used = target.client.get(&server, &[]).await.is_ok_and(|said| said["state"] != "disabled");
        if is_used {
            return Followed::Yes;
        }
        if begun.elapsed() > FOLLOWS_WITHIN {
            return Followed::Later(why);
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
