//! The index: which words are on which pages.
//!
//! Each tenant has an FTS5 table of its own that leads from a word to its pages, and `page_words` leads from a page to
//! its words. FTS5 could rank pages, too, but to learn how rare a word is it reads all pages that have it, for each
//! query anew: with a hundred thousand pages that takes longer than all the rest. Here it gives candidates, and
//! [`super::rank`] ranks these by their words. For that it needs no positions (`detail=none`), which makes it smaller and
//! faster to write.

use super::words::{self, Tally};
use super::{names, spelling};
use crate::error::Result;
use crate::store::{Change, Dialect, Value, View};

/// The tables of search. The `name` of a page is written by [`names::key`].
pub(crate) const TABLES: &[&str] = &[
    "CREATE TABLE page_words (
        page INTEGER PRIMARY KEY,
        tenant INTEGER NOT NULL, kind INTEGER NOT NULL, owner INTEGER NOT NULL,
        name TEXT NOT NULL, size INTEGER NOT NULL, words TEXT NOT NULL)",
    "CREATE INDEX page_words_named ON page_words (tenant, name)",
    // What BM25 must know of all pages together.
    "CREATE TABLE page_totals (
        tenant INTEGER NOT NULL, kind INTEGER NOT NULL,
        first INTEGER NOT NULL, pages INTEGER NOT NULL, size INTEGER NOT NULL, PRIMARY KEY (tenant, kind))",
    "CREATE TABLE vocabulary (id INTEGER PRIMARY KEY, tenant INTEGER NOT NULL, word TEXT NOT NULL)",
    "CREATE UNIQUE INDEX vocabulary_words ON vocabulary (tenant, word)",
    "CREATE TABLE trigrams (
        tenant INTEGER NOT NULL, gram TEXT NOT NULL, size INTEGER NOT NULL, word INTEGER NOT NULL,
        PRIMARY KEY (tenant, gram, size, word)) WITHOUT ROWID",
];

/// What came to the tables later: names are kept as they are written, too, so all entities are indexed anew.
pub(crate) const NAMES_AS_WRITTEN: &[&str] = &[
    "DROP INDEX page_words_named",
    "CREATE INDEX page_words_named ON page_words (tenant, kind, name)",
    "INSERT INTO touched (tenant, page) SELECT tenant, id FROM pages WHERE kind = 0",
];

/// The index of words of one tenant. The words that go into it are made by [`words`] and have no marks in them.
pub(crate) fn own_table(tenant: i64, dialect: Dialect) -> String {
    if dialect == Dialect::Postgres {
        return super::postgres::own_table(tenant);
    }
    format!(
        "CREATE VIRTUAL TABLE IF NOT EXISTS words_{tenant} USING fts5(words, content='', contentless_delete=1, \
         detail=none, tokenize='ascii')"
    )
}

/// What a page says.
pub(crate) struct IndexText<'a> {
    /// The name of the entity or agent, or the title of the document: who searches for that wants this.
    pub(crate) name: &'a str,
    /// What else belongs to the title, such as the type of an entity.
    pub(crate) about: &'a str,
    /// The text.
    pub(crate) body: &'a str,
}

/// Puts a page into the index, in place of what it said before.
pub(crate) fn put(change: &mut Change<'_>, page: i64, said: &IndexText<'_>) -> Result<()> {
    let mut entries = Entries::default();
    entries.put(change, page, said)?;
    entries.write(change)
}

/// Takes a page out of the index, if it is there.
pub(crate) fn forget(change: &mut Change<'_>, page: i64) -> Result<()> {
    let mut entries = Entries::default();
    entries.forget(change, page)?;
    entries.write(change)
}

/// Many pages at once. FTS5 writes down what it has gathered whenever another table is written to, and each time makes
/// another piece that has to be merged with the others: so it gets its part last and in one go.
#[derive(Default)]
pub(crate) struct Entries {
    gone: Vec<i64>,
    new: Vec<(i64, String)>,
}

impl Entries {
    /// Puts a page into the index, in place of what it said before.
    pub(crate) fn put(&mut self, change: &mut Change<'_>, page: i64, said: &IndexText<'_>) -> Result<()> {
        if change.dialect() == Dialect::Postgres {
            return super::postgres::put(change, page, said);
        }
        let of = change.one(
            "SELECT kind, owner FROM pages WHERE tenant = ?1 AND id = ?2",
            &[Value::Int(page)],
            |row| Ok((row.int(0)?, row.int(1)?)),
        )?;
        let Some((kind, owner)) = of else { return self.forget(change, page) };
        let (name, tally) = (names::key(said.name), Tally::of([said.name, said.about], said.body));
        let before = IndexedPage::of(change, page)?;
        learn(change, &tally, before.as_ref().map_or("", |before| &before.words))?;
        let mut text = mark(kind);
        for word in tally.words() {
            text.push(' ');
            text.push_str(word);
        }
        let size = tally.size();
        change.run(
            "INSERT INTO page_words (tenant, page, kind, owner, name, size, words)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
             ON CONFLICT (page) DO UPDATE SET name = ?5, size = ?6, words = ?7",
            &[
                Value::Int(page),
                Value::Int(kind),
                Value::Int(owner),
                Value::Text(name.into()),
                Value::Int(size),
                Value::Text(tally.written().into()),
            ],
        )?;
        match before {
            Some(before) => {
                self.gone.push(page);
                total(change, kind, page, 0, size - before.size)?;
            }
            None => total(change, kind, page, 1, size)?,
        }
        self.new.push((page, text));
        Ok(())
    }

    /// Takes a page out of the index, if it is there.
    pub(crate) fn forget(&mut self, change: &mut Change<'_>, page: i64) -> Result<()> {
        if change.dialect() == Dialect::Postgres {
            return super::postgres::forget(change, page);
        }
        if let Some(before) = IndexedPage::of(change, page)? {
            change.run("DELETE FROM page_words WHERE tenant = ?1 AND page = ?2", &[Value::Int(page)])?;
            total(change, before.kind, page, -1, -before.size)?;
            self.gone.push(page);
        }
        Ok(())
    }

    /// Writes the part of FTS5.
    pub(crate) fn write(mut self, change: &mut Change<'_>) -> Result<()> {
        // A page before the last one would also make it write down what it has.
        self.new.sort_unstable();
        let table = change.own_table("words");
        let sql = format!("DELETE FROM {table} WHERE rowid = ?1");
        for page in self.gone {
            change.run_on_own(&sql, &[Value::Int(page)])?;
        }
        let sql = format!("INSERT INTO {table} (rowid, words) VALUES (?1, ?2)");
        for (page, text) in self.new {
            change.run_on_own(&sql, &[Value::Int(page), Value::Text(text.into())])?;
        }
        Ok(())
    }
}

/// What the index knew of a page.
struct IndexedPage {
    kind: i64,
    size: i64,
    words: String,
}

impl IndexedPage {
    fn of(view: &mut View<'_>, page: i64) -> Result<Option<IndexedPage>> {
        view.one(
            "SELECT kind, size, words FROM page_words WHERE tenant = ?1 AND page = ?2",
            &[Value::Int(page)],
            |row| Ok(IndexedPage { kind: row.int(0)?, size: row.int(1)?, words: row.text(2)? }),
        )
    }
}

/// Brings the words of a page that it did not have before to the vocabulary.
fn learn(change: &mut Change<'_>, tally: &Tally, before: &str) -> Result<()> {
    // Both are in order.
    let mut known = words::stored(before).peekable();
    for word in tally.words() {
        while known.peek().is_some_and(|known| *known < word) {
            known.next();
        }
        if known.peek() != Some(&word) {
            spelling::learn(change, word)?;
        }
    }
    Ok(())
}

/// Counts pages and words of a kind.
fn total(change: &mut Change<'_>, kind: i64, page: i64, pages: i64, size: i64) -> Result<()> {
    let values = [Value::Int(kind), Value::Int(pages), Value::Int(size), Value::Int(page)];
    let counted = change.run(
        "UPDATE page_totals SET pages = pages + ?3, size = size + ?4 WHERE tenant = ?1 AND kind = ?2",
        &values[..3],
    )?;
    if counted == 0 {
        change.run(
            "INSERT INTO page_totals (tenant, kind, first, pages, size) VALUES (?1, ?2, ?5, ?3, ?4)",
            &values,
        )?;
    }
    Ok(())
}

/// A word that every page of a kind has, and that nobody can write.
pub(super) fn mark(kind: i64) -> String {
    format!("\u{e000}{kind}")
}

/// How many pages of a kind there are.
pub(crate) fn page_count(view: &mut View<'_>, kind: i64) -> Result<i64> {
    let count = view.one(
        "SELECT pages FROM page_totals WHERE tenant = ?1 AND kind = ?2",
        &[Value::Int(kind)],
        |row| row.int(0),
    )?;
    Ok(count.unwrap_or_default())
}

/// What is known of all pages that are searched.
pub(super) struct Totals {
    /// The first page.
    pub(super) first: i64,
    /// How many there are.
    pub(super) pages: f64,
    /// How many words one has on average.
    pub(super) size: f64,
    /// Whether there are others that are not searched.
    pub(super) others: bool,
}

impl Totals {
    pub(super) fn of(view: &mut View<'_>, kinds: &[i64]) -> Result<Totals> {
        let (mut first, mut pages, mut size, mut others) = (i64::MAX, 0, 0, false);
        view.each("SELECT kind, first, pages, size FROM page_totals WHERE tenant = ?1", &[], |row| {
            if kinds.contains(&row.int(0)?) {
                first = first.min(row.int(1)?);
                pages += row.int(2)?;
                size += row.int(3)?;
            } else {
                others |= row.int(2)? > 0;
            }
            Ok(())
        })?;
        let count = pages.max(1) as f64;
        Ok(Totals { first, pages: count, size: (size as f64 / count).max(1.0), others })
    }
}
