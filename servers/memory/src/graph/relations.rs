//! Relations: making, changing, forgetting.

use super::model::{self, Relation};
use crate::error::{Fault, Result};
use crate::store::{Change, Row, Value, View};

/// The columns of [`read`].
pub(crate) const COLUMNS: &str =
    "source, target, type, strength, confidence, metadata, version, since, made, id, COALESCE(said, since)";
/// How many columns those are.
pub(crate) const WIDTH: usize = 11;

/// A relation as it is kept.
#[derive(Debug, Clone)]
pub(crate) struct RelationRow {
    pub(crate) relation: Relation,
    pub(crate) version: i64,
    pub(crate) since: i64,
    pub(crate) made: i64,
    pub(crate) id: i64,
    /// When it was last stated how sure it is.
    pub(crate) said: i64,
}

pub(crate) fn read(row: &dyn Row) -> Result<RelationRow> {
    let metadata = row.maybe_text(5)?.and_then(|text| serde_json::from_str(&text).ok());
    let relation = Relation {
        from: row.text(0)?,
        to: row.text(1)?,
        relation_type: row.text(2)?,
        strength: row.maybe_real(3)?,
        confidence: row.maybe_real(4)?,
        metadata,
    };
    Ok(RelationRow {
        relation,
        version: row.int(6)?,
        since: row.int(7)?,
        made: row.int(8)?,
        id: row.int(9)?,
        said: row.int(10)?,
    })
}

/// The relation that is known between both, if it is.
pub(crate) fn find(
    view: &mut View<'_>,
    from: &str,
    to: &str,
    relation_type: &str,
) -> Result<Option<RelationRow>> {
    view.one(
        &format!(
            "SELECT {COLUMNS} FROM relations
             WHERE tenant = ?1 AND source = ?2 AND target = ?3 AND type = ?4 AND gone IS NULL"
        ),
        &[Value::Text(from.into()), Value::Text(to.into()), Value::Text(relation_type.into())],
        read,
    )
}

/// Makes those relations that are not known yet, and returns them.
pub(crate) fn create(change: &mut Change<'_>, relations: Vec<Relation>) -> Result<Vec<Relation>> {
    let mut made = Vec::new();
    for relation in relations {
        if find(change, &relation.from, &relation.to, &relation.relation_type)?.is_none() {
            insert(change, &relation, 1, None)?;
            made.push(relation);
        }
    }
    Ok(made)
}

/// What a relation says: its source, target, type, strength, confidence and metadata.
pub(crate) fn values(relation: &Relation) -> [Value<'_>; 6] {
    let metadata = relation.metadata.as_ref().map(|map| serde_json::Value::from(map.clone()).to_string());
    let number = |n: Option<f64>| n.map_or(Value::Null, Value::Real);
    [
        Value::Text((&*relation.from).into()),
        Value::Text((&*relation.to).into()),
        Value::Text((&*relation.relation_type).into()),
        number(relation.strength),
        number(relation.confidence),
        metadata.map_or(Value::Null, |text| Value::Text(text.into())),
    ]
}

fn insert(change: &mut Change<'_>, relation: &Relation, version: i64, said: Option<i64>) -> Result<()> {
    let mut values = values(relation).to_vec();
    values.extend([Value::Int(version), Value::Int(change.now), Value::Int(change.id)]);
    values.push(said.map_or(Value::Null, Value::Int));
    change.run(
        "INSERT INTO relations
         (tenant, source, target, type, strength, confidence, metadata, version, since, made, said)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
        &values,
    )?;
    Ok(())
}

/// Changes what is said about a relation: what the new one does not say stays.
pub(crate) fn update(change: &mut Change<'_>, new: Relation) -> Result<Relation> {
    let Some(known) = find(change, &new.from, &new.to, &new.relation_type)? else {
        return Err(Fault::no_relation(&new.from, &new.relation_type, &new.to));
    };
    let mut metadata = known.relation.metadata.unwrap_or_default();
    metadata.extend(new.metadata.unwrap_or_default());
    model::metadata("metadata, with what it has already", Some(&metadata))?;
    let relation = Relation {
        strength: new.strength.or(known.relation.strength),
        confidence: new.confidence.or(known.relation.confidence),
        metadata: (!metadata.is_empty()).then_some(metadata),
        ..new
    };
    close(change, known.id)?;
    insert(change, &relation, known.version + 1, None)?;
    Ok(relation)
}

/// What became of relations whose end is called otherwise now.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Moved {
    /// How many have the new name.
    pub(crate) moved: usize,
    /// How many would have said again what is known, or connected the entity that two have become with itself.
    pub(crate) dropped: usize,
}

/// Gives the relations from and to `old` another end. `merging` drops those between the two.
pub(crate) fn follow(change: &mut Change<'_>, old: &str, new: &str, merging: bool) -> Result<Moved> {
    let mut counts = Moved::default();
    for kept in all_of(change, old)? {
        close(change, kept.id)?;
        let between = merging && (kept.relation.from == new || kept.relation.to == new);
        let called = |end: String| if end == old { new.to_owned() } else { end };
        let relation =
            Relation { from: called(kept.relation.from), to: called(kept.relation.to), ..kept.relation };
        if between || find(change, &relation.from, &relation.to, &relation.relation_type)?.is_some() {
            counts.dropped += 1;
            continue;
        }
        insert(change, &relation, kept.version + 1, Some(kept.said))?;
        counts.moved += 1;
    }
    Ok(counts)
}

/// Forgets relations. Returns how many were known.
pub(crate) fn delete(change: &mut Change<'_>, relations: &[Relation]) -> Result<usize> {
    let mut count = 0;
    for relation in relations {
        if let Some(known) = find(change, &relation.from, &relation.to, &relation.relation_type)? {
            count += close(change, known.id)?;
        }
    }
    Ok(count)
}

fn close(change: &mut Change<'_>, id: i64) -> Result<usize> {
    let values = [Value::Int(change.now), Value::Int(change.id), Value::Int(id)];
    change.run(
        "UPDATE relations SET until = ?2, gone = ?3 WHERE tenant = ?1 AND id = ?4 AND gone IS NULL",
        &values,
    )
}

/// Which end of a relation an entity is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Those that start from it.
    Out,
    /// Those that lead to it.
    In,
    /// Both.
    #[default]
    Both,
}

impl Direction {
    /// The columns that have the entity's name.
    fn ends(self) -> &'static [&'static str] {
        match self {
            Direction::Out => &["source"],
            Direction::In => &["target"],
            Direction::Both => &["source", "target"],
        }
    }

    /// The same way, seen from the other end.
    pub(crate) fn back(self) -> Direction {
        match self {
            Direction::Out => Direction::In,
            Direction::In => Direction::Out,
            Direction::Both => Direction::Both,
        }
    }
}

/// At most `room` relations of an entity, of these types or of any, and whether there are more.
pub(crate) fn some_of(
    view: &mut View<'_>,
    name: &str,
    direction: Direction,
    types: &[String],
    room: usize,
) -> Result<(Vec<RelationRow>, bool)> {
    let mut found: Vec<RelationRow> = Vec::new();
    for end in direction.ends() {
        // In the order of the index that finds them.
        let order = if *end == "source" { "target, type" } else { "id" };
        let places: Vec<String> = (0..types.len()).map(|at| format!("?{}", at + 4)).collect();
        let typed = match types.is_empty() {
            true => String::new(),
            false => format!("AND type IN ({})", places.join(", ")),
        };
        let sql = format!(
            "SELECT {COLUMNS} FROM relations WHERE tenant = ?1 AND {end} = ?2 AND gone IS NULL {typed}
             ORDER BY {order} LIMIT ?3"
        );
        let left = (room + 1).saturating_sub(found.len());
        let mut values = vec![Value::Text(name.into()), Value::Int(left as i64)];
        values.extend(types.iter().map(|one| Value::Text((&**one).into())));
        for kept in view.all(&sql, &values, read)? {
            // One from the entity to itself is found from both ends.
            if direction != Direction::Both || *end == "source" || kept.relation.from != name {
                found.push(kept);
            }
        }
    }
    let more = found.len() > room;
    found.truncate(room);
    Ok((found, more))
}

/// All relations of an entity, oldest first.
fn all_of(view: &mut View<'_>, name: &str) -> Result<Vec<RelationRow>> {
    let mut found = Vec::new();
    for end in Direction::Both.ends() {
        let sql =
            format!("SELECT {COLUMNS} FROM relations WHERE tenant = ?1 AND {end} = ?2 AND gone IS NULL");
        found.extend(view.all(&sql, &[Value::Text(name.into())], read)?);
    }
    found.sort_by_key(|kept| kept.id);
    found.dedup_by_key(|kept| kept.id);
    Ok(found)
}
