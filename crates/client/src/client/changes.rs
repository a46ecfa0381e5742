//! Subscriptions: one call in both eras.

use tidegate_protocol::json::ObjectWriter;
use tidegate_protocol::{Error, Json, Limits, Method, Params};
use tidegate_service::{Notice, Outbox, Reply};

use super::Client;
use crate::app_error::AppError;
use tidegate_service::Filter;

/// Something that has changed at the server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// The list of tools.
    Tools,
    /// The list of prompts.
    Prompts,
    /// The list of resources.
    Resources,
    /// A resource, by its address.
    Resource(String),
    /// A task, in its new state.
    Task(Json),
}

/// An open subscription. Dropping it ends it.
#[derive(Debug)]
pub struct Subscribed {
    acknowledged: Json,
    events: Outbox,
}

impl Subscribed {
    /// What the server agreed to tell: an object like the filter of `subscriptions/listen`.
    pub fn acknowledged(&self) -> &Json {
        &self.acknowledged
    }

    /// Waits for the next change; `None` when the server has ended the subscription.
    pub async fn next(&self) -> Option<Change> {
        loop {
            return Some(match self.events.next().await? {
                Notice::ToolsChanged => Change::Tools,
                Notice::PromptsChanged => Change::Prompts,
                Notice::ResourcesChanged => Change::Resources,
                Notice::ResourceUpdated(uri) => Change::Resource(uri.to_string()),
                Notice::Task { task, .. } => Change::Task(task),
                Notice::Progress(_) | Notice::Log(_) | Notice::Other { .. } | Notice::CloseStream => continue,
            });
        }
    }
}

impl Drop for Subscribed {
    fn drop(&mut self) {
        self.events.close();
    }
}

impl Client {
    /// Subscribes to changes: with `subscriptions/listen`, or with what legacy servers have for it.
    pub async fn subscribe(&self, filter: Filter) -> Result<Subscribed, AppError> {
        let mut params = ObjectWriter::new();
        params.json("notifications", &filter.to_json());
        let limits = Limits { max_depth: 127, max_bytes: usize::MAX };
        let params = Params::parse(&params.finish(), &limits)
            .map_err(|_| self.app_error(&Error::internal(), &Method::Listen))?;
        match self.make(self.own_call(Method::Listen, params)).await {
            Reply::Subscription(open) => {
                Ok(Subscribed { acknowledged: open.acknowledged, events: open.events })
            }
            Reply::Error(error) => Err(self.app_error(&error, &Method::Listen)),
            _ => Err(self.app_error(&Error::internal(), &Method::Listen)),
        }
    }
}
