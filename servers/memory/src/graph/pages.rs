//! Pages: what the index of words knows of an entity, in pieces of bounded size.
//!
//! An observation that is added makes one page to be indexed anew, however many the entity has.

use crate::store::{Change, Result, Value};

/// How many observations one page holds.
const ROOM: i64 = 32;
/// The kind of pages that entities have.
pub(crate) const ENTITY: i64 = 0;

/// A page of the entity that has room for another observation, taken.
pub(crate) fn place(change: &mut Change<'_>, entity: i64) -> Result<i64> {
    let open = change.one(
        "UPDATE pages SET entries = entries + 1 WHERE id = (
             SELECT id FROM pages WHERE tenant = ?1 AND kind = ?2 AND owner = ?3 AND entries < ?4
             ORDER BY id DESC LIMIT 1)
         RETURNING id",
        &[Value::Int(ENTITY), Value::Int(entity), Value::Int(ROOM)],
        |row| row.int(0),
    )?;
    match open {
        Some(page) => Ok(page),
        None => add(change, entity, 1),
    }
}

/// Another page of the entity.
pub(crate) fn add(change: &mut Change<'_>, entity: i64, entries: i64) -> Result<i64> {
    let made = change.one(
        "INSERT INTO pages (tenant, kind, owner, entries) VALUES (?1, ?2, ?3, ?4) RETURNING id",
        &[Value::Int(ENTITY), Value::Int(entity), Value::Int(entries)],
        |row| row.int(0),
    )?;
    made.ok_or_else(|| crate::store::Fault::new(crate::store::Code::Database, "The page has no number"))
}

/// Indexes a page anew: the name and type of its entity, and what is known of it there.
pub(crate) fn index(change: &mut Change<'_>, page: i64, title: &str) -> Result<()> {
    let mut body = String::new();
    change.each(
        "SELECT content FROM observations o JOIN pages p ON p.id = ?2 AND o.tenant = ?1 AND o.entity = p.owner
         WHERE o.page = ?2 AND o.gone IS NULL ORDER BY o.id",
        &[Value::Int(page)],
        |row| {
            body.push_str(&row.text(0)?);
            body.push('\n');
            Ok(())
        },
    )?;
    let words = change.own_table("words");
    change.run_on_own(&format!("DELETE FROM {words} WHERE rowid = ?1"), &[Value::Int(page)])?;
    let sql = format!("INSERT INTO {words} (rowid, title, body) VALUES (?1, ?2, ?3)");
    change.run_on_own(&sql, &[Value::Int(page), Value::Text(title.into()), Value::Text(body.into())])?;
    Ok(())
}

/// Takes all pages of an entity out of the index.
pub(crate) fn forget(change: &mut Change<'_>, entity: i64) -> Result<()> {
    let pages = change.all(
        "SELECT id FROM pages WHERE tenant = ?1 AND kind = ?2 AND owner = ?3",
        &[Value::Int(ENTITY), Value::Int(entity)],
        |row| row.int(0),
    )?;
    let words = change.own_table("words");
    for page in pages {
        change.run_on_own(&format!("DELETE FROM {words} WHERE rowid = ?1"), &[Value::Int(page)])?;
    }
    Ok(())
}
