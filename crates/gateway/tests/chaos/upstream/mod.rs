//! A server that gets into trouble: over stdio or HTTP, of either era.

pub(crate) mod http;
pub(crate) mod process;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tempfile::TempPath;
use tidegate_client::{Command, EraChoice, Target};
use tidegate_edge::Eras;
use tidegate_gateway::{ServerSettings, Source};
use tidegate_server::{Cx, Elicit, Server, ServerDoor, Tool, ToolError, schemars};
use tidegate_service::layers::BreakerSettings;

/// How long a server whose calls keep failing is left alone.
pub(crate) const OPEN_FOR: Duration = Duration::from_millis(500);

/// What is wrong with a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mood {
    Fine,
    /// Takes requests and never answers.
    Hanging,
    /// Answers with what is no message.
    Garbling,
    /// Not there at all.
    Gone,
}

impl Mood {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Mood::Fine => "fine",
            Mood::Hanging => "hanging",
            Mood::Garbling => "garbling",
            Mood::Gone => "gone",
        }
    }
}

/// One of the servers.
pub(crate) struct Upstream {
    number: usize,
    era: EraChoice,
    reach: Reach,
    /// Counts troubles, so that one that was followed by another does not heal it.
    troubles: AtomicU64,
    /// Since when nothing is wrong with it.
    pub(crate) healthy_since: Mutex<Option<Instant>>,
}

enum Reach {
    /// Processes read their mood from this file.
    Stdio(TempPath),
    Http(http::Site),
}

impl Upstream {
    pub(crate) fn start(number: usize) -> Arc<Upstream> {
        let era = if number.is_multiple_of(2) { EraChoice::Modern } else { EraChoice::Legacy };
        let reach = match number % 4 {
            0 | 1 => {
                let file = tempfile::NamedTempFile::new().unwrap().into_temp_path();
                std::fs::write(&file, Mood::Fine.name()).unwrap();
                Reach::Stdio(file)
            }
            _ => Reach::Http(http::Site::start(number, eras(era))),
        };
        let healthy_since = Mutex::new(Some(Instant::now()));
        Arc::new(Upstream { number, era, reach, troubles: AtomicU64::new(0), healthy_since })
    }

    /// How the gateway is told of it.
    pub(crate) fn settings(&self) -> ServerSettings {
        let target = match &self.reach {
            Reach::Stdio(file) => {
                let program = std::env::current_exe().unwrap().to_str().unwrap().to_owned();
                let args = ["--exact", "server", "--nocapture"].map(str::to_owned).to_vec();
                let mut command = Command { program, args, ..Command::default() };
                let era = if self.era == EraChoice::Legacy { "legacy" } else { "modern" };
                command.env.insert(process::NUMBER.into(), self.number.to_string());
                command.env.insert(process::ERA.into(), era.into());
                command.env.insert(process::MOOD.into(), file.to_str().unwrap().to_owned());
                command.env.insert(process::OF.into(), std::process::id().to_string());
                Target::Command(command)
            }
            Reach::Http(site) => Target::url(&site.url()).unwrap(),
        };
        let mut settings = ServerSettings::new(format!("s{}", self.number), Source::Target(target));
        // What failing calls have opened is closed by the next calls: after a moment here.
        settings.options.breaker = Some(BreakerSettings::consecutive(5, OPEN_FOR));
        settings.options.timeout = Duration::from_secs(3);
        settings.options.connect_timeout = Duration::from_secs(2);
        settings.options.init_timeout = Duration::from_secs(10);
        settings
    }

    /// Something happens to it, and passes.
    pub(crate) fn trouble(self: &Arc<Self>, random: &mut fastrand::Rng) {
        let mood = [Mood::Hanging, Mood::Garbling, Mood::Gone, Mood::Fine][random.usize(..4)];
        let lasts = Duration::from_millis(random.u64(100..2500));
        *self.healthy_since.lock().unwrap() = None;
        let trouble = self.troubles.fetch_add(1, Ordering::SeqCst) + 1;
        let upstream = self.clone();
        tokio::spawn(async move {
            // A restart is being killed and coming back at once.
            if matches!(mood, Mood::Gone | Mood::Fine) {
                upstream.kill().await;
            }
            upstream.be(mood).await;
            tokio::time::sleep(lasts).await;
            if upstream.troubles.load(Ordering::SeqCst) == trouble {
                upstream.be(Mood::Fine).await;
                *upstream.healthy_since.lock().unwrap() = Some(Instant::now());
            }
        });
    }

    async fn be(&self, mood: Mood) {
        match &self.reach {
            Reach::Stdio(file) => std::fs::write(file, mood.name()).unwrap(),
            Reach::Http(site) => site.be(mood).await,
        }
    }

    async fn kill(&self) {
        match &self.reach {
            Reach::Stdio(_) => process::kill_all(Some(self.number)),
            Reach::Http(site) => site.be(Mood::Gone).await,
        }
    }

    /// Waits until nothing is wrong with it.
    pub(crate) async fn healed(&self) {
        while self.healthy_since.lock().unwrap().is_none() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub(crate) fn stop(&self) {
        match &self.reach {
            Reach::Stdio(file) => _ = std::fs::remove_file(file),
            Reach::Http(site) => site.stop(),
        }
    }
}

fn eras(era: EraChoice) -> Eras {
    if era == EraChoice::Legacy { Eras::Legacy } else { Eras::Modern }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Said {
    by: String,
    n: u64,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Name {
    name: String,
}

/// What each server offers: one tool that says who called, and one that asks who is there.
pub(crate) fn server(number: usize) -> ServerDoor {
    let echo =
        Tool::new("echo").description("Says who called").handler(move |said: Said, _: Cx| async move {
            Ok::<_, ToolError>(format!("{number} {} {}", said.by, said.n))
        });
    let greet =
        Tool::new("greet").description("Asks who is there").handler(move |said: Said, cx: Cx| async move {
            let answer = cx.elicit(Elicit::<Name>::form("Who is there?")).await.accepted()?;
            Ok::<_, ToolError>(format!("{number} {} {}", answer.name, said.n))
        });
    Server::new(format!("chaos-{number}"), "1.0").tool(echo).tool(greet).build()
}
