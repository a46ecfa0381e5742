//! [`ToolResult`]: what a tool answered.

use serde_json::Value;
use tidegate_protocol::content::joined_text;
use tidegate_protocol::{Json, Object};

/// The result of a tool call, as it came.
#[derive(Debug, Clone)]
pub struct ToolResult(Json);

impl ToolResult {
    pub(super) fn new(json: Json) -> ToolResult {
        ToolResult(json)
    }

    /// The whole result object as it came.
    pub fn json(&self) -> &Json {
        &self.0
    }

    /// Whether the tool says that it failed.
    pub fn is_error(&self) -> bool {
        Object::of(&self.0).is_some_and(|o| o.get("isError") == Some("true"))
    }

    /// The content blocks.
    pub fn content(&self) -> Vec<Value> {
        let content = Object::of(&self.0).and_then(|o| o.json("content"));
        content.and_then(|content| content.to().ok()).unwrap_or_default()
    }

    /// All text blocks, one after the other.
    pub fn text(&self) -> String {
        if let Some(text) = joined_text(&self.0) {
            return text;
        }
        // Blocks that are not quite in order are read the way that forgives most.
        let blocks = self.content();
        let texts = blocks.iter().filter_map(|block| block.get("text").and_then(Value::as_str));
        texts.collect::<Vec<_>>().join("\n")
    }

    /// The structured content, if there is any.
    pub fn structured(&self) -> Option<Value> {
        Object::of(&self.0)?.json("structuredContent")?.to().ok()
    }

    /// The structured content as a Rust type.
    pub fn structured_as<T: serde::de::DeserializeOwned>(&self) -> Option<Result<T, serde_json::Error>> {
        Some(Object::of(&self.0)?.json("structuredContent")?.to())
    }

    /// The handle of a task, if the server answered with one instead of a result.
    pub fn task(&self) -> Option<Value> {
        let object = Object::of(&self.0)?;
        (object.str("resultType").as_deref() == Some("task")).then(|| self.0.to().ok())?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_that_name_something_twice_still_have_text() {
        for (result, text) in [
            (r#"{"content":[{"text":"a"},{"text":"b"}]}"#, "a\nb"),
            (r#"{"content":[{"text":"a"},{"text":"b","text":"c"}]}"#, "a\nc"),
            (r#"{"content":[],"content":[{"text":"a"}]}"#, ""),
        ] {
            assert_eq!(ToolResult::new(Json::trusted(result)).text(), text, "{result}");
        }
    }
}
