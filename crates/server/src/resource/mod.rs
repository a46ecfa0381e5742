//! Resources and resource templates: how they are described. How they are read stands in `read`, and where those come from
//! that are not registered one by one in `source`.

mod missing;
mod read;
mod source;

use std::future::Future;

use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use tidegate_protocol::Json;
use tidegate_protocol::content::{Annotations, Icon, ResourceContents, Role};
use tidegate_protocol::json::ObjectWriter;
use tidegate_protocol::template::Template;

pub(crate) use read::{ResourceEntry, TemplateEntry, read};
pub(crate) use source::Source;
pub use source::{PageRequest, ResourcePage};

use crate::complete::{Completer, Completing, IntoCompletions, completer};
use crate::cx::Cx;
use crate::settings::CacheHint;
use crate::tool::ToolError;

/// What a reader may return: contents in full, or just their text or bytes. URI and type are those of the resource that
/// was asked for, unless the contents have their own.
pub trait IntoResourceContents {
    /// The contents, usually one.
    fn into_contents(self) -> Vec<ResourceContents>;
}

impl IntoResourceContents for ResourceContents {
    fn into_contents(self) -> Vec<ResourceContents> {
        vec![self]
    }
}

impl IntoResourceContents for Vec<ResourceContents> {
    fn into_contents(self) -> Vec<ResourceContents> {
        self
    }
}

impl IntoResourceContents for String {
    fn into_contents(self) -> Vec<ResourceContents> {
        vec![ResourceContents::text("", self)]
    }
}

impl IntoResourceContents for &'static str {
    fn into_contents(self) -> Vec<ResourceContents> {
        vec![ResourceContents::text("", self)]
    }
}

impl IntoResourceContents for Vec<u8> {
    fn into_contents(self) -> Vec<ResourceContents> {
        vec![ResourceContents::blob("", self)]
    }
}

/// The variables of a template, as a URI has them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Vars {
    uri: String,
    vars: Vec<(String, String)>,
}

impl Vars {
    /// The value of a variable; of an exploded one, the first part.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.vars.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    /// All parts of an exploded variable.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.vars.iter().filter(move |(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    /// The URI that is read.
    pub fn uri(&self) -> &str {
        &self.uri
    }
}

type Read = BoxFuture<'static, Result<Vec<ResourceContents>, ToolError>>;
type Reader = Box<dyn Fn(Vars, Cx) -> Read + Send + Sync>;

/// What the definitions of resources and templates have in common.
#[derive(Default)]
struct Described {
    name: String,
    title: Option<String>,
    description: Option<String>,
    mime_type: Option<String>,
    icons: Vec<Icon>,
    annotations: Annotations,
    meta: Option<Map<String, Value>>,
    size: Option<u64>,
    cache: Option<CacheHint>,
}

impl Described {
    fn definition(&self, locator: &str, at: &str) -> Json {
        let mut w = ObjectWriter::with_capacity(256);
        w.str(locator, at).str("name", &self.name);
        for (member, value) in
            [("title", &self.title), ("description", &self.description), ("mimeType", &self.mime_type)]
        {
            if let Some(value) = value {
                w.str(member, value);
            }
        }
        if !self.icons.is_empty() {
            w.value("icons", &self.icons);
        }
        if self.annotations != Annotations::default() {
            w.value("annotations", &self.annotations);
        }
        if let Some(size) = self.size {
            w.value("size", &size);
        }
        if let Some(meta) = &self.meta {
            w.value("_meta", meta);
        }
        w.finish()
    }
}

macro_rules! described {
    ($type:ident) => {
        impl $type {
            /// A name for people.
            pub fn title(mut self, title: impl Into<String>) -> $type {
                self.described.title = Some(title.into());
                self
            }

            /// What it is.
            pub fn description(mut self, description: impl Into<String>) -> $type {
                self.described.description = Some(description.into());
                self
            }

            /// Its type.
            pub fn mime_type(mut self, mime_type: impl Into<String>) -> $type {
                self.described.mime_type = Some(mime_type.into());
                self
            }

            /// An icon.
            pub fn icon(mut self, icon: Icon) -> $type {
                self.described.icons.push(icon);
                self
            }

            /// Who it is meant for.
            pub fn audience(mut self, audience: impl IntoIterator<Item = Role>) -> $type {
                self.described.annotations.audience = audience.into_iter().collect();
                self
            }

            /// How important it is, from 0 to 1.
            pub fn priority(mut self, priority: f64) -> $type {
                self.described.annotations.priority = Some(priority.clamp(0.0, 1.0));
                self
            }

            /// When it last changed, in ISO 8601.
            pub fn last_modified(mut self, time: impl Into<String>) -> $type {
                self.described.annotations.last_modified = Some(time.into());
                self
            }

            /// One member of the definition's `_meta`.
            pub fn meta(mut self, key: impl Into<String>, value: impl Into<Value>) -> $type {
                self.described.meta.get_or_insert_default().insert(key.into(), value.into());
                self
            }

            /// How long and for whom its contents may be cached, instead of the server's default.
            pub fn cache(mut self, cache: CacheHint) -> $type {
                self.described.cache = Some(cache);
                self
            }
        }

        impl std::fmt::Debug for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($type)).field("at", &self.at).finish_non_exhaustive()
            }
        }
    };
}

/// A resource at a fixed URI, with fixed contents or a reader.
///
/// ```
/// use tidegate_server::{Cx, Resource};
///
/// let fixed = Resource::text("memo://hello", "hello", "Hello, world");
/// let live = Resource::new("memo://now", "now")
///     .mime_type("text/plain")
///     .reader(|_cx: Cx| async move { Ok("noon") });
/// ```
pub struct Resource {
    pub(crate) at: String,
    described: Described,
    reader: Option<Reader>,
}

impl Resource {
    /// A resource that needs a reader.
    pub fn new(uri: impl Into<String>, name: impl Into<String>) -> Resource {
        let described = Described { name: name.into(), ..Described::default() };
        Resource { at: uri.into(), described, reader: None }
    }

    /// A text that never changes.
    pub fn text(uri: impl Into<String>, name: impl Into<String>, text: impl Into<String>) -> Resource {
        let text = text.into();
        let size = text.len() as u64;
        let mut resource = Resource::new(uri, name).mime_type("text/plain").fixed(text);
        resource.described.size = Some(size);
        resource
    }

    /// Bytes that never change.
    pub fn blob(
        uri: impl Into<String>,
        name: impl Into<String>,
        mime_type: impl Into<String>,
        bytes: impl AsRef<[u8]>,
    ) -> Resource {
        let size = bytes.as_ref().len() as u64;
        let mut resource = Resource::new(uri, name).mime_type(mime_type).fixed(bytes.as_ref().to_vec());
        resource.described.size = Some(size);
        resource
    }

    /// Contents that never change.
    pub fn fixed(mut self, contents: impl IntoResourceContents) -> Resource {
        let contents = contents.into_contents();
        self.reader = Some(Box::new(move |_, _| Box::pin(std::future::ready(Ok(contents.clone())))));
        self
    }

    /// Its size in bytes.
    pub fn size(mut self, size: u64) -> Resource {
        self.described.size = Some(size);
        self
    }

    /// Reads the contents each time.
    pub fn reader<F, Fut, R>(mut self, reader: F) -> Resource
    where
        F: Fn(Cx) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, ToolError>> + Send + 'static,
        R: IntoResourceContents,
    {
        self.reader = Some(Box::new(move |_, cx| {
            let future = reader(cx);
            Box::pin(async move { future.await.map(R::into_contents) })
        }));
        self
    }

    pub(crate) fn compile(self) -> Result<ResourceEntry, String> {
        check_uri(&self.at)?;
        Ok(ResourceEntry {
            definition: self.described.definition("uri", &self.at),
            mime_type: self.described.mime_type,
            cache: self.described.cache,
            reader: self.reader.ok_or("it has neither contents nor a reader")?,
        })
    }
}

described!(Resource);

/// A family of resources: a URI template (RFC 6570) and a reader.
///
/// ```
/// use tidegate_server::{Completing, Cx, ResourceTemplate, Vars};
///
/// let memos = ResourceTemplate::new("memo://{id}/text", "memo")
///     .reader(|vars: Vars, _cx: Cx| async move {
///         Ok(format!("memo {}", vars.get("id").unwrap_or_default()))
///     })
///     .complete("id", |typed: Completing, _cx: Cx| async move { typed.filter(["first", "second"]) });
/// ```
pub struct ResourceTemplate {
    pub(crate) at: String,
    described: Described,
    reader: Option<Reader>,
    completers: Vec<(String, Completer)>,
    listed: bool,
}

impl ResourceTemplate {
    /// A template that needs a reader.
    pub fn new(uri_template: impl Into<String>, name: impl Into<String>) -> ResourceTemplate {
        let described = Described { name: name.into(), ..Described::default() };
        ResourceTemplate {
            at: uri_template.into(),
            described,
            reader: None,
            completers: Vec::new(),
            listed: true,
        }
    }

    /// Reads the resource that the variables name.
    pub fn reader<F, Fut, R>(mut self, reader: F) -> ResourceTemplate
    where
        F: Fn(Vars, Cx) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, ToolError>> + Send + 'static,
        R: IntoResourceContents,
    {
        self.reader = Some(Box::new(move |vars, cx| {
            let future = reader(vars, cx);
            Box::pin(async move { future.await.map(R::into_contents) })
        }));
        self
    }

    /// Completes the values of a variable.
    pub fn complete<F, Fut>(mut self, variable: impl Into<String>, complete: F) -> ResourceTemplate
    where
        F: Fn(Completing, Cx) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoCompletions> + Send + 'static,
    {
        self.completers.push((variable.into(), completer(complete)));
        self
    }

    /// Leaves the template out of lists. What it describes can be read and completed all the same: for another spelling
    /// of an address that is listed already.
    pub fn unlisted(mut self) -> ResourceTemplate {
        self.listed = false;
        self
    }

    pub(crate) fn compile(self) -> Result<TemplateEntry, String> {
        let template = Template::parse(&self.at).map_err(|fault| fault.to_string())?;
        for (variable, _) in &self.completers {
            if !template.variables().any(|name| name == variable) {
                return Err(format!("it completes {variable:?}, which is none of its variables"));
            }
        }
        Ok(TemplateEntry {
            definition: self.described.definition("uriTemplate", &self.at),
            mime_type: self.described.mime_type,
            cache: self.described.cache,
            reader: self.reader.ok_or("it has no reader")?,
            completers: self.completers,
            listed: self.listed,
            template,
        })
    }
}

described!(ResourceTemplate);

/// RFC 3986: a URI starts with a scheme.
fn check_uri(uri: &str) -> Result<(), String> {
    let scheme = uri.split_once(':').map_or("", |(scheme, _)| scheme);
    let well_formed = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b));
    if well_formed { Ok(()) } else { Err(format!("{uri:?} is not a URI: it has no scheme")) }
}
