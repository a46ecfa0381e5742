//! [`Tables`]: how the tables of one tenant and model come about, and follow what is kept.

use super::search::written;
use super::{KINDS, OLDEST, VERSION, numbers};
use crate::embeddings::vector_index::says_something;
use crate::embeddings::vectors;
use crate::error::Result;
use crate::store::{Change, Value, View};

/// Since this version there are numbers of half the size, which can be indexed up to [`HALVES`] dimensions.
const HAS_HALVES: (u32, u32) = (0, 7);
/// How many dimensions can be indexed, as whole numbers and as halves, and how many can be kept at all.
const INDEXED: usize = 2_000;
pub(super) const HALVES: usize = 4_000;
pub(super) const MOST: usize = 16_000;
/// From how many rows on a table has an index. All rows of a smaller one are compared, which is exact and takes no longer.
const MANY: i64 = 5_000;
/// How many rows come in at a time: no less than are ever kept at once.
const BATCH: usize = 256;

/// The tables of one tenant and model.
pub(in crate::embeddings) struct Tables {
    pub(super) id: i64,
    pub(in crate::embeddings) dimensions: usize,
    /// The type of the column.
    pub(super) form: String,
    /// The last row that came in.
    stamp: i64,
    page: i64,
    pub(super) whole: bool,
    /// Of the extension.
    pub(super) version: (u32, u32),
}

/// A row of what is kept.
struct News {
    stamp: i64,
    page: i64,
    kind: Option<i64>,
    vector: Option<Vec<f32>>,
}

impl Tables {
    /// The tables of a model, if all of them are there, as they must be.
    pub(super) fn find(view: &mut View<'_>, model: &str) -> Result<Option<Tables>> {
        let mut found = Tables::list(view, "AND n.model = ?2", &[Value::Text(model.into())])?;
        Ok(found.pop())
    }

    /// The tables of all models.
    pub(super) fn all(view: &mut View<'_>) -> Result<Vec<Tables>> {
        Tables::list(view, "", &[])
    }

    fn list(view: &mut View<'_>, which: &str, values: &[Value<'_>]) -> Result<Vec<Tables>> {
        // Whoever brought the database here, or took the extension away for a while, may have left some behind.
        let there = KINDS.map(|kind| format!("to_regclass('near_' || n.tenant || '_' || n.id || '_{kind}')"));
        let sql = format!(
            "SELECT n.id, n.dimensions, n.form, n.stamp, n.page, n.whole, v.extversion
             FROM near_tables n, ({VERSION}) v WHERE n.tenant = ?1 {which} AND {} = (SELECT COUNT(*) FROM pg_attribute a
                 WHERE a.attrelid IN ({}) AND a.attname = 'numbers' AND NOT a.attisdropped)",
            KINDS.len(),
            there.join(", ")
        );
        let found = view.all(&sql, values, |row| {
            Ok(Tables {
                id: row.int(0)?,
                dimensions: row.int(1)? as usize,
                form: row.text(2)?,
                stamp: row.int(3)?,
                page: row.int(4)?,
                whole: row.int(5)? != 0,
                version: numbers(&row.text(6)?),
            })
        })?;
        Ok(found.into_iter().filter(|tables| tables.version >= OLDEST).collect())
    }

    /// Makes the tables of a model, in place of what is there.
    pub(super) fn make(
        change: &mut Change<'_>,
        model: &str,
        dimensions: usize,
        version: &str,
    ) -> Result<Tables> {
        super::remove(change, model, false)?;
        let version = numbers(version);
        let halves = (INDEXED + 1..=HALVES).contains(&dimensions) && version >= HAS_HALVES;
        let form = format!("{}({dimensions})", if halves { "halfvec" } else { "vector" });
        let id = change.one(
            "INSERT INTO near_tables (tenant, model, dimensions, form, stamp, page, whole)
             VALUES (?1, ?2, ?3, ?4, 0, 0, 0) RETURNING id",
            &[Value::Text(model.into()), Value::Int(dimensions as i64), Value::Text(form.as_str().into())],
            |row| row.int(0),
        )?;
        let id = id.unwrap_or_default();
        let tables = Tables { id, dimensions, form, stamp: 0, page: 0, whole: false, version };
        for kind in KINDS {
            let (name, form) = (name(change, tables.id, kind), &tables.form);
            let sql = format!("CREATE TABLE {name} (page BIGINT PRIMARY KEY, numbers {form} NOT NULL)");
            change.run_on_own(&sql, &[])?;
            if tables.can_be_indexed() {
                // In the row itself: else the database takes reading all rows for less work than it is.
                let sql = format!("ALTER TABLE {name} ALTER COLUMN numbers SET STORAGE PLAIN");
                change.run_on_own(&sql, &[])?;
            }
        }
        Ok(tables)
    }

    /// Whether there is something that has not come in yet.
    pub(super) fn is_behind(&self, view: &mut View<'_>, model: &str) -> Result<bool> {
        Ok(!self.whole || !self.news(view, model, 1)?.is_empty())
    }

    /// What was kept since the last row that came in.
    fn news(&self, view: &mut View<'_>, model: &str, limit: usize) -> Result<Vec<News>> {
        let sql = format!(
            "SELECT v.stamp, v.page, p.kind, v.vector FROM vectors v
             LEFT JOIN pages p ON p.id = v.page AND p.tenant = ?1
             WHERE v.tenant = ?1 AND v.model = ?2 AND v.stamp >= ?3 AND (v.stamp, v.page) > (?3, ?4)
             ORDER BY v.stamp, v.page LIMIT {limit}"
        );
        view.all(&sql, &[Value::Text(model.into()), Value::Int(self.stamp), Value::Int(self.page)], |row| {
            let vector = row.maybe_blob(3)?.map(|bytes| vectors::to_numbers(&bytes));
            Ok(News { stamp: row.int(0)?, page: row.int(1)?, kind: row.maybe_int(2)?, vector })
        })
    }

    /// Brings in what is new, as much as comes in at a time.
    pub(super) fn bring_in(&mut self, change: &mut Change<'_>, model: &str) -> Result<()> {
        let news = self.news(change, model, BATCH)?;
        self.whole |= news.len() < BATCH;
        for News { stamp, page, kind, vector } in news {
            (self.stamp, self.page) = (stamp, page);
            let kind = kind.filter(|kind| KINDS.contains(kind));
            match kind.zip(vector.filter(|vector| self.fits(vector))) {
                Some((kind, vector)) => self.put(change, kind, page, &vector)?,
                None => self.take_out(change, page)?,
            }
        }
        change.run(
            "UPDATE near_tables SET stamp = ?3, page = ?4, whole = ?5 WHERE tenant = ?1 AND id = ?2",
            &[
                Value::Int(self.id),
                Value::Int(self.stamp),
                Value::Int(self.page),
                Value::Int(self.whole.into()),
            ],
        )?;
        KINDS.into_iter().try_for_each(|kind| self.index(change, kind))
    }

    /// Whether it can be compared with others.
    pub(super) fn fits(&self, vector: &[f32]) -> bool {
        vector.len() == self.dimensions
            && vector.iter().all(|number| number.is_finite())
            && says_something(vector)
    }

    fn put(&self, change: &mut Change<'_>, kind: i64, page: i64, vector: &[f32]) -> Result<()> {
        let sql = format!(
            "INSERT INTO {} (page, numbers) VALUES (?1, ?2::{})
             ON CONFLICT (page) DO UPDATE SET numbers = excluded.numbers",
            name(change, self.id, kind),
            self.form
        );
        change.run_on_own(&sql, &[Value::Int(page), Value::Text(written(vector).into())])?;
        Ok(())
    }

    /// Takes a page out of all of them.
    pub(super) fn take_out(&self, change: &mut Change<'_>, page: i64) -> Result<()> {
        for kind in KINDS {
            let sql = format!("DELETE FROM {} WHERE page = ?1", name(change, self.id, kind));
            change.run_on_own(&sql, &[Value::Int(page)])?;
        }
        Ok(())
    }

    fn has_halves(&self) -> bool {
        self.form.starts_with("halfvec")
    }

    fn can_be_indexed(&self) -> bool {
        self.dimensions <= if self.has_halves() { HALVES } else { INDEXED }
    }

    /// Makes the index of a table that has become large.
    fn index(&self, change: &mut Change<'_>, kind: i64) -> Result<()> {
        match self.is_indexed(change, kind)? || self.count(change, kind)? < MANY {
            true => Ok(()),
            false => self.make_index(change, kind),
        }
    }

    /// Makes the index of a table, unless there are too many dimensions for one.
    pub(super) fn make_index(&self, change: &mut Change<'_>, kind: i64) -> Result<()> {
        if !self.can_be_indexed() {
            return Ok(());
        }
        let numbers = if self.has_halves() { "halfvec" } else { "vector" };
        let name = name(change, self.id, kind);
        let sql = format!("CREATE INDEX {name}_hnsw ON {name} USING hnsw (numbers {numbers}_cosine_ops)");
        change.run_on_own(&sql, &[])?;
        Ok(())
    }

    /// Whether the table for a kind of pages has an index.
    pub(super) fn is_indexed(&self, view: &mut View<'_>, kind: i64) -> Result<bool> {
        let name = name(view, self.id, kind);
        let sql = "SELECT 1 FROM tenants WHERE id = ?1 AND to_regclass(?2) IS NOT NULL";
        Ok(view.one(sql, &[Value::Text(format!("{name}_hnsw").into())], |row| row.int(0))?.is_some())
    }

    /// How many vectors the table for a kind of pages has.
    pub(super) fn count(&self, view: &mut View<'_>, kind: i64) -> Result<i64> {
        let mut count = 0;
        let sql = format!("SELECT COUNT(*) FROM {}", name(view, self.id, kind));
        view.each_of_own(&sql, &[], |row| {
            count = row.int(0)?;
            Ok(())
        })?;
        Ok(count)
    }
}

/// Removes the tables with this number.
pub(super) fn remove(change: &mut Change<'_>, id: i64) -> Result<()> {
    for kind in KINDS {
        let sql = format!("DROP TABLE IF EXISTS {}", name(change, id, kind));
        change.run_on_own(&sql, &[])?;
    }
    Ok(())
}

/// The name of the table for a kind of pages.
pub(super) fn name(view: &View<'_>, id: i64, kind: i64) -> String {
    format!("{}_{id}_{kind}", view.own_table("near"))
}

/// How many dimensions the vectors of a model have, if some are kept and not too many for a table.
pub(super) fn dimensions(view: &mut View<'_>, model: &str) -> Result<Option<usize>> {
    let bytes = view.one(
        "SELECT length(vector) FROM vectors WHERE tenant = ?1 AND model = ?2 AND length(vector) > 0
         ORDER BY stamp, page LIMIT 1",
        &[Value::Text(model.into())],
        |row| row.int(0),
    )?;
    Ok(bytes.map(|bytes| bytes as usize / 4).filter(|dimensions| (1..=MOST).contains(dimensions)))
}
