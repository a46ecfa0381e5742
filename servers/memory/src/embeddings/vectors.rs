//! Which pages are to have vectors, and the vectors, as they are kept in the store.
//!
//! Each time that a page says something new it gets the next number of its tenant, and a vector has the number that its
//! page had: what has no vector with the number of its page is still to be done. A vector also has a stamp that only
//! grows, by which other processes see what is new. What is forgotten stays as a row that says so and one without a vector:
//! so they see that, too, and no number is used twice.

use super::embedder::MAX_TEXT;
use super::pgvector;
use crate::error::Result;
use crate::pages::Hit;
use crate::store::{Change, Value, View};

/// The tables of this module.
pub(crate) const TABLES: &[&str] = &[
    // `said` is 1 if the page says something, and 0 once it was forgotten.
    "CREATE TABLE page_states (
        page INTEGER PRIMARY KEY, tenant INTEGER NOT NULL, made INTEGER NOT NULL, said INTEGER NOT NULL)",
    "CREATE UNIQUE INDEX page_states_made ON page_states (tenant, made)",
    "CREATE TABLE vectors (
        page INTEGER NOT NULL, model TEXT NOT NULL, tenant INTEGER NOT NULL, made INTEGER NOT NULL,
        stamp INTEGER NOT NULL, vector BLOB, PRIMARY KEY (page, model))",
    "CREATE INDEX vectors_stamp ON vectors (tenant, stamp)",
    "CREATE INDEX vectors_model ON vectors (tenant, model, page)",
];

/// What pages say is known above: this tells what one of them does, if it is there.
pub(crate) type TextOfPage = fn(&mut View<'_>, page: i64) -> Result<Option<String>>;

/// Notes that a page says something else now. A vector of it is made soon, if there is a model for that.
pub(crate) fn queue(change: &mut Change<'_>, page: i64) -> Result<()> {
    note(change, page, 1)
}

/// Forgets a page, and its vector.
pub(crate) fn forget(change: &mut Change<'_>, page: i64) -> Result<()> {
    if !says_something(change, page)? {
        return Ok(());
    }
    note(change, page, 0)?;
    let stamp = next_stamp(change)?;
    change.run(
        "UPDATE vectors SET vector = NULL, stamp = ?3 WHERE tenant = ?1 AND page = ?2",
        &[Value::Int(page), Value::Int(stamp)],
    )?;
    pgvector::forget(change, page)
}

fn note(change: &mut Change<'_>, page: i64, said: i64) -> Result<()> {
    let last =
        change.one("SELECT MAX(made) FROM page_states WHERE tenant = ?1", &[], |row| row.maybe_int(0))?;
    let made = last.flatten().unwrap_or_default() + 1;
    change.run(
        "INSERT INTO page_states (page, tenant, made, said) VALUES (?2, ?1, ?3, ?4)
         ON CONFLICT (page) DO UPDATE SET made = excluded.made, said = excluded.said
         WHERE page_states.tenant = excluded.tenant",
        &[Value::Int(page), Value::Int(made), Value::Int(said)],
    )?;
    Ok(())
}

/// The last stamp.
pub(crate) fn last_stamp(view: &mut View<'_>) -> Result<i64> {
    let last = view.one("SELECT MAX(stamp) FROM vectors WHERE tenant = ?1", &[], |row| row.maybe_int(0))?;
    Ok(last.flatten().unwrap_or_default())
}

fn next_stamp(view: &mut View<'_>) -> Result<i64> {
    last_stamp(view).map(|last| last + 1)
}

/// A text that is to be embedded.
pub(crate) struct PendingPage {
    pub(crate) page: i64,
    pub(crate) made: i64,
    pub(crate) text: String,
}

/// The next texts after the one with this number that have no vector of the model.
pub(crate) fn pending(
    view: &mut View<'_>,
    text_of: TextOfPage,
    model: &str,
    after: i64,
    limit: usize,
) -> Result<Vec<PendingPage>> {
    let found = view.all(
        "SELECT t.page, t.made FROM page_states t
         LEFT JOIN vectors v ON v.page = t.page AND v.model = ?2 AND v.made = t.made
         WHERE t.tenant = ?1 AND t.made > ?3 AND t.said = 1 AND v.page IS NULL ORDER BY t.made LIMIT ?4",
        &[Value::Text(model.into()), Value::Int(after), Value::Int(limit as i64)],
        |row| Ok((row.int(0)?, row.int(1)?)),
    )?;
    with_texts(view, text_of, found)
}

/// Looks up what pages say.
fn with_texts(view: &mut View<'_>, text_of: TextOfPage, pages: Vec<(i64, i64)>) -> Result<Vec<PendingPage>> {
    let read =
        |(page, made)| Ok(PendingPage { page, made, text: text(view, text_of, page)?.unwrap_or_default() });
    pages.into_iter().map(read).collect()
}

/// How many texts have no vector of the model.
pub(crate) fn count_pending(view: &mut View<'_>, model: &str) -> Result<i64> {
    let count = view.one(
        "SELECT COUNT(*) FROM page_states t
         LEFT JOIN vectors v ON v.page = t.page AND v.model = ?2 AND v.made = t.made
         WHERE t.tenant = ?1 AND t.said = 1 AND v.page IS NULL",
        &[Value::Text(model.into())],
        |row| row.int(0),
    )?;
    Ok(count.unwrap_or_default())
}

/// A vector that was made.
pub(crate) struct PageVector {
    pub(crate) page: i64,
    pub(crate) made: i64,
    pub(crate) vector: Vec<f32>,
}

/// Keeps vectors. Those of texts that were changed or forgotten meanwhile are passed over.
pub(crate) fn save(change: &mut Change<'_>, model: &str, vectors: &[PageVector]) -> Result<()> {
    let stamp = next_stamp(change)?;
    for made in vectors {
        change.run(
            "INSERT INTO vectors (page, model, tenant, made, stamp, vector)
             SELECT t.page, ?2, ?1, t.made, ?3, ?4 FROM page_states t
             WHERE t.tenant = ?1 AND t.page = ?5 AND t.made = ?6 AND t.said = 1
             ON CONFLICT (page, model) DO UPDATE
             SET made = excluded.made, stamp = excluded.stamp, vector = excluded.vector
             WHERE vectors.tenant = excluded.tenant",
            &[
                Value::Text(model.into()),
                Value::Int(stamp),
                Value::Blob(to_bytes(&made.vector).into()),
                Value::Int(made.page),
                Value::Int(made.made),
            ],
        )?;
    }
    pgvector::follow(change, model)
}

/// Whether there are vectors of other models.
pub(crate) fn has_others(view: &mut View<'_>, model: &str) -> Result<bool> {
    let found = view.one(
        "SELECT 1 FROM vectors WHERE tenant = ?1 AND (model < ?2 OR model > ?2) LIMIT 1",
        &[Value::Text(model.into())],
        |row| row.int(0),
    )?;
    Ok(found.is_some())
}

/// Removes some vectors of other models. Returns how many.
pub(crate) fn remove_others(change: &mut Change<'_>, model: &str, limit: usize) -> Result<usize> {
    pgvector::remove(change, model, true)?;
    change.run(
        "DELETE FROM vectors WHERE tenant = ?1 AND model <> ?2 AND page IN (
             SELECT page FROM vectors WHERE tenant = ?1 AND (model < ?2 OR model > ?2) LIMIT ?3)",
        &[Value::Text(model.into()), Value::Int(limit as i64)],
    )
}

/// Removes the vectors of a model, which has other dimensions now.
pub(crate) fn remove(change: &mut Change<'_>, model: &str) -> Result<usize> {
    pgvector::remove(change, model, false)?;
    change.run("DELETE FROM vectors WHERE tenant = ?1 AND model = ?2", &[Value::Text(model.into())])
}

/// A vector that is kept, or that none is kept any more.
pub(crate) struct VectorChange {
    pub(crate) stamp: i64,
    /// The page as it would be found.
    pub(crate) hit: Hit,
    pub(crate) vector: Option<Vec<f32>>,
}

/// Hands over what is new of a model after a stamp.
pub(crate) fn news(
    view: &mut View<'_>,
    model: &str,
    after: i64,
    mut each: impl FnMut(VectorChange) -> Result<()>,
) -> Result<()> {
    view.each(
        "SELECT v.stamp, v.page, p.kind, p.owner, v.vector FROM vectors v
         LEFT JOIN pages p ON p.id = v.page AND p.tenant = ?1
         WHERE v.tenant = ?1 AND v.stamp > ?3 AND v.model = ?2 ORDER BY v.stamp",
        &[Value::Text(model.into()), Value::Int(after)],
        |row| {
            let (kind, owner) = (row.maybe_int(2)?, row.maybe_int(3)?);
            let vector = row.maybe_blob(4)?.filter(|_| kind.is_some()).map(|bytes| to_numbers(&bytes));
            let hit = Hit {
                kind: kind.unwrap_or_default(),
                owner: owner.unwrap_or_default(),
                page: row.int(1)?,
                score: 0.0,
            };
            each(VectorChange { stamp: row.int(0)?, hit, vector })
        },
    )
}

/// The vectors of the pages that belong to something.
pub(crate) fn of(view: &mut View<'_>, model: &str, kind: i64, owner: i64) -> Result<Vec<Vec<f32>>> {
    let found = view.all(
        "SELECT v.vector FROM pages p JOIN page_states t ON t.page = p.id AND t.said = 1
         JOIN vectors v ON v.page = p.id AND v.model = ?2 AND v.made = t.made AND v.tenant = ?1
         WHERE p.tenant = ?1 AND p.kind = ?3 AND p.owner = ?4 ORDER BY p.id",
        &[Value::Text(model.into()), Value::Int(kind), Value::Int(owner)],
        |row| row.maybe_blob(0),
    )?;
    Ok(found.into_iter().flatten().map(|bytes| to_numbers(&bytes)).collect())
}

/// The vector of a page.
pub(crate) fn one(view: &mut View<'_>, model: &str, page: i64) -> Result<Option<Vec<f32>>> {
    let found = view.one(
        "SELECT vector FROM vectors WHERE tenant = ?1 AND page = ?2 AND model = ?3",
        &[Value::Int(page), Value::Text(model.into())],
        |row| row.maybe_blob(0),
    )?;
    Ok(found.flatten().map(|bytes| to_numbers(&bytes)))
}

/// The texts of the pages that belong to something, and what the pages are.
pub(crate) fn texts_of(
    view: &mut View<'_>,
    text_of: TextOfPage,
    kind: i64,
    owner: i64,
) -> Result<Vec<PendingPage>> {
    let found = view.all(
        "SELECT t.page, t.made FROM pages p JOIN page_states t ON t.page = p.id AND t.tenant = ?1 AND t.said = 1
         WHERE p.tenant = ?1 AND p.kind = ?2 AND p.owner = ?3 ORDER BY p.id",
        &[Value::Int(kind), Value::Int(owner)],
        |row| Ok((row.int(0)?, row.int(1)?)),
    )?;
    with_texts(view, text_of, found)
}

/// Whether a page says something.
pub(crate) fn says_something(view: &mut View<'_>, page: i64) -> Result<bool> {
    let said = view.one(
        "SELECT said FROM page_states WHERE tenant = ?1 AND page = ?2",
        &[Value::Int(page)],
        |row| row.int(0),
    )?;
    Ok(said == Some(1))
}

/// What a page says, if it still says something: as much of it as models read.
fn text(view: &mut View<'_>, text_of: TextOfPage, page: i64) -> Result<Option<String>> {
    if !says_something(view, page)? {
        return Ok(None);
    }
    let said = text_of(view, page)?;
    Ok(said.map(|mut text| {
        let end = text.char_indices().nth(MAX_TEXT).map_or(text.len(), |(at, _)| at);
        text.truncate(end);
        text
    }))
}

fn to_bytes(vector: &[f32]) -> Vec<u8> {
    vector.iter().flat_map(|number| number.to_le_bytes()).collect()
}

pub(crate) fn to_numbers(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
}
