//! Tasks of legacy servers (2025-11-25), in the form of SEP-2663 for callers that know tasks, and awaited for those that
//! do not.

mod awaited;
mod live;
mod plan;
mod shape;
mod store;

pub(crate) use awaited::Awaited;
pub(crate) use plan::AsTask;
pub(crate) use shape::{created, related, unrelated};
pub(crate) use store::Tasks;

use std::sync::Arc;

use tidegate_protocol::{Capability, Error, Method, Symbol};
use tidegate_service::{Call, Reply};

use super::call::Legacy;
use super::owner::ClientIdentity;
use super::round::answers_in;
use crate::time_budget::TimeBudget;

impl Legacy {
    /// Answers `tasks/get`, `tasks/update` and `tasks/cancel` for a task that was given out.
    pub(super) async fn task(self: &Arc<Self>, call: &Call, budget: TimeBudget) -> Result<Reply, Error> {
        let context = &call.context;
        // SEP-2663, Capability Negotiation. Tasks of 2025-11-25 are part of its core.
        if context.revision.is_modern() && !context.capabilities.has(Capability::Tasks) {
            return Err(Error::missing_capabilities(&[Capability::Tasks]));
        }
        let handle =
            call.params.str("taskId").ok_or_else(|| Error::invalid_params("\"taskId\" must be a string"))?;
        let live = self.tasks.find(&handle, context)?;
        let answer = async {
            match call.method {
                Method::TasksGet => live.get(&handle, &budget, &self.settings).await.map(Reply::Complete),
                Method::TasksUpdate => {
                    if call.params.object().object("inputResponses").is_none() {
                        return Err(Error::invalid_params("\"inputResponses\" must be an object"));
                    }
                    live.update(answers_in(&call.params), &ClientIdentity::of(context)).await?;
                    Ok(Reply::complete(context.revision, ""))
                }
                _ => {
                    live.cancel(&budget).await?;
                    Ok(Reply::complete(context.revision, ""))
                }
            }
        };
        let answer = tokio::time::timeout_at(budget.ends(None).into(), answer).await;
        let answer = answer.unwrap_or_else(|_| Err(budget.over()));
        match answer {
            Err(error) if error.symbol() == Symbol::SessionNotFound => {
                // The server has forgotten the session, and its tasks with it.
                self.tasks.lost(&live);
                Err(store::not_found())
            }
            answer => answer,
        }
    }
}
