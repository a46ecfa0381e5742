//! The steps of the matrix, and how they are done.

use std::io::Write as _;
use std::time::Duration;

use futures_util::future::join_all;
use rmcp::model::{
    CallToolRequestParams, GetPromptRequestParams, ProtocolVersion, ReadResourceRequestParams,
};
use rmcp::service::RunningService;
use rmcp::{RoleClient, ServiceError};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::user::{Seen, User};

/// How long to wait for progress that is told beside the result, and so perhaps after it.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often to try for progress that is complete.
const TRIES: usize = 3;

/// What is to be done.
#[derive(Deserialize)]
pub(crate) struct Plan {
    /// One after the other.
    steps: Vec<Step>,
    /// At the same time.
    together: Vec<Step>,
}

#[derive(Deserialize)]
struct Step {
    server: String,
    step: String,
    kind: String,
    /// A name, an address, or what the names to be listed begin with.
    target: String,
    arguments: Map<String, Value>,
}

/// The client, and the progress that it was told.
pub(crate) struct Client {
    pub(crate) service: RunningService<RoleClient, User>,
    pub(crate) seen: Seen,
}

/// Tells what came of a step.
pub(crate) fn tell(server: &str, step: &str, outcome: Result<Value, String>) {
    let (ok, got) = match outcome {
        Ok(got) => (true, got),
        Err(fault) => (false, Value::String(fault)),
    };
    let line = json!({"server": server, "step": step, "ok": ok, "got": got});
    // Nobody is there to be told that nobody listens.
    let _ = writeln!(std::io::stdout(), "{line}");
}

impl Client {
    /// The revision that is spoken.
    pub(crate) fn version(&self) -> Option<ProtocolVersion> {
        self.service.peer_info().map(|info| info.protocol_version.clone())
    }

    /// Does everything.
    pub(crate) async fn run(&self, plan: &Plan) {
        for step in &plan.steps {
            self.take(step).await;
        }
        join_all(plan.together.iter().map(|step| self.take(step))).await;
    }

    async fn take(&self, step: &Step) {
        tell(&step.server, &step.step, self.attempt(step).await);
    }

    async fn attempt(&self, Step { kind, target, arguments, .. }: &Step) -> Result<Value, String> {
        let beginning = |names: Vec<String>| {
            Value::from_iter(names.into_iter().filter(|name| name.starts_with(target.as_str())))
        };
        Ok(match kind.as_str() {
            "tools" => {
                let tools = self.service.list_all_tools().await.map_err(fault)?;
                beginning(tools.into_iter().map(|tool| tool.name.into_owned()).collect())
            }
            "resources" => {
                let resources = self.service.list_all_resources().await.map_err(fault)?;
                beginning(resources.into_iter().map(|resource| resource.uri.clone()).collect())
            }
            "read" => {
                let params = ReadResourceRequestParams::new(target.as_str());
                at(self.service.read_resource(params).await, "/contents/0/text")?
            }
            "prompt" => {
                let params = GetPromptRequestParams::new(target.as_str()).with_arguments(arguments.clone());
                at(self.service.get_prompt(params).await, "/messages/0/content/text")?
            }
            "progress" => {
                let steps = arguments.get("to").or_else(|| arguments.get("steps")).and_then(Value::as_u64);
                let steps = steps.unwrap_or_default() as usize;
                let mut tries = 0;
                loop {
                    let text = self.call(target, arguments).await?;
                    let progress = self.progress(steps).await;
                    tries += 1;
                    // Once in hundreds of calls rmcp does not hand over the last one, though it was on the wire.
                    if progress.len() >= steps || tries == TRIES {
                        break json!({"text": text, "progress": progress});
                    }
                }
            }
            _ => self.call(target, arguments).await?.into(),
        })
    }

    async fn call(&self, tool: &str, arguments: &Map<String, Value>) -> Result<String, String> {
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments.clone());
        let result = self.service.call_tool(params).await.map_err(fault)?;
        let result = serde_json::to_value(result).map_err(|e| e.to_string())?;
        let blocks = result["content"].as_array().into_iter().flatten();
        let text = blocks.filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n");
        if result["isError"] == json!(true) { Err(text) } else { Ok(text) }
    }

    /// The progress of the call that was made, when there is so much of it.
    async fn progress(&self, steps: usize) -> Vec<Value> {
        let waiting = tokio::time::Instant::now();
        while self.seen().len() < steps && waiting.elapsed() < PATIENCE {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        std::mem::take(&mut *self.seen())
    }

    fn seen(&self) -> std::sync::MutexGuard<'_, Vec<Value>> {
        self.seen.lock().expect("nobody panics with it")
    }
}

fn fault(error: ServiceError) -> String {
    error.to_string()
}

/// What is in this place of a result.
fn at<T: Serialize>(outcome: Result<T, ServiceError>, place: &str) -> Result<Value, String> {
    let result = serde_json::to_value(outcome.map_err(fault)?).map_err(|e| e.to_string())?;
    result.pointer(place).cloned().ok_or_else(|| format!("nothing at {place} of {result}"))
}
