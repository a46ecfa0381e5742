//! Tasks as 2025-11-25 knows them, made from the modern ones: `tasks/result` and `tasks/list` from `tasks/get`.

use std::time::Duration;

use bytestring::ByteString;
use tidegate_protocol::json::ObjectWriter;
use tidegate_protocol::{Error, Json, Method, Object, Params, Request, Symbol, lower, meta};
use tidegate_service::{Door, Question, Reply, epoch_ms, rfc3339_ms};
use tokio_util::sync::CancellationToken;

use super::answers::{answer_map, ask_all};
use super::client_session::ClientSession;
use super::drive::{OWN, Run};

/// How often a waiting `tasks/result` looks, when the task does not say.
const POLL: Duration = Duration::from_millis(200);

/// Answers a `tasks/…` request.
pub(super) async fn answer<D: Door>(run: &Run<'_, D>, request: Request) -> Result<Json, Error> {
    if request.method == Method::TasksList {
        return list(run).await;
    }
    let id = request
        .params
        .str("taskId")
        .ok_or_else(|| Error::invalid_params("\"taskId\" must be a string"))?
        .into_owned();
    match request.method {
        Method::TasksGet => Ok(lower::task(&get(run, &id).await?)),
        Method::TasksCancel => cancel(run, &id).await,
        _ => finished(run, &id).await,
    }
}

/// The answer to a `tools/call` that asked for a task and got one.
pub(super) fn created(client: &ClientSession, task: &Json) -> Result<Json, Error> {
    let task = Object::of(task).ok_or_else(Error::internal)?;
    if let Some(id) = task.str("taskId") {
        client.remember_task(ByteString::from(&*id));
    }
    let mut w = ObjectWriter::new();
    w.json("task", &lower::task(&task));
    Ok(w.finish())
}

/// The answer to a `tools/call` that asked for a task and got its result at once: a task that is done.
///
/// 2025-11-25 basic/utilities/tasks, Result Retrieval: who accepts such a request must answer with a task.
pub(super) fn done(client: &ClientSession, result: &Json) -> Result<Json, Error> {
    let id = ByteString::from(format!("{:032x}", u128::from_le_bytes(tidegate_service::random())));
    let now = rfc3339_ms(epoch_ms());
    let mut w = ObjectWriter::with_capacity(256 + result.len());
    w.str("taskId", &id).str("status", "completed").str("createdAt", &now).str("lastUpdatedAt", &now);
    // It is kept as long as the session, or until there are too many.
    w.raw("ttlMs", "null").json("result", result);
    let task = w.finish();
    client.keep_done(id, task.clone())?;
    created(client, &task)
}

/// Waits for a task that the client did not ask for: it sees one call and one result.
pub(super) async fn wait<D: Door>(run: &Run<'_, D>, task: &Json) -> Result<Json, Error> {
    let task = Object::of(task).ok_or_else(Error::internal)?;
    let id = task.str("taskId").ok_or_else(Error::internal)?.into_owned();
    let mut unwatched = Unwatched { run, id: &id, ended: false };
    let result = Box::pin(outcome(run, &id, None)).await?;
    unwatched.ended = true;
    Ok(lower::result(&Method::ToolsCall, run.client.revision, result))
}

/// A task that only this call knows of. When nobody waits for it any more, it is cancelled.
struct Unwatched<'a, D: Door> {
    run: &'a Run<'a, D>,
    id: &'a str,
    ended: bool,
}

impl<D: Door> Drop for Unwatched<'_, D> {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let Ok(params) = Params::parse(&id_params(self.id), &OWN) else { return };
        // The call's own token has fired already.
        if let Ok(call) = self.run.client.call(Method::TasksCancel, params, CancellationToken::new(), None) {
            runtime.spawn(self.run.door.answer(call));
        }
    }
}

/// `tasks/result`: waits until the task is done and answers as the original call would have.
async fn finished<D: Door>(run: &Run<'_, D>, id: &str) -> Result<Json, Error> {
    let result = outcome(run, id, Some(id)).await?;
    let result = lower::result(&Method::ToolsCall, run.client.revision, result);
    let result = Object::of(&result).ok_or_else(Error::internal)?;
    // 2025-11-25 basic/utilities/tasks: the result must name its task.
    let mut related = ObjectWriter::new();
    related.str("taskId", id);
    let own =
        result.object("_meta").unwrap_or_else(Object::empty).with(meta::RELATED_TASK, &related.finish());
    Ok(result.with("_meta", &own))
}

/// Polls a task to its end, passing its questions to the client.
async fn outcome<D: Door>(run: &Run<'_, D>, id: &str, related: Option<&str>) -> Result<Json, Error> {
    loop {
        let task = get(run, id).await?;
        match task.str("status").as_deref() {
            Some("completed") => return task.json("result").ok_or_else(Error::internal),
            Some("failed") => return Err(failure(&task)),
            Some("cancelled") => return Err(Error::invalid_params(format_args!("task {id} was cancelled"))),
            Some("input_required") => {
                let questions = questions(&task);
                if questions.is_empty() {
                    tokio::time::sleep(POLL).await;
                    continue;
                }
                let answers = ask_all(run, &questions, related).await?;
                let mut w = ObjectWriter::new();
                w.str("taskId", id).json("inputResponses", &answer_map(&answers));
                call(run, Method::TasksUpdate, w.finish()).await?;
            }
            _ => {
                let interval =
                    task.get("pollIntervalMs").and_then(|ms| ms.parse().ok()).map(Duration::from_millis);
                tokio::time::sleep(interval.unwrap_or(POLL).min(POLL)).await;
            }
        }
    }
}

fn questions(task: &Object) -> Vec<Question> {
    let Some(map) = task.object("inputRequests") else { return Vec::new() };
    map.members()
        .enumerate()
        .filter_map(|(i, member)| {
            let question = Object::of(&map.json_at(i)?)?;
            Some(Question {
                key: ByteString::from(&*member.name),
                method: Method::from_name(&question.str("method")?),
                params: question.json("params").unwrap_or_else(Json::empty_object),
            })
        })
        .collect()
}

/// The error that a failed task holds.
fn failure(task: &Object) -> Error {
    let error = task.object("error");
    let message = error.as_ref().and_then(|e| e.str("message")).unwrap_or_default().into_owned();
    let failed = Error::new(Symbol::Internal, message);
    let failed = match error.as_ref().and_then(|e| e.get("code")).and_then(|code| code.parse().ok()) {
        Some(code) => failed.with_code(code),
        None => failed,
    };
    match error.and_then(|e| e.json("data")) {
        Some(data) => failed.with_data(data),
        None => failed,
    }
}

async fn cancel<D: Door>(run: &Run<'_, D>, id: &str) -> Result<Json, Error> {
    let status = get(run, id).await?.str("status").unwrap_or_default().into_owned();
    if matches!(&*status, "completed" | "failed" | "cancelled") {
        // 2025-11-25 basic/utilities/tasks: cancelling a finished task is an error.
        return Err(Error::invalid_params(format_args!("task {id} is already {status}")));
    }
    call(run, Method::TasksCancel, id_params(id)).await?;
    Ok(lower::task(&get(run, id).await?))
}

async fn list<D: Door>(run: &Run<'_, D>) -> Result<Json, Error> {
    let mut w = ObjectWriter::new();
    let mut tasks = Vec::new();
    for id in run.client.tasks() {
        match get(run, &id).await {
            Ok(task) => tasks.push(lower::task(&task)),
            Err(_) => run.client.forget_task(&id),
        }
    }
    w.with("tasks", |out| {
        out.push(b'[');
        for (i, task) in tasks.iter().enumerate() {
            if i > 0 {
                out.push(b',');
            }
            out.extend_from_slice(task.as_str().as_bytes());
        }
        out.push(b']');
    });
    Ok(w.finish())
}

async fn get<D: Door>(run: &Run<'_, D>, id: &str) -> Result<Object, Error> {
    if let Some(done) = run.client.done(id) {
        return Object::of(&done).ok_or_else(Error::internal);
    }
    let result = call(run, Method::TasksGet, id_params(id)).await?;
    Object::of(&result).ok_or_else(Error::internal)
}

fn id_params(id: &str) -> Json {
    let mut w = ObjectWriter::new();
    w.str("taskId", id);
    w.finish()
}

async fn call<D: Door>(run: &Run<'_, D>, method: Method, params: Json) -> Result<Json, Error> {
    let params = Params::parse(&params, &OWN).map_err(|_| Error::internal())?;
    match run.call(method, params).await? {
        Reply::Complete(result) => Ok(result),
        Reply::Error(error) => Err(error),
        _ => Err(Error::internal()),
    }
}
