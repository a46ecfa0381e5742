//! [`Row`]: values under numbers that only grow. Putting one at the end and taking away the oldest is cheap; one in the middle leaves a gap.

use std::collections::VecDeque;

/// Fewer gaps are left as they are.
const FEW: usize = 32;

/// Values in the order of their numbers.
pub(super) struct Row<T> {
    places: VecDeque<(u64, Option<T>)>,
    gaps: usize,
}

impl<T> Row<T> {
    pub(super) fn new() -> Row<T> {
        Row { places: VecDeque::new(), gaps: 0 }
    }

    /// Puts a value at the end. Its number is larger than all before.
    pub(super) fn push(&mut self, number: u64, value: T) {
        debug_assert!(self.places.back().is_none_or(|(last, _)| *last < number));
        self.places.push_back((number, Some(value)));
    }

    /// The number of the oldest.
    pub(super) fn first(&self) -> Option<u64> {
        // A gap is never the first.
        self.places.front().map(|(number, _)| *number)
    }

    /// Takes one away.
    pub(super) fn remove(&mut self, number: u64) -> Option<T> {
        let at = match self.first()? == number {
            true => 0,
            false => self.places.binary_search_by_key(&number, |(number, _)| *number).ok()?,
        };
        let value = self.places[at].1.take()?;
        self.gaps += 1;
        while self.places.front().is_some_and(|(_, value)| value.is_none()) {
            self.places.pop_front();
            self.gaps -= 1;
        }
        if self.gaps > FEW.max(self.places.len() / 2) {
            self.places.retain(|(_, value)| value.is_some());
            self.gaps = 0;
        }
        Some(value)
    }

    /// All of them, the latest first.
    pub(super) fn latest_first(&self) -> impl Iterator<Item = &T> {
        self.places.iter().rev().filter_map(|(_, value)| value.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn it_is_as_good_as_a_tree() {
        let (mut row, mut tree) = (Row::new(), BTreeMap::new());
        let mut dice = 7_u64;
        for number in 0..5000 {
            // Some numbers are left out.
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            if dice >> 60 == 0 {
                continue;
            }
            row.push(number, number);
            tree.insert(number, number);
            let goes = match dice >> 62 {
                0 => row.first().unwrap(),
                1 => dice % (number + 1),
                _ => number - (dice >> 8) % (number.min(100) + 1),
            };
            assert_eq!(row.remove(goes), tree.remove(&goes));
            assert_eq!(row.remove(goes), None);
            assert_eq!(row.first(), tree.keys().next().copied());
            assert!(row.places.len() <= 2 * tree.len() + FEW + 1, "{} of {}", row.places.len(), tree.len());
        }
        assert!(row.latest_first().eq(tree.values().rev()));
    }
}
