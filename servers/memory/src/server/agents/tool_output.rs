//! [`ToolOutput`]: what a tool or a resource gave, in words.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tidegate_protocol::Json;

/// How much of a result is shown to the model, in bytes.
const SHOWN: usize = 16 * 1024;

/// What a tool gave.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ToolOutput {
    pub(crate) text: String,
    pub(crate) failed: bool,
}

impl ToolOutput {
    pub(crate) fn failed(text: impl Into<String>) -> ToolOutput {
        ToolOutput { text: text.into(), failed: true }
    }
}

/// What a result says, in words.
pub(super) fn of_result(result: &Json) -> ToolOutput {
    let result: Value = result.to().unwrap_or_default();
    let blocks = result["content"].as_array().into_iter().flatten();
    let texts: Vec<&str> = blocks.filter_map(|block| block["text"].as_str()).collect();
    let text = match (texts.is_empty(), result.get("structuredContent")) {
        (true, Some(structured)) => structured.to_string(),
        (true, None) => "(nothing that can be read)".to_owned(),
        (false, _) => texts.join("\n"),
    };
    ToolOutput { text: cut(text), failed: result["isError"] == true }
}

/// What a resource says.
pub(super) fn of_contents(result: &Json) -> ToolOutput {
    let result: Value = result.to().unwrap_or_default();
    let parts = result["contents"].as_array().into_iter().flatten();
    let texts: Vec<&str> = parts.filter_map(|part| part["text"].as_str()).collect();
    match texts.is_empty() {
        true => ToolOutput::failed("The resource has no text"),
        false => ToolOutput { text: cut(texts.join("\n")), failed: false },
    }
}

/// The text, as much of it as is shown.
fn cut(mut text: String) -> String {
    if text.len() > SHOWN {
        let end = (0..=SHOWN).rev().find(|&at| text.is_char_boundary(at)).unwrap_or_default();
        let left = text.len() - end;
        text.truncate(end);
        text.push_str(&format!("\n(cut here: {left} more bytes. Ask for less at a time)"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_results_are_cut_between_characters() {
        let text = cut("ä".repeat(SHOWN));
        assert!(text.len() < SHOWN + 100 && text.contains("more bytes"));
        assert_eq!(cut("short".into()), "short");
    }
}
