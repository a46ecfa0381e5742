//! Tasks (SEP-2663; 2025-11-25 in the words of the edge): calls that go on after they were answered.
//!
//! A task is made at once, or when a tool that asks first awaits [`Cx::detach`]. Its handler runs in
//! the background with the same [`Cx`] as ever; only that questions wait instead of being replayed.

mod store;
mod task;

use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_util::FutureExt;
use tidegate_protocol::json::ObjectWriter;
use tidegate_protocol::{Capability, Error, Json, Symbol};
use tidegate_service::{Call, Current, Reply};

pub(crate) use store::Store;
pub(crate) use task::Task;

use crate::cx::Cx;
use crate::interact::Replay;
use crate::run::{Run, Work};
use crate::server::Core;
use crate::tool::{Arguments, ToolEntry, write_meta};
use task::Outcome;

/// Starts a tool as a task.
pub(crate) fn start(cx: Cx, tool: Arc<ToolEntry>, arguments: Arguments) -> Result<Reply, Error> {
    let task = create(&cx)?;
    let reply = created(&cx, &task);
    cx.become_task(task.clone());
    // Nothing of the handler runs on the caller's time: not even what comes before it first waits.
    let background = async move {
        let run = Run::new(cx.clone(), Work::Tool(tool.run(arguments, cx), tool));
        drive(run, task).await;
    };
    tokio::spawn(Current::carry(background));
    Ok(reply)
}

/// Makes a task of a call whose handler has asked for it, and lets it go on.
pub(crate) fn detach(run: Run) -> (Reply, bool) {
    let task = match create(&run.cx) {
        Ok(task) => task,
        Err(error) => return run.failed(error),
    };
    let reply = created(&run.cx, &task);
    run.cx.become_task(task.clone());
    tokio::spawn(Current::carry(drive(run, task)));
    (reply, true)
}

fn create(cx: &Cx) -> Result<Arc<Task>, Error> {
    let core = cx.core();
    let settings = &core.settings.tasks;
    // 2025-11-25 basic/utilities/tasks: the client may ask for a time, the server decides.
    let asked = cx.call().params.object().object("task").and_then(|task| task.get("ttl")?.parse().ok());
    let ttl = match asked {
        Some(ms) if !cx.revision().is_modern() => Duration::from_millis(ms).min(settings.max_ttl),
        _ => settings.ttl,
    };
    core.tasks.create(&cx.call().context, ttl, settings, &core.hub)
}

/// Runs the handler to its end, which may also be the task's.
async fn drive(mut run: Run, task: Arc<Task>) {
    let cx = run.cx.clone();
    let work = std::future::poll_fn(|poll| {
        if let Poll::Ready((reply, ok)) = run.poll_work(poll) {
            return Poll::Ready((reply, ok));
        }
        // A question that cannot be asked, or an answer that cannot be read, ends the work.
        match cx.replay().as_deref_mut().and_then(Replay::failure) {
            Some(error) => Poll::Ready((Reply::Error(error), false)),
            None => Poll::Pending,
        }
    });
    let work = std::panic::AssertUnwindSafe(work).catch_unwind();
    let core = cx.core();
    let failed = |error: Error| {
        let (profile, revision) = (cx.core().settings.profile, cx.revision());
        Outcome::Failed(error.in_profile(profile, revision).to_json(revision))
    };
    let left = task.ends_in();
    let outcome = tokio::select! {
        biased;
        () = task.cancel.cancelled() => Outcome::Cancelled,
        done = tokio::time::timeout(left, work) => match done {
            Ok(Ok((Reply::Complete(result), _))) if core.tasks.has_room(result.len(), &core.settings.tasks) => {
                Outcome::Completed(result)
            }
            Ok(Ok((Reply::Complete(result), _))) => {
                tracing::warn!(task = task.id(), size = result.len(), "no room for a task's result");
                let message = "The result is too large to be kept: ask for less, or fetch other results first";
                failed(Error::new(Symbol::TooLarge, message).with_code(-32603))
            }
            Ok(Ok((Reply::Error(error), _))) => failed(error),
            // A handler in the background neither asks by reply nor makes further tasks.
            Ok(Ok(_)) => failed(Error::internal()),
            Ok(Err(_panic)) => {
                tracing::error!(task = task.id(), "a handler panicked");
                failed(Error::internal())
            }
            Err(_elapsed) => {
                failed(Error::new(Symbol::Timeout, "The task did not finish in time and was stopped"))
            }
        },
    };
    task.end(outcome);
}

/// The reply that a task was made.
fn created(cx: &Cx, task: &Task) -> Reply {
    let mut w = ObjectWriter::with_capacity(256);
    w.str("resultType", "task");
    task.write(&mut w, false);
    write_meta(&mut w, None, cx.revision().is_modern().then_some(cx.core().info.meta_entry()));
    Reply::Task(w.finish())
}

/// The task that a call is about.
fn named(core: &Core, call: &Call) -> Result<Arc<Task>, Error> {
    // SEP-2663, Capability Negotiation. Tasks of 2025-11-25 are part of its core.
    if call.context.revision.is_modern() && !call.context.capabilities.has(Capability::Tasks) {
        return Err(Error::missing_capabilities(&[Capability::Tasks]));
    }
    let Some(id) = call.params.str("taskId") else {
        return Err(Error::invalid_params("\"taskId\" must be a string"));
    };
    // Somebody else's task does not exist.
    core.tasks.find(&id, &call.context).ok_or_else(|| {
        Error::new(
            Symbol::TaskNotFound,
            "Task not found: it does not exist, has expired, or belongs to someone else",
        )
    })
}

/// `tasks/get`.
pub(crate) fn get(core: &Core, call: &Call) -> Result<Reply, Error> {
    let task = named(core, call)?;
    let mut w = ObjectWriter::with_capacity(512);
    let modern = call.context.revision.is_modern();
    if modern {
        w.str("resultType", "complete");
    }
    task.write(&mut w, true);
    write_meta(&mut w, None, modern.then_some(core.info.meta_entry()));
    Ok(Reply::Complete(w.finish()))
}

/// `tasks/update`.
pub(crate) fn update(core: &Core, call: &Call) -> Result<Reply, Error> {
    let task = named(core, call)?;
    let Some(responses) = call.params.get("inputResponses") else {
        return Err(Error::invalid_params("\"inputResponses\" must be an object"));
    };
    task.answer(crate::interact::read_responses(responses)?)?;
    Ok(Reply::Complete(acknowledged(core, call)))
}

/// `tasks/cancel`.
pub(crate) fn cancel(core: &Core, call: &Call) -> Result<Reply, Error> {
    let task = named(core, call)?;
    let was_running = task.end(Outcome::Cancelled);
    task.cancel.cancel();
    if !was_running && !call.context.revision.is_modern() {
        // 2025-11-25 basic/utilities/tasks, Task Cancellation; later revisions just acknowledge.
        return Err(Error::invalid_params("the task has already ended and cannot be cancelled"));
    }
    Ok(Reply::Complete(acknowledged(core, call)))
}

fn acknowledged(core: &Core, call: &Call) -> Json {
    let modern = call.context.revision.is_modern();
    let mut w = ObjectWriter::new();
    if modern {
        w.str("resultType", "complete");
    }
    write_meta(&mut w, None, modern.then_some(core.info.meta_entry()));
    w.finish()
}
