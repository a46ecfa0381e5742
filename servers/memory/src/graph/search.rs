//! Finding entities by what is said about them.
//!
//! `server-memory` finds every entity whose name, type or observations hold the query, be it a part of a word, because
//! it looks at everything. So does this, as long as that takes no longer than a blink: in memories of up to 20,000
//! observations. Larger ones are searched by whole words, through the index, and give the twenty entities that fit best.
//! An index of all parts of words would make the large ones behave as the small ones do, but it would be larger than
//! everything else, and most of the time of each change would go into it.

use std::collections::BTreeMap;

use crate::search::{page_count, with_all_words};
use crate::store::{Result, View};

use super::entities::{self, Kept};
use super::model::Graph;
use super::pages;
use super::read::graph_of;

/// How many entities are found by their words, at most.
const BY_WORDS: usize = 20;
/// Up to so many observations, each of them is looked at.
const SMALL: i64 = 20_000;

/// What `server-memory` finds, and after that what else has all words of the query.
pub(crate) fn nodes(view: &mut View<'_>, query: &str) -> Result<Graph> {
    let mut found = match is_small(view)? {
        true => substring(view, query)?,
        false => Vec::new(),
    };
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
    let mut keys = Vec::new();
    for hit in with_all_words(view, query, &[pages::ENTITY], BY_WORDS)? {
        if !keys.contains(&hit.owner) {
            keys.push(hit.owner);
        }
    }
    Ok(keys)
}

/// Whether every observation can be looked at for each search.
fn is_small(view: &mut View<'_>) -> Result<bool> {
    // Counting takes a moment, and with so many pages there is no need.
    if page_count(view, pages::ENTITY)? > SMALL {
        return Ok(false);
    }
    let sql = format!(
        "SELECT count(*) FROM (SELECT 1 FROM observations WHERE tenant = ?1 LIMIT {}) AS counted",
        SMALL + 1
    );
    let count = view.one(&sql, &[], |row| row.int(0))?;
    Ok(count.unwrap_or_default() <= SMALL)
}
