//! [`Client`]: a program of `interop/clients`, and what it tells.

use std::process::Stdio;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use super::gateway::Gateway;
use super::steps::Step;
use super::table::Cell;
use crate::paths;
use crate::server::Program;

/// How long a client may take with all its steps, on a machine that does other things as well.
const PATIENCE: Duration = Duration::from_secs(900);

const MODERN: &str = "2026-07-28";
const LEGACY: &str = "2025-11-25";

/// A client on somebody's SDK.
pub(crate) struct Client {
    pub(crate) name: &'static str,
    program: Program,
    /// What it is told about the era, if it knows more than one.
    era: Option<&'static str>,
    /// What it has to speak then.
    revision: &'static str,
}

/// A line that a client prints.
#[derive(Deserialize)]
struct StepResult {
    server: String,
    step: String,
    ok: bool,
    got: Value,
}

impl Client {
    /// All of them, such that neighbours differ in era and SDK.
    pub(crate) fn all() -> Vec<Client> {
        let node = |script: &str| {
            Program::new(paths::node(), &[&paths::client(script)])
                .env("TIDEGATE_NODE_MODULES", paths::npm().display().to_string())
        };
        let python = |python: String, script: &str| {
            Program::new(python, &[&paths::client(script)]).env("PYTHONDONTWRITEBYTECODE", "1")
        };
        let typescript = || node("node/typescript_sdk.mjs");
        let sdk = || python(paths::python(), "python/python_sdk.py");
        let fast_mcp = || python(paths::python(), "python/fast_mcp.py");
        let rmcp = || Program::new(env!("CARGO_BIN_EXE_rmcp-client"), &[]);
        let modern = |name, program| Client { name, program, era: Some("modern"), revision: MODERN };
        let legacy = |name, program| Client { name, program, era: Some("legacy"), revision: LEGACY };
        let only_legacy = |name, program| Client { name, program, era: None, revision: LEGACY };
        vec![
            only_legacy("typescript-1", node("node/typescript_sdk_1.mjs")),
            modern("typescript-2", typescript()),
            only_legacy("python-1", python(paths::legacy_python(), "python/python_sdk_1.py")),
            modern("python-2", sdk()),
            legacy("rmcp-legacy", rmcp()),
            modern("fastmcp", fast_mcp()),
            legacy("typescript-2-legacy", typescript()),
            modern("rmcp", rmcp()),
            legacy("python-2-legacy", sdk()),
            legacy("fastmcp-legacy", fast_mcp()),
        ]
    }

    /// Does these steps, and then those at the same time, and answers all questions with this name.
    pub(crate) async fn run(
        &self,
        gateway: &Gateway,
        name: &str,
        steps: Vec<Step>,
        together: Vec<Step>,
    ) -> Vec<Cell> {
        let plans = |steps: &[Step]| Value::from_iter(steps.iter().map(Step::plan));
        let plan = json!({"steps": plans(&steps), "together": plans(&together)}).to_string();
        let mut command = tokio::process::Command::new(&self.program.program);
        command.args(&self.program.args).args([&gateway.url, name, &plan]).args(self.era);
        command.envs(&self.program.env).stdin(Stdio::null()).kill_on_drop(true);
        let output = tokio::time::timeout(PATIENCE, command.output()).await;
        let output = output.unwrap_or_else(|_| panic!("{name}: not done within {PATIENCE:?}"));
        let output = output.unwrap_or_else(|e| panic!("{name}: {}: {e}", self.program.program));
        let (said, complained) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{name}: {}\n{said}\n{complained}", output.status);
        let line = |line: &str| serde_json::from_str(line).unwrap_or_else(|e| panic!("{name}: {e}: {line}"));
        let told: Vec<StepResult> = said.lines().map(line).collect();
        let spoken = told.iter().find(|told| told.step == "connect").map(|told| &told.got);
        assert_eq!(spoken, Some(&json!(self.revision)), "{name}: the revision that is spoken");
        steps.into_iter().chain(together).map(|step| cell(&told, step)).collect()
    }
}

/// What came of a step.
fn cell(told: &[StepResult], step: Step) -> Cell {
    let here: Vec<&StepResult> =
        told.iter().filter(|told| told.server == step.mount && told.step == step.step).collect();
    let fault = match &here[..] {
        [told] if told.ok && step.expected.is(&told.got) => None,
        [told] => Some(told.got.to_string()),
        _ => Some(format!("it is told of {} times", here.len())),
    };
    Cell { server: step.server, mount: step.mount, step: step.step, fault }
}
