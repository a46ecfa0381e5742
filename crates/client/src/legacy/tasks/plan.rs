//! Whether a call becomes a task.

use std::sync::Arc;

use tidegate_protocol::{Capability, Error, Feature, Method};
use tidegate_service::{Call, Reply};

use super::super::call::Legacy;
use crate::cache::Fetch;
use crate::time_budget::TimeBudget;
use crate::tool::TaskSupport;

/// What a call is to the server, and what its caller gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AsTask {
    /// An ordinary call.
    No,
    /// A task that the caller gets.
    PassedOn,
    /// A task that is waited for: the caller gets its result.
    Awaited,
}

impl Legacy {
    /// What becomes of a call to a server that has tasks. The server's list of tools knows; with `anew` it is fetched again.
    ///
    /// SEP-2663 leaves it to the server whether a call becomes a task, whatever the request says. Here that is us, and
    /// only what cannot be had otherwise does: nobody has to poll for what an ordinary call brings. A legacy caller asks
    /// for a task if it wants one.
    pub(in super::super) async fn plan(
        self: &Arc<Self>,
        call: &Call,
        budget: &TimeBudget,
        anew: bool,
    ) -> Result<AsTask, Error> {
        if call.method != Method::ToolsCall {
            return Ok(AsTask::No);
        }
        let context = &call.context;
        let asks = !context.revision.is_modern() && call.params.has("task");
        if asks && context.caller == Some(self.own) {
            // The client's own user speaks to the server in its own words.
            return Ok(AsTask::No);
        }
        let Some(name) = call.params.str("name") else { return Ok(AsTask::No) };
        let known = self.cache.stale(&context.principal).filter(|_| !anew);
        let table = match known {
            Some(table) => table,
            None => {
                let listed = self.cache.refresh(&context.principal, self.fetch(call));
                match tokio::time::timeout_at(budget.ends(None).into(), listed).await {
                    Ok(Ok(table)) => table,
                    // A server whose tools cannot be listed may still let them be called.
                    Ok(Err(_)) => return Ok(AsTask::No),
                    Err(_) => return Err(budget.over().unexecuted()),
                }
            }
        };
        let knows_tasks = match context.revision.is_modern() {
            true => context.capabilities.has(Capability::Tasks),
            false => asks && context.revision.allows(Feature::CoreTasks),
        };
        Ok(match table.get(&name).map(|tool| tool.task) {
            Some(TaskSupport::Required) if knows_tasks => AsTask::PassedOn,
            Some(TaskSupport::Required) => AsTask::Awaited,
            Some(TaskSupport::Optional) if asks && knows_tasks => AsTask::PassedOn,
            _ => AsTask::No,
        })
    }

    /// Fetches pages of the list of tools for whoever made this call.
    fn fetch(self: &Arc<Self>, call: &Call) -> Fetch {
        let (legacy, mut context) = (self.clone(), call.context.clone());
        context.outbox = None;
        // As it came: what the server does not say must not look as if it had said it.
        context.revision = tidegate_protocol::Revision::LATEST_LEGACY;
        Arc::new(move |cursor| {
            let (legacy, context) = (legacy.clone(), context.clone());
            Box::pin(async move {
                let call = Call::new(Method::ToolsList, crate::page_params(cursor)?, context);
                let now = std::time::Instant::now();
                let budget = TimeBudget::new(now, legacy.settings.timeout, false, None);
                let answered = tokio::select! {
                    answered = legacy.call(&call, budget) => answered?,
                    () = legacy.dialer.over.cancelled() => return Err(crate::upstream::closed()),
                };
                match answered {
                    Reply::Complete(page) => Ok(page),
                    Reply::Error(error) => Err(error),
                    _ => Err(Error::internal()),
                }
            })
        })
    }
}
