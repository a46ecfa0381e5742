//! The forms of a task: that of 2025-11-25 in, that of SEP-2663 out.

use std::time::Duration;

use tidegate_protocol::json::ObjectWriter;
use tidegate_protocol::{Json, Object, meta};

/// The parameters of a request about a task.
pub(super) fn id_params(id: &str) -> Json {
    let mut params = ObjectWriter::new();
    params.str("taskId", id);
    params.finish()
}

/// The task in the result of a call that was made as one, with its id. `None` if it is an ordinary result.
pub(crate) fn created(result: &Json) -> Option<(Object, String)> {
    let task = Object::of(result)?.object("task")?;
    let id = task.str("taskId")?.into_owned();
    Some((task, id))
}

/// What a status brings with it.
pub(super) enum Detail {
    Nothing,
    Result(Json),
    Error(Json),
    Questions(Json),
}

/// How a task is shown to its caller: under which id, with which status, and for how long.
pub(super) struct Shown<'a> {
    pub(super) kind: &'static str,
    pub(super) handle: &'a str,
    pub(super) status: &'a str,
    pub(super) ttl: Duration,
    pub(super) detail: Detail,
}

impl Shown<'_> {
    /// The task in the form of SEP-2663. What we know nothing about stays as it came.
    pub(super) fn write(&self, task: &Object) -> Json {
        let mut w = ObjectWriter::with_capacity(task.as_str().len() + 256);
        w.str("resultType", self.kind);
        for member in task.members() {
            match &*member.name {
                "taskId" => w.str("taskId", self.handle),
                "status" => w.str("status", self.status),
                "ttl" => w.value("ttlMs", &(self.ttl.as_millis() as u64)),
                "pollInterval" => w.raw("pollIntervalMs", member.value),
                "resultType" | "ttlMs" | "pollIntervalMs" | "result" | "error" | "inputRequests" => continue,
                name => w.raw(name, member.value),
            };
        }
        if !task.has("ttl") {
            w.value("ttlMs", &(self.ttl.as_millis() as u64));
        }
        match &self.detail {
            Detail::Nothing => {}
            Detail::Result(result) => _ = w.json("result", result),
            Detail::Error(error) => _ = w.json("error", error),
            Detail::Questions(questions) => _ = w.json("inputRequests", questions),
        }
        w.finish()
    }
}

/// The result of a task without the server's name for the task, which means nothing to the caller.
pub(crate) fn unrelated(result: Json) -> Json {
    let Some(object) = Object::of(&result) else { return result };
    match object.object("_meta").filter(|own| own.has(meta::RELATED_TASK)) {
        Some(own) if own.len() == 1 => object.without(&["_meta"]),
        Some(own) => object.with("_meta", &own.without(&[meta::RELATED_TASK])),
        None => result,
    }
}

/// An answer to a question of a task, which names the task (2025-11-25 basic/utilities/tasks, Associating Task-Related
/// Messages).
pub(crate) fn related(answer: &Json, id: &str) -> Json {
    let Some(object) = Object::of(answer) else { return answer.clone() };
    let own = object.object("_meta").unwrap_or_else(Object::empty);
    object.with("_meta", &own.with(meta::RELATED_TASK, &id_params(id)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_in_its_modern_form() {
        let text = r#"{"task":{"taskId":"a","status":"working","createdAt":"c","ttl":null,"pollInterval": 5.0,"x": 1e2}}"#;
        let (task, id) = created(&Json::trusted(text)).unwrap();
        assert_eq!(id, "a");
        let shown = |status, detail| {
            let ttl = Duration::from_secs(1);
            Shown { kind: "complete", handle: "h", status, ttl, detail }.write(&task).as_str().to_owned()
        };
        assert_eq!(
            shown("working", Detail::Nothing),
            r#"{"resultType":"complete","taskId":"h","status":"working","createdAt":"c","ttlMs":1000,"pollIntervalMs":5.0,"x":1e2}"#
        );
        let done = shown("completed", Detail::Result(Json::trusted(r#"{"content":[]}"#)));
        assert!(done.contains(r#""status":"completed""#) && done.ends_with(r#","result":{"content":[]}}"#));
        assert!(created(&Json::trusted(r#"{"content":[]}"#)).is_none());
    }

    #[test]
    fn the_servers_id_stays_between_it_and_us() {
        let kept = |text: &'static str| unrelated(Json::trusted(text)).as_str().to_owned();
        let tag = r#""io.modelcontextprotocol/related-task":{"taskId":"a"}"#;
        assert_eq!(
            unrelated(Json::trusted(format!(r#"{{"x":1,"_meta":{{{tag}}}}}"#))).as_str(),
            r#"{"x":1}"#
        );
        assert_eq!(
            unrelated(Json::trusted(format!(r#"{{"_meta":{{"k":1,{tag}}}}}"#))).as_str(),
            r#"{"_meta":{"k":1}}"#
        );
        assert_eq!(kept(r#"{"_meta":{"k": 1}}"#), r#"{"_meta":{"k": 1}}"#);
        assert_eq!(
            related(&Json::trusted(r#"{"action":"decline"}"#), "a").as_str(),
            format!(r#"{{"action":"decline","_meta":{{{tag}}}}}"#)
        );
    }
}
