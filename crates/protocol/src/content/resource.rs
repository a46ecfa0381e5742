//! Resources: links to them, what they contain, and icons.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Annotations;

/// What a resource contains.
///
/// ```
/// use tidegate_protocol::content::ResourceContents;
///
/// let contents = ResourceContents::text("file:///a.md", "# A").mime_type("text/markdown");
/// assert_eq!(
///     serde_json::to_string(&contents).unwrap(),
///     r##"{"uri":"file:///a.md","mimeType":"text/markdown","text":"# A"}"##
/// );
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceContents {
    /// Which resource.
    pub uri: String,
    /// Its media type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Its text or bytes.
    #[serde(flatten)]
    pub body: Body,
    /// Whatever else belongs to it.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Value>,
}

/// The text or bytes of a resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Body {
    /// Text.
    Text(String),
    /// Bytes in Base64.
    Blob(String),
}

impl ResourceContents {
    /// A resource that is text.
    pub fn text(uri: impl Into<String>, text: impl Into<String>) -> ResourceContents {
        ResourceContents { uri: uri.into(), mime_type: None, body: Body::Text(text.into()), meta: None }
    }

    /// A resource that is bytes.
    pub fn blob(uri: impl Into<String>, bytes: impl AsRef<[u8]>) -> ResourceContents {
        ResourceContents::blob_base64(uri, STANDARD.encode(bytes))
    }

    /// A resource whose bytes are in Base64 already.
    pub fn blob_base64(uri: impl Into<String>, data: impl Into<String>) -> ResourceContents {
        ResourceContents { uri: uri.into(), mime_type: None, body: Body::Blob(data.into()), meta: None }
    }

    /// The same resource with a media type.
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> ResourceContents {
        self.mime_type = Some(mime_type.into());
        self
    }

    /// The same resource with `_meta`, which should be an object.
    pub fn meta(mut self, meta: Value) -> ResourceContents {
        self.meta = Some(meta);
        self
    }
}

/// A resource that can be read, without its contents.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceLink {
    /// Where it is.
    pub uri: String,
    /// Its name for programs.
    pub name: String,
    /// Its name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it is, for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its media type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// How many bytes it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// Icons that stand for it (since 2025-11-25).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub icons: Vec<Icon>,
    /// For whom, and how important.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Whatever else belongs to it.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Value>,
}

impl ResourceLink {
    /// A link to a resource.
    pub fn new(uri: impl Into<String>, name: impl Into<String>) -> ResourceLink {
        ResourceLink { uri: uri.into(), name: name.into(), ..ResourceLink::default() }
    }

    /// The same link with a name for people.
    pub fn title(mut self, title: impl Into<String>) -> ResourceLink {
        self.title = Some(title.into());
        self
    }

    /// The same link with a description.
    pub fn description(mut self, description: impl Into<String>) -> ResourceLink {
        self.description = Some(description.into());
        self
    }

    /// The same link with a media type.
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> ResourceLink {
        self.mime_type = Some(mime_type.into());
        self
    }

    /// The same link with the number of bytes.
    pub fn size(mut self, bytes: u64) -> ResourceLink {
        self.size = Some(bytes);
        self
    }

    /// The same link with one icon more.
    pub fn icon(mut self, icon: Icon) -> ResourceLink {
        self.icons.push(icon);
        self
    }
}

/// An icon for tools, resources, prompts and servers (since 2025-11-25).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Icon {
    /// Where it is: an `https:` or `data:` URI.
    pub src: String,
    /// Its media type, if the source does not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// In which sizes: `48x48`, or `any` for vector graphics.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sizes: Vec<String>,
    /// For which background.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub theme: Option<Theme>,
}

/// The background that an icon is drawn for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Theme {
    /// A light background.
    Light,
    /// A dark background.
    Dark,
}

impl Icon {
    /// An icon.
    pub fn new(src: impl Into<String>) -> Icon {
        Icon { src: src.into(), ..Icon::default() }
    }

    /// The same icon with a media type.
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> Icon {
        self.mime_type = Some(mime_type.into());
        self
    }

    /// The same icon with one size more.
    pub fn size(mut self, size: impl Into<String>) -> Icon {
        self.sizes.push(size.into());
        self
    }

    /// The same icon for one background.
    pub fn theme(mut self, theme: Theme) -> Icon {
        self.theme = Some(theme);
        self
    }
}
