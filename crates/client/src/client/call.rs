//! [`CallTool`]: a tool call in the making.

use std::future::IntoFuture;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use serde_json::Value;
use tidegate_protocol::json::ObjectWriter;
use tidegate_protocol::{Json, Level, Limits, Method, Params};
use tidegate_service::{Call, Notice, Outbox};
use tokio_util::sync::CancellationToken;

use super::{Client, OnLog, ToolResult};
use crate::app_error::AppError;

type OnProgress = Arc<dyn Fn(Json) + Send + Sync>;

/// A tool call. Await it to make it; dropping the future cancels it at the server.
#[must_use = "a call is made when it is awaited"]
pub struct CallTool {
    client: Client,
    name: String,
    arguments: Value,
    timeout: Option<Duration>,
    on_progress: Option<OnProgress>,
    log_level: Option<Level>,
    cancel: Option<CancellationToken>,
    validate: bool,
    meta: Option<Json>,
}

impl Client {
    /// Calls a tool with arguments: an object, or null for none.
    pub fn call(&self, name: impl Into<String>, arguments: Value) -> CallTool {
        CallTool {
            client: self.clone(),
            name: name.into(),
            arguments,
            timeout: None,
            on_progress: None,
            log_level: self.0.log_level,
            cancel: None,
            validate: self.0.settings.validate_output,
            meta: None,
        }
    }
}

impl CallTool {
    /// Gives up after this time, whatever the client's own limit is.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Called with the parameters of each `notifications/progress`.
    pub fn on_progress(mut self, handler: impl Fn(Json) + Send + Sync + 'static) -> Self {
        self.on_progress = Some(Arc::new(handler));
        self
    }

    /// Ends the call when the token fires.
    pub fn cancel_with(mut self, token: CancellationToken) -> Self {
        self.cancel = Some(token);
        self
    }

    /// Checks the result against the tool's output schema.
    pub fn validate_output(mut self) -> Self {
        self.validate = true;
        self
    }

    /// Further members of the request's `_meta`: an object.
    pub fn meta(mut self, meta: Json) -> Self {
        self.meta = Some(meta);
        self
    }

    async fn make(self) -> Result<ToolResult, AppError> {
        let client = self.client;
        let params = params(&self.name, &self.arguments, self.meta.as_ref());
        let limits = Limits { max_depth: 127, max_bytes: usize::MAX };
        let params = Params::parse(&params, &limits).map_err(|fault| {
            client.app_error(&tidegate_protocol::Error::invalid_params(fault), &Method::ToolsCall)
        })?;
        let mut call = client.own_call(Method::ToolsCall, params);
        call.context.deadline = self.timeout.map(|timeout| Instant::now() + timeout);
        if let Some(cancel) = self.cancel {
            call.context.cancel = cancel;
        }
        let on_log = client.0.on_log.clone().filter(|_| self.log_level.is_some());
        // Boxed like everything rare here, so that the common path stays small.
        let result = if self.on_progress.is_some() || on_log.is_some() {
            call.context.log_level = self.log_level.filter(|_| on_log.is_some());
            Box::pin(told(&client, call, self.on_progress, on_log)).await?
        } else {
            client.result(call).await?
        };
        if self.validate {
            let tool = Box::pin(client.get_tool_schema(&self.name)).await?;
            tool.check_output(&result).await.map_err(|error| client.app_error(&error, &Method::ToolsCall))?;
        }
        Ok(ToolResult::new(result))
    }
}

/// Makes a call whose caller wants to be told how it goes on.
async fn told(
    client: &Client,
    mut call: Call,
    on_progress: Option<OnProgress>,
    on_log: Option<OnLog>,
) -> Result<Json, AppError> {
    let outbox = Outbox::default();
    call.context.outbox = Some(outbox.clone());
    call.context.progress_token = on_progress.is_some().then(|| Json::trusted("0"));
    let tell = |notice: Notice| match (notice, &on_progress, &on_log) {
        (Notice::Progress(params), Some(on_progress), _) => on_progress(params),
        (Notice::Log(params), _, Some(on_log)) => on_log(params),
        _ => {}
    };
    let mut result = std::pin::pin!(client.result(call));
    let result = loop {
        tokio::select! {
            biased;
            result = result.as_mut() => break result,
            Some(notice) = outbox.next() => tell(notice),
        }
        // However many come, clocks and other tasks get their turn.
        tokio::task::consume_budget().await;
    };
    while let Some(notice) = outbox.try_next() {
        tell(notice);
    }
    result
}

impl IntoFuture for CallTool {
    type Output = Result<ToolResult, AppError>;
    type IntoFuture = BoxFuture<'static, Result<ToolResult, AppError>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.make())
    }
}

fn params(name: &str, arguments: &Value, meta: Option<&Json>) -> Json {
    let mut w = ObjectWriter::with_capacity(128);
    w.str("name", name);
    if !arguments.is_null() {
        w.value("arguments", arguments);
    }
    if let Some(meta) = meta {
        w.json("_meta", meta);
    }
    w.finish()
}
