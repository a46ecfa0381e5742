//! Tasks: the modern extension (SEP-2663) in the form of 2025-11-25.

use crate::json::{Edit, Json, Object, ObjectWriter};
use crate::meta;

/// A modern task object as 2025-11-25 knows it: `ttlMs` and `pollIntervalMs` by their older names, and without what
/// was inlined (`result`, `error`, `inputRequests`), which has methods of its own there.
///
/// Takes a task alone or the flat result of `tasks/get`, whose `_meta` is kept.
///
/// ```
/// use tidegate_protocol::{Json, Object, lower};
///
/// let task = Json::trusted(r#"{"taskId":"1","status":"completed","ttlMs":null,"result":{"content":[]}}"#);
/// let old = lower::task(&Object::of(&task).unwrap());
/// assert_eq!(old.as_str(), r#"{"taskId":"1","status":"completed","ttl":null}"#);
/// ```
pub fn task(task: &Object) -> Json {
    let mut w = ObjectWriter::with_capacity(task.as_str().len());
    for member in task.members() {
        match &*member.name {
            "resultType" | "result" | "error" | "inputRequests" | "ttl" | "pollInterval" => continue,
            "ttlMs" => w.raw("ttl", member.value),
            "pollIntervalMs" => w.raw("pollInterval", member.value),
            "_meta" => match stripped_meta(task) {
                Some(meta) => w.json("_meta", &meta),
                None => continue,
            },
            // 2025-11-25 basic/utilities/tasks: a tool that failed makes its task `failed`; SEP-2663 calls it completed.
            "status" if is_failed_tool(task) => w.str("status", "failed"),
            name => w.raw(name, member.value),
        };
    }
    // 2025-11-25 schema: `ttl` is required, and `null` is unlimited.
    if !task.has("ttlMs") {
        w.raw("ttl", task.get("ttl").unwrap_or("null"));
    }
    w.finish()
}

fn is_failed_tool(task: &Object) -> bool {
    task.object("result").is_some_and(|result| result.get("isError") == Some("true"))
}

/// The result of a `tools/call` that became a task: flat in SEP-2663, below `task` in 2025-11-25.
pub(super) fn created(result: &Object) -> Json {
    let mut w = ObjectWriter::with_capacity(result.as_str().len() + 16);
    let flat = task(result);
    let bare = Object::of(&flat).map_or(flat.clone(), |task| task.without(&["_meta"]));
    w.json("task", &bare);
    if let Some(meta) = stripped_meta(result) {
        w.json("_meta", &meta);
    }
    w.finish()
}

/// `_meta` without what only modern results carry; `None` if nothing is left.
fn stripped_meta(object: &Object) -> Option<Json> {
    let meta = object.json("_meta")?;
    let mut edit = Edit::of(&meta)?;
    edit.remove(meta::SERVER_INFO);
    Some(edit.finish().unwrap_or(meta)).filter(|meta| meta.as_str() != "{}")
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_failed_tool_makes_a_failed_task() {
        let json = Json::trusted(
            r#"{"taskId":"1","status":"completed","ttlMs":1,"result":{"content":[],"isError":true}}"#,
        );
        let old = super::task(&Object::of(&json).unwrap());
        assert_eq!(old.as_str(), r#"{"taskId":"1","status":"failed","ttl":1}"#);
    }

    use super::*;
    use crate::lower::result;
    use crate::method::Method;
    use crate::revision::Revision;

    const TASK: &str = r#""taskId":"t","status":"working","createdAt":"c","lastUpdatedAt":"u","ttlMs":60000,"pollIntervalMs":5000"#;
    const OLD: &str = r#""taskId":"t","status":"working","createdAt":"c","lastUpdatedAt":"u","ttl":60000,"pollInterval":5000"#;

    fn lowered(method: Method, text: String) -> String {
        result(&method, Revision::V2025_11_25, Json::trusted(text)).as_str().to_owned()
    }

    #[test]
    fn a_created_task_is_nested() {
        let server = r#""io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}"#;
        for (meta, want) in [
            (String::new(), format!(r#"{{"task":{{{OLD}}}}}"#)),
            (format!(r#","_meta":{{{server}}}"#), format!(r#"{{"task":{{{OLD}}}}}"#)),
            (format!(r#","_meta":{{{server},"k":1}}"#), format!(r#"{{"task":{{{OLD}}},"_meta":{{"k":1}}}}"#)),
        ] {
            assert_eq!(lowered(Method::ToolsCall, format!(r#"{{"resultType":"task",{TASK}{meta}}}"#)), want);
        }
    }

    #[test]
    fn a_polled_task_stays_flat() {
        for inlined in [
            "",
            r#","result":{"content":[]}"#,
            r#","error":{"code":1,"message":""}"#,
            r#","inputRequests":{"k":{}}"#,
        ] {
            let text = format!(r#"{{"resultType":"complete",{TASK}{inlined}}}"#);
            assert_eq!(lowered(Method::TasksGet, text), format!("{{{OLD}}}"), "{inlined}");
        }
        assert_eq!(lowered(Method::TasksCancel, r#"{"resultType":"complete"}"#.into()), "{}");
    }

    #[test]
    fn a_missing_ttl_is_unlimited() {
        assert_eq!(lowered(Method::TasksGet, r#"{"taskId":"t"}"#.into()), r#"{"taskId":"t","ttl":null}"#);
    }
}
