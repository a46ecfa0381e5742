//! The addresses of resources in what servers say: contents, links, embedded resources, user interfaces.

use std::sync::LazyLock;

use bytestring::ByteString;
use memchr::memmem::Finder;
use tidegate_protocol::json::Edit;
use tidegate_protocol::{Json, Method, Object};

/// Told of each address; what it returns takes the address's place.
pub(crate) type Visit<'a> = dyn FnMut(&str) -> Option<ByteString> + 'a;

/// Whether a text can hold addresses at all: a look that is much cheaper than taking a large result apart.
pub(crate) fn may_hold(text: &str) -> bool {
    static URI: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\"uri\""));
    URI.find(text.as_bytes()).is_some()
}

/// Visits the addresses in the result of a method. `None` if it stays as it is.
pub(crate) fn in_result(method: &Method, result: &Json, visit: &mut Visit<'_>) -> Option<Json> {
    let mut edit = Edit::of(result)?;
    match method {
        Method::ToolsCall => edit.map("content", |list| list.map_elements(|block| in_block(block, visit))),
        Method::PromptsGet => edit.map("messages", |list| {
            list.map_elements(|message| {
                let mut edit = Edit::of(message)?;
                edit.map("content", |content| match content.is_object() {
                    true => in_block(content, visit),
                    false => content.map_elements(|block| in_block(block, visit)),
                });
                edit.finish()
            })
        }),
        Method::ResourcesRead => edit.map("contents", |list| list.map_elements(|item| in_uri(item, visit))),
        _ => return None,
    };
    edit.finish()
}

/// Visits the address in a block of content: a link or an embedded resource.
fn in_block(block: &Json, visit: &mut Visit<'_>) -> Option<Json> {
    let object = Object::of(block)?;
    let kind = object.str("type")?;
    match &*kind {
        "resource_link" => in_uri(block, visit),
        "resource" => {
            let mut edit = Edit::of(block)?;
            edit.map("resource", |resource| in_uri(resource, visit));
            edit.finish()
        }
        _ => None,
    }
}

/// Visits the addresses in the entry of a skill: its own, and those of its files if it says which it has (SEP-2640).
pub(crate) fn in_skill(entry: &Json, visit: &mut Visit<'_>) -> Option<Json> {
    let mut edit = Edit::of(entry)?;
    let uri = edit.object().str("uri").and_then(|uri| visit(&uri));
    if let Some(uri) = uri {
        edit.set("uri", Json::string(&uri));
    }
    edit.map("resources", |files| files.map_elements(|file| in_uri(file, visit)));
    edit.finish()
}

/// Visits the member `uri`.
pub(crate) fn in_uri(item: &Json, visit: &mut Visit<'_>) -> Option<Json> {
    in_member(item, "uri", visit)
}

/// Visits the address of the user interface that a tool's definition names (MCP Apps).
pub(crate) fn in_definition(definition: &Json, visit: &mut Visit<'_>) -> Option<Json> {
    memchr::memmem::find(definition.as_str().as_bytes(), b"esourceUri\"")?;
    let mut edit = Edit::of(definition)?;
    edit.map("_meta", |meta| {
        let mut meta = Edit::of(meta)?;
        meta.map("ui", |ui| in_member(ui, "resourceUri", visit));
        // The flat form that came before.
        let old = meta.object().str("ui/resourceUri").and_then(|uri| visit(&uri));
        if let Some(uri) = old {
            meta.set("ui/resourceUri", Json::string(&uri));
        }
        meta.finish()
    });
    edit.finish()
}

fn in_member(item: &Json, member: &'static str, visit: &mut Visit<'_>) -> Option<Json> {
    let object = Object::of(item)?;
    let uri = visit(&object.str(member)?)?;
    Some(object.with(member, &Json::string(&uri)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visited(method: Method, text: &'static str) -> (Vec<String>, Option<String>) {
        let mut seen = Vec::new();
        let changed = in_result(&method, &Json::trusted(text), &mut |uri| {
            seen.push(uri.to_owned());
            (uri == "a:1").then(|| "s+a:1".into())
        });
        (seen, changed.map(|json| json.as_str().to_owned()))
    }

    #[test]
    fn links_embedded_resources_and_contents() {
        let (seen, changed) = visited(
            Method::ToolsCall,
            r#"{"content":[{"type":"text","text":"a:1"},{"type":"resource_link","uri":"a:1","n":1.0},{"type":"resource","resource":{"uri":"a:2"}}],"structuredContent":{"uri":"a:1"}}"#,
        );
        assert_eq!(seen, ["a:1", "a:2"]);
        assert_eq!(
            changed.unwrap(),
            r#"{"content":[{"type":"text","text":"a:1"},{"type":"resource_link","uri":"s+a:1","n":1.0},{"type":"resource","resource":{"uri":"a:2"}}],"structuredContent":{"uri":"a:1"}}"#
        );
        let (seen, changed) = visited(Method::ResourcesRead, r#"{"contents":[{"uri":"a:2","text":""}]}"#);
        assert_eq!((seen, changed), (vec!["a:2".to_owned()], None));
        let (seen, changed) = visited(
            Method::PromptsGet,
            r#"{"messages":[{"role":"user","content":{"type":"resource","resource":{"uri":"a:1"}}}]}"#,
        );
        assert_eq!(seen, ["a:1"]);
        assert!(changed.unwrap().contains("s+a:1"));
    }

    #[test]
    fn user_interfaces_of_tools() {
        let tool = Json::trusted(r#"{"name":"t","_meta":{"ui":{"resourceUri":"ui://x","v":1},"o":2}}"#);
        let changed = in_definition(&tool, &mut |_| Some("ui://s+x".into())).unwrap();
        assert_eq!(changed.as_str(), r#"{"name":"t","_meta":{"ui":{"resourceUri":"ui://s+x","v":1},"o":2}}"#);
        assert!(in_definition(&tool, &mut |_| None).is_none());
    }
}
