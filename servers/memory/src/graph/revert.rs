//! What a change did, row by row, the other way round.
//!
//! A change is made under a savepoint. For a statement that may write several rows (`INSERT … SELECT`, anything that has
//! `RETURNING`) SQLite keeps a journal of its own there, and when the statement ends it walks all that the savepoint has
//! written down so far. So what is done for each row writes one row, and what writes several is done once.

use std::collections::{BTreeMap, BTreeSet};

use super::{entities, pages, relations};
use crate::changes::{ChangeCounts, blocked};
use crate::error::{Fault, Result};
use crate::pages::touch;
use crate::store::{Change, Row, Value};

/// A table, and how a row of it is called.
struct Table {
    name: &'static str,
    called: &'static str,
}

const ENTITIES: Table = Table { name: "entities", called: "name" };
const OBSERVATIONS: Table = Table { name: "observations", called: "content" };
const PROPERTIES: Table = Table { name: "properties", called: "name" };
const RELATIONS: Table = Table { name: "relations", called: "source || ' ' || type || ' ' || target" };

/// A row that is to end or to come back.
struct RevertedRow {
    id: i64,
    /// The first of those that stand for each other.
    root: i64,
    called: String,
}

/// Ends what a change made and brings back what it ended. Refused if later changes are about the same.
pub(crate) fn revert(change: &mut Change<'_>, undoing: i64) -> Result<Reversal> {
    let mut work = Reversal { undoing, ..Reversal::default() };
    for table in [&RELATIONS, &OBSERVATIONS, &PROPERTIES, &ENTITIES] {
        work.end(change, table)?;
    }
    work.bring_entities(change)?;
    work.bring_observations(change)?;
    work.bring_properties(change)?;
    work.bring_relations(change)?;
    work.settle(change)?;
    Ok(work)
}

/// An undoing that is under way.
#[derive(Default)]
pub(crate) struct Reversal {
    undoing: i64,
    /// What has come back.
    pub(crate) restored: ChangeCounts,
    /// What has ended.
    pub(crate) removed: ChangeCounts,
    /// The names of entities that have ended, and may have come back.
    ended: BTreeSet<String>,
    /// The entities whose name, type or being there has changed.
    recast: BTreeSet<i64>,
    /// The pages of the others that say something else now.
    pages: BTreeMap<i64, BTreeSet<i64>>,
    /// The entities that have other properties now.
    described: BTreeSet<i64>,
}

impl Reversal {
    /// The rows of a table that the change made or ended, and that it did not both make and end.
    fn rows(&self, change: &mut Change<'_>, table: &Table, column: &str) -> Result<Vec<RevertedRow>> {
        let Table { name, called } = table;
        let sql = format!(
            "SELECT id, COALESCE(origin, id), {called} FROM {name} WHERE tenant = ?1 AND {column} = ?2
             AND (gone IS NULL OR made <> gone) ORDER BY id"
        );
        change.all(&sql, &[Value::Int(self.undoing)], |row| {
            Ok(RevertedRow { id: row.int(0)?, root: row.int(1)?, called: row.text(2)? })
        })
    }

    /// Ends what the change made.
    fn end(&mut self, change: &mut Change<'_>, table: &Table) -> Result<()> {
        let more = match table.name {
            "entities" => "key, 0, name, name",
            "observations" => "entity, page, '', ''",
            "properties" => "entity, 0, '', ''",
            _ => "0, 0, source, target",
        };
        // The row itself, or else the one that stands for it.
        let [own, other] = ["id", "origin"].map(|column| {
            format!(
                "SELECT id, {more} FROM {} WHERE tenant = ?1 AND {column} = ?2 AND gone IS NULL",
                table.name
            )
        });
        let end = format!("UPDATE {} SET until = ?2, gone = ?3 WHERE tenant = ?1 AND id = ?4", table.name);
        for line in self.rows(change, table, "made")? {
            let root = [Value::Int(line.root)];
            let read =
                |row: &dyn Row| Ok((row.int(0)?, row.int(1)?, row.int(2)?, [row.text(3)?, row.text(4)?]));
            let mut live = change.one(&own, &root, read)?;
            if live.is_none() {
                live = change.one(&other, &root, read)?;
            }
            let Some((id, key, page, names)) = live else {
                return Err(self.since(change, table, &line)?);
            };
            change.run(&end, &[Value::Int(change.now), Value::Int(change.id), Value::Int(id)])?;
            match table.name {
                "entities" => {
                    self.removed.entities += 1;
                    self.recast.insert(key);
                    self.ended.extend(names);
                }
                "observations" => {
                    self.removed.observations += 1;
                    self.pages.entry(key).or_default().insert(page);
                }
                "properties" => {
                    self.removed.properties += 1;
                    self.described.insert(key);
                }
                _ => self.removed.relations += 1,
            }
        }
        Ok(())
    }

    /// Why a row that the change made cannot end: another change has ended it.
    fn since(&self, change: &mut Change<'_>, table: &Table, line: &RevertedRow) -> Result<Fault> {
        let mut by = 0;
        for column in ["id", "origin"] {
            let sql = format!("SELECT max(gone) FROM {} WHERE tenant = ?1 AND {column} = ?2", table.name);
            let gone = change.one(&sql, &[Value::Int(line.root)], |row| row.maybe_int(0))?.flatten();
            by = by.max(gone.unwrap_or_default());
        }
        blocked(change, self.undoing, by, &line.called)
    }

    fn bring_entities(&mut self, change: &mut Change<'_>) -> Result<()> {
        for line in self.rows(change, &ENTITIES, "gone")? {
            let key = change.one(
                "SELECT key FROM entities WHERE tenant = ?1 AND id = ?2",
                &[Value::Int(line.id)],
                |row| row.int(0),
            )?;
            self.recast.extend(key);
            let key = Value::Int(key.unwrap_or_default());
            for (column, value) in [("name", Value::Text((&*line.called).into())), ("key", key)] {
                let sql =
                    format!("SELECT made FROM entities WHERE tenant = ?1 AND {column} = ?2 AND gone IS NULL");
                if let Some(by) = change.one(&sql, &[value], |row| row.int(0))? {
                    return Err(blocked(change, self.undoing, by, &line.called)?);
                }
            }
            self.restored.entities += 1;
        }
        self.bring(change, &ENTITIES, "key, name, type", "key, name, type")
    }

    /// Brings back what the change ended in a table, all in one go. It was seen before that nothing is in the way.
    fn bring(&self, change: &mut Change<'_>, table: &Table, columns: &str, values: &str) -> Result<()> {
        let name = table.name;
        let sql = format!(
            "INSERT INTO {name} (tenant, {columns}, since, made, origin)
             SELECT tenant, {values}, ?2, ?3, COALESCE(origin, id) FROM {name} r
             WHERE tenant = ?1 AND gone = ?4 AND made <> gone ORDER BY id"
        );
        let values = [Value::Int(change.now), Value::Int(change.id), Value::Int(self.undoing)];
        change.run(&sql, &values).map(drop)
    }

    fn bring_observations(&mut self, change: &mut Change<'_>) -> Result<()> {
        for line in self.rows(change, &OBSERVATIONS, "gone")? {
            let row = change.one(
                "SELECT entity, digest FROM observations WHERE tenant = ?1 AND id = ?2",
                &[Value::Int(line.id)],
                |row| Ok((row.int(0)?, row.int(1)?)),
            )?;
            let Some((key, digest)) = row else { continue };
            if let Some(by) = entities::known_since(change, key, digest, &line.called)? {
                return Err(blocked(change, self.undoing, by, &line.called)?);
            }
            let page = pages::page_for(change, key, &line.called)?;
            // Each has a page of its own, so they do not come in one go.
            change.run(
                "INSERT INTO observations (tenant, entity, page, content, digest, since, made, origin)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
                &[
                    Value::Int(key),
                    Value::Int(page),
                    Value::Text((&*line.called).into()),
                    Value::Int(digest),
                    Value::Int(change.now),
                    Value::Int(change.id),
                    Value::Int(line.root),
                ],
            )?;
            self.pages.entry(key).or_default().insert(page);
            self.restored.observations += 1;
        }
        Ok(())
    }

    fn bring_properties(&mut self, change: &mut Change<'_>) -> Result<()> {
        for line in self.rows(change, &PROPERTIES, "gone")? {
            let found = change.one(
                "SELECT o.entity, n.made FROM properties o
                 LEFT JOIN properties n
                     ON n.tenant = ?1 AND n.entity = o.entity AND n.name = o.name AND n.gone IS NULL
                 WHERE o.tenant = ?1 AND o.id = ?2",
                &[Value::Int(line.id)],
                |row| Ok((row.int(0)?, row.maybe_int(1)?)),
            )?;
            match found {
                Some((_, Some(by))) => return Err(blocked(change, self.undoing, by, &line.called)?),
                Some((key, None)) => drop(self.described.insert(key)),
                None => {}
            }
            self.restored.properties += 1;
        }
        self.bring(change, &PROPERTIES, "entity, name, value", "entity, name, value")
    }

    fn bring_relations(&mut self, change: &mut Change<'_>) -> Result<()> {
        let sql = format!("SELECT {} FROM relations WHERE tenant = ?1 AND id = ?2", relations::COLUMNS);
        for line in self.rows(change, &RELATIONS, "gone")? {
            let Some(old) = change.one(&sql, &[Value::Int(line.id)], relations::read)? else { continue };
            let relation = old.relation;
            let known = relations::find(change, &relation.from, &relation.to, &relation.relation_type)?;
            if let Some(known) = known {
                return Err(blocked(change, self.undoing, known.made, &line.called)?);
            }
            for end in [&relation.from, &relation.to] {
                self.still_there(change, end)?;
            }
            self.restored.relations += 1;
        }
        self.bring(
            change,
            &RELATIONS,
            "source, target, type, strength, confidence, metadata, version, said",
            "source, target, type, strength, confidence, metadata,
             (SELECT max(version) + 1 FROM relations v WHERE v.tenant = r.tenant
                 AND v.source = r.source AND v.target = r.target AND v.type = r.type),
             COALESCE(said, since)",
        )
    }

    /// An end of a relation that comes back may not have gone since, if it was there before.
    fn still_there(&self, change: &mut Change<'_>, name: &str) -> Result<()> {
        if entities::find(change, name)?.is_some() {
            return Ok(());
        }
        let bore = change.all(
            "SELECT key, made, gone FROM entities WHERE tenant = ?1 AND name = ?2 ORDER BY id",
            &[Value::Text(name.into())],
            |row| Ok((row.int(0)?, row.int(1)?, row.maybe_int(2)?)),
        )?;
        let before = |(_, made, gone): &&(i64, i64, Option<i64>)| {
            *made < self.undoing && gone.is_none_or(|gone| gone >= self.undoing)
        };
        let Some((key, ..)) = bore.iter().find(before) else { return Ok(()) };
        let gone = change.one(
            "SELECT max(gone) FROM entities WHERE tenant = ?1 AND key = ?2",
            &[Value::Int(*key)],
            |row| row.maybe_int(0),
        )?;
        match gone.flatten() {
            Some(by) => Err(blocked(change, self.undoing, by, name)?),
            None => Ok(()),
        }
    }

    /// Sees to it that nothing hangs in the air, and that everything can be found.
    fn settle(&mut self, change: &mut Change<'_>) -> Result<()> {
        let keys: BTreeSet<i64> =
            self.recast.iter().chain(self.pages.keys()).chain(&self.described).copied().collect();
        for key in keys {
            let Some(entity) = entities::keyed(change, key)? else {
                if let Some((mut by, content)) = left_behind(change, key)? {
                    if by == change.id {
                        // It has come back, but its entity is gone.
                        let gone = change.one(
                            "SELECT max(gone) FROM entities WHERE tenant = ?1 AND key = ?2",
                            &[Value::Int(key)],
                            |row| row.maybe_int(0),
                        )?;
                        by = gone.flatten().unwrap_or(by);
                    }
                    return Err(blocked(change, self.undoing, by, &content)?);
                }
                pages::touch_all(change, key)?;
                continue;
            };
            if self.recast.contains(&key) {
                entities::reindex(change, &entity)?;
                continue;
            }
            if self.described.contains(&key) {
                pages::touch_first(change, key)?;
            }
            for page in self.pages.get(&key).into_iter().flatten() {
                touch(change, *page)?;
            }
        }
        self.nothing_dangles(change)
    }

    /// A relation that was made since may not lose an end.
    fn nothing_dangles(&self, change: &mut Change<'_>) -> Result<()> {
        for name in &self.ended {
            if entities::find(change, name)?.is_some() {
                continue;
            }
            for end in ["source", "target"] {
                let sql = format!(
                    "SELECT r.made FROM relations r
                     WHERE r.tenant = ?1 AND r.{end} = ?2 AND r.gone IS NULL AND r.made <> ?4 AND ?3 <
                         (SELECT o.made FROM relations o
                          WHERE o.tenant = ?1 AND o.id = COALESCE(r.origin, r.id))
                     ORDER BY r.id"
                );
                let values =
                    [Value::Text(name.as_str().into()), Value::Int(self.undoing), Value::Int(change.id)];
                if let Some(by) = change.one(&sql, &values, |row| row.int(0))? {
                    return Err(blocked(change, self.undoing, by, name)?);
                }
            }
        }
        Ok(())
    }
}

/// Something that still holds of an entity that is gone: the change that made it, and what it says.
fn left_behind(change: &mut Change<'_>, key: i64) -> Result<Option<(i64, String)>> {
    for (table, called) in [("observations", "content"), ("properties", "name")] {
        let sql = format!(
            "SELECT made, {called} FROM {table} WHERE tenant = ?1 AND entity = ?2 AND gone IS NULL ORDER BY id"
        );
        let left = change.one(&sql, &[Value::Int(key)], |row| Ok((row.int(0)?, row.text(1)?)))?;
        if left.is_some() {
            return Ok(left);
        }
    }
    Ok(None)
}
