//! The server: tools, a resource, a template and a prompt, and what changes.

#![allow(deprecated, reason = "logging and subscribing to resources are, and still have to work")]

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rmcp::ServerHandler;
use rmcp::model::*;
use rmcp::service::{RequestContext, RoleServer, SubscriptionContext};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::broadcast;

use crate::asking;

const CITIES: [&str; 4] = ["Bergen", "Berlin", "Bern", "Lisbon"];
const ABOUT: &str = "memo://about";

/// A change, for those who listen.
#[derive(Clone, Copy)]
enum Change {
    Tools,
    About,
}

/// The server. Clones share what has happened.
#[derive(Clone)]
pub(crate) struct Vocabulary {
    legacy_only: bool,
    shared: Arc<Shared>,
}

struct Shared {
    cancelled: AtomicUsize,
    grown: AtomicBool,
    /// Resources that legacy clients subscribed to.
    watched: Mutex<HashSet<String>>,
    changes: broadcast::Sender<Change>,
    /// Subscriptions that were accepted, and those of them that hear of changes: rmcp acknowledges in between.
    accepted: AtomicUsize,
    listening: AtomicUsize,
}

/// Counts a call that is dropped before it has come to its end.
struct Waiting<'a>(&'a AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Vocabulary {
    pub(crate) fn new(legacy_only: bool) -> Vocabulary {
        let shared = Shared {
            cancelled: AtomicUsize::new(0),
            grown: AtomicBool::new(false),
            watched: Mutex::default(),
            changes: broadcast::Sender::new(16),
            accepted: AtomicUsize::new(0),
            listening: AtomicUsize::new(0),
        };
        Vocabulary { legacy_only, shared: Arc::new(shared) }
    }

    fn tools(&self) -> Vec<Value> {
        let plain = |name: &str, description: &str, properties: Value| {
            let required: Vec<_> =
                properties.as_object().into_iter().flatten().map(|(name, _)| name).collect();
            let schema = json!({"type": "object", "properties": properties, "required": required});
            json!({"name": name, "description": description, "inputSchema": schema})
        };
        let mut add =
            plain("add", "Adds two numbers", json!({"a": {"type": "integer"}, "b": {"type": "integer"}}));
        let sum = json!({"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]});
        add["outputSchema"] = sum.clone();
        let mut lie = plain("lie", "Promises a sum and does not keep it", json!({}));
        lie["outputSchema"] = sum;
        let mut all = vec![
            plain("echo", "Says back what it is told", json!({"message": {"type": "string"}})),
            add,
            lie,
            plain("count", "Counts, with progress", json!({"to": {"type": "integer"}})),
        ];
        for (name, description) in [
            ("fail", "Never works"),
            ("greet", "Asks who is there"),
            ("think", "Asks the model"),
            ("where", "Asks where the client works"),
            ("wait", "Waits until it is cancelled"),
            ("waited", "How often somebody cancelled `wait`"),
            ("grow", "Adds a tool"),
            ("touch", "Changes memo://about"),
            ("say", "Writes to the log"),
            ("pid", "The number of this process"),
        ] {
            all.push(plain(name, description, json!({})));
        }
        if self.shared.grown.load(Ordering::SeqCst) {
            all.push(plain("grown", "Came later", json!({})));
        }
        all
    }

    /// Tells those who listen, and legacy clients that listen anyway.
    async fn changed(&self, change: Change, context: &RequestContext<RoleServer>) {
        let shared = &self.shared;
        while shared.listening.load(Ordering::SeqCst) < shared.accepted.load(Ordering::SeqCst) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        // Nobody may be listening.
        let _ = self.shared.changes.send(change);
        if context.protocol_version().is_none_or(|version| version < ProtocolVersion::V_2026_07_28) {
            let watched = self.shared.watched.lock().expect("nobody panics with it").contains(ABOUT);
            let told = match change {
                Change::Tools => context.peer.notify_tool_list_changed().await,
                Change::About if watched => {
                    context.peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(ABOUT)).await
                }
                Change::About => Ok(()),
            };
            told.expect("the client is there");
        }
    }

    async fn count(&self, to: u64, context: &RequestContext<RoleServer>) {
        let Some(token) = context.meta.get_progress_token() else { return };
        for n in 1..=to {
            let progress = ProgressNotificationParam::new(token.clone(), n as f64)
                .with_total(to as f64)
                .with_message(format!("counted to {n}"));
            context.peer.notify_progress(progress).await.expect("the client is there");
        }
    }
}

/// What the specification writes, as rmcp's type for it.
fn typed<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("it is what the specification says")
}

impl ServerHandler for Vocabulary {
    fn get_info(&self) -> ServerConfig {
        let capabilities = typed(json!({
            "tools": {"listChanged": true},
            "resources": {"subscribe": true, "listChanged": true},
            "prompts": {"listChanged": true},
            "completions": {},
            "logging": {},
        }));
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("rmcp", "1.2.3"))
            .with_instructions("Ask for anything")
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        match self.legacy_only {
            true => Cow::Owned(ProtocolVersion::known_up_to(&ProtocolVersion::V_2025_11_25).to_vec()),
            false => Cow::Borrowed(ProtocolVersion::KNOWN_VERSIONS),
        }
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        // In two pages, so that a client has to ask twice.
        let mut first = self.tools();
        let second = first.split_off(4);
        Ok(typed(match request.and_then(|page| page.cursor) {
            None => json!({"tools": first, "nextCursor": "more"}),
            Some(_) => json!({"tools": second}),
        }))
    }

    async fn call_tool(
        &self,
        call: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if let Some(question) = asking::question(&call.name) {
            return asking::ask(call, question, context).await;
        }
        let argument =
            |name: &str| call.arguments.as_ref().and_then(|all| all.get(name)).cloned().unwrap_or_default();
        let number = |name: &str| argument(name).as_u64().unwrap_or_default();
        let text = |text: String| CallToolResult::success(vec![ContentBlock::text(text)]);
        Ok(match &*call.name {
            "echo" => text(argument("message").as_str().unwrap_or_default().to_owned()),
            "add" => CallToolResult::structured(json!({"sum": number("a") + number("b")})),
            "lie" => CallToolResult::structured(json!({"sum": "six"})),
            "fail" => CallToolResult::error(vec![ContentBlock::text("The tide is out")]),
            "count" => {
                self.count(number("to"), &context).await;
                text(format!("Counted to {}", number("to")))
            }
            "wait" => {
                let _waiting = Waiting(&self.shared.cancelled);
                context.ct.cancelled().await;
                text("Cancelled".to_owned())
            }
            "waited" => text(self.shared.cancelled.load(Ordering::SeqCst).to_string()),
            "grow" => {
                self.shared.grown.store(true, Ordering::SeqCst);
                self.changed(Change::Tools, &context).await;
                text("Grown".to_owned())
            }
            "grown" => text("I am new".to_owned()),
            "touch" => {
                self.changed(Change::About, &context).await;
                text("Touched".to_owned())
            }
            "say" => {
                #[allow(deprecated, reason = "it still has to work")]
                let said = context.peer.notify_logging_message(LoggingMessageNotificationParam::new(
                    LoggingLevel::Warning,
                    json!("High water"),
                ));
                said.await.expect("the client is there");
                text("Said".to_owned())
            }
            "pid" => text(std::process::id().to_string()),
            other => return Err(ErrorData::invalid_params(format!("Unknown tool: {other}"), None)),
        }
        .into())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(typed(json!({"resources": [{"uri": ABOUT, "name": "about", "mimeType": "text/plain"}]})))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(typed(json!({"resourceTemplates": [{"uriTemplate": "memo://city/{city}", "name": "city"}]})))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = request.uri;
        let text = match uri.strip_prefix("memo://city/") {
            Some(city) => format!("Mild in {city}."),
            None if uri == ABOUT => "A fixture.".to_owned(),
            None => return Err(ErrorData::resource_not_found("No such memo", Some(json!({"uri": uri})))),
        };
        let read = json!({"contents": [{"uri": uri, "mimeType": "text/plain", "text": text}]});
        Ok(typed::<ReadResourceResult>(read).into())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(typed(
            json!({"prompts": [{"name": "explain", "arguments": [{"name": "topic", "required": true}]}]}),
        ))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let topic = request.arguments.and_then(|mut all| all.remove("topic"));
        let Some(Value::String(topic)) = topic.map(|topic| json!(topic)) else {
            return Err(ErrorData::invalid_params("Explain what?", None));
        };
        let text = format!("Explain {topic}.");
        let got = json!({"messages": [{"role": "user", "content": {"type": "text", "text": text}}]});
        Ok(typed::<GetPromptResult>(got).into())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let values: Vec<_> = CITIES.iter().filter(|city| city.starts_with(&request.argument.value)).collect();
        Ok(typed(json!({"completion": {"values": values}})))
    }

    async fn set_level(
        &self,
        _: SetLevelRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.shared.watched.lock().expect("nobody panics with it").insert(request.uri);
        Ok(())
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.shared.watched.lock().expect("nobody panics with it").remove(&request.uri);
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        self.shared.accepted.fetch_add(1, Ordering::SeqCst);
        Some(requested.clone())
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = self.shared.changes.subscribe();
        self.shared.listening.fetch_add(1, Ordering::SeqCst);
        loop {
            tokio::select! {
                () = subscription.cancelled() => return Ok(()),
                change = changes.recv() => {
                    // What was not asked for is refused, which is just as well.
                    let _ = match change {
                        Ok(Change::Tools) => subscription.sink().notify_tool_list_changed().await,
                        Ok(Change::About) => subscription.sink().notify_resource_updated(ABOUT).await,
                        Err(_) => return Ok(()),
                    };
                }
            }
        }
    }
}
