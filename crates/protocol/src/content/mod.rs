//! Typed content, for people who write servers: what tools and prompts answer with, and what describes it.
//!
//! These types are for building and reading content by hand. Content that is only passed on stays raw
//! ([`crate::Json`]), so that members these types do not know survive.

mod joined;
mod resource;
mod tool;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::json::write_str;

pub use joined::joined_text;
pub use resource::{Body, Icon, ResourceContents, ResourceLink, Theme};
pub use tool::ToolAnnotations;

/// One piece of content.
///
/// ```
/// use tidegate_protocol::content::{Annotations, Content, Role};
///
/// let content = Content::text("done").annotations(Annotations::new().audience([Role::User]).priority(0.5));
/// assert_eq!(
///     serde_json::to_string(&content).unwrap(),
///     r#"{"type":"text","text":"done","annotations":{"audience":["user"],"priority":0.5}}"#
/// );
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Content {
    /// Text.
    Text(TextContent),
    /// An image.
    Image(BinaryContent),
    /// Sound (since 2025-03-26).
    Audio(BinaryContent),
    /// A resource that can be read (since 2025-06-18).
    ResourceLink(ResourceLink),
    /// A resource, embedded.
    Resource(EmbeddedResource),
}

/// Text.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct TextContent {
    /// The text.
    pub text: String,
    /// For whom, and how important.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Whatever else belongs to it.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Value>,
}

/// An image or sound.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BinaryContent {
    /// The bytes in Base64.
    pub data: String,
    /// Their media type.
    pub mime_type: String,
    /// For whom, and how important.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Whatever else belongs to it.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Value>,
}

/// A resource, embedded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EmbeddedResource {
    /// The resource.
    pub resource: ResourceContents,
    /// For whom, and how important.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Whatever else belongs to it.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Value>,
}

impl Content {
    /// Text.
    pub fn text(text: impl Into<String>) -> Content {
        Content::Text(TextContent { text: text.into(), ..TextContent::default() })
    }

    /// An image whose bytes are in Base64 already.
    pub fn image(data_base64: impl Into<String>, mime_type: impl Into<String>) -> Content {
        Content::Image(BinaryContent::new(data_base64.into(), mime_type.into()))
    }

    /// An image.
    pub fn image_bytes(bytes: &[u8], mime_type: impl Into<String>) -> Content {
        Content::image(STANDARD.encode(bytes), mime_type)
    }

    /// Sound whose bytes are in Base64 already.
    pub fn audio(data_base64: impl Into<String>, mime_type: impl Into<String>) -> Content {
        Content::Audio(BinaryContent::new(data_base64.into(), mime_type.into()))
    }

    /// Sound.
    pub fn audio_bytes(bytes: &[u8], mime_type: impl Into<String>) -> Content {
        Content::audio(STANDARD.encode(bytes), mime_type)
    }

    /// A link to a resource.
    pub fn link(link: ResourceLink) -> Content {
        Content::ResourceLink(link)
    }

    /// A resource, embedded.
    pub fn resource(resource: ResourceContents) -> Content {
        Content::Resource(EmbeddedResource { resource, annotations: None, meta: None })
    }

    /// The same content with annotations.
    pub fn annotations(mut self, annotations: Annotations) -> Content {
        *self.extras().0 = Some(annotations);
        self
    }

    /// The same content with `_meta`, which should be an object.
    pub fn meta(mut self, meta: Value) -> Content {
        *self.extras().1 = Some(meta);
        self
    }

    fn extras(&mut self) -> (&mut Option<Annotations>, &mut Option<Value>) {
        match self {
            Content::Text(c) => (&mut c.annotations, &mut c.meta),
            Content::Image(c) | Content::Audio(c) => (&mut c.annotations, &mut c.meta),
            Content::ResourceLink(c) => (&mut c.annotations, &mut c.meta),
            Content::Resource(c) => (&mut c.annotations, &mut c.meta),
        }
    }

    /// The text, if it is text.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Content::Text(c) => Some(&c.text),
            _ => None,
        }
    }

    /// Appends the content as JSON.
    pub fn write(&self, out: &mut Vec<u8>) {
        // Nearly everything is plain text, and long: it is copied rather than serialised.
        if let Content::Text(TextContent { text, annotations: None, meta: None }) = self {
            out.reserve(text.len() + 32);
            out.extend_from_slice(br#"{"type":"text","text":"#);
            write_str(out, text);
            out.push(b'}');
            return;
        }
        serde_json::to_writer(out, self)
            .expect("content has string keys only, and a vector takes every byte");
    }
}

impl BinaryContent {
    fn new(data: String, mime_type: String) -> BinaryContent {
        BinaryContent { data, mime_type, ..BinaryContent::default() }
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Content {
        Content::text(text)
    }
}

impl From<String> for Content {
    fn from(text: String) -> Content {
        Content::text(text)
    }
}

impl From<ResourceLink> for Content {
    fn from(link: ResourceLink) -> Content {
        Content::link(link)
    }
}

impl From<ResourceContents> for Content {
    fn from(resource: ResourceContents) -> Content {
        Content::resource(resource)
    }
}

/// Who speaks, or is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The person.
    User,
    /// The model.
    Assistant,
}

/// For whom something is, how important it is, and how old.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Annotations {
    /// For whom; empty is for anybody.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub audience: Vec<Role>,
    /// How important, from 0 (optional) to 1 (required).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<f64>,
    /// When it was last changed, in ISO 8601 (since 2025-06-18).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_modified: Option<String>,
}

impl Annotations {
    /// No annotations yet.
    pub fn new() -> Annotations {
        Annotations::default()
    }

    /// For whom.
    pub fn audience(mut self, audience: impl IntoIterator<Item = Role>) -> Annotations {
        self.audience = audience.into_iter().collect();
        self
    }

    /// How important, from 0 to 1.
    pub fn priority(mut self, priority: f64) -> Annotations {
        self.priority = Some(priority);
        self
    }

    /// When it was last changed, in ISO 8601.
    pub fn last_modified(mut self, time: impl Into<String>) -> Annotations {
        self.last_modified = Some(time.into());
        self
    }
}

/// One message of a prompt.
///
/// ```
/// use tidegate_protocol::content::PromptMessage;
///
/// let message = PromptMessage::user("Review this code");
/// assert_eq!(
///     serde_json::to_string(&message).unwrap(),
///     r#"{"role":"user","content":{"type":"text","text":"Review this code"}}"#
/// );
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PromptMessage {
    /// Who says it.
    pub role: Role,
    /// What is said.
    pub content: Content,
}

impl PromptMessage {
    /// The person says this.
    pub fn user(content: impl Into<Content>) -> PromptMessage {
        PromptMessage { role: Role::User, content: content.into() }
    }

    /// The model says this.
    pub fn assistant(content: impl Into<Content>) -> PromptMessage {
        PromptMessage { role: Role::Assistant, content: content.into() }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Written, serialised and read back, it is the same.
    fn check(content: Content, want: &str) {
        let mut out = Vec::new();
        content.write(&mut out);
        assert_eq!(String::from_utf8(out).unwrap(), want);
        assert_eq!(serde_json::to_string(&content).unwrap(), want);
        assert_eq!(serde_json::from_str::<Content>(want).unwrap(), content);
    }

    #[test]
    fn wire_forms() {
        check(Content::text("a \"b\"\n"), r#"{"type":"text","text":"a \"b\"\n"}"#);
        check(Content::text("x").meta(json!({"k": 1})), r#"{"type":"text","text":"x","_meta":{"k":1}}"#);
        check(
            Content::image("AAEC", "image/png"),
            r#"{"type":"image","data":"AAEC","mimeType":"image/png"}"#,
        );
        check(
            Content::image_bytes(&[0, 1, 2], "image/png"),
            r#"{"type":"image","data":"AAEC","mimeType":"image/png"}"#,
        );
        check(
            Content::audio_bytes(&[0], "audio/wav")
                .annotations(Annotations::new().last_modified("2025-01-12")),
            r#"{"type":"audio","data":"AA==","mimeType":"audio/wav","annotations":{"lastModified":"2025-01-12"}}"#,
        );
        check(
            Content::link(ResourceLink::new("x:1", "one").title("One").mime_type("text/plain").size(7)),
            r#"{"type":"resource_link","uri":"x:1","name":"one","title":"One","mimeType":"text/plain","size":7}"#,
        );
        let icon = Icon::new("https://x/i.png").mime_type("image/png").size("48x48").theme(Theme::Dark);
        check(
            ResourceLink::new("x:1", "one").icon(icon).into(),
            r#"{"type":"resource_link","uri":"x:1","name":"one","icons":[{"src":"https://x/i.png","mimeType":"image/png","sizes":["48x48"],"theme":"dark"}]}"#,
        );
        check(
            Content::resource(ResourceContents::text("x:1", "t").meta(json!({}))),
            r#"{"type":"resource","resource":{"uri":"x:1","text":"t","_meta":{}}}"#,
        );
        check(
            ResourceContents::blob("x:1", [255u8]).mime_type("a/b").into(),
            r#"{"type":"resource","resource":{"uri":"x:1","mimeType":"a/b","blob":"/w=="}}"#,
        );
    }

    #[test]
    fn unknown_members_are_ignored_and_unknown_types_refused() {
        let read = |text: &str| serde_json::from_str::<Content>(text);
        assert_eq!(read(r#"{"type":"text","text":"x","new":1}"#).unwrap().as_text(), Some("x"));
        assert!(read(r#"{"type":"hologram"}"#).is_err());
        assert!(read(r#"{"type":"text"}"#).is_err());
    }
}
