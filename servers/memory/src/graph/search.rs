//! Finding entities by what is said about them.

use std::collections::BTreeMap;

use crate::store::{Result, Value, View};

use super::entities::{self, Kept};
use super::model::Graph;
use super::pages;
use super::read::graph_of;

/// How many entities are found by their words, at most.
const BY_WORDS: usize = 50;

/// What `server-memory` finds, and after that what else has all words of the query.
pub(crate) fn nodes(view: &mut View<'_>, query: &str) -> Result<Graph> {
    let mut found = substring(view, query)?;
    for key in by_words(view, query)? {
        if !found.iter().any(|kept| kept.key == key)
            && let Some(kept) = entities::keyed(view, key)?
        {
            found.push(kept);
        }
    }
    graph_of(view, found)
}

/// Every entity whose name, type or an observation holds the query, in capitals or not: oldest first.
fn substring(view: &mut View<'_>, query: &str) -> Result<Vec<Kept>> {
    let wanted = query.to_lowercase();
    let holds = |text: &str| text.to_lowercase().contains(&wanted);
    let mut found = BTreeMap::new();
    let mut others = BTreeMap::new();
    view.each(
        "SELECT key, name, type FROM entities WHERE tenant = ?1 AND gone IS NULL ORDER BY id",
        &[],
        |row| {
            let kept = Kept::read(row)?;
            match holds(&kept.name) || holds(&kept.entity_type) {
                true => found.insert(kept.key, kept),
                false => others.insert(kept.key, kept),
            };
            Ok(())
        },
    )?;
    view.each("SELECT entity, content FROM observations WHERE tenant = ?1 AND gone IS NULL", &[], |row| {
        let key = row.int(0)?;
        if others.contains_key(&key)
            && holds(&row.text(1)?)
            && let Some(kept) = others.remove(&key)
        {
            found.insert(key, kept);
        }
        Ok(())
    })?;
    Ok(found.into_values().collect())
}

/// The entities that have all words of the query, best first.
fn by_words(view: &mut View<'_>, query: &str) -> Result<Vec<i64>> {
    // Each word in quotes is a word, whatever the index would take it for.
    let words: Vec<String> = query
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(|word| format!("\"{word}\""))
        .collect();
    if words.is_empty() {
        return Ok(Vec::new());
    }
    let table = view.own_table("words");
    let sql = format!(
        "SELECT p.owner FROM {table} JOIN pages p ON p.id = {table}.rowid AND p.kind = ?2
         WHERE {table} MATCH ?1 ORDER BY {table}.rank LIMIT {BY_WORDS}"
    );
    let mut keys = Vec::new();
    view.each_of_own(&sql, &[Value::Text(words.join(" ").into()), Value::Int(pages::ENTITY)], |row| {
        let key = row.int(0)?;
        if !keys.contains(&key) {
            keys.push(key);
        }
        Ok(())
    })?;
    Ok(keys)
}
