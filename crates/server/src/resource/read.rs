//! `resources/read`: from a URI to a reader, and from contents to a result.

use std::sync::Arc;

use tidegate_protocol::content::{Body, ResourceContents};
use tidegate_protocol::json::write_str;
use tidegate_protocol::template::{MatchSteps, Template};
use tidegate_protocol::{Error, Json};
use tidegate_service::{Call, Reply};

use super::{Reader, Vars, missing};
use crate::complete::Completer;
use crate::cx::Cx;
use crate::dispatch::Started;
use crate::run::{Run, Work};
use crate::server::Core;
use crate::settings::CacheHint;
use crate::text;

/// A resource as the running server holds it.
pub(crate) struct ResourceEntry {
    pub(crate) definition: Json,
    pub(super) mime_type: Option<String>,
    pub(super) cache: Option<CacheHint>,
    pub(super) reader: Reader,
}

/// A template as the running server holds it.
pub(crate) struct TemplateEntry {
    pub(crate) definition: Json,
    pub(super) mime_type: Option<String>,
    pub(super) cache: Option<CacheHint>,
    pub(super) reader: Reader,
    pub(super) completers: Vec<(String, Completer)>,
    pub(crate) listed: bool,
    pub(super) template: Template,
}

impl TemplateEntry {
    pub(crate) fn completes(&self) -> bool {
        !self.completers.is_empty()
    }

    pub(crate) fn completer(&self, variable: &str) -> Option<&Completer> {
        self.completers.iter().find(|(name, _)| name == variable).map(|(_, completer)| completer)
    }

    pub(crate) fn has_variable(&self, name: &str) -> bool {
        self.template.variables().any(|variable| variable == name)
    }
}

/// `resources/read`: a resource at exactly this URI, else the first template that fits.
pub(crate) fn read(core: &Arc<Core>, call: Call) -> Started {
    let Some(uri) = call.params.str("uri").map(|uri| uri.into_owned()) else {
        return Started::failed(Error::invalid_params("\"uri\" must be a string"));
    };
    let registry = core.registry.load();
    let (vars, mime_type, cache, entry) = if let Some(resource) = registry.resources.get(&uri) {
        (Vec::new(), &resource.mime_type, resource.cache, ResourceMatch::Resource(resource.clone()))
    } else {
        let steps = &mut MatchSteps::default();
        let fits =
            registry.templates.iter().find_map(|(_, t)| Some((t, t.template.matches_within(&uri, steps)?)));
        let Some((template, vars)) = fits else {
            return Started::failed(missing::not_found(
                &uri,
                registry.templates.iter().map(|(_, t)| &t.template),
            ));
        };
        (vars, &template.mime_type, template.cache, ResourceMatch::Template(template.clone()))
    };
    let mime_type = mime_type.clone();
    let cache = cache.unwrap_or(core.settings.cache);
    let cx = match Cx::new(core.clone(), call) {
        Ok(cx) => cx,
        Err(error) => return Started::failed(error),
    };
    let vars = Vars { uri: uri.clone(), vars };
    let read = match &entry {
        ResourceMatch::Resource(resource) => (resource.reader)(vars, cx.clone()),
        ResourceMatch::Template(template) => (template.reader)(vars, cx.clone()),
    };
    let reader = cx.clone();
    let work = async move {
        let contents = read.await?;
        Ok(Reply::Complete(write_contents(&reader, &contents, &uri, mime_type.as_deref(), cache)))
    };
    Started::Running(Run::new(cx, Work::Other(Box::pin(work))))
}

enum ResourceMatch {
    Resource(Arc<ResourceEntry>),
    Template(Arc<TemplateEntry>),
}

fn write_contents(
    cx: &Cx,
    contents: &[ResourceContents],
    uri: &str,
    mime_type: Option<&str>,
    cache: CacheHint,
) -> Json {
    let modern = cx.revision().is_modern();
    let mut out =
        Vec::with_capacity(contents.iter().map(|one| 128 + text_of(one).len()).sum::<usize>() + 256);
    out.extend_from_slice(if modern {
        b"{\"resultType\":\"complete\",\"contents\":["
    } else {
        b"{\"contents\":["
    });
    for (i, one) in contents.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        write_one(one, uri, mime_type, &mut out);
    }
    out.push(b']');
    if modern {
        out.push(b',');
        cache.write(&mut out);
        out.extend_from_slice(b",\"_meta\":{");
        out.extend_from_slice(cx.core().info.meta_entry().as_bytes());
        out.push(b'}');
    }
    out.push(b'}');
    text::json(out)
}

fn text_of(contents: &ResourceContents) -> &str {
    match &contents.body {
        Body::Text(text) | Body::Blob(text) => text,
    }
}

/// By hand rather than by serde, because contents can be long.
fn write_one(contents: &ResourceContents, uri: &str, mime_type: Option<&str>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"uri\":");
    write_str(out, if contents.uri.is_empty() { uri } else { &contents.uri });
    if let Some(mime_type) = contents.mime_type.as_deref().or(mime_type) {
        out.extend_from_slice(b",\"mimeType\":");
        write_str(out, mime_type);
    }
    out.extend_from_slice(match contents.body {
        Body::Text(_) => b",\"text\":",
        Body::Blob(_) => b",\"blob\":",
    });
    write_str(out, text_of(contents));
    if let Some(meta) = &contents.meta {
        out.extend_from_slice(b",\"_meta\":");
        out.extend_from_slice(meta.to_string().as_bytes());
    }
    out.push(b'}');
}
