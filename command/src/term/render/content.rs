//! Results: what a tool, a prompt or a resource gave.

use serde_json::Value;

use super::size;
use crate::term::clean;
use crate::term::style::Paint;

/// The result of `tools/call`: its content, or its structured content where there is no text.
pub(crate) fn tool_result(result: &Value, paint: Paint) -> String {
    let blocks = list(result, "content");
    let has_text = blocks.iter().any(|block| block.get("type").and_then(Value::as_str) == Some("text"));
    let mut shown: Vec<String> = blocks.iter().map(|content| block(content, paint)).collect();
    // Its text, where there is one, says the same: that of an empty file is empty.
    if let Some(structured) = result.get("structuredContent").filter(|value| !has_text && !value.is_null()) {
        shown.push(pretty(structured));
    }
    shown.retain(|text| !text.is_empty());
    if shown.is_empty() && !has_text {
        shown.push(paint.dim("(nothing)"));
    }
    if result.get("isError").and_then(Value::as_bool) == Some(true) {
        shown.insert(0, paint.bad("The tool reported an error:"));
    }
    shown.join("\n")
}

/// The result of `prompts/get`: who says what.
pub(crate) fn prompt_result(result: &Value, paint: Paint) -> String {
    let mut shown = Vec::new();
    let description = clean::result(&text_of(result, "description"));
    if !description.trim().is_empty() {
        shown.push(paint.dim(description));
    }
    for message in list(result, "messages") {
        let role = clean::line(&text_of(message, "role"));
        let blocks: Vec<String> = match message.get("content") {
            Some(Value::Array(blocks)) => blocks.iter().map(|content| block(content, paint)).collect(),
            Some(content) => vec![block(content, paint)],
            None => Vec::new(),
        };
        shown.push(format!("{}\n{}", paint.name(format!("{role}:")), blocks.join("\n")));
    }
    if shown.is_empty() {
        shown.push(paint.dim("(no messages)"));
    }
    shown.join("\n\n")
}

/// The result of `resources/read`. A single text is shown as it is, so that it can be piped on.
pub(crate) fn read_result(result: &Value, paint: Paint) -> String {
    let contents = list(result, "contents");
    match contents {
        [] => paint.dim("(nothing)"),
        [only] if only.get("text").is_some() => clean::result(&text_of(only, "text")),
        several => several.iter().map(|resource| embedded(resource, paint)).collect::<Vec<_>>().join("\n\n"),
    }
}

/// One content block.
pub(crate) fn block(content: &Value, paint: Paint) -> String {
    match content.get("type").and_then(Value::as_str) {
        Some("text") => clean::result(&text_of(content, "text")),
        Some(kind @ ("image" | "audio")) => {
            let bytes = size::of_base64(&text_of(content, "data"));
            label(paint, [format!("{kind} {}", text_of(content, "mimeType")), size::human(bytes)])
        }
        Some("resource_link") => resource_link(content, paint),
        Some("resource") => match content.get("resource") {
            Some(resource) => embedded(resource, paint),
            None => label(paint, ["resource".to_owned()]),
        },
        Some(other) => format!("{}\n{}", label(paint, [other.to_owned()]), pretty(content)),
        None => pretty(content),
    }
}

fn resource_link(link: &Value, paint: Paint) -> String {
    let name = Some(text_of(link, "title")).filter(|title| !title.is_empty());
    let name = name.unwrap_or_else(|| text_of(link, "name"));
    let size = link.get("size").and_then(Value::as_u64).map(size::human).unwrap_or_default();
    let head =
        label(paint, [format!("resource {name}"), text_of(link, "uri"), text_of(link, "mimeType"), size]);
    let description = clean::first_line(&text_of(link, "description"));
    if description.is_empty() { head } else { format!("{head} {description}") }
}

/// A resource with what is in it.
fn embedded(resource: &Value, paint: Paint) -> String {
    let uri = format!("resource {}", text_of(resource, "uri"));
    let kind = text_of(resource, "mimeType");
    match resource.get("blob").and_then(Value::as_str) {
        Some(blob) => label(paint, [uri, kind, size::human(size::of_base64(blob))]),
        None => {
            format!("{}\n{}", label(paint, [uri, kind]), clean::result(&text_of(resource, "text")))
        }
    }
}

/// `[image image/png, 3.2 KB]`.
fn label<const N: usize>(paint: Paint, parts: [String; N]) -> String {
    let parts: Vec<String> =
        parts.iter().map(|part| clean::line(part)).filter(|part| !part.is_empty()).collect();
    paint.dim(format!("[{}]", parts.join(", ")))
}

/// Any JSON, indented.
pub(crate) fn pretty(value: &Value) -> String {
    // JSON escapes only some of the control characters.
    clean::result(&serde_json::to_string_pretty(value).unwrap_or_else(|_| value.to_string()))
}

pub(super) fn text_of(value: &Value, key: &str) -> String {
    value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn term_content_blocks() {
        for (content, shown) in [
            (json!({"type": "text", "text": "a\nb\u{1b}[31m!"}), "a\nb!"),
            (
                json!({"type": "image", "mimeType": "image/png", "data": "A".repeat(4370)}),
                "[image image/png, 3.2 KB]",
            ),
            (json!({"type": "audio", "mimeType": "audio/wav", "data": "YQ=="}), "[audio audio/wav, 1 byte]"),
            (
                json!({"type": "resource_link", "uri": "file:///a", "name": "a", "mimeType": "text/plain", "size": 2048,
                    "description": "The a.\nMore."}),
                "[resource a, file:///a, text/plain, 2.0 KB] The a.",
            ),
            (
                json!({"type": "resource_link", "uri": "file:///a", "name": "a", "title": "A\nB"}),
                "[resource A B, file:///a]",
            ),
            (
                json!({"type": "resource", "resource": {"uri": "file:///a", "mimeType": "text/plain", "text": "x\u{7}"}}),
                "[resource file:///a, text/plain]\nx",
            ),
            (
                json!({"type": "resource", "resource": {"uri": "file:///\u{1b}[2Ja", "blob": "YWJj"}}),
                "[resource file:///a, 3 bytes]",
            ),
            (json!({"type": "resource"}), "[resource]"),
            (
                json!({"type": "new", "a": "\u{9b}2J\u{1b}"}),
                "[new]\n{\n  \"a\": \"\\u001b\",\n  \"type\": \"new\"\n}",
            ),
            (json!(5), "5"),
        ] {
            assert_eq!(block(&content, Paint::plain()), shown, "{content}");
        }
    }

    #[test]
    fn term_tool_results() {
        let text = json!({"type": "text", "text": "3"});
        let image = json!({"type": "image", "mimeType": "image/png", "data": ""});
        for (result, shown) in [
            (json!({"content": [text, text]}), "3\n3"),
            (json!({"content": [text], "structuredContent": {"sum": 3}}), "3"),
            (json!({"content": [], "structuredContent": {"sum": 3}}), "{\n  \"sum\": 3\n}"),
            (json!({"structuredContent": [1]}), "[\n  1\n]"),
            (json!({"content": [image], "structuredContent": 3}), "[image image/png, 0 bytes]\n3"),
            (json!({"content": []}), "(nothing)"),
            (json!({"content": [{"type": "text", "text": ""}], "structuredContent": {"lines": 0}}), ""),
            (json!({"content": [text], "isError": true}), "The tool reported an error:\n3"),
            (json!(null), "(nothing)"),
        ] {
            assert_eq!(tool_result(&result, Paint::plain()), shown, "{result}");
        }
    }

    #[test]
    fn term_prompt_and_resource_results() {
        let result = json!({"description": "Greets", "messages": [
            {"role": "user", "content": {"type": "text", "text": "Hi"}},
            {"role": "assistant", "content": [{"type": "text", "text": "Ho"}, {"type": "text", "text": "Hum"}]},
        ]});
        assert_eq!(prompt_result(&result, Paint::plain()), "Greets\n\nuser:\nHi\n\nassistant:\nHo\nHum");
        assert_eq!(prompt_result(&json!({}), Paint::plain()), "(no messages)");
        let text = json!({"uri": "a:b", "text": "x\u{1b}]0;t\u{7}y"});
        let blob = json!({"uri": "a:c", "blob": "YQ=="});
        assert_eq!(read_result(&json!({"contents": [text]}), Paint::plain()), "xy");
        assert_eq!(read_result(&json!({"contents": [blob]}), Paint::plain()), "[resource a:c, 1 byte]");
        assert_eq!(
            read_result(&json!({"contents": [text, blob]}), Paint::plain()),
            "[resource a:b]\nxy\n\n[resource a:c, 1 byte]"
        );
        assert_eq!(read_result(&json!({}), Paint::plain()), "(nothing)");
    }
}
