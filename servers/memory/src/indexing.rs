//! What pages say, whatever they belong to, and the index of it.

use crate::error::Result;
use crate::pages::PageText;
use crate::search::{Entries, IndexText};
use crate::store::{Change, Value, View};
use crate::{agents, documents, embeddings, graph, pages};

/// Indexes anew what one tenant's changes have touched: before they are committed, so that what is known can be found.
pub(crate) fn index_touched(change: &mut Change<'_>) -> Result<()> {
    let mut entries = Entries::default();
    for page in pages::take_touched(change)? {
        index(change, &mut entries, page)?;
    }
    entries.write(change)
}

/// Indexes a page anew.
fn index(change: &mut Change<'_>, entries: &mut Entries, page: i64) -> Result<()> {
    let put = |change: &mut Change<'_>, entries: &mut Entries, text: &PageText| {
        entries.put(change, page, &IndexText { name: &text.name, about: &text.about, body: &text.body })
    };
    if let Some(text) = graph::pages::text(change, page)? {
        embeddings::queue(change, page)?;
        return put(change, entries, &text);
    }
    // Agents are found by their words alone.
    if let Some(text) = agents::page_text(change, page)? {
        return put(change, entries, &text);
    }
    embeddings::forget(change, page)?;
    entries.forget(change, page)
}

/// What a page says that has a vector, as one text.
pub(crate) fn text_of_page(view: &mut View<'_>, page: i64) -> Result<Option<String>> {
    let kind =
        view.one("SELECT kind FROM pages WHERE tenant = ?1 AND id = ?2", &[Value::Int(page)], |row| {
            row.int(0)
        })?;
    let text = match kind {
        Some(pages::ENTITY) => graph::pages::text(view, page)?,
        Some(pages::DOCUMENT) => documents::page_text(view, page)?,
        _ => None,
    };
    Ok(text.map(|text| text.joined()))
}
