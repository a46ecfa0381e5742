//! The four lists: in order of registration, in pages, with opaque cursors.

use std::sync::Arc;

use tidegate_protocol::seal::{Binding, digest};
use tidegate_protocol::{Error, Feature, Json, Revision, Symbol};
use tidegate_service::{Call, Principal, Reply};

use crate::registry::Shelf;
use crate::server::Core;
use crate::text;

/// `tools/list`.
pub(crate) fn tools(core: &Arc<Core>, call: &Call) -> Result<Reply, Error> {
    let registry = core.registry.load();
    let all_public = registry.tools().all(|tool| tool.is_public());
    let page = Page { core, call, name: "tools", cached: all_public.then(|| &registry.lists[0]) };
    page.write(&registry.tools, |tool, principal| {
        (tool.listed && tool.is_visible(principal)).then(|| tool.definition(call.context.revision))
    })
}

/// `prompts/list`.
pub(crate) fn prompts(core: &Arc<Core>, call: &Call) -> Result<Reply, Error> {
    let registry = core.registry.load();
    let page = Page { core, call, name: "prompts", cached: Some(&registry.lists[1]) };
    page.write(&registry.prompts, |prompt, _| Some(&prompt.definition))
}

/// `resources/list`.
pub(crate) fn resources(core: &Arc<Core>, call: &Call) -> Result<Reply, Error> {
    let registry = core.registry.load();
    let page = Page { core, call, name: "resources", cached: Some(&registry.lists[2]) };
    page.write(&registry.resources, |resource, _| Some(&resource.definition))
}

/// `resources/templates/list`.
pub(crate) fn templates(core: &Arc<Core>, call: &Call) -> Result<Reply, Error> {
    let registry = core.registry.load();
    let page = Page { core, call, name: "resourceTemplates", cached: Some(&registry.lists[3]) };
    page.write(&registry.templates, |template, _| Some(&template.definition))
}

/// One page of a list that is being asked for.
struct Page<'a> {
    core: &'a Core,
    call: &'a Call,
    /// The member under which the entries stand.
    name: &'static str,
    /// Where the whole list is kept once it was written, if everybody sees the same.
    cached: Option<&'a [std::sync::OnceLock<Json>; 3]>,
}

impl Page<'_> {
    fn write<T>(
        &self,
        shelf: &Shelf<T>,
        definition: impl for<'t> Fn(&'t T, &Principal) -> Option<&'t Json>,
    ) -> Result<Reply, Error> {
        let after = match self.call.params.get("cursor") {
            None => 0,
            Some(_) => self.open_cursor()?,
        };
        let revision = self.call.context.revision;
        // A whole list is the same text for everybody who speaks alike.
        let whole = after == 0 && shelf.len() <= self.core.options.page_size;
        match self.cached {
            Some(cached) if whole => {
                let slot = &cached[form(revision)];
                Ok(Reply::Complete(slot.get_or_init(|| self.text(shelf, 0, &definition)).clone()))
            }
            _ => Ok(Reply::Complete(self.text(shelf, after, &definition))),
        }
    }

    fn text<T>(
        &self,
        shelf: &Shelf<T>,
        after: u64,
        definition: &impl for<'t> Fn(&'t T, &Principal) -> Option<&'t Json>,
    ) -> Json {
        let modern = self.call.context.revision.is_modern();
        let principal = &self.call.context.principal;
        let mut out = Vec::with_capacity(1024);
        out.extend_from_slice(if modern { b"{\"resultType\":\"complete\"," } else { b"{" });
        tidegate_protocol::json::write_str(&mut out, self.name);
        out.extend_from_slice(b":[");
        let mut entries = shelf
            .iter()
            .filter(|(number, _)| *number > after)
            .filter_map(|(number, entry)| Some((number, definition(entry, principal)?)))
            .peekable();
        let mut last = after;
        for (i, (number, definition)) in entries.by_ref().take(self.core.options.page_size).enumerate() {
            if i > 0 {
                out.push(b',');
            }
            out.extend_from_slice(definition.as_str().as_bytes());
            last = number;
        }
        out.push(b']');
        if entries.peek().is_some() {
            out.extend_from_slice(b",\"nextCursor\":");
            tidegate_protocol::json::write_str(&mut out, &self.seal_cursor(last));
        }
        if modern {
            out.push(b',');
            self.core.options.cache.write(&mut out);
            out.push(b',');
            out.extend_from_slice(b"\"_meta\":{");
            out.extend_from_slice(self.core.info.meta_entry().as_bytes());
            out.push(b'}');
        }
        out.push(b'}');
        text::json(out)
    }

    fn binding(&self) -> Binding<'_> {
        let principal = &self.call.context.principal;
        Binding {
            principal: principal.subject.as_deref().unwrap_or_default(),
            tenant: principal.tenant.as_deref().unwrap_or_default(),
            method: self.call.method.as_str(),
            params: digest(["cursor"]),
        }
    }

    fn seal_cursor(&self, after: u64) -> String {
        let sealed = self.core.sealer.seal(&after.to_le_bytes(), &self.binding(), u64::MAX, text::random());
        sealed.expect("eight bytes are never too long")
    }

    fn open_cursor(&self) -> Result<u64, Error> {
        let open = || {
            let cursor = self.call.params.str("cursor")?;
            let content = self.core.sealer.open(&cursor, &self.binding(), 0).ok()?;
            content.try_into().ok().map(u64::from_le_bytes)
        };
        open().ok_or_else(|| {
            Error::new(
                Symbol::InvalidCursor,
                "Invalid params: the cursor is not one of this list; start without one",
            )
        })
    }
}

/// Which of the written forms a revision gets.
fn form(revision: Revision) -> usize {
    match revision {
        modern if modern.is_modern() => 0,
        tasks if tasks.allows(Feature::CoreTasks) => 1,
        _ => 2,
    }
}
