//! Lowering: what a modern server says, in words that an older revision knows.
//!
//! Inside, everything is 2026-07-28. A legacy client gets results, definitions and questions without the members and
//! content types that its revision does not know: never passed on illegally, and never silently lost where there is
//! an older way to say the same (a resource link becomes text, a title a description). Members that need no change
//! keep their bytes, and a result that needs none is the same [`Json`] again.

mod content;
mod definition;
mod question;
mod task;

pub use question::{answer, question};
pub use task::task;

use crate::json::{Edit, Json, Object};
use crate::meta;
use crate::method::Method;
use crate::revision::{Feature, Revision};

/// The result of `method` as a peer of `revision` knows it.
///
/// ```
/// use tidegate_protocol::{Json, Method, Revision, lower};
///
/// let result = Json::trusted(r#"{"resultType":"complete","content":[{"type":"text","text":"hi"}]}"#);
/// let old = lower::result(&Method::ToolsCall, Revision::V2025_11_25, result.clone());
/// assert_eq!(old.as_str(), r#"{"content":[{"type":"text","text":"hi"}]}"#);
/// assert_eq!(lower::result(&Method::ToolsCall, Revision::V2026_07_28, result.clone()), result);
/// ```
pub fn result(method: &Method, revision: Revision, result: Json) -> Json {
    if revision.is_modern() {
        return result;
    }
    let Some(mut edit) = Edit::of(&result) else { return result };
    match method {
        Method::ToolsCall if is_task(edit.object()) => return task::created(edit.object()),
        Method::TasksGet | Method::TasksCancel if edit.object().has("taskId") => return task(edit.object()),
        _ => {}
    }

    // 2026-07-28 basic/index: `resultType` is on every result; server/utilities/caching: hints on some.
    edit.remove("resultType");
    if method.is_cacheable() || *method == Method::Initialize {
        edit.remove("ttlMs").remove("cacheScope");
    }
    strip_meta(&mut edit, meta::SERVER_INFO);

    let each = |list: &Json, lower: fn(Revision, &Json) -> Option<Json>| {
        list.map_elements(|item| lower(revision, item))
    };
    match method {
        Method::ToolsCall => content::tool_result(revision, &mut edit),
        Method::PromptsGet => _ = edit.map("messages", |list| each(list, content::message)),
        Method::ResourcesRead => _ = edit.map("contents", |list| each(list, content::resource)),
        Method::ToolsList => _ = edit.map("tools", |list| each(list, definition::tool)),
        Method::ResourcesList => _ = edit.map("resources", |list| each(list, definition::resource)),
        Method::ResourcesTemplatesList => {
            _ = edit.map("resourceTemplates", |list| each(list, definition::resource));
        }
        Method::PromptsList => _ = edit.map("prompts", |list| each(list, definition::prompt)),
        Method::Initialize => {
            edit.map("capabilities", |all| definition::capabilities(revision, all));
            edit.map("serverInfo", |info| definition::implementation(revision, info));
        }
        _ => {}
    }
    edit.finish().unwrap_or(result)
}

/// The parameters of a notification as a peer of `revision` knows them.
pub fn notification(method: &str, revision: Revision, params: Json) -> Json {
    if revision.is_modern() {
        return params;
    }
    let Some(mut edit) = Edit::of(&params) else { return params };
    strip_meta(&mut edit, meta::SUBSCRIPTION_ID);
    if method == "notifications/progress" && !revision.allows(Feature::ProgressMessage) {
        edit.remove("message");
    }
    edit.finish().unwrap_or(params)
}

/// Whether a result of `tools/call` is the handle of a task (SEP-2663).
fn is_task(result: &Object) -> bool {
    result.str("resultType").is_some_and(|kind| kind == "task")
}

/// Removes one key from `_meta`, and `_meta` itself when nothing else was in it.
fn strip_meta(edit: &mut Edit, key: &'static str) {
    let Some(meta) = edit.object().object("_meta").filter(|meta| meta.has(key)) else { return };
    if meta.len() == 1 {
        edit.remove("_meta");
    } else {
        edit.set("_meta", meta.without(&[key]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) const ALL_LEGACY: [Revision; 4] =
        [Revision::V2024_11_05, Revision::V2025_03_26, Revision::V2025_06_18, Revision::V2025_11_25];

    fn lowered(method: Method, revision: Revision, text: &'static str) -> String {
        result(&method, revision, Json::trusted(text)).as_str().to_owned()
    }

    #[test]
    fn modern_results_are_not_even_read() {
        let text = r#"{"resultType":"complete","resultType":"twice"}"#;
        assert_eq!(lowered(Method::ToolsCall, Revision::LATEST_MODERN, text), text);
    }

    #[test]
    fn a_result_that_needs_nothing_is_the_same_buffer() {
        let json = Json::trusted(r#"{"content":[{"type":"text","text":"x","_meta":{"a":1}}], "n": 1.0}"#);
        let same = result(&Method::ToolsCall, Revision::V2025_11_25, json.clone());
        assert_eq!(same.as_str().as_ptr(), json.as_str().as_ptr());
    }

    #[test]
    fn framing_is_stripped_from_every_legacy_result() {
        let server = r#""io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}"#;
        let with = |meta: &str| format!(r#"{{"resultType":"complete","_meta":{{{meta}}},"x": 1.0}}"#);
        for revision in ALL_LEGACY {
            for (text, want) in [
                (with(server), r#"{"x": 1.0}"#),
                (with(&format!(r#"{server},"k":2"#)), r#"{"_meta":{"k":2},"x": 1.0}"#),
                (with(r#""k":2"#), r#"{"_meta":{"k":2},"x": 1.0}"#),
                (with(""), r#"{"_meta":{},"x": 1.0}"#),
            ] {
                for method in [Method::Complete, Method::ToolsCall, Method::from_name("vendor/x")] {
                    let got = result(&method, revision, Json::trusted(text.clone()));
                    assert_eq!(got.as_str(), want, "{method} {revision}");
                }
            }
        }
    }

    #[test]
    fn cache_hints_belong_to_cacheable_results() {
        let text = r#"{"ttlMs":0,"cacheScope":"private","v":[]}"#;
        assert_eq!(lowered(Method::ToolsList, Revision::V2025_11_25, text), r#"{"v":[]}"#);
        assert_eq!(lowered(Method::ResourcesRead, Revision::V2024_11_05, text), r#"{"v":[]}"#);
        assert_eq!(lowered(Method::from_name("vendor/x"), Revision::V2024_11_05, text), text);
    }

    #[test]
    fn notifications() {
        let lowered = |method: &str, revision, text: &'static str| {
            notification(method, revision, Json::trusted(text)).as_str().to_owned()
        };
        let progress = r#"{"progressToken":0,"progress":1,"message":"half"}"#;
        assert_eq!(lowered("notifications/progress", Revision::V2025_03_26, progress), progress);
        assert_eq!(
            lowered("notifications/progress", Revision::V2024_11_05, progress),
            r#"{"progressToken":0,"progress":1}"#
        );
        let changed = r#"{"_meta":{"io.modelcontextprotocol/subscriptionId":"1"}}"#;
        assert_eq!(lowered("notifications/tools/list_changed", Revision::V2025_11_25, changed), "{}");
        assert_eq!(lowered("notifications/tools/list_changed", Revision::V2026_07_28, changed), changed);
    }
}
