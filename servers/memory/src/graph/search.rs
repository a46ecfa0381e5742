//! Finding entities by what is said about them.
//!
//! `server-memory` finds every entity whose name, type or observations hold the query, be it a part of a word, because
//! it looks at everything. So does this, as long as that takes no longer than a blink: in memories of up to 20,000
//! observations. Larger ones are searched by whole words, through the index, and give the twenty entities that fit best.
//! An index of all parts of words would make the large ones behave as the small ones do, but it would be larger than
//! everything else, and most of the time of each change would go into it.
//!
//! Where `server-memory` finds nothing, there may still be something that is near: by other words, nearly the same words,
//! or by meaning. That is found instead, and it is said so.

use std::collections::BTreeMap;

use super::entities::{self, EntityRow};
use super::model::Graph;
use super::read::graph_of;
use super::{pages, properties};
use crate::error::Result;
use crate::pages::ENTITY;
use crate::search::{self, Query, SearchEngine, page_count, with_all_words};
use crate::store::{Memory, View};

/// How many entities are found by their words, at most.
const BY_WORDS: usize = 20;
/// Up to so many observations, each of them is looked at.
const SMALL: i64 = 20_000;

/// How many pages are looked at for what is near, and how many entities are told.
const LOOKED_AT: usize = 30;
const NEAR: usize = 20;
/// How near in meaning that must be, at least, and compared with what is nearest.
const MEANT: f64 = 0.3;
const AS_NEAR: f64 = 0.75;
/// How much of the words there must be, compared with what has most of them.
const AS_MUCH: f64 = 0.5;
/// Of a longer question only so many characters are compared.
const LONGEST: usize = 10_000;

/// What was found.
pub(crate) struct GraphMatches {
    pub(crate) graph: Graph,
    /// What there is to say about it.
    pub(crate) note: Option<&'static str>,
}

/// What `server-memory` finds and what has all words of the query; if there is nothing of that, what is near.
pub(crate) async fn find(engine: &SearchEngine, memory: &Memory, query: &str) -> Result<GraphMatches> {
    let text = query.to_owned();
    let graph = memory.view(move |view| nodes(view, &text)).await?;
    if !graph.entities.is_empty() || query.trim().is_empty() {
        return Ok(GraphMatches { graph, note: None });
    }
    let query: String = query.trim().chars().take(LONGEST).collect();
    let found = engine.find(memory, &query, &[ENTITY], LOOKED_AT).await?;
    let graph = memory.view(move |view| near(view, &Query::new(&query), found)).await?;
    let note = match graph.entities.is_empty() {
        true => None,
        false if engine.semantic().is_some() => {
            Some("No entity contains all of these words. These are the closest by words or meaning")
        }
        false => Some("No entity contains all of these words. These contain some of them, or similar ones"),
    };
    Ok(GraphMatches { graph, note })
}

/// The entities of the pages that are near: meaning and letters are always near something, but that is not always much.
fn near(view: &mut View<'_>, question: &Query, found: search::SearchResult) -> Result<Graph> {
    let most = |all: &mut dyn Iterator<Item = f64>| all.fold(0.0, f64::max);
    let meant = MEANT.max(AS_NEAR * most(&mut found.cosines.values().copied()));
    let mut hits = Vec::new();
    for hit in found.hits {
        if let Some(text) = pages::text(view, hit.page)? {
            hits.push((hit, question.share(&text.joined())));
        }
    }
    let enough = AS_MUCH * most(&mut hits.iter().map(|(_, share)| *share));
    let mut entities: Vec<EntityRow> = Vec::new();
    for (hit, share) in hits {
        let has_words = share > 0.0 && share >= enough;
        let is_meant = found.cosines.get(&hit.page).is_some_and(|cosine| *cosine >= meant);
        if entities.len() < NEAR
            && (has_words || is_meant)
            && !entities.iter().any(|kept| kept.key == hit.owner)
        {
            entities.extend(entities::keyed(view, hit.owner)?);
        }
    }
    graph_of(view, entities)
}

/// What `server-memory` finds, and after that what else has all words of the query.
fn nodes(view: &mut View<'_>, query: &str) -> Result<Graph> {
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

/// Every entity whose name, type, an observation or a property holds the query, in capitals or not: oldest first.
fn substring(view: &mut View<'_>, query: &str) -> Result<Vec<EntityRow>> {
    let wanted = query.to_lowercase();
    let holds = |text: &str| text.to_lowercase().contains(&wanted);
    let mut found = BTreeMap::new();
    let mut others = BTreeMap::new();
    view.each(
        "SELECT key, name, type FROM entities WHERE tenant = ?1 AND gone IS NULL ORDER BY id",
        &[],
        |row| {
            let kept = EntityRow::read(row)?;
            match holds(&kept.name) || holds(&kept.entity_type) {
                true => found.insert(kept.key, kept),
                false => others.insert(kept.key, kept),
            };
            Ok(())
        },
    )?;
    let mut look = |key: i64, text: &str| {
        if others.contains_key(&key)
            && holds(text)
            && let Some(kept) = others.remove(&key)
        {
            found.insert(key, kept);
        }
    };
    view.each("SELECT entity, content FROM observations WHERE tenant = ?1 AND gone IS NULL", &[], |row| {
        look(row.int(0)?, &row.text(1)?);
        Ok(())
    })?;
    view.each("SELECT entity, name, value FROM properties WHERE tenant = ?1 AND gone IS NULL", &[], |row| {
        look(row.int(0)?, &properties::line(&row.text(1)?, &properties::value(row, 2)?));
        Ok(())
    })?;
    Ok(found.into_values().collect())
}

/// The entities that have all words of the query, best first.
fn by_words(view: &mut View<'_>, query: &str) -> Result<Vec<i64>> {
    let mut keys = Vec::new();
    for hit in with_all_words(view, query, &[ENTITY], BY_WORDS)? {
        if !keys.contains(&hit.owner) {
            keys.push(hit.owner);
        }
    }
    Ok(keys)
}

/// Whether every observation can be looked at for each search.
fn is_small(view: &mut View<'_>) -> Result<bool> {
    // Counting takes a moment, and with so many pages there is no need.
    if page_count(view, ENTITY)? > SMALL {
        return Ok(false);
    }
    let sql = format!(
        "SELECT count(*) FROM (SELECT 1 FROM observations WHERE tenant = ?1 LIMIT {}) AS counted",
        SMALL + 1
    );
    let count = view.one(&sql, &[], |row| row.int(0))?;
    Ok(count.unwrap_or_default() <= SMALL)
}
