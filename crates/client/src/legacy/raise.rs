//! Raising: what a legacy server says, in the form of 2026-07-28.

use bytestring::ByteString;
use serde_json::Value;
use tidegate_protocol::{Json, Method, Object, Revision};
use tidegate_service::Question;

/// The result of a legacy server as a caller of `revision` gets it: completed for a modern one, as it came for the
/// rest. Nothing is known about how long it is good and for whom, and that is what the hints say.
pub(crate) fn result(method: &Method, revision: Revision, result: Json) -> Json {
    if !revision.is_modern() || !result.is_object() {
        return result;
    }
    let mut missing = Vec::new();
    // A look at the text is enough in nearly all cases, and it is much cheaper than taking a large result apart.
    let mentions = |key: &str| memchr::memmem::find(result.as_str().as_bytes(), key.as_bytes()).is_some();
    let known = ["\"resultType\"", "\"ttlMs\"", "\"cacheScope\""].iter().any(|key| mentions(key));
    let object = if known { Object::of(&result) } else { None };
    let lacks = |name: &str| object.as_ref().is_none_or(|o| !o.has(name));
    if lacks("resultType") {
        missing.push("\"resultType\":\"complete\"");
    }
    if method.is_cacheable() {
        if lacks("ttlMs") {
            missing.push("\"ttlMs\":0");
        }
        if lacks("cacheScope") {
            missing.push("\"cacheScope\":\"private\"");
        }
    }
    if missing.is_empty() {
        return result;
    }
    let text = result.as_str();
    let inner = text[1..text.len() - 1].trim_end();
    let mut out = String::with_capacity(text.len() + 64);
    out.push('{');
    out.push_str(inner);
    for (i, member) in missing.iter().enumerate() {
        if i > 0 || !inner.trim().is_empty() {
            out.push(',');
        }
        out.push_str(member);
    }
    out.push('}');
    Json::trusted(out)
}

/// Most pages to visit that one error is read for.
const MAX_PAGES: usize = 64;

/// The questions in a legacy -32042 (URL elicitation required, 2025-11-25), or none if it is another error.
pub(crate) fn url_questions(error: &Json) -> Vec<Question> {
    let Ok(error) = error.to::<Value>() else { return Vec::new() };
    if error.get("code").and_then(Value::as_i64) != Some(-32042) {
        return Vec::new();
    }
    let asked = error.pointer("/data/elicitations").and_then(Value::as_array);
    let asked = asked.into_iter().flatten().take(MAX_PAGES).enumerate().filter_map(|(i, question)| {
        let mut params = question.as_object()?.clone();
        let id = params.get("elicitationId").and_then(Value::as_str).map(str::to_owned);
        params.entry("mode").or_insert_with(|| "url".into());
        let key = id.unwrap_or_else(|| format!("url-{}", i + 1));
        Some(Question {
            key: ByteString::from(key),
            method: Method::ElicitCreate,
            params: Value::Object(params).into(),
        })
    });
    asked.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raised(method: Method, text: &'static str) -> String {
        result(&method, Revision::LATEST_MODERN, Json::trusted(text)).as_str().to_owned()
    }

    #[test]
    fn results_are_completed_and_else_untouched() {
        assert_eq!(
            raised(Method::ToolsCall, r#"{ "content": [], "n": 1.0 }"#),
            r#"{ "content": [], "n": 1.0,"resultType":"complete"}"#
        );
        assert_eq!(raised(Method::ToolsCall, "{}"), r#"{"resultType":"complete"}"#);
        assert_eq!(
            raised(Method::ToolsList, r#"{"tools":[]}"#),
            r#"{"tools":[],"resultType":"complete","ttlMs":0,"cacheScope":"private"}"#
        );
        let whole = r#"{"tools":[],"resultType":"complete","ttlMs":5,"cacheScope":"public"}"#;
        assert_eq!(raised(Method::ToolsList, whole), whole);
        // A word that only stands in a text is not a member.
        assert_eq!(
            raised(Method::ToolsCall, r#"{"text":"\"resultType\" \"ttlMs\""}"#),
            r#"{"text":"\"resultType\" \"ttlMs\"","resultType":"complete"}"#
        );
        let same = result(&Method::ToolsCall, Revision::V2025_06_18, Json::trusted("{}"));
        assert_eq!(same.as_str(), "{}");
    }

    #[test]
    fn pages_to_visit_become_questions() {
        let error = Json::trusted(
            r#"{"code":-32042,"message":"m","data":{"elicitations":[{"mode":"url","elicitationId":"e1","url":"https://x","message":"go"}]}}"#,
        );
        let questions = url_questions(&error);
        assert_eq!(questions.len(), 1);
        assert_eq!(questions[0].key, "e1");
        assert!(url_questions(&Json::trusted(r#"{"code":-32602,"message":"m"}"#)).is_empty());
    }
}
