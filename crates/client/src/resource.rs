//! [`Resource`] and [`ResourceTemplate`]: resources as their server describes them, and [`ReadResult`], what is in them.

use serde_json::Value;
use tidegate_protocol::{Json, Object};

/// A resource of a server: its description as it came, and what can be read from it.
#[derive(Debug, Clone)]
pub struct Resource {
    uri: String,
    definition: Json,
}

/// A family of resources: addresses with variables in them (RFC 6570).
#[derive(Debug, Clone)]
pub struct ResourceTemplate {
    uri_template: String,
    definition: Json,
}

impl Resource {
    /// Reads a description; `None` if it has no address.
    pub(crate) fn read(definition: Json) -> Option<Resource> {
        let uri = Object::of(&definition)?.str("uri")?.into_owned();
        Some(Resource { uri, definition })
    }

    /// Its address.
    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// Its description as it came from the server.
    pub fn definition(&self) -> &Json {
        &self.definition
    }

    /// Its name.
    pub fn name(&self) -> Option<String> {
        text(&self.definition, "name")
    }

    /// Its title for people, if it has one.
    pub fn title(&self) -> Option<String> {
        text(&self.definition, "title")
    }

    /// What it says it is.
    pub fn description(&self) -> Option<String> {
        text(&self.definition, "description")
    }

    /// Its type, if the server knows it.
    pub fn mime_type(&self) -> Option<String> {
        text(&self.definition, "mimeType")
    }

    /// How many bytes it has, if the server knows it.
    pub fn size(&self) -> Option<u64> {
        Object::of(&self.definition)?.get("size")?.parse().ok()
    }
}

impl ResourceTemplate {
    /// Reads a description; `None` if it has no template.
    pub(crate) fn read(definition: Json) -> Option<ResourceTemplate> {
        let uri_template = Object::of(&definition)?.str("uriTemplate")?.into_owned();
        Some(ResourceTemplate { uri_template, definition })
    }

    /// Its addresses, with variables in braces.
    pub fn uri_template(&self) -> &str {
        &self.uri_template
    }

    /// Its description as it came from the server.
    pub fn definition(&self) -> &Json {
        &self.definition
    }

    /// Its name.
    pub fn name(&self) -> Option<String> {
        text(&self.definition, "name")
    }

    /// Its title for people, if it has one.
    pub fn title(&self) -> Option<String> {
        text(&self.definition, "title")
    }

    /// What it says its resources are.
    pub fn description(&self) -> Option<String> {
        text(&self.definition, "description")
    }

    /// The type of its resources, if they all have one.
    pub fn mime_type(&self) -> Option<String> {
        text(&self.definition, "mimeType")
    }
}

fn text(definition: &Json, member: &str) -> Option<String> {
    Object::of(definition)?.str(member).map(|text| text.into_owned())
}

/// What a resource, or a part of one, holds.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ResourceContents {
    /// Its address, which may be below the one that was asked for.
    pub uri: String,
    /// Its type, if the server knows it.
    pub mime_type: Option<String>,
    /// What is in it.
    pub body: ResourceBody,
}

/// The content of a resource.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ResourceBody {
    /// Text.
    Text(String),
    /// Bytes in base64, as they came.
    Blob(String),
}

impl ResourceContents {
    /// The text, if it is text.
    pub fn text(&self) -> Option<&str> {
        match &self.body {
            ResourceBody::Text(text) => Some(text),
            ResourceBody::Blob(_) => None,
        }
    }
}

/// The result of reading a resource.
#[derive(Debug, Clone)]
pub struct ReadResult(Json);

impl ReadResult {
    pub(crate) fn new(json: Json) -> ReadResult {
        ReadResult(json)
    }

    /// The whole result object as it came.
    pub fn json(&self) -> &Json {
        &self.0
    }

    /// What was read. Most resources have one part.
    pub fn contents(&self) -> Vec<ResourceContents> {
        let contents = Object::of(&self.0).and_then(|o| o.json("contents"));
        let contents: Vec<Value> = contents.and_then(|contents| contents.to().ok()).unwrap_or_default();
        let read = |part: Value| {
            let text = |member: &str| part.get(member).and_then(Value::as_str).map(str::to_owned);
            let body = match (text("text"), text("blob")) {
                (Some(text), _) => ResourceBody::Text(text),
                (None, Some(blob)) => ResourceBody::Blob(blob),
                (None, None) => return None,
            };
            Some(ResourceContents { uri: text("uri").unwrap_or_default(), mime_type: text("mimeType"), body })
        };
        contents.into_iter().filter_map(read).collect()
    }

    /// All text in it, one part after the other.
    pub fn text(&self) -> String {
        let contents = self.contents();
        contents.iter().filter_map(ResourceContents::text).collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_say_what_they_say() {
        let resource =
            Resource::read(Json::trusted(r#"{"uri":"a:b","name":"n","mimeType":"text/plain","size":12}"#))
                .unwrap();
        assert_eq!(
            (resource.uri(), resource.name().as_deref(), resource.size()),
            ("a:b", Some("n"), Some(12))
        );
        assert_eq!((resource.title(), resource.mime_type().as_deref()), (None, Some("text/plain")));
        assert!(Resource::read(Json::trusted(r#"{"name":"n"}"#)).is_none());
        let template =
            ResourceTemplate::read(Json::trusted(r#"{"uriTemplate":"a:{b}","name":"t"}"#)).unwrap();
        assert_eq!((template.uri_template(), template.name().as_deref()), ("a:{b}", Some("t")));
    }

    #[test]
    fn contents_are_text_or_bytes() {
        let read = ReadResult::new(Json::trusted(
            r#"{"contents":[{"uri":"a:1","text":"one"},{"uri":"a:2","blob":"AA==","mimeType":"image/png"},{"uri":"a:3"},{"uri":"a:4","text":"four"}]}"#,
        ));
        let contents = read.contents();
        assert_eq!(contents.len(), 3);
        assert_eq!(contents[1].body, ResourceBody::Blob("AA==".to_owned()));
        assert_eq!(read.text(), "one\nfour");
    }
}
