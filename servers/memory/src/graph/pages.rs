//! Pages: what the index of words knows of an entity, in pieces of bounded size.
//!
//! An observation that is added makes one page to be indexed anew, however many the entity has. That is done when all
//! changes that are committed together have been made, so a page that several of them touched is indexed once.

use super::properties;
use crate::error::Result;
use crate::pages::{ENTITY, PageText, create, touch};
use crate::store::{Change, Value, View};

/// How many observations one page holds.
const ROOM: i64 = 32;
/// A longer observation takes the room of several, so that no page takes long to look at.
const BYTES: usize = 500;
/// How many bytes of the properties of an entity are searched.
const PROPERTIES: usize = 16_000;

/// The page of an entity that takes more observations.
pub(crate) struct OpenPage {
    pub(crate) page: i64,
    entries: i64,
    /// How much room was taken, and not been counted yet.
    more: i64,
}

impl OpenPage {
    /// The newest page of an entity, if it has one.
    pub(crate) fn of(change: &mut Change<'_>, entity: i64) -> Result<Option<OpenPage>> {
        change.one(
            "SELECT id, entries FROM pages WHERE tenant = ?1 AND kind = ?2 AND owner = ?3 ORDER BY id DESC LIMIT 1",
            &[Value::Int(ENTITY), Value::Int(entity)],
            |row| Ok(OpenPage { page: row.int(0)?, entries: row.int(1)?, more: 0 }),
        )
    }

    /// Another page of the entity.
    pub(crate) fn add(change: &mut Change<'_>, entity: i64) -> Result<OpenPage> {
        let page = create(change, ENTITY, entity, 0)?;
        touch(change, page)?;
        Ok(OpenPage { page, entries: 0, more: 0 })
    }

    /// Whether there is room for another observation.
    pub(crate) fn has_room(&self) -> bool {
        self.entries + self.more < ROOM
    }

    /// One more is on the page.
    pub(crate) fn take(&mut self, observation: &str) {
        self.more += 1 + (observation.len() / BYTES) as i64;
    }

    /// Counts what was put on it.
    pub(crate) fn close(self, change: &mut Change<'_>) -> Result<()> {
        if self.more > 0 {
            change.run(
                "UPDATE pages SET entries = entries + ?3 WHERE tenant = ?1 AND id = ?2",
                &[Value::Int(self.page), Value::Int(self.more)],
            )?;
            touch(change, self.page)?;
        }
        Ok(())
    }
}

/// A page of the entity for one more observation.
pub(crate) fn page_for(change: &mut Change<'_>, entity: i64, observation: &str) -> Result<i64> {
    let mut open = match OpenPage::of(change, entity)? {
        Some(page) if page.has_room() => page,
        _ => OpenPage::add(change, entity)?,
    };
    let page = open.page;
    open.take(observation);
    open.close(change)?;
    Ok(page)
}

/// Remembers that all pages of an entity are to be indexed anew: its name or type has changed, or it is gone.
pub(crate) fn touch_all(change: &mut Change<'_>, entity: i64) -> Result<()> {
    change.run(
        "INSERT INTO touched (tenant, page)
         SELECT tenant, id FROM pages WHERE tenant = ?1 AND kind = ?2 AND owner = ?3 ON CONFLICT DO NOTHING",
        &[Value::Int(ENTITY), Value::Int(entity)],
    )?;
    Ok(())
}

/// Remembers that the first page of an entity is to be indexed anew, which is where its properties stand.
pub(crate) fn touch_first(change: &mut Change<'_>, entity: i64) -> Result<()> {
    match first(change, entity)? {
        Some(page) => touch(change, page),
        None => Ok(()),
    }
}

/// The first page of an entity.
fn first(view: &mut View<'_>, entity: i64) -> Result<Option<i64>> {
    view.one(
        "SELECT id FROM pages WHERE tenant = ?1 AND kind = ?2 AND owner = ?3 ORDER BY id LIMIT 1",
        &[Value::Int(ENTITY), Value::Int(entity)],
        |row| row.int(0),
    )
}

/// What a page says: the name and type of its entity, and what is known of it there; on its first page, its properties,
/// too. Nothing, if the entity is gone.
pub(crate) fn text(view: &mut View<'_>, page: i64) -> Result<Option<PageText>> {
    let entity = view.one(
        "SELECT e.name, e.type, e.key FROM pages p
         JOIN entities e ON e.tenant = ?1 AND e.key = p.owner AND e.gone IS NULL
         WHERE p.tenant = ?1 AND p.id = ?2 AND p.kind = ?3",
        &[Value::Int(page), Value::Int(ENTITY)],
        |row| Ok((row.text(0)?, row.text(1)?, row.int(2)?)),
    )?;
    let Some((name, about, key)) = entity else { return Ok(None) };
    let mut body = String::new();
    if first(view, key)? == Some(page) {
        for (name, value) in properties::of(view, key)? {
            let line = properties::line(&name, &value);
            if body.len() + line.len() < PROPERTIES {
                body.push_str(&line);
                body.push('\n');
            }
        }
    }
    view.each(
        "SELECT content FROM observations WHERE tenant = ?1 AND page = ?2 AND gone IS NULL ORDER BY id",
        &[Value::Int(page)],
        |row| {
            body.push_str(&row.text(0)?);
            body.push('\n');
            Ok(())
        },
    )?;
    Ok(Some(PageText { name, about, body }))
}
