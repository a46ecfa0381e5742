//! [`NameMatches`]: whose name is what was asked for, or begins so. They come first, whatever else fits.

use std::collections::{HashMap, HashSet};

use super::words;
use crate::error::Result;
use crate::pages::Hit;
use crate::store::{Value, View};

/// Between the words of a name, by which it is looked up, and the name as it is written.
const AS_WRITTEN: char = '\u{1}';
/// How much of a name counts, in bytes, so that there is room for it in every index.
const LONGEST: usize = 1_000;
/// How many pages are looked at that have exactly the name, that have its words, and whose names begin so.
const EXACTLY: usize = 4;
const BY_NAME: usize = 50;

/// How a name is like what was asked for: the first is the best.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Like {
    Exactly,
    /// But for capitals.
    Same,
    /// It has the words that were asked for, and nobody asked for signs.
    SameWords,
    Begins,
    /// It has other signs than were asked for.
    OtherSigns,
}

/// What has such a name.
struct NamedPage {
    like: Like,
    kind: i64,
    owner: i64,
    page: i64,
}

/// Those whose name is like what was asked for, the best first.
pub(crate) struct NameMatches(Vec<NamedPage>);

impl NameMatches {
    /// Looks up what of these kinds has such a name.
    pub(crate) fn find(view: &mut View<'_>, text: &str, kinds: &[i64]) -> Result<NameMatches> {
        let asked = NameQuery::new(text);
        let words = &*asked.words;
        let mut found = Vec::new();
        if words.is_empty() || words.len().max(asked.written.len()) > LONGEST || asked.written.contains('\0')
        {
            return Ok(NameMatches(found));
        }
        let columns = "SELECT page, owner, name FROM";
        let sql_of = |kind: i64| {
            let of = format!("{columns} page_words WHERE tenant = ?1 AND kind = {kind} AND name");
            format!(
                "{columns} ({of} = ?2 LIMIT {EXACTLY}) AS a
                 UNION ALL {columns} ({of} >= ?3 AND name < ?4 ORDER BY name LIMIT {BY_NAME}) AS b
                 UNION ALL {columns} ({of} >= ?4 AND name < ?5 ORDER BY name LIMIT {BY_NAME}) AS c"
            )
        };
        let values = [
            key(text),
            words.to_owned(),
            // What comes after all names with these words, and after all that begin so.
            format!("{words}\u{2}"),
            format!("{words}\u{10ffff}"),
        ];
        let values = values.map(|text| Value::Text(text.into()));
        for kind in kinds {
            view.each(&sql_of(*kind), &values, |row| {
                if let Some(like) = asked.compare(&row.text(2)?) {
                    found.push(NamedPage { like, kind: *kind, owner: row.int(1)?, page: row.int(0)? });
                }
                Ok(())
            })?;
        }
        found.sort_by_key(|named| named.like);
        let mut seen = HashSet::new();
        found.retain(|named| seen.insert((named.kind, named.owner)));
        Ok(NameMatches(found))
    }

    /// A page of each.
    pub(crate) fn pages(&self) -> impl Iterator<Item = i64> {
        self.0.iter().map(|named| named.page)
    }

    /// The hits with these before all others, also those that are not among them yet.
    pub(crate) fn ahead_of(&self, hits: Vec<Hit>) -> Vec<Hit> {
        self.put_first(hits, true)
    }

    /// The hits with these before all others, as far as they are among them.
    pub(crate) fn first_among(&self, hits: Vec<Hit>) -> Vec<Hit> {
        self.put_first(hits, false)
    }

    fn put_first(&self, hits: Vec<Hit>, with_others: bool) -> Vec<Hit> {
        if self.0.is_empty() {
            return hits;
        }
        let best = hits.iter().map(|hit| hit.score).fold(0.0, f64::max);
        // If only names were found, there is nothing to compare with.
        let best = if best > 0.0 { best } else { 1.0 };
        let mut wanted: HashMap<(i64, i64), &NamedPage> =
            self.0.iter().map(|named| ((named.kind, named.owner), named)).collect();
        let (mut first, mut rest) = (Vec::new(), Vec::new());
        for hit in hits {
            // Of several pages the one that fits best; the others stay where they are.
            match wanted.remove(&(hit.kind, hit.owner)) {
                Some(named) => first.push((named.like, hit)),
                None => rest.push(hit),
            }
        }
        for named in self.0.iter().filter(|_| with_others) {
            if wanted.contains_key(&(named.kind, named.owner)) {
                let hit = Hit { kind: named.kind, owner: named.owner, page: named.page, score: 0.0 };
                first.push((named.like, hit));
            }
        }
        first.sort_by(|(a, one), (b, other)| a.cmp(b).then(other.score.total_cmp(&one.score)));
        // More than any other can have, and the more, the better the name is.
        let scored = first.into_iter().map(|(like, hit)| {
            let steps = f64::from(Like::OtherSigns as u8 - like as u8) + 1.0;
            Hit { score: hit.score + best * steps, ..hit }
        });
        scored.chain(rest).collect()
    }
}

/// What a name is looked up by.
pub(super) fn key(name: &str) -> String {
    let (words, written) = (words::name(name), name.trim());
    format!("{}{AS_WRITTEN}{}", cut(&words), cut(written))
}

fn cut(text: &str) -> &str {
    let end = text.char_indices().map(|(at, c)| at + c.len_utf8()).take_while(|end| *end <= LONGEST).last();
    &text[..end.unwrap_or_default()]
}

/// What was asked for, in the ways that it is compared.
struct NameQuery {
    written: String,
    small: String,
    words: String,
    is_plain: bool,
}

impl NameQuery {
    fn new(text: &str) -> NameQuery {
        let written = text.trim().to_owned();
        NameQuery {
            small: written.to_lowercase(),
            words: words::name(&written),
            is_plain: words::is_plain(&written),
            written,
        }
    }

    fn compare(&self, key: &str) -> Option<Like> {
        let (words, written) = key.split_once(AS_WRITTEN).unwrap_or((key, key));
        let small = written.to_lowercase();
        if written == self.written {
            Some(Like::Exactly)
        } else if small == self.small {
            Some(Like::Same)
        } else if self.is_plain && words == self.words {
            Some(Like::SameWords)
        } else if small.starts_with(&self.small) || (self.is_plain && words.starts_with(&self.words)) {
            Some(Like::Begins)
        } else {
            (words == self.words).then_some(Like::OtherSigns)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_compared_as_it_is_written_first() {
        for (text, name, like) in [
            (" C++ ", "C++", Some(Like::Exactly)),
            ("c++", "C++", Some(Like::Same)),
            ("C++", "C", Some(Like::OtherSigns)),
            ("C++", "C++ primer", Some(Like::Begins)),
            ("C++", "C primer", None),
            ("c", "C++", Some(Like::SameWords)),
            ("Café", "Cafe\u{301}", Some(Like::SameWords)),
            ("acme inc", "Acme, Inc.", Some(Like::SameWords)),
            ("kuber", "Kubernetes", Some(Like::Begins)),
            ("→", "→", Some(Like::Exactly)),
            ("東京", "東京都", Some(Like::Begins)),
            ("Ann", "Bob", None),
        ] {
            assert_eq!(NameQuery::new(text).compare(&key(name)), like, "{text} {name}");
        }
        assert!(key(&"é".repeat(5_000)).len() <= 2 * LONGEST + 1);
    }

    #[test]
    fn scores_are_in_order() {
        let hit = |owner: i64, page: i64, score: f64| Hit { kind: 0, owner, page, score };
        let named = |like, owner| NamedPage { like, kind: 0, owner, page: owner * 10 };
        let names =
            NameMatches(vec![named(Like::Exactly, 3), named(Like::Begins, 2), named(Like::Begins, 4)]);
        let hits = vec![hit(1, 10, 5.0), hit(2, 21, 4.0), hit(3, 31, 1.0), hit(3, 30, 0.5)];
        let first = names.ahead_of(hits.clone());
        assert_eq!(first.iter().map(|hit| hit.page).collect::<Vec<_>>(), [31, 21, 40, 10, 30]);
        assert!(first.is_sorted_by(|a, b| a.score >= b.score), "{first:?}");
        let among = names.first_among(hits);
        assert_eq!(among.iter().map(|hit| hit.page).collect::<Vec<_>>(), [31, 21, 10, 30]);
    }
}
