//! [`Workspace`]: where an agent works: a folder of its own, the address of the model, and the gateway with the tools.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::json;
use tidegate_client::Target;
use tokio::process::Command;

use super::model::{Asked, Model, Wire};
use super::script::{DONE, Script, flat};
use crate::gateway::{Gateway, tools};
use crate::meeting::{Over, eventually};
use crate::paths;
use crate::server::{Program, processes_with};

/// How long an agent may take. They are done in seconds; the machine may be busy with others.
const PATIENCE: Duration = Duration::from_secs(120);

/// Those that do not show their model what is inside of an argument: LlamaIndex knows objects in objects by reference only.
const FLAT: &[&str] = &["llama_index"];

/// Those that refuse the schemas of the server from npm as they are (an argument has two types there) and with that all
/// tools. They get portable ones.
const PORTABLE: &[&str] = &["dspy", "semantic_kernel"];

/// What every agent is told: to stay here. There is no key for any model, and the proxy is the model's address.
const QUIET: &[(&str, &str)] = &[
    ("ANTHROPIC_API_KEY", "none"),
    ("OPENAI_API_KEY", "none"),
    ("GEMINI_API_KEY", "none"),
    ("GOOGLE_API_KEY", "none"),
    ("DO_NOT_TRACK", "1"),
    ("CREWAI_DISABLE_TELEMETRY", "true"),
    ("MASTRA_TELEMETRY_DISABLED", "1"),
    ("MCP_USE_ANONYMIZED_TELEMETRY", "false"),
    ("HAYSTACK_TELEMETRY_ENABLED", "false"),
    ("OTEL_SDK_DISABLED", "true"),
    ("NO_PROXY", "127.0.0.1,localhost"),
    ("no_proxy", "127.0.0.1,localhost"),
    ("NO_COLOR", "1"),
    ("CI", "true"),
];

/// An agent, and how it speaks with its model and with the gateway.
pub(crate) struct Agent {
    pub(crate) name: &'static str,
    /// How it reaches the gateway.
    pub(crate) over: Over,
    pub(crate) wire: Wire,
    /// Whether it wants the model's answers as streams.
    pub(crate) streams: bool,
}

/// Where it works.
pub(crate) struct Workspace {
    /// Its folder, which is also its home.
    pub(crate) home: PathBuf,
    /// The model's address, without a path.
    pub(crate) model: String,
    pub(crate) over: Over,
    /// The gateway's address.
    pub(crate) url: String,
    /// What starts the gateway, for agents that do that themselves.
    pub(crate) command: Vec<String>,
}

impl Workspace {
    /// A file in the folder, and its path.
    pub(crate) fn file(&self, name: &str, text: &str) -> String {
        let path = self.home.join(name);
        fs::create_dir_all(path.parent().expect("it is in a folder")).expect("a writable target directory");
        fs::write(&path, text).expect("a writable target directory");
        path.to_str().expect("the path of this repository is UTF-8").to_owned()
    }
}

impl Agent {
    /// Lets the program work that starts it, and fails if anything is not as it has to be.
    pub(crate) async fn run(&self, program: impl FnOnce(&Workspace) -> Program) {
        let name = self.name;
        let home = paths::scratch(&format!("agents/{name}"));
        let config = config(&home, if PORTABLE.contains(&name) { "portable" } else { "exact" });
        let model = Model::start(|asked| Script::new().answer(asked)).await;
        let (gateway, url, target) = match self.over {
            Over::Stdio => {
                let target =
                    Program::new(paths::tidegate(), &["serve", "--stdio", "--config", &config]).target();
                (None, String::new(), target)
            }
            _ => {
                let gateway = Gateway::start(Path::new(&config)).await;
                let (url, target) = (gateway.url.clone(), Target::url(&gateway.url).expect("an address"));
                (Some(gateway), url, target)
            }
        };
        let offered = tools(target, &["memory_", "thinking_"].map(str::to_owned)).await;
        let command = ["serve", "--stdio", "--config", &config].map(str::to_owned);
        let command = std::iter::once(paths::tidegate()).chain(command).collect();
        let workspace = Workspace { home, model: model.url.clone(), over: self.over, url, command };
        let said = work(name, &workspace, &program(&workspace)).await;
        if let Some(gateway) = gateway {
            gateway.stop().await;
        }

        let (mut faults, mut asked) = (Vec::new(), Vec::new());
        for (wire, streams, one) in model.asked() {
            if !one.tools.is_empty() && (wire, streams) != (self.wire, self.streams) {
                faults.push(format!("it spoke {wire:?} with its model, and wanted a stream: {streams}"));
            }
            asked.push(one);
        }
        faults.extend(Script::new().faults(&asked, &offered));
        faults.extend(flat(&asked).filter(|_| !FLAT.contains(&name)));
        match said {
            Ok(said) if said.contains(DONE) => {}
            Ok(said) => faults.push(format!("it did not say what the model said last, but: {said}")),
            Err(fault) => faults.push(fault),
        }
        // Not a fault: it got nowhere.
        let strange = model.strange();
        eprintln!(
            "{name}: {} requests to the model, {} tools; elsewhere: {strange:?}",
            asked.len(),
            most(&asked)
        );
        assert!(faults.is_empty(), "{name}:\n  {}", faults.join("\n  "));
    }
}

fn most(asked: &[Asked]) -> usize {
    asked.iter().map(|asked| asked.tools.len()).max().unwrap_or_default()
}

/// The gateway's configuration: the memory, and a server from npm.
fn config(home: &Path, schemas: &str) -> String {
    let thinking = "@modelcontextprotocol/server-sequential-thinking/dist/index.js";
    let text = format!(
        "state_dir = false\n\
         [tools]\nschemas = {}\n\
         [memory]\nstore = {}\n\
         [servers.memory]\nbuiltin = \"memory\"\n\
         [servers.thinking]\ncommand = {}\n",
        json!(schemas),
        json!(home.join("memory.db")),
        json!(paths::agent_node("npm-usual", thinking)),
    );
    let path = home.join("tidegate.toml");
    fs::write(&path, text).expect("a writable target directory");
    path.to_str().expect("the path of this repository is UTF-8").to_owned()
}

/// Runs the program to its end, and nothing that it started stays. Returns what it said.
pub(crate) async fn work(name: &str, workspace: &Workspace, program: &Program) -> Result<String, String> {
    let temporary = workspace.home.join("tmp");
    fs::create_dir_all(&temporary).expect("a writable target directory");
    let (out, err) = (workspace.home.join("stdout.log"), workspace.home.join("stderr.log"));
    let file = |path: &Path| File::create(path).expect("a writable target directory");
    let mut command = Command::new(&program.program);
    // What this machine has in its environment is for nobody here, above all no key.
    command.args(&program.args).env_clear().envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
    command.env("HOME", &workspace.home).env("TMPDIR", &temporary).env("LANG", "C.UTF-8");
    command.envs(
        ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"].map(|name| (name, &workspace.model)),
    );
    command.envs(QUIET.iter().copied()).envs(&program.env).current_dir(&workspace.home);
    // Files and no pipes: what outlives it would keep those open.
    command.stdin(Stdio::null()).stdout(file(&out)).stderr(file(&err)).process_group(0).kill_on_drop(true);
    let mut child = command.spawn().unwrap_or_else(|e| panic!("{name}: {}: {e}", program.program));
    let group = format!("-{}", child.id().expect("it runs"));
    let ended = tokio::time::timeout(PATIENCE, child.wait()).await;
    // The group may be empty by now.
    let _ = Command::new("kill").args(["-9", "--", &group]).stderr(Stdio::null()).status().await;
    let read =
        |path| fs::read(path).map(|text| String::from_utf8_lossy(&text).into_owned()).unwrap_or_default();
    let (said, complained) = (read(&out), read(&err));
    match ended {
        Ok(Ok(status)) if status.success() => Ok(said),
        Ok(status) => Err(format!("it ended badly: {status:?}\n{}\n{}", tail(&said), tail(&complained))),
        Err(_) => {
            let _ = child.wait().await;
            Err(format!("it was not done within {PATIENCE:?}\n{}\n{}", tail(&said), tail(&complained)))
        }
    }
}

/// The last lines.
fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(40)..].join("\n")
}

#[tokio::test]
async fn nothing_that_an_agent_started_stays() {
    let home = paths::scratch("agents/shell");
    let (over, url, command) = (Over::Http, String::new(), Vec::new());
    let workspace = Workspace { home, model: "http://127.0.0.1:9".to_owned(), over, url, command };
    let mark = format!("6{}", std::process::id());
    let script = format!("sleep {mark} & echo $HOME $HTTPS_PROXY");
    let said = work("shell", &workspace, &Program::new("sh", &["-c", &script])).await.expect("it ends well");
    assert_eq!(said.trim(), format!("{} {}", workspace.home.display(), workspace.model));
    eventually("it is gone", async || processes_with(&mark) == 0).await;
}
