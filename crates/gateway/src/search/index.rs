//! [`Index`]: finds tools by what people and models say of them.
//!
//! Ranking is BM25 over fields: a word counts more in a name than in a description, more if few tools have it, and
//! less in a long text. A word that no tool has is taken for a misspelling. Above all that stand tools whose name is
//! the query, or begins with it. For somebody who does not see all tools, words that only others have are not there and count
//! for nothing: what is found does not say what is hidden. (How long a text usually is, is known from all.)

use std::collections::HashMap;
use std::sync::OnceLock;

use bytestring::ByteString;
use tidegate_protocol::Object;

use super::fields::{FIELDS, Field, read};
use super::fuzzy::Trigrams;
use super::words;
use crate::snapshot::Table;

/// How soon more of the same word says nothing more.
const SATURATION: f32 = 1.2;
/// What a word counts that only begins like the one asked for, and one that is spelled a little differently.
const BEGINNING: f32 = 0.5;
const MISSPELLED: f32 = 0.6;
/// Beginnings shorter than this say too little.
const LEAST_BEGINNING: usize = 2;
/// Most words that one beginning may stand for.
const MOST_BEGINNINGS: usize = 64;
/// Most words of a query that count.
const MOST_WORDS: usize = 24;

/// The words of all tools on offer.
#[derive(Debug)]
pub(crate) struct Index {
    tools: Vec<Tool>,
    /// All words, sorted, and what they lead to.
    vocabulary: Vec<Word>,
    /// For misspellings, once there is one.
    trigrams: OnceLock<Trigrams>,
}

/// A tool in the index.
#[derive(Debug)]
struct Tool {
    name: ByteString,
    /// The server, by its place in the configuration.
    server: usize,
    /// Its name and what the server calls it, squashed.
    names: [String; 2],
}

#[derive(Debug)]
struct Word {
    spelling: Box<str>,
    /// The tools that have it, and how much of it.
    tools: Vec<(u32, f32)>,
    rarity: f32,
}

/// Which tools whoever searches sees, in the order of the index; `None` for all.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seen<'a>(pub(crate) Option<&'a [bool]>);

impl Seen<'_> {
    fn has(self, tool: usize) -> bool {
        self.0.is_none_or(|seen| seen.get(tool) == Some(&true))
    }

    fn has_one_with(self, word: &Word) -> bool {
        word.tools.iter().any(|(tool, _)| self.has(*tool as usize))
    }

    /// How much a word says among the tools that are seen.
    fn rarity(self, word: &Word) -> f32 {
        let Some(seen) = self.0 else { return word.rarity };
        let having = word.tools.iter().filter(|(tool, _)| self.has(*tool as usize)).count();
        rarity(seen.iter().filter(|seen| **seen).count(), having)
    }
}

/// How much a word says that so many of so many tools have.
fn rarity(tools: usize, having: usize) -> f32 {
    let (tools, having) = (tools.max(1) as f32, having as f32);
    (1.0 + (tools - having + 0.5) / (having + 0.5)).ln()
}

/// What was found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SearchHits {
    /// The best, by name.
    pub(crate) names: Vec<ByteString>,
    /// How many fit at all.
    pub(crate) total: usize,
}

impl Index {
    /// An index of the tools that may be called. `servers` are the names of the servers.
    pub(crate) fn new(table: &Table, servers: &[&str]) -> Index {
        let mut draft = Draft::default();
        for (name, row) in table.iter().filter(|(_, row)| row.withheld.is_none()) {
            let server = servers.get(row.server).copied().unwrap_or_default();
            let names = [words::squashed(name), words::squashed(&row.own)];
            draft.tools.push(Tool { name: name.clone(), server: row.server, names });
            let Some(definition) = Object::of(&row.definition) else { continue };
            read(name, &row.own, server, &definition, |field, text| draft.add(field, text));
            draft.end_of_tool();
        }
        draft.finish()
    }

    /// How many tools of a server are seen.
    pub(crate) fn count(&self, server: usize, seen: Seen<'_>) -> usize {
        self.seen_of(server, seen).count()
    }

    fn seen_of<'a>(&'a self, server: usize, seen: Seen<'a>) -> impl Iterator<Item = &'a Tool> {
        let tools = self.tools.iter().enumerate();
        let of_server = tools.filter(move |(place, tool)| tool.server == server && seen.has(*place));
        of_server.map(|(_, tool)| tool)
    }

    /// The tools of a server in the order of the list.
    pub(crate) fn of_server(&self, server: usize, limit: usize, seen: Seen<'_>) -> SearchHits {
        let all: Vec<_> = self.seen_of(server, seen).collect();
        SearchHits {
            total: all.len(),
            names: all.into_iter().take(limit).map(|tool| tool.name.clone()).collect(),
        }
    }

    /// The tools that fit best, of one server or of all.
    pub(crate) fn search(
        &self,
        query: &str,
        server: Option<usize>,
        limit: usize,
        seen: Seen<'_>,
    ) -> SearchHits {
        let mut wanted = words::of_query(query);
        wanted.truncate(MOST_WORDS);
        let mut scores = vec![(0.0f32, 0u32); self.tools.len()];
        let mut of_word = vec![0.0f32; self.tools.len()];
        for word in &wanted {
            of_word.fill(0.0);
            for (place, factor) in self.meant(word, seen) {
                let word = &self.vocabulary[place];
                let rarity = seen.rarity(word);
                for &(tool, weight) in &word.tools {
                    let best = &mut of_word[tool as usize];
                    *best = best.max(factor * rarity * weight / (weight + SATURATION));
                }
            }
            for (score, found) in scores.iter_mut().zip(&of_word).filter(|(_, found)| **found > 0.0) {
                score.0 += found;
                score.1 += 1;
            }
        }
        let squashed = words::squashed(query);
        let mut hits: Vec<Hit> = self
            .tools
            .iter()
            .enumerate()
            .filter(|(_, tool)| server.is_none_or(|server| tool.server == server))
            .filter_map(|(place, tool)| {
                let (score, matched) = scores[place];
                let likeness = tool.likeness(&squashed);
                // Who has all the words asked for stands before who has one of them often.
                let score = score * matched as f32 / wanted.len().max(1) as f32;
                let fits = score > 0.0 || likeness > 0;
                (fits && seen.has(place)).then_some(Hit { likeness, score, place })
            })
            .collect();
        let total = hits.len();
        if total > limit && limit > 0 {
            hits.select_nth_unstable_by(limit - 1, Hit::order);
        }
        hits.truncate(limit);
        hits.sort_by(Hit::order);
        SearchHits { total, names: hits.into_iter().map(|hit| self.tools[hit.place].name.clone()).collect() }
    }

    /// The words that one of a query stands for, and how much each counts.
    fn meant(&self, word: &str, seen: Seen<'_>) -> Vec<(usize, f32)> {
        let from = self.vocabulary.partition_point(|known| &*known.spelling < word);
        let beginnings = self.vocabulary[from..].iter().enumerate();
        let meant: Vec<(usize, f32)> = beginnings
            .take_while(|(_, known)| known.spelling.starts_with(word))
            .filter(|(_, known)| seen.has_one_with(known))
            .take(MOST_BEGINNINGS)
            .filter(|(_, known)| word.len() >= LEAST_BEGINNING || known.spelling.len() == word.len())
            .map(|(place, known)| {
                let share = word.len() as f32 / known.spelling.len() as f32;
                (from + place, if share < 1.0 { BEGINNING * share } else { 1.0 })
            })
            .collect();
        if !meant.is_empty() {
            return meant;
        }
        let spellings = || self.vocabulary.iter().map(|word| &*word.spelling);
        let trigrams = self.trigrams.get_or_init(|| Trigrams::new(spellings()));
        let spelling = |place: u32| {
            let word = &self.vocabulary[place as usize];
            seen.has_one_with(word).then_some(&*word.spelling)
        };
        let near = trigrams.nearest(word, spelling);
        near.into_iter().map(|(place, alike)| (place as usize, MISSPELLED * alike)).collect()
    }
}

impl Tool {
    /// 2 if its name is the query, 1 if its name begins with the query.
    fn likeness(&self, squashed: &str) -> u8 {
        if squashed.len() < LEAST_BEGINNING {
            return 0;
        }
        let best = self.names.iter().map(|name| match name.strip_prefix(squashed) {
            Some("") => 2,
            Some(_) => 1,
            None => 0,
        });
        best.max().unwrap_or(0)
    }
}

struct Hit {
    likeness: u8,
    score: f32,
    place: usize,
}

impl Hit {
    /// Best first; of equals, the one that is listed first.
    fn order(a: &Hit, b: &Hit) -> std::cmp::Ordering {
        let by_score = || b.score.total_cmp(&a.score);
        b.likeness.cmp(&a.likeness).then_with(by_score).then_with(|| a.place.cmp(&b.place))
    }
}

/// The words of a tool with how often each field has them, and how many words each field has.
type Counted = (Vec<(u32, [u16; FIELDS])>, [u32; FIELDS]);

/// An index in the making.
#[derive(Default)]
struct Draft {
    tools: Vec<Tool>,
    numbers: HashMap<Box<str>, u32>,
    /// Word and field of each word of the current tool.
    current: Vec<(u32, Field)>,
    counted: Vec<Counted>,
}

impl Draft {
    fn add(&mut self, field: Field, text: &str) {
        words::each_word(text, |word| {
            let number = match self.numbers.get(word) {
                Some(number) => *number,
                None => {
                    let number = self.numbers.len() as u32;
                    self.numbers.insert(word.into(), number);
                    number
                }
            };
            self.current.push((number, field));
        });
    }

    fn end_of_tool(&mut self) {
        self.current.sort_unstable_by_key(|(word, _)| *word);
        let mut counts: Vec<(u32, [u16; FIELDS])> = Vec::new();
        let mut lengths = [0; FIELDS];
        for (word, field) in self.current.drain(..) {
            lengths[field as usize] += 1;
            if counts.last().is_none_or(|(last, _)| *last != word) {
                counts.push((word, [0; FIELDS]));
            }
            if let Some((_, count)) = counts.last_mut() {
                count[field as usize] = count[field as usize].saturating_add(1);
            }
        }
        // A tool whose definition cannot be read has no words, and still its place.
        self.counted.resize_with(self.tools.len() - 1, Default::default);
        self.counted.push((counts, lengths));
    }

    fn finish(self) -> Index {
        let count = self.counted.len();
        let how_many = count.max(1) as f32;
        let usual: [f32; FIELDS] = std::array::from_fn(|field| {
            let all: u32 = self.counted.iter().map(|(_, lengths)| lengths[field]).sum();
            (all as f32 / how_many).max(1.0)
        });
        let mut tools_of: Vec<Vec<(u32, f32)>> = vec![Vec::new(); self.numbers.len()];
        for (tool, (counts, lengths)) in self.counted.iter().enumerate() {
            let damped: [f32; FIELDS] = std::array::from_fn(|field| {
                let (weight, damping) = Field::ALL[field].measure();
                weight / (1.0 - damping + damping * lengths[field] as f32 / usual[field])
            });
            for (word, count) in counts {
                let weight = count.iter().zip(damped).map(|(count, damped)| *count as f32 * damped).sum();
                tools_of[*word as usize].push((tool as u32, weight));
            }
        }
        let mut vocabulary: Vec<Word> = self
            .numbers
            .into_iter()
            .map(|(spelling, number)| {
                let tools = std::mem::take(&mut tools_of[number as usize]);
                let rarity = rarity(count, tools.len());
                Word { spelling, tools, rarity }
            })
            .collect();
        vocabulary.sort_unstable_by(|a, b| a.spelling.cmp(&b.spelling));
        Index { tools: self.tools, vocabulary, trigrams: OnceLock::new() }
    }
}
