//! Relations: making, changing, forgetting.

use crate::store::{Change, Fault, Result, Row, Value, View};

use super::model::Relation;

/// The columns of [`read`].
pub(crate) const COLUMNS: &str =
    "source, target, type, strength, confidence, metadata, version, since, made, id";

/// A relation as it is kept.
#[derive(Debug, Clone)]
pub(crate) struct Kept {
    pub(crate) relation: Relation,
    pub(crate) version: i64,
    pub(crate) since: i64,
    pub(crate) made: i64,
    pub(crate) id: i64,
}

pub(crate) fn read(row: &dyn Row) -> Result<Kept> {
    let metadata = row.maybe_text(5)?.and_then(|text| serde_json::from_str(&text).ok());
    let relation = Relation {
        from: row.text(0)?,
        to: row.text(1)?,
        relation_type: row.text(2)?,
        strength: row.maybe_real(3)?,
        confidence: row.maybe_real(4)?,
        metadata,
    };
    Ok(Kept { relation, version: row.int(6)?, since: row.int(7)?, made: row.int(8)?, id: row.int(9)? })
}

/// The relation that is known between both, if it is.
pub(crate) fn find(view: &mut View<'_>, from: &str, to: &str, relation_type: &str) -> Result<Option<Kept>> {
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
            insert(change, &relation, 1)?;
            made.push(relation);
        }
    }
    Ok(made)
}

fn insert(change: &mut Change<'_>, relation: &Relation, version: i64) -> Result<()> {
    let metadata = relation.metadata.as_ref().map(|map| serde_json::Value::from(map.clone()).to_string());
    let number = |n: Option<f64>| n.map_or(Value::Null, Value::Real);
    let values = [
        Value::Text((&*relation.from).into()),
        Value::Text((&*relation.to).into()),
        Value::Text((&*relation.relation_type).into()),
        number(relation.strength),
        number(relation.confidence),
        metadata.map_or(Value::Null, |text| Value::Text(text.into())),
        Value::Int(version),
        Value::Int(change.now),
        Value::Int(change.id),
    ];
    change.run(
        "INSERT INTO relations
         (tenant, source, target, type, strength, confidence, metadata, version, since, made)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
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
    let relation = Relation {
        strength: new.strength.or(known.relation.strength),
        confidence: new.confidence.or(known.relation.confidence),
        metadata: (!metadata.is_empty()).then_some(metadata),
        ..new
    };
    close(change, known.id)?;
    insert(change, &relation, known.version + 1)?;
    Ok(relation)
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

/// The relations of an entity, oldest first.
pub(crate) fn of(
    view: &mut View<'_>,
    name: &str,
    direction: Direction,
    relation_type: Option<&str>,
) -> Result<Vec<Relation>> {
    let ends: &[&str] = match direction {
        Direction::Out => &["source"],
        Direction::In => &["target"],
        Direction::Both => &["source", "target"],
    };
    let mut found = Vec::new();
    for end in ends {
        let sql =
            format!("SELECT {COLUMNS} FROM relations WHERE tenant = ?1 AND {end} = ?2 AND gone IS NULL");
        found.extend(view.all(&sql, &[Value::Text(name.into())], read)?);
    }
    found.sort_by_key(|kept| kept.id);
    found.dedup_by_key(|kept| kept.id);
    let wanted = |kept: &Kept| relation_type.is_none_or(|wanted| kept.relation.relation_type == wanted);
    Ok(found.into_iter().filter(wanted).map(|kept| kept.relation).collect())
}
