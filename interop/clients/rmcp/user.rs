//! [`User`]: who answers the questions of servers.
#![allow(deprecated, reason = "sampling and roots are, and still have to work")]

use std::sync::{Arc, Mutex};

use rmcp::model::{
    ClientConfig, CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams, ElicitResult,
    Implementation, ListRootsResult, ProgressNotificationParam, ProtocolVersion,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ClientHandler, ErrorData, RoleClient};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Progress that was told and that no step has taken yet.
pub(crate) type Seen = Arc<Mutex<Vec<Value>>>;

/// The person, the model and the machine of a client.
pub(crate) struct User {
    name: String,
    version: ProtocolVersion,
    pub(crate) seen: Seen,
}

impl User {
    pub(crate) fn new(name: &str, version: ProtocolVersion) -> User {
        User { name: name.to_owned(), version, seen: Seen::default() }
    }
}

/// What the specification writes, as rmcp's type for it.
fn typed<T: DeserializeOwned>(value: Value) -> Result<T, ErrorData> {
    serde_json::from_value(value).map_err(|e| ErrorData::internal_error(e.to_string(), None))
}

impl ClientHandler for User {
    fn get_info(&self) -> ClientConfig {
        let capabilities = json!({"elicitation": {"form": {}}, "sampling": {}, "roots": {}});
        ClientConfig::new(
            typed(capabilities).expect("these are capabilities"),
            Implementation::new(&*self.name, "1"),
        )
        .with_protocol_version(self.version.clone())
    }

    async fn create_elicitation(
        &self,
        _: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        typed(json!({"action": "accept", "content": {"name": self.name}}))
    }

    async fn create_message(
        &self,
        _: CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        let text = format!("42, says {}", self.name);
        let content = json!({"type": "text", "text": text});
        typed(json!({"role": "assistant", "model": "deep thought", "content": content}))
    }

    async fn list_roots(&self, _: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        let root = json!({"uri": format!("file:///home/{}", self.name), "name": self.name});
        typed(json!({"roots": [root]}))
    }

    async fn on_progress(&self, told: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        let told = json!([told.progress, told.total, told.message]);
        self.seen.lock().expect("nobody panics with it").push(told);
    }
}
