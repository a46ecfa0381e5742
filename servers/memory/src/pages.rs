//! Pages: texts of bounded size that are searched. Each belongs to an entity, a document or an agent.
//!
//! A page that says something else is noted as touched, and is indexed anew when all changes that are committed together
//! have been made: one that several of them touched is indexed once.

use crate::error::{Code, Fault, Result};
use crate::store::{Change, Value};

/// The kind of pages that entities have.
pub(crate) const ENTITY: i64 = 0;
/// The kind of pages that documents have.
pub(crate) const DOCUMENT: i64 = 1;
/// The kind of pages that agents have.
pub(crate) const AGENT: i64 = 2;

/// The table of pages.
pub(crate) const TABLES: &[&str] = &[
    // What is searched: a page is a text of bounded size that belongs to an entity, a document or an agent.
    "CREATE TABLE pages (
        id INTEGER PRIMARY KEY,
        tenant INTEGER NOT NULL, kind INTEGER NOT NULL, owner INTEGER NOT NULL, entries INTEGER NOT NULL)",
    "CREATE INDEX pages_of ON pages (tenant, kind, owner)",
];

/// Which pages are to be indexed anew: known to the connection that writes, and empty between its transactions.
pub(crate) const TOUCHED: &str =
    "CREATE TEMP TABLE touched (page INTEGER PRIMARY KEY, tenant INTEGER NOT NULL)";

/// Whose pages those are.
pub(crate) const TENANTS_TOUCHED: &str = "SELECT DISTINCT tenant FROM touched";

/// What a page says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PageText {
    /// The name of the entity or agent, or the title of the document: who searches for that wants this.
    pub(crate) name: String,
    /// What else belongs to the title, such as the type of an entity.
    pub(crate) about: String,
    /// The text.
    pub(crate) body: String,
}

impl PageText {
    /// All of it as one text.
    pub(crate) fn joined(&self) -> String {
        format!("{} {}\n{}", self.name, self.about, self.body)
    }
}

/// A page that was found.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Hit {
    /// What the page belongs to: [`ENTITY`], [`DOCUMENT`] or [`AGENT`].
    pub(crate) kind: i64,
    /// The number of the entity, document or agent.
    pub(crate) owner: i64,
    /// The page.
    pub(crate) page: i64,
    /// How well it fits, the best first: comparable within one search only.
    pub(crate) score: f64,
}

/// Makes a page, which takes the room of so many entries.
pub(crate) fn create(change: &mut Change<'_>, kind: i64, owner: i64, entries: i64) -> Result<i64> {
    let made = change.one(
        "INSERT INTO pages (tenant, kind, owner, entries) VALUES (?1, ?2, ?3, ?4) RETURNING id",
        &[Value::Int(kind), Value::Int(owner), Value::Int(entries)],
        |row| row.int(0),
    )?;
    made.ok_or_else(|| Fault::new(Code::Database, "The page has no number"))
}

/// Remembers that a page is to be indexed anew.
pub(crate) fn touch(change: &mut Change<'_>, page: i64) -> Result<()> {
    change.run(
        "INSERT INTO touched (tenant, page) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
        &[Value::Int(page)],
    )?;
    Ok(())
}

/// Takes the pages of a tenant that are to be indexed anew off the list.
pub(crate) fn take_touched(change: &mut Change<'_>) -> Result<Vec<i64>> {
    change.all("DELETE FROM touched WHERE tenant = ?1 RETURNING page", &[], |row| row.int(0))
}

/// A number by which equal texts are found. It is kept in the file, so it may never change.
pub(crate) fn digest(text: &str) -> i64 {
    // FNV-1a.
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step) as i64
}
