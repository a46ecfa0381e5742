//! The graph with its history, row by row: out of the tables, and back into them.

use serde::{Deserialize, Serialize};

use super::history::{ArchiveLine, ArchiveWriter};
use super::numbers::{COLUMNS, RowKind, RowNumbers, VersionedRow, number};
use crate::error::{Fault, Result};
use crate::graph::{ids, model, properties, relations};
use crate::pages;
use crate::store::{self, Value, View};

/// Longest name of a tool or of whoever made a change.
const MAX_WORD: usize = 1_000;

/// A change, as it stands in a file.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Change {
    id: i64,
    at: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    who: Option<String>,
    what: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    undoes: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    undone: Option<i64>,
}

/// An entity from one name or type to the next.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EntityVersion {
    #[serde(flatten)]
    pub(crate) row: VersionedRow,
    /// The first row of the entity.
    key: i64,
    name: String,
    entity_type: String,
    /// The id of the entity, on its first row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    uid: Option<String>,
}

/// Something that is or was known of an entity.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Observation {
    #[serde(flatten)]
    pub(crate) row: VersionedRow,
    /// The key of the entity.
    entity: i64,
    content: String,
}

/// A property of an entity from one change to the next.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Property {
    #[serde(flatten)]
    pub(crate) row: VersionedRow,
    /// The key of the entity.
    entity: i64,
    name: String,
    value: serde_json::Value,
}

/// A relation from one change to the next.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RelationVersion {
    #[serde(flatten)]
    pub(crate) row: VersionedRow,
    #[serde(flatten)]
    relation: model::Relation,
    version: i64,
    /// When it was last stated how sure it is, if that is not when the row began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    said: Option<i64>,
}

/// Writes changes, entities, observations, properties and relations.
pub(crate) fn write(view: &mut View<'_>, to: &mut ArchiveWriter) -> Result<()> {
    let sql = "SELECT id, at, who, what, undoes, undone FROM changes WHERE tenant = ?1 ORDER BY id";
    view.each(sql, &[], |row| {
        to.line(&ArchiveLine::Change(Change {
            id: row.int(0)?,
            at: row.int(1)?,
            who: row.maybe_text(2)?,
            what: row.text(3)?,
            undoes: row.maybe_int(4)?,
            undone: row.maybe_int(5)?,
        }))
    })?;
    let all = |table: &str, more: &str| {
        format!("SELECT {COLUMNS}, origin, {more} FROM {table} WHERE tenant = ?1 ORDER BY id")
    };
    view.each(&all("entities", "key, name, type, uid"), &[], |row| {
        let (id, key) = (row.int(0)?, row.int(6)?);
        let uid = row.maybe_text(9)?.or_else(|| (id == key).then(|| ids::old(key)));
        to.line(&ArchiveLine::EntityVersion(EntityVersion {
            row: VersionedRow::read(row, Some(5))?,
            key,
            name: row.text(7)?,
            entity_type: row.text(8)?,
            uid,
        }))
    })?;
    view.each(&all("observations", "entity, content"), &[], |row| {
        to.line(&ArchiveLine::Observation(Observation {
            row: VersionedRow::read(row, Some(5))?,
            entity: row.int(6)?,
            content: row.text(7)?,
        }))
    })?;
    view.each(&all("properties", "entity, name, value"), &[], |row| {
        to.line(&ArchiveLine::Property(Property {
            row: VersionedRow::read(row, Some(5))?,
            entity: row.int(6)?,
            name: row.text(7)?,
            value: properties::value(row, 8)?,
        }))
    })?;
    let columns = "source, target, type, strength, confidence, metadata, version, said";
    view.each(&all("relations", columns), &[], |row| {
        let relation = model::Relation {
            from: row.text(6)?,
            to: row.text(7)?,
            relation_type: row.text(8)?,
            strength: row.maybe_real(9)?,
            confidence: row.maybe_real(10)?,
            metadata: row.maybe_text(11)?.and_then(|text| serde_json::from_str(&text).ok()),
        };
        let (version, said) = (row.int(12)?, row.maybe_int(13)?);
        to.line(&ArchiveLine::RelationVersion(RelationVersion {
            row: VersionedRow::read(row, Some(5))?,
            relation,
            version,
            said,
        }))
    })
}

impl Change {
    pub(crate) fn put(self, change: &mut store::Change<'_>, numbers: &mut RowNumbers) -> Result<()> {
        numbers.next_change(self.id)?;
        for (field, text) in [("what", Some(&self.what)), ("who", self.who.as_ref())] {
            if text.is_some_and(|text| text.chars().count() > MAX_WORD) {
                return Err(Fault::input(field, format!("must have at most {MAX_WORD} characters")));
            }
        }
        let who = self.who.map_or(Value::Null, |who| Value::Text(who.into()));
        let new = change.one(
            "INSERT INTO changes (tenant, at, who, what) VALUES (?1, ?2, ?3, ?4) RETURNING id",
            &[number("at", self.at)?, who, Value::Text(self.what.into())],
            |row| row.int(0),
        )?;
        numbers.add(RowKind::Change, self.id, new)?;
        if self.undoes.is_some() || self.undone.is_some() {
            numbers.undone.push((self.id, self.undoes, self.undone));
        }
        Ok(())
    }
}

/// Says of changes which they undo and by which they are undone, once all of them are there.
pub(crate) fn connect(change: &mut store::Change<'_>, numbers: &RowNumbers) -> Result<()> {
    for (id, undoes, undone) in &numbers.undone {
        let of = |field: &str, other: &Option<i64>| match other {
            Some(other) => numbers.new_number(RowKind::Change, field, *other).map(Value::Int),
            None => Ok(Value::Null),
        };
        let values = [
            of("undoes", undoes)?,
            of("undone", undone)?,
            Value::Int(numbers.new_number(RowKind::Change, "id", *id)?),
        ];
        change.run("UPDATE changes SET undoes = ?2, undone = ?3 WHERE tenant = ?1 AND id = ?4", &values)?;
    }
    Ok(())
}

impl EntityVersion {
    pub(crate) fn put(self, change: &mut store::Change<'_>, numbers: &mut RowNumbers) -> Result<()> {
        model::name("name", &self.name)?;
        model::name("entityType", &self.entity_type)?;
        numbers.require_unique(&self.row, || format!("the entity {:?}", self.name))?;
        numbers.require_unique(&self.row, || format!("the entity with the key {}", self.key))?;
        let known = match self.key == self.row.id {
            true => 0,
            false => numbers.new_number(RowKind::Entity, "key", self.key)?,
        };
        let uid = match (known, self.uid) {
            (0, None) => Value::Text(ids::new().into()),
            (0, Some(uid)) => {
                if uid.trim().is_empty()
                    || uid.chars().count() > ids::MAX_ID
                    || uid.chars().any(char::is_control)
                {
                    let reason = format!("must have 1 to {} characters on one line", ids::MAX_ID);
                    return Err(Fault::input("uid", reason));
                }
                numbers.unique(format!("the uid {uid:?}"))?;
                Value::Text(uid.into())
            }
            // It is on the first row.
            _ => Value::Null,
        };
        let [since, until, made, gone, origin] = numbers.span(&self.row, RowKind::Entity)?;
        let (name, entity_type) = (Value::Text(self.name.into()), Value::Text(self.entity_type.into()));
        let new = change.one(
            "INSERT INTO entities (tenant, key, name, type, since, until, made, gone, origin, uid)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) RETURNING id",
            &[Value::Int(known), name, entity_type, since, until, made, gone, origin, uid],
            |row| row.int(0),
        )?;
        let new = numbers.add(RowKind::Entity, self.row.id, new)?;
        if known == 0 {
            change.run("UPDATE entities SET key = id WHERE tenant = ?1 AND id = ?2", &[Value::Int(new)])?;
        }
        match self.row.is_live() {
            true => numbers.open_page(change, if known == 0 { new } else { known }),
            false => Ok(()),
        }
    }
}

impl Observation {
    pub(crate) fn put(self, change: &mut store::Change<'_>, numbers: &mut RowNumbers) -> Result<()> {
        model::observation("content", &self.content)?;
        numbers.require_unique(&self.row, || format!("{:?} of the entity {}", self.content, self.entity))?;
        let entity = numbers.new_number(RowKind::Entity, "entity", self.entity)?;
        let [since, until, made, gone, origin] = numbers.span(&self.row, RowKind::Observation)?;
        // What does not hold is on no page.
        let page = match self.row.is_live() {
            true => numbers.page_for(change, entity, &self.content)?,
            false => 0,
        };
        let digest = pages::digest(&self.content);
        let new = change.one(
            "INSERT INTO observations (tenant, entity, page, content, digest, since, until, made, gone, origin)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) RETURNING id",
            &[
                Value::Int(entity),
                Value::Int(page),
                Value::Text(self.content.into()),
                Value::Int(digest),
                since,
                until,
                made,
                gone,
                origin,
            ],
            |row| row.int(0),
        )?;
        numbers.add(RowKind::Observation, self.row.id, new).map(drop)
    }
}

impl Property {
    pub(crate) fn put(self, change: &mut store::Change<'_>, numbers: &mut RowNumbers) -> Result<()> {
        model::property("value", &self.name, &self.value)?;
        if self.value.is_null() {
            return Err(Fault::input("value", "must not be null"));
        }
        numbers.require_unique(&self.row, || {
            format!("the property {:?} of the entity {}", self.name, self.entity)
        })?;
        let entity = numbers.new_number(RowKind::Entity, "entity", self.entity)?;
        let [since, until, made, gone, origin] = numbers.span(&self.row, RowKind::Property)?;
        let (name, value) = (Value::Text(self.name.into()), Value::Text(self.value.to_string().into()));
        let new = change.one(
            "INSERT INTO properties (tenant, entity, name, value, since, until, made, gone, origin)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) RETURNING id",
            &[Value::Int(entity), name, value, since, until, made, gone, origin],
            |row| row.int(0),
        )?;
        numbers.add(RowKind::Property, self.row.id, new).map(drop)
    }
}

impl RelationVersion {
    pub(crate) fn put(self, change: &mut store::Change<'_>, numbers: &mut RowNumbers) -> Result<()> {
        let relation = self.relation;
        relation.check("relation")?;
        numbers.require_unique(&self.row, || {
            format!("the relation {:?} {:?} {:?}", relation.from, relation.relation_type, relation.to)
        })?;
        let span = numbers.span(&self.row, RowKind::Relation)?;
        let mut values = relations::values(&relation).to_vec();
        values.push(number("version", self.version)?);
        values.push(self.said.map_or(Ok(Value::Null), |said| number("said", said))?);
        values.extend(span);
        let new = change.one(
            "INSERT INTO relations (tenant, source, target, type, strength, confidence, metadata, version, said,
                 since, until, made, gone, origin)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14) RETURNING id",
            &values,
            |row| row.int(0),
        )?;
        numbers.add(RowKind::Relation, self.row.id, new).map(drop)
    }
}
