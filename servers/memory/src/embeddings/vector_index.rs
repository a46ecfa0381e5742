//! [`VectorIndex`]: the vectors of one tenant in memory, one byte for each number, all of which are compared.
//!
//! It takes `dimensions + 64` bytes for each page or so: 30 MB for 100,000 pages and 256 dimensions, 160 MB for 1536.

use std::collections::HashMap;

use super::vectors::{self, VectorChange};
use crate::error::Result;
use crate::pages::Hit;
use crate::store::View;

/// What a page takes besides its numbers.
const OVERHEAD: usize = 64;

/// The vectors of one tenant.
#[derive(Default)]
pub(super) struct VectorIndex {
    pub(super) dimensions: usize,
    hits: Vec<Hit>,
    scales: Vec<f32>,
    numbers: Vec<i8>,
    places: HashMap<i64, usize>,
    /// The last stamp that was read.
    seen: i64,
    /// Whether there are more vectors than there may be here: then they are read from the store each time.
    pub(super) is_full: bool,
}

/// A vector in one byte for each number.
pub(super) struct Short {
    scale: f32,
    numbers: Vec<i8>,
}

impl Short {
    pub(super) fn new(vector: &[f32]) -> Short {
        let most = vector.iter().fold(0.0_f32, |most, number| most.max(number.abs()));
        let scale = most / 127.0;
        let short = |number: &f32| if scale > 0.0 { (number / scale).round() as i8 } else { 0 };
        Short { scale, numbers: vector.iter().map(short).collect() }
    }
}

impl VectorIndex {
    pub(super) fn len(&self) -> usize {
        self.hits.len()
    }

    /// How many bytes it takes.
    pub(super) fn bytes(&self) -> usize {
        self.numbers.capacity() + self.hits.capacity() * OVERHEAD
    }

    /// Reads what is new since the last time. Takes at most `room` bytes.
    pub(super) fn refresh(&mut self, view: &mut View<'_>, model: &str, room: usize) -> Result<()> {
        let last = vectors::last_stamp(view)?;
        if last == self.seen {
            return Ok(());
        }
        if last < self.seen {
            // Somebody removed them all.
            *self = VectorIndex::default();
        }
        if self.is_full {
            return Ok(());
        }
        vectors::news(view, model, self.seen, |news| {
            self.take(news, room);
            Ok(())
        })?;
        self.seen = last;
        if self.is_full {
            *self = VectorIndex {
                is_full: true,
                dimensions: self.dimensions,
                seen: last,
                ..VectorIndex::default()
            };
        }
        Ok(())
    }

    fn take(&mut self, news: VectorChange, room: usize) {
        self.remove(news.hit.page);
        self.seen = self.seen.max(news.stamp);
        let Some(vector) = news.vector.filter(|vector| says_something(vector)) else { return };
        if self.hits.is_empty() {
            self.dimensions = vector.len();
        }
        self.is_full |= (self.hits.len() + 1) * (self.dimensions + OVERHEAD) > room;
        if self.is_full || vector.len() != self.dimensions {
            return;
        }
        let Short { scale, numbers } = Short::new(&vector);
        self.places.insert(news.hit.page, self.hits.len());
        self.hits.push(news.hit);
        self.scales.push(scale);
        self.numbers.extend(numbers);
    }

    fn remove(&mut self, page: i64) {
        let Some(place) = self.places.remove(&page) else { return };
        // The last one takes the place.
        let (last, size) = (self.hits.len() - 1, self.dimensions);
        self.hits.swap_remove(place);
        self.scales.swap_remove(place);
        self.numbers.copy_within(last * size..(last + 1) * size, place * size);
        self.numbers.truncate(last * size);
        if let Some(moved) = self.hits.get(place) {
            self.places.insert(moved.page, place);
        }
    }

    /// The pages of these kinds that are nearest, best first.
    pub(super) fn nearest(&self, query: &[f32], kinds: &[i64], limit: usize) -> Vec<Hit> {
        let query = Short::new(query);
        if query.numbers.len() != self.dimensions || self.dimensions == 0 {
            return Vec::new();
        }
        let rows = self.numbers.chunks_exact(self.dimensions).zip(&self.scales).zip(&self.hits);
        let compared = rows.filter(|(_, hit)| kinds.contains(&hit.kind)).map(|((numbers, scale), hit)| {
            let score = dot(&query.numbers, numbers) as f32 * query.scale * scale;
            (score, hit)
        });
        let mut compared: Vec<(f32, &Hit)> = compared.collect();
        best(&mut compared, limit);
        let found = compared.into_iter();
        found.map(|(score, hit)| Hit { score: f64::from(score.clamp(-1.0, 1.0)), ..hit.clone() }).collect()
    }
}

/// The pages that are nearest, for a tenant who has too many for an index: all vectors are read from the store.
pub(super) fn nearest_in_store(
    view: &mut View<'_>,
    model: &str,
    query: &[f32],
    kinds: &[i64],
    limit: usize,
) -> Result<Vec<Hit>> {
    let mut found: Vec<(f32, Hit)> = Vec::new();
    vectors::news(view, model, 0, |news| {
        let fits = |vector: &Vec<f32>| vector.len() == query.len() && says_something(vector);
        if let Some(vector) = news.vector.filter(|vector| kinds.contains(&news.hit.kind) && fits(vector)) {
            let score = product(&vector, query);
            found.push((score, Hit { score: f64::from(score), ..news.hit }));
        }
        if found.len() > limit.saturating_mul(2) + 1_000 {
            best(&mut found, limit);
        }
        Ok(())
    })?;
    best(&mut found, limit);
    Ok(found.into_iter().map(|(_, hit)| hit).collect())
}

/// Whether a vector is near to anything: that of a text that says nothing to the model is not.
pub(super) fn says_something(vector: &[f32]) -> bool {
    vector.iter().any(|number| *number != 0.0)
}

/// Keeps the best, best first.
pub(super) fn best<T>(found: &mut Vec<(f32, T)>, limit: usize) {
    if limit < found.len() {
        found.select_nth_unstable_by(limit, |a, b| b.0.total_cmp(&a.0));
        found.truncate(limit);
    }
    found.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
}

/// The cosine of two vectors of length 1.
pub(super) fn product(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>().clamp(-1.0, 1.0)
}

/// The product of two vectors. Plain, so that the compiler makes vector instructions of it.
fn dot(a: &[i8], b: &[i8]) -> i32 {
    a.iter().zip(b).map(|(a, b)| i32::from(*a) * i32::from(*b)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn news(stamp: i64, page: i64, vector: Option<Vec<f32>>) -> VectorChange {
        VectorChange { stamp, hit: Hit { kind: page % 2, owner: page, page, score: 0.0 }, vector }
    }

    fn pages(index: &VectorIndex, query: &[f32], kinds: &[i64], limit: usize) -> Vec<i64> {
        index.nearest(query, kinds, limit).iter().map(|hit| hit.page).collect()
    }

    #[test]
    fn what_is_near_is_found_and_what_is_gone_is_not() {
        let mut index = VectorIndex::default();
        for (page, angle) in [(1, 0.0_f32), (2, 0.5), (3, 1.0), (4, 3.0)] {
            index.take(news(page, page, Some(vec![angle.cos(), angle.sin()])), 10_000);
        }
        index.take(news(5, 5, Some(vec![0.0, 0.0])), 10_000);
        index.take(news(6, 6, Some(vec![1.0, 0.0, 0.0])), 10_000);
        assert_eq!(pages(&index, &[1.0, 0.0], &[0, 1], 3), [1, 2, 3]);
        assert_eq!(pages(&index, &[1.0, 0.0], &[0], 3), [2, 4]);
        let nearest = &index.nearest(&[1.0, 0.0], &[0, 1], 2)[1];
        assert!((nearest.score - 0.5_f64.cos()).abs() < 0.01, "{nearest:?}");
        index.take(news(7, 1, None), 10_000);
        index.take(news(8, 3, Some(vec![1.0, 0.0])), 10_000);
        assert_eq!(pages(&index, &[1.0, 0.0], &[0, 1], 9), [3, 2, 4]);
        index.take(news(9, 3, None), 10_000);
        index.take(news(9, 2, None), 10_000);
        index.take(news(9, 4, None), 10_000);
        assert_eq!((index.len(), index.numbers.len(), index.places.len()), (0, 0, 0));
        assert_eq!(pages(&index, &[1.0], &[0, 1], 9), [0; 0]);
        assert_eq!(pages(&VectorIndex::default(), &[], &[0, 1], 9), [0; 0]);
    }

    #[test]
    fn one_byte_is_close_enough() {
        fastrand::seed(7);
        let vector =
            |_| crate::embeddings::embedder::normalised((0..256).map(|_| fastrand::f32() - 0.5).collect());
        let all: Vec<Vec<f32>> = (0..200).map(vector).collect();
        let mut index = VectorIndex::default();
        for (page, vector) in all.iter().enumerate() {
            index.take(news(page as i64, page as i64, Some(vector.clone())), usize::MAX);
        }
        for hit in index.nearest(&all[0], &[0, 1], 200) {
            let exact: f32 = all[0].iter().zip(&all[hit.page as usize]).map(|(a, b)| a * b).sum();
            assert!((hit.score - f64::from(exact)).abs() < 0.005, "{hit:?} {exact}");
        }
    }

    #[test]
    fn there_is_a_bound() {
        let mut index = VectorIndex::default();
        for page in 0..10 {
            index.take(news(page, page, Some(vec![1.0; 16])), 400);
        }
        assert!(index.is_full && index.len() == 5);
    }
}
