//! The four lists: in order of registration, in pages, with opaque cursors.

mod cursor;
mod text;

use std::sync::Arc;

use tidegate_protocol::{Error, Feature, Json, Revision};
use tidegate_service::{Call, OWN_RESOURCES, Principal, Reply, UNLISTED};

use crate::cx::Cx;
use crate::dispatch::Started;
use crate::registry::{Registry, Shelf};
use crate::resource::PageRequest;
use crate::run::{Run, Work};
use crate::server::Core;
use crate::tool::ToolError;
use cursor::{Last, Position};
use text::Text;

/// `tools/list`. Of a tool that is asked for by its name, all is told, whether it is listed or not.
pub(crate) fn tools(core: &Arc<Core>, call: &Call) -> Result<Reply, Error> {
    let registry = core.registry.load();
    if let Some(name) = call.params.meta().and_then(|meta| meta.text(UNLISTED)) {
        let page = Page { core, call, name: "tools", cached: None };
        return page.write(&registry.tools, |tool, principal| {
            (*tool.name == *name && tool.is_visible(principal))
                .then(|| tool.definition(call.context.revision))
        });
    }
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

/// `resources/list`: those at fixed addresses, then those of the sources.
pub(crate) fn resources(core: &Arc<Core>, call: Call) -> Started {
    let registry = core.registry.load_full();
    let wanted = call.params.meta().and_then(|meta| meta.get(OWN_RESOURCES));
    if registry.sources.is_empty() || wanted == Some("false") {
        let page = Page { core, call: &call, name: RESOURCES, cached: Some(&registry.lists[2]) };
        return page.write(&registry.resources, |resource, _| Some(&resource.definition)).into();
    }
    let start = match cursor::open(core, &call) {
        Ok(None) if wanted == Some("true") => Some(Position::Source { at: 0, after: None }),
        Ok(place) => place,
        Err(error) => return Started::failed(error),
    };
    let cx = match Cx::new(core.clone(), call) {
        Ok(cx) => cx,
        Err(error) => return Started::failed(error),
    };
    let work = with_sources(registry, start, cx.clone());
    Started::Running(Run::new(cx, Work::Other(Box::pin(work))))
}

const RESOURCES: &str = "resources";

/// A page of resources that begins at the beginning, somewhere on the shelf or in a source. Each source is asked once at most.
async fn with_sources(registry: Arc<Registry>, start: Option<Position>, cx: Cx) -> Result<Reply, ToolError> {
    let core = cx.core();
    let mut room = core.settings.page_size;
    let mut text = Text::new(cx.revision().is_modern(), RESOURCES);
    let (mut at, mut after) = match start {
        Some(Position::Source { at, after }) => (at, after),
        start => {
            let last = match start {
                Some(Position::After(last)) => last.number(core, &registry.resources)?,
                _ => 0,
            };
            if let Some(last) = shelved(&registry, last, &mut room, &mut text) {
                let last = Last::new(core, &registry.resources, last);
                let next = cursor::seal(core, cx.call(), &Position::After(last))?;
                return Ok(Reply::Complete(text.finish(core, Some(&next), true)));
            }
            (0, None)
        }
    };
    while let Some(source) = registry.sources.get(at) {
        let mut next = None;
        if room > 0 {
            let page = source.look(PageRequest { after: after.take(), limit: room }, cx.clone()).await?;
            let (entries, more) = page.written(room);
            room -= entries.len();
            entries.iter().for_each(|entry| text.add(entry));
            match more {
                Some(after) => next = Some(Position::Source { at, after: Some(after) }),
                None => at += 1,
            }
        } else {
            next = Some(Position::Source { at, after: None });
        }
        if let Some(place) = next {
            let next = cursor::seal(core, cx.call(), &place)?;
            return Ok(Reply::Complete(text.finish(core, Some(&next), true)));
        }
    }
    Ok(Reply::Complete(text.finish(core, None, true)))
}

/// Writes what stands on the shelf after the number `after`. Returns the number of the last one that was written if more follow.
fn shelved(registry: &Registry, after: u64, room: &mut usize, text: &mut Text) -> Option<u64> {
    let mut last = after;
    for (number, resource) in registry.resources.iter().filter(|(number, _)| *number > after) {
        if *room == 0 {
            return Some(last);
        }
        text.add(&resource.definition);
        *room -= 1;
        last = number;
    }
    None
}

/// `resources/templates/list`.
pub(crate) fn templates(core: &Arc<Core>, call: &Call) -> Result<Reply, Error> {
    let registry = core.registry.load();
    let page = Page { core, call, name: "resourceTemplates", cached: Some(&registry.lists[3]) };
    page.write(&registry.templates, |template, _| template.listed.then_some(&template.definition))
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
        let after = match cursor::open(self.core, self.call)? {
            None => 0,
            Some(Position::After(last)) => last.number(self.core, shelf)?,
            Some(Position::Source { .. }) => return Err(cursor::refused()),
        };
        let revision = self.call.context.revision;
        // A whole list is the same text for everybody who speaks alike.
        let whole = after == 0 && shelf.len() <= self.core.settings.page_size;
        match self.cached {
            Some(cached) if whole => {
                let slot = &cached[form(revision)];
                if let Some(text) = slot.get() {
                    return Ok(Reply::Complete(text.clone()));
                }
                let text = self.text(shelf, 0, &definition)?;
                Ok(Reply::Complete(slot.get_or_init(|| text).clone()))
            }
            _ => Ok(Reply::Complete(self.text(shelf, after, &definition)?)),
        }
    }

    fn text<T>(
        &self,
        shelf: &Shelf<T>,
        after: u64,
        definition: &impl for<'t> Fn(&'t T, &Principal) -> Option<&'t Json>,
    ) -> Result<Json, Error> {
        let principal = &self.call.context.principal;
        let mut text = Text::new(self.call.context.revision.is_modern(), self.name);
        let mut entries = shelf
            .iter()
            .filter(|(number, _)| *number > after)
            .filter_map(|(number, entry)| Some((number, definition(entry, principal)?)))
            .peekable();
        let mut last = after;
        for (number, definition) in entries.by_ref().take(self.core.settings.page_size) {
            text.add(definition);
            last = number;
        }
        let next = match entries.peek() {
            Some(_) => {
                let last = Last::new(self.core, shelf, last);
                Some(cursor::seal(self.core, self.call, &Position::After(last))?)
            }
            None => None,
        };
        Ok(text.finish(self.core, next.as_deref(), false))
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
