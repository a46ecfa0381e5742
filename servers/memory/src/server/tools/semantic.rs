//! Entities by meaning and by words, each with how near it is.

use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};

use crate::error::Result;
use crate::graph::{entities, ids, pages};
use crate::pages::{ENTITY, Hit};
use crate::search::{self, NameMatches, Query, snippet};
use crate::server::state::ServerState;
use crate::store::{Memory, View};

/// How near a result must be if nobody says.
const NEAR: f64 = 0.6;
/// How many pages are looked at if only some types are wanted, or for each result.
const WIDE: usize = 1_000;

/// What to look for.
pub(super) struct SemanticQuery {
    pub(super) query: String,
    pub(super) limit: usize,
    pub(super) min_similarity: Option<f64>,
    pub(super) types: Option<Vec<String>>,
    pub(super) hybrid: bool,
    pub(super) weight: f64,
}

/// How it was looked for.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum SearchMethod {
    Meaning,
    Both,
    Words,
}

impl SearchMethod {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            SearchMethod::Meaning => "semantic",
            SearchMethod::Both => "hybrid",
            SearchMethod::Words => "lexical",
        }
    }
}

/// What was found.
pub(super) struct SemanticMatches {
    pub(super) results: Vec<Value>,
    pub(super) by: SearchMethod,
    pub(super) note: Option<String>,
}

/// A page with what speaks for it.
struct Candidate {
    hit: Hit,
    /// The cosine, if meaning was compared.
    near: Option<f64>,
}

pub(super) async fn search(
    state: &ServerState,
    memory: &Memory,
    wanted: SemanticQuery,
) -> Result<SemanticMatches> {
    let kinds = [ENTITY];
    // Several pages may be of one entity, or of one that is of another type.
    let wide = if wanted.types.is_some() { WIDE } else { (wanted.limit * 5).max(50) };
    let compared = match state.search.semantic() {
        Some(semantic) => semantic.nearest(memory, &wanted.query, &kinds, wide).await.map(Some),
        None => Ok(None),
    };
    let (near, note) = match compared {
        Ok(Some(near)) => (Some(near), None),
        Ok(None) => (None, Some("There is no embedding model: this was found by words".to_owned())),
        Err(fault) if fault.code.is_outside() => (None, Some(format!("{fault}. This was found by words"))),
        Err(fault) => return Err(fault),
    };
    let Some(near) = near else {
        let hits = state.search.find(memory, &wanted.query, &kinds, wide).await?.hits;
        let candidates = hits.into_iter().map(|hit| Candidate { near: None, hit }).collect();
        return finish(memory, wanted, candidates, SearchMethod::Words, note).await;
    };
    let mut cosines: HashMap<i64, f64> = near.iter().map(|hit| (hit.page, hit.score)).collect();
    let by = if wanted.hybrid { SearchMethod::Both } else { SearchMethod::Meaning };
    let (names, words) = match by {
        SearchMethod::Both => {
            let query = wanted.query.clone();
            let worded = memory.view(move |view| {
                let names = NameMatches::find(view, &query, &kinds)?;
                let exact = search::by_words(view, &query, &names, &kinds, wide)?;
                // What is nearly the words counts if nothing has them.
                let words = if exact.is_empty() { search::fuzzy(view, &query, &kinds, wide)? } else { exact };
                Ok((Some(names), words))
            });
            worded.await?
        }
        _ => (None, Vec::new()),
    };
    let found = words.iter().map(|hit| hit.page).chain(names.iter().flat_map(NameMatches::pages));
    let others = found.filter(|page| !cosines.contains_key(page)).collect();
    if let Some(semantic) = state.search.semantic() {
        cosines.extend(semantic.similar(memory, &wanted.query, others).await?);
    }
    let mut hits = weighed(near, words, &cosines, &wanted);
    if let Some(names) = names {
        hits = names.ahead_of(hits);
    }
    let candidate = |hit: Hit| Candidate { near: cosines.get(&hit.page).copied(), hit };
    finish(memory, wanted, hits.into_iter().map(candidate).collect(), by, note).await
}

/// All that is near enough or has the words, best first.
fn weighed(near: Vec<Hit>, words: Vec<Hit>, cosines: &HashMap<i64, f64>, wanted: &SemanticQuery) -> Vec<Hit> {
    let least = wanted.min_similarity.unwrap_or(NEAR);
    let weight = if wanted.hybrid { wanted.weight } else { 1.0 };
    let top = words.first().map_or(1.0, |hit| hit.score).max(f64::MIN_POSITIVE);
    let mut all: Vec<Hit> = Vec::new();
    for hit in words {
        let cosine = cosines.get(&hit.page).copied().unwrap_or_default();
        let score = weight * cosine + (1.0 - weight) * (hit.score / top).clamp(0.0, 1.0);
        all.push(Hit { score, ..hit });
    }
    let known: HashSet<i64> = all.iter().map(|hit| hit.page).collect();
    for hit in near.into_iter().filter(|hit| hit.score >= least && !known.contains(&hit.page)) {
        all.push(Hit { score: weight * hit.score, ..hit });
    }
    all.sort_by(|a, b| b.score.total_cmp(&a.score));
    all
}

/// The entities of these pages, each once.
async fn finish(
    memory: &Memory,
    wanted: SemanticQuery,
    candidates: Vec<Candidate>,
    by: SearchMethod,
    note: Option<String>,
) -> Result<SemanticMatches> {
    let results = memory.view(move |view| {
        let question = Query::new(&wanted.query);
        let (mut results, mut seen) = (Vec::new(), HashSet::new());
        for candidate in candidates {
            if results.len() == wanted.limit {
                break;
            }
            if seen.contains(&candidate.hit.owner) {
                continue;
            }
            if let Some(result) = result(view, &candidate, &question, &wanted)? {
                seen.insert(candidate.hit.owner);
                results.push(result);
            }
        }
        Ok(results)
    });
    Ok(SemanticMatches { results: results.await?, by, note })
}

fn result(
    view: &mut View<'_>,
    candidate: &Candidate,
    question: &Query,
    wanted: &SemanticQuery,
) -> Result<Option<Value>> {
    let Some(kept) = entities::keyed(view, candidate.hit.owner)? else { return Ok(None) };
    if wanted.types.as_ref().is_some_and(|types| !types.contains(&kept.entity_type)) {
        return Ok(None);
    }
    let Some(text) = pages::text(view, candidate.hit.page)? else { return Ok(None) };
    // Without a cosine: how much of the words of the question is there.
    let similarity = candidate.near.unwrap_or_else(|| question.share(&text.joined()));
    let by_words_alone =
        candidate.near.is_none() && wanted.min_similarity.is_some_and(|least| similarity < least);
    if by_words_alone {
        return Ok(None);
    }
    let id = ids::of(view, kept.key)?;
    let entity = entities::complete(view, kept)?;
    let similarity = (similarity.clamp(-1.0, 1.0) * 10_000.0).round() / 10_000.0;
    let mut result = json!({"id": id, "entity": entity, "similarity": similarity});
    if let Some(snippet) = best_line(question, &text.body) {
        result["snippet"] = json!(snippet);
    }
    Ok(Some(result))
}

/// The line of a page that has most of the question, or the part of it that does.
fn best_line(question: &Query, body: &str) -> Option<String> {
    let mut best: Option<(f64, &str)> = None;
    for line in body.lines() {
        let part = question.share(line);
        if best.is_none_or(|(most, _)| part > most) {
            best = Some((part, line));
        }
    }
    best.map(|(_, line)| snippet(line, question))
}
