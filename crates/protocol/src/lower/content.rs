//! Content: blocks of tool results, prompt messages and sampling messages, and the contents of resources.

use std::fmt::Write as _;

use crate::json::{Edit, Json, Object, ObjectWriter};
use crate::revision::{Feature, Revision};

/// The result of a tool: its blocks, and its structured content.
pub(super) fn tool_result(revision: Revision, edit: &mut Edit) {
    let result = edit.object();
    // Since 2025-06-18 structured content must be an object; since 2026-07-28 it is any value.
    let structured = result.json("structuredContent").filter(|value| {
        !revision.allows(Feature::StructuredContent)
            || !(value.is_object() || revision.allows(Feature::AnyStructuredContent))
    });
    let content = result.json("content");
    let mut lowered = content.as_ref().and_then(|list| blocks(revision, list));
    if let Some(value) = structured {
        let blocks = content.as_ref().and_then(Json::elements).unwrap_or_default();
        let known = if revision.allows(Feature::StructuredContent) {
            // The client was promised structure, and the text beside it may be about something else.
            blocks.iter().any(|block| says(block, &value))
        } else {
            // Such a client reads text, and an author who wrote some wrote it for this case.
            blocks.iter().any(|block| text_of(block).is_some())
        };
        if !known {
            let all = lowered.or(content).unwrap_or_else(|| Json::array(&[]));
            let mut all = all.elements().unwrap_or_default();
            all.push(text_block(value.as_str(), None));
            lowered = Some(Json::array(&all));
        }
        edit.remove("structuredContent");
    }
    if let Some(content) = lowered {
        edit.set("content", content);
    }
}

/// A list of blocks; `None` if none changes.
fn blocks(revision: Revision, list: &Json) -> Option<Json> {
    // 2025-11-25 knows everything that 2026-07-28 does.
    if revision >= Revision::V2025_11_25 {
        return None;
    }
    list.map_elements(|one| block(revision, one))
}

/// A message of a prompt.
pub(super) fn message(revision: Revision, message: &Json) -> Option<Json> {
    let mut edit = Edit::of(message)?;
    edit.map("content", |content| block(revision, content));
    edit.finish()
}

/// The contents of a resource, read or embedded.
pub(super) fn resource(revision: Revision, contents: &Json) -> Option<Json> {
    let mut edit = Edit::of(contents)?;
    if !revision.allows(Feature::DefinitionMeta) {
        edit.remove("_meta");
    }
    edit.finish()
}

/// One block; `None` if it does not change.
pub(super) fn block(revision: Revision, block: &Json) -> Option<Json> {
    let mut edit = Edit::of(block)?;
    let object = edit.object();
    match object.str("type").as_deref() {
        Some("audio") if !revision.allows(Feature::Audio) => {
            return Some(described(revision, object, audio(object)));
        }
        Some("resource_link") if !revision.allows(Feature::ResourceLinks) => {
            return Some(described(revision, object, link(object)));
        }
        Some("resource_link") if !revision.allows(Feature::Icons) => _ = edit.remove("icons"),
        Some("resource") => _ = edit.map("resource", |inner| resource(revision, inner)),
        _ => {}
    }
    if !revision.allows(Feature::DefinitionMeta) {
        edit.remove("_meta");
    }
    edit.map("annotations", |value| annotations(revision, value));
    edit.finish()
}

/// Annotations of content and resources.
pub(super) fn annotations(revision: Revision, annotations: &Json) -> Option<Json> {
    let mut edit = Edit::of(annotations)?;
    if !revision.allows(Feature::DefinitionMeta) {
        edit.remove("lastModified");
    }
    edit.finish()
}

/// The text that stands for a block, with the annotations that the block had.
fn described(revision: Revision, block: &Object, text: String) -> Json {
    let kept = block.json("annotations").map(|value| annotations(revision, &value).unwrap_or(value));
    text_block(&text, kept)
}

fn text_block(text: &str, annotations: Option<Json>) -> Json {
    let mut block = ObjectWriter::with_capacity(text.len() + 32);
    block.str("type", "text").str("text", text);
    if let Some(annotations) = annotations {
        block.json("annotations", &annotations);
    }
    block.finish()
}

fn audio(block: &Object) -> String {
    let kind = block.str("mimeType").unwrap_or("audio".into());
    let size = block.str("data").map_or(0, |data| decoded_len(&data));
    format!("[Audio of type {kind}, {size} bytes, which this revision of the protocol cannot carry]")
}

/// How many bytes Base64 text stands for.
fn decoded_len(base64: &str) -> usize {
    base64.trim_end_matches('=').len() * 3 / 4
}

fn link(block: &Object) -> String {
    let uri = block.str("uri").unwrap_or_default();
    let mut text = match (block.str("name"), block.str("title")) {
        (Some(name), Some(title)) => format!("[Resource {title} ({name}): {uri}"),
        (Some(name), None) | (None, Some(name)) => format!("[Resource {name}: {uri}"),
        (None, None) => format!("[Resource {uri}"),
    };
    if let Some(kind) = block.str("mimeType") {
        let _ = write!(text, ", {kind}");
    }
    if let Some(size) = block.get("size") {
        let _ = write!(text, ", {size} bytes");
    }
    text.push(']');
    if let Some(description) = block.str("description") {
        let _ = write!(text, "\n{description}");
    }
    text
}

/// The text of a text block.
fn text_of(block: &Json) -> Option<String> {
    let block = Object::of(block)?;
    if block.str("type")? != "text" {
        return None;
    }
    block.str("text").map(|text| text.into_owned())
}

/// Whether a block is a text that says the same as `value`.
fn says(block: &Json, value: &Json) -> bool {
    let Some(text) = text_of(block) else { return false };
    if value.to_str().is_some_and(|content| content == text) {
        return true;
    }
    match (serde_json::from_str::<serde_json::Value>(&text), value.to::<serde_json::Value>()) {
        (Ok(text), Ok(value)) => text == value,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::ALL_LEGACY;
    use super::*;
    use crate::lower::result;
    use crate::method::Method;

    /// A `tools/call` result with this content, lowered to each legacy revision, oldest first.
    fn blocks(content: &str) -> [String; 4] {
        ALL_LEGACY.map(|revision| {
            let text = format!(r#"{{"content":[{content}]}}"#);
            let got = result(&Method::ToolsCall, revision, Json::trusted(text));
            let got = got.as_str();
            got.strip_prefix(r#"{"content":["#).and_then(|s| s.strip_suffix("]}")).expect(got).to_owned()
        })
    }

    #[test]
    fn audio_becomes_text_before_2025_03_26() {
        let block =
            r#"{"type":"audio","data":"AAAAAAA=","mimeType":"audio/wav","annotations":{"priority":1.0}}"#;
        let [old, rest @ ..] = blocks(block);
        assert_eq!(
            old,
            r#"{"type":"text","text":"[Audio of type audio/wav, 5 bytes, which this revision of the protocol cannot carry]","annotations":{"priority":1.0}}"#
        );
        assert_eq!(rest, [block; 3]);
    }

    #[test]
    fn resource_links_become_text_before_2025_06_18() {
        let block = r#"{"type":"resource_link","uri":"x:1","name":"one","description":"First","mimeType":"text/plain","size":7,"icons":[]}"#;
        let [a, b, c, d] = blocks(block);
        let text = r#"{"type":"text","text":"[Resource one: x:1, text/plain, 7 bytes]\nFirst"}"#;
        assert_eq!([a, b], [text; 2]);
        assert_eq!(c, block.replace(r#","icons":[]"#, ""));
        assert_eq!(d, block);
    }

    #[test]
    fn meta_and_last_modified_go_before_2025_06_18() {
        let block =
            r#"{"type":"text","text":"x","_meta":{},"annotations":{"priority": 1,"lastModified":"2025"}}"#;
        let old = r#"{"type":"text","text":"x","annotations":{"priority": 1}}"#;
        assert_eq!(blocks(block), [old, old, block, block]);
        let block = r#"{"type":"resource","resource":{"uri":"x:1","text":"t","_meta":{}},"_meta":{"a":1}}"#;
        let old = r#"{"type":"resource","resource":{"uri":"x:1","text":"t"}}"#;
        assert_eq!(blocks(block), [old, old, block, block]);
        let unknown = r#"{"type":"hologram","x": 1}"#;
        assert_eq!(blocks(unknown), [unknown; 4]);
    }

    #[test]
    fn structured_content() {
        let text = |text: &str| text_block(text, None).as_str().to_owned();
        let cases = [
            // (content, structured content, then what content becomes with and without structured content)
            (text("{}"), r#"{"a":1}"#, [Some(text("{}")), Some(text("{}")), None, None]),
            (String::new(), r#"{"a":1}"#, [Some(text(r#"{"a":1}"#)), Some(text(r#"{"a":1}"#)), None, None]),
            (text("[1, 2]"), "[1,2]", std::array::from_fn(|_| Some(text("[1, 2]")))),
            (text("hi"), r#""hi""#, std::array::from_fn(|_| Some(text("hi")))),
            (
                text("two"),
                "[1,2]",
                [
                    Some(text("two")),
                    Some(text("two")),
                    Some(format!("{},{}", text("two"), text("[1,2]"))),
                    Some(format!("{},{}", text("two"), text("[1,2]"))),
                ],
            ),
        ];
        for (content, structured, want) in cases {
            for (revision, want) in ALL_LEGACY.into_iter().zip(want) {
                let text = format!(r#"{{"content":[{content}],"structuredContent":{structured}}}"#);
                let want = want.map_or(text.clone(), |content| format!(r#"{{"content":[{content}]}}"#));
                let got = result(&Method::ToolsCall, revision, Json::trusted(text));
                assert_eq!(got.as_str(), want, "{content} {structured} {revision}");
            }
        }
        let bare =
            result(&Method::ToolsCall, Revision::V2025_11_25, Json::trusted(r#"{"structuredContent":7}"#));
        assert_eq!(bare.as_str(), r#"{"content":[{"type":"text","text":"7"}]}"#);
    }

    #[test]
    fn messages_and_contents() {
        let link = r#"{"type":"resource_link","uri":"x:1","name":"one"}"#;
        let prompt = Json::trusted(format!(r#"{{"messages":[{{"role":"user","content":{link}}}]}}"#));
        assert_eq!(
            result(&Method::PromptsGet, Revision::V2025_03_26, prompt.clone()).as_str(),
            r#"{"messages":[{"role":"user","content":{"type":"text","text":"[Resource one: x:1]"}}]}"#
        );
        assert_eq!(result(&Method::PromptsGet, Revision::V2025_06_18, prompt.clone()), prompt);
        let read = Json::trusted(r#"{"contents":[{"uri":"x:1","text":"t","_meta":{"a":1}}],"ttlMs":5}"#);
        assert_eq!(
            result(&Method::ResourcesRead, Revision::V2025_03_26, read.clone()).as_str(),
            r#"{"contents":[{"uri":"x:1","text":"t"}]}"#
        );
        assert_eq!(
            result(&Method::ResourcesRead, Revision::V2025_06_18, read).as_str(),
            r#"{"contents":[{"uri":"x:1","text":"t","_meta":{"a":1}}]}"#
        );
    }
}
