//! The five kinds of content that tools, prompts and sampling exchange, and the annotations they share.

use bytestring::ByteString;
use serde::Serialize;
use tidegate_protocol::Json;
use tidegate_protocol::json::write_str;

use crate::resource::ResourceContents;

/// Who something is meant for, or who said it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The person.
    User,
    /// The model.
    Assistant,
}

impl Role {
    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Role::User => "user",
            Role::Assistant => "assistant",
        }
    }
}

/// Hints on how to use a piece of content or a resource.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Annotations {
    /// Who it is meant for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub audience: Vec<Role>,
    /// How important it is, from 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<f64>,
    /// When it last changed, in ISO 8601.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_modified: Option<String>,
}

/// An image that stands for a server, tool, resource or prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Icon {
    /// An `https:` or `data:` URI.
    pub src: String,
    /// Its type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// The sizes it is good for: `48x48`, `any`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sizes: Vec<String>,
    /// `light` or `dark`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub theme: Option<String>,
}

impl Icon {
    /// An icon at a URI.
    pub fn new(src: impl Into<String>) -> Icon {
        Icon { src: src.into(), mime_type: None, sizes: Vec::new(), theme: None }
    }

    /// Its type.
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> Icon {
        self.mime_type = Some(mime_type.into());
        self
    }

    /// A size it is good for.
    pub fn size(mut self, size: impl Into<String>) -> Icon {
        self.sizes.push(size.into());
        self
    }

    /// The theme it is made for.
    pub fn theme(mut self, theme: impl Into<String>) -> Icon {
        self.theme = Some(theme.into());
        self
    }
}

/// One piece of content.
///
/// ```
/// use tidegate_server::{Content, Role};
///
/// let text = Content::text("Done").audience([Role::User]).priority(0.5);
/// assert_eq!(
///     text.to_json().as_str(),
///     r#"{"type":"text","text":"Done","annotations":{"audience":["user"],"priority":0.5}}"#
/// );
/// ```
#[derive(Debug, Clone)]
pub struct Content {
    kind: Kind,
    /// Kept apart, as most content has none of it.
    extra: Option<Box<Extra>>,
}

#[derive(Debug, Clone)]
enum Kind {
    Text(ByteString),
    Image(Media),
    Audio(Media),
    Link(Box<ResourceLink>),
    Resource(Box<ResourceContents>),
    /// Anything else, as one JSON object.
    Raw(Json),
}

#[derive(Debug, Clone)]
struct Media {
    data: ByteString,
    mime_type: ByteString,
}

#[derive(Debug, Clone, Default)]
struct Extra {
    annotations: Annotations,
    meta: Option<Json>,
}

impl Content {
    /// Text.
    pub fn text(text: impl Into<ByteString>) -> Content {
        Content::of(Kind::Text(text.into()))
    }

    /// An image from its bytes.
    pub fn image(bytes: impl AsRef<[u8]>, mime_type: impl Into<ByteString>) -> Content {
        Content::image_base64(base64(bytes), mime_type)
    }

    /// An image that is Base64 already.
    pub fn image_base64(data: impl Into<ByteString>, mime_type: impl Into<ByteString>) -> Content {
        Content::of(Kind::Image(Media { data: data.into(), mime_type: mime_type.into() }))
    }

    /// Sound from its bytes.
    pub fn audio(bytes: impl AsRef<[u8]>, mime_type: impl Into<ByteString>) -> Content {
        Content::audio_base64(base64(bytes), mime_type)
    }

    /// Sound that is Base64 already.
    pub fn audio_base64(data: impl Into<ByteString>, mime_type: impl Into<ByteString>) -> Content {
        Content::of(Kind::Audio(Media { data: data.into(), mime_type: mime_type.into() }))
    }

    /// A link to a resource that the client can read.
    pub fn link(link: ResourceLink) -> Content {
        Content::of(Kind::Link(Box::new(link)))
    }

    /// A resource, embedded. It needs a URI.
    pub fn resource(contents: ResourceContents) -> Content {
        Content::of(Kind::Resource(Box::new(contents)))
    }

    /// A content object as it stands, for kinds that this crate does not know.
    pub fn raw(object: Json) -> Content {
        Content::of(Kind::Raw(object))
    }

    fn of(kind: Kind) -> Content {
        Content { kind, extra: None }
    }

    fn extra(&mut self) -> &mut Extra {
        self.extra.get_or_insert_default()
    }

    /// Who it is meant for.
    pub fn audience(mut self, audience: impl IntoIterator<Item = Role>) -> Content {
        self.extra().annotations.audience = audience.into_iter().collect();
        self
    }

    /// How important it is, from 0 to 1.
    pub fn priority(mut self, priority: f64) -> Content {
        self.extra().annotations.priority = Some(priority.clamp(0.0, 1.0));
        self
    }

    /// When it last changed, in ISO 8601.
    pub fn last_modified(mut self, time: impl Into<String>) -> Content {
        self.extra().annotations.last_modified = Some(time.into());
        self
    }

    /// The `_meta` object.
    pub fn meta(mut self, meta: serde_json::Map<String, serde_json::Value>) -> Content {
        self.extra().meta = Some(Json::from(serde_json::Value::Object(meta)));
        self
    }

    /// The text, if that is what it is.
    pub fn as_text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Text(text) => Some(text),
            _ => None,
        }
    }

    /// About how long the JSON is, to make room once.
    pub(crate) fn size_hint(&self) -> usize {
        64 + match &self.kind {
            Kind::Text(text) => text.len(),
            Kind::Image(media) | Kind::Audio(media) => media.data.len(),
            Kind::Link(_) => 192,
            Kind::Resource(contents) => contents.size_hint(),
            Kind::Raw(json) => json.len(),
        }
    }

    /// Appends the content object.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        match &self.kind {
            Kind::Text(text) => {
                out.extend_from_slice(b"{\"type\":\"text\",\"text\":");
                write_str(out, text);
            }
            Kind::Image(media) => media.write("image", out),
            Kind::Audio(media) => media.write("audio", out),
            Kind::Link(link) => link.write(out),
            Kind::Resource(contents) => {
                out.extend_from_slice(b"{\"type\":\"resource\",\"resource\":");
                contents.write("", None, out);
            }
            Kind::Raw(json) => {
                out.extend_from_slice(json.as_str().as_bytes());
                return;
            }
        }
        if let Some(extra) = &self.extra {
            if extra.annotations != Annotations::default() {
                out.extend_from_slice(b",\"annotations\":");
                // Cannot fail: a struct of strings and numbers.
                let _ = serde_json::to_writer(&mut *out, &extra.annotations);
            }
            if let Some(meta) = &extra.meta {
                out.extend_from_slice(b",\"_meta\":");
                out.extend_from_slice(meta.as_str().as_bytes());
            }
        }
        out.push(b'}');
    }

    /// The content object.
    pub fn to_json(&self) -> Json {
        let mut out = Vec::with_capacity(self.size_hint());
        self.write(&mut out);
        crate::text::json(out)
    }
}

impl Media {
    fn write(&self, kind: &str, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"type\":");
        write_str(out, kind);
        out.extend_from_slice(b",\"data\":");
        write_str(out, &self.data);
        out.extend_from_slice(b",\"mimeType\":");
        write_str(out, &self.mime_type);
    }
}

impl<T: Into<ByteString>> From<T> for Content {
    fn from(text: T) -> Content {
        Content::text(text)
    }
}

/// A link to a resource, as content.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceLink {
    r#type: &'static str,
    uri: String,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mime_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    icons: Vec<Icon>,
}

impl ResourceLink {
    /// A link to the resource at `uri`.
    pub fn new(uri: impl Into<String>, name: impl Into<String>) -> ResourceLink {
        ResourceLink { r#type: "resource_link", uri: uri.into(), name: name.into(), ..ResourceLink::default() }
    }

    /// A name for people.
    pub fn title(mut self, title: impl Into<String>) -> ResourceLink {
        self.title = Some(title.into());
        self
    }

    /// What it is.
    pub fn description(mut self, description: impl Into<String>) -> ResourceLink {
        self.description = Some(description.into());
        self
    }

    /// Its type.
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> ResourceLink {
        self.mime_type = Some(mime_type.into());
        self
    }

    /// Its size in bytes.
    pub fn size(mut self, size: u64) -> ResourceLink {
        self.size = Some(size);
        self
    }

    /// An icon.
    pub fn icon(mut self, icon: Icon) -> ResourceLink {
        self.icons.push(icon);
        self
    }

    fn write(&self, out: &mut Vec<u8>) {
        // Cannot fail: a struct of strings and numbers.
        let _ = serde_json::to_writer(&mut *out, self);
        out.pop();
    }
}

pub(crate) fn base64(bytes: impl AsRef<[u8]>) -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_on_the_wire() {
        for (content, wire) in [
            (Content::text("a\"b"), r#"{"type":"text","text":"a\"b"}"#),
            (Content::image([1, 2, 3], "image/png"), r#"{"type":"image","data":"AQID","mimeType":"image/png"}"#),
            (
                Content::audio_base64("AQID", "audio/wav"),
                r#"{"type":"audio","data":"AQID","mimeType":"audio/wav"}"#,
            ),
            (
                Content::link(ResourceLink::new("x:1", "one").mime_type("text/plain")).priority(2.0),
                r#"{"type":"resource_link","uri":"x:1","name":"one","mimeType":"text/plain","annotations":{"priority":1.0}}"#,
            ),
            (
                Content::resource(ResourceContents::text("hi").uri("x:1").mime_type("text/plain")),
                r#"{"type":"resource","resource":{"uri":"x:1","mimeType":"text/plain","text":"hi"}}"#,
            ),
            (Content::raw(Json::trusted(r#"{"type":"new"}"#)), r#"{"type":"new"}"#),
        ] {
            assert_eq!(content.to_json().as_str(), wire);
        }
    }
}
