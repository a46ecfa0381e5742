//! rmcp's client: the operations that the tests use, and what it saw beside the responses.

use std::sync::{Arc, Mutex};

use rmcp::model::{
    CallToolRequestParams, ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult,
    ElicitationAction, GetPromptRequestParams, Implementation, ProgressNotificationParam, ProtocolVersion,
    ReadResourceRequestParams, ResourceUpdatedNotificationParam,
};
use rmcp::service::{NotificationContext, RequestContext, RunningService};
use rmcp::{ClientHandler, ErrorData, RoleClient, ServiceError};
use serde::Serialize;
use serde_json::{Value, json};

/// One thing that a client can want.
#[derive(Debug, Clone)]
pub(crate) enum Op {
    ServerInfo,
    ListTools,
    ListResources,
    ListTemplates,
    ListPrompts,
    Call(&'static str, Value),
    Read(&'static str),
    Prompt(&'static str, Value),
    CompletePrompt { prompt: &'static str, argument: &'static str, typed: &'static str },
    CompleteTemplate { template: &'static str, variable: &'static str, typed: &'static str },
}

/// The running client, and what it saw.
pub(crate) struct Client {
    pub(crate) service: RunningService<RoleClient, User>,
    pub(crate) seen: Arc<Seen>,
}

impl Client {
    /// Does it, and says what it means: a result or an error, without what only one era's wire form has.
    pub(crate) async fn run(&self, op: Op) -> Value {
        match op {
            Op::ServerInfo => self.server_info(),
            Op::ListTools => meaning(self.service.list_all_tools().await),
            Op::ListResources => meaning(self.service.list_all_resources().await),
            Op::ListTemplates => meaning(self.service.list_all_resource_templates().await),
            Op::ListPrompts => meaning(self.service.list_all_prompts().await),
            Op::Call(name, arguments) => meaning(self.service.call_tool(call(name, arguments)).await),
            Op::Read(uri) => meaning(self.service.read_resource(ReadResourceRequestParams::new(uri)).await),
            Op::Prompt(name, arguments) => {
                let params = GetPromptRequestParams::new(name).with_arguments(object(arguments));
                meaning(self.service.get_prompt(params).await)
            }
            Op::CompletePrompt { prompt, argument, typed } => {
                meaning(self.service.complete_prompt_argument(prompt, argument, typed, None).await)
            }
            Op::CompleteTemplate { template, variable, typed } => {
                meaning(self.service.complete_resource_argument(template, variable, typed, None).await)
            }
        }
    }

    /// What the server said about itself, whichever way it was asked.
    fn server_info(&self) -> Value {
        let info = self.service.peer_info().expect("a server that was connected to has said who it is");
        json!({
            "serverInfo": info.server_info,
            "capabilities": info.capabilities,
            "instructions": info.instructions,
        })
    }
}

/// The parameters of a tool call.
pub(crate) fn call(name: &'static str, arguments: Value) -> CallToolRequestParams {
    CallToolRequestParams::new(name).with_arguments(object(arguments))
}

fn object(value: Value) -> serde_json::Map<String, Value> {
    match value {
        Value::Object(members) => members,
        other => panic!("arguments are an object, not {other}"),
    }
}

fn meaning<T: Serialize>(outcome: Result<T, ServiceError>) -> Value {
    match outcome {
        Ok(result) => {
            let mut result = serde_json::to_value(result).expect("rmcp's results are JSON");
            if let Value::Object(members) = &mut result {
                // 2026-07-28: the kind of a result, hints for caches, and who answered; older revisions have none.
                for name in ["resultType", "ttlMs", "cacheScope", "_meta"] {
                    members.remove(name);
                }
            }
            // A failed tool says which call it was and when.
            if let Some(Value::Object(report)) = result.get_mut("structuredContent") {
                for name in ["correlationId", "timestamp"] {
                    report.remove(name);
                }
            }
            result
        }
        Err(ServiceError::McpError(ErrorData { code, message, data, .. })) => {
            // Each call has an id of its own.
            let mut data = json!(data);
            if let Some(data) = data.as_object_mut() {
                data.remove("correlationId");
            }
            json!({"error": {"code": code.0, "message": message, "data": data}})
        }
        Err(other) => json!({"failed": other.to_string()}),
    }
}

/// What the client saw beside the responses.
#[derive(Default)]
pub(crate) struct Seen {
    progress: Mutex<Vec<Value>>,
    questions: Mutex<Vec<Value>>,
    changes: Mutex<Vec<String>>,
}

impl Seen {
    /// Progress as `(progress, total, message)`, in the order of arrival.
    pub(crate) fn progress(&self) -> Vec<Value> {
        self.progress.lock().expect("no test panics while it holds this").clone()
    }

    /// What has changed, as a legacy client is told.
    pub(crate) fn changes(&self) -> Vec<String> {
        self.changes.lock().expect("no test panics while it holds this").clone()
    }

    fn changed(&self, what: impl Into<String>) {
        self.changes.lock().expect("no test panics while it holds this").push(what.into());
    }

    /// What the user was asked.
    pub(crate) fn questions(&self) -> Vec<Value> {
        self.questions.lock().expect("no test panics while it holds this").clone()
    }
}

/// The person in front of the client.
pub(crate) struct User {
    version: ProtocolVersion,
    answer: ElicitResult,
    pub(crate) seen: Arc<Seen>,
}

impl User {
    /// A user who answers all questions like this.
    pub(crate) fn new(version: ProtocolVersion, answer: ElicitResult, seen: Arc<Seen>) -> Self {
        Self { version, answer, seen }
    }
}

/// A user who knows no answer.
pub(crate) fn declining() -> ElicitResult {
    ElicitResult::new(ElicitationAction::Decline)
}

impl ClientHandler for User {
    fn get_info(&self) -> ClientConfig {
        let capabilities: ClientCapabilities =
            serde_json::from_value(json!({"elicitation": {"form": {}}})).expect("these are capabilities");
        ClientConfig::new(capabilities, Implementation::new("interop", "1.0.0"))
            .with_protocol_version(self.version.clone())
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } = request else {
            return Err(ErrorData::invalid_params("only forms were announced", None));
        };
        let question = json!({"message": message, "schema": requested_schema});
        self.seen.questions.lock().expect("no test panics while it holds this").push(question);
        Ok(self.answer.clone())
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        let progress = json!([params.progress, params.total, params.message]);
        self.seen.progress.lock().expect("no test panics while it holds this").push(progress);
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.seen.changed("tools");
    }

    async fn on_prompt_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.seen.changed("prompts");
    }

    async fn on_resource_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.seen.changed("resources");
    }

    async fn on_resource_updated(
        &self,
        params: ResourceUpdatedNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        self.seen.changed(params.uri);
    }
}
