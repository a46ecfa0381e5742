//! Several lists of hits become one, by reciprocal rank.

use std::collections::HashMap;

use crate::pages::Hit;

/// How much being first counts more than being second. The usual constant is 60; where lists differ much in quality a
/// smaller one leaves at the top what the best of them has there. This one was chosen with one half of the questions of
/// `cargo xtask bench --quality` and holds for the other.
const K: f64 = 2.0;

/// One list, best first. A score is the sum of `weight / (K + rank)` over the lists that have the page.
pub(crate) fn fuse(lists: &[(f64, Vec<Hit>)]) -> Vec<Hit> {
    let mut all: Vec<Hit> = Vec::new();
    let mut places: HashMap<i64, usize> = HashMap::new();
    for (weight, list) in lists {
        for (rank, hit) in list.iter().enumerate() {
            let score = weight / (K + rank as f64 + 1.0);
            let place = *places.entry(hit.page).or_insert(all.len());
            match all.get_mut(place) {
                Some(one) => one.score += score,
                None => all.push(Hit { score, ..hit.clone() }),
            }
        }
    }
    all.sort_by(|a, b| b.score.total_cmp(&a.score));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_several_lists_have_comes_first() {
        let list = |pages: &[i64]| -> Vec<Hit> {
            pages.iter().map(|page| Hit { kind: 0, owner: *page, page: *page, score: 9.0 }).collect()
        };
        let fused = fuse(&[(1.0, list(&[1, 2, 3])), (0.5, list(&[3, 4])), (1.0, list(&[]))]);
        let pages: Vec<i64> = fused.iter().map(|hit| hit.page).collect();
        assert_eq!(pages, [3, 1, 2, 4]);
        assert!((fused[0].score - (1.0 / 5.0 + 0.5 / 3.0)).abs() < 1e-9);
    }
}
