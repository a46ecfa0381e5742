//! [`Family`]: one instrument for each combination of labels, for no more of them than there is room for.

use std::hash::Hash;
use std::sync::Arc;

use arc_swap::ArcSwap;
use foldhash::fast::RandomState;
use indexmap::{Equivalent, IndexMap};

/// How many series an instrument has at most, those for the rest not counted.
pub(crate) const MOST: usize = 2000;
/// The same for a histogram, each of which is a line for every bucket.
pub(crate) const MOST_HISTOGRAMS: usize = 1000;

/// Something for each combination of labels. Reading takes no lock; a new combination copies the map once.
pub(crate) struct Family<K, T> {
    most: usize,
    all: ArcSwap<IndexMap<K, Arc<T>, RandomState>>,
}

impl<K: Hash + Eq + Clone, T: Default> Family<K, T> {
    pub(crate) fn new() -> Family<K, T> {
        Family { most: MOST, all: ArcSwap::default() }
    }

    /// For no more than so many.
    pub(crate) fn of_at_most(most: usize) -> Family<K, T> {
        Family { most, ..Family::new() }
    }

    /// The one for these labels, if there is one. Whether there is, is returned.
    pub(crate) fn with_known<Q>(&self, labels: &Q, act: impl FnOnce(&T)) -> bool
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        self.all.load().get(labels).map(|known| act(known)).is_some()
    }

    /// The one for these labels; for `rest`, if there are too many.
    pub(crate) fn with<Q>(&self, labels: &Q, rest: impl FnOnce() -> K, act: impl FnOnce(&T))
    where
        Q: Hash + Equivalent<K> + ?Sized,
        for<'q> &'q Q: Into<K>,
    {
        if let Some(known) = self.all.load().get(labels) {
            return act(known);
        }
        let key = if self.all.load().len() < self.most { labels.into() } else { rest() };
        // What is one of the rest is seldom the first of them.
        if !self.all.load().contains_key(&key) {
            self.all.rcu(|all| {
                let mut all = IndexMap::clone(all);
                all.entry(key.clone()).or_default();
                all
            });
        }
        if let Some(one) = self.all.load().get(&key) {
            act(one);
        }
    }

    /// All there are.
    pub(crate) fn for_each(&self, mut look: impl FnMut(&K, &T)) {
        self.all.load().iter().for_each(|(labels, one)| look(labels, one));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    use super::*;

    #[derive(Hash)]
    struct Name<'a>(&'a str);

    impl Equivalent<String> for Name<'_> {
        fn equivalent(&self, key: &String) -> bool {
            self.0 == key
        }
    }

    impl From<&Name<'_>> for String {
        fn from(name: &Name<'_>) -> String {
            name.0.to_owned()
        }
    }

    #[test]
    fn ten_thousand_names_are_counted_and_not_kept() {
        let family: Family<String, AtomicU64> = Family::new();
        for round in 0..2 {
            for name in 0..10_000 {
                let name = format!("name{name}");
                family.with(&Name(&name), || "rest".to_owned(), |count| _ = count.fetch_add(1, Relaxed));
            }
            let (mut series, mut sum, mut rest) = (0, 0, 0);
            family.for_each(|name, count| {
                series += 1;
                sum += count.load(Relaxed);
                rest += if name == "rest" { count.load(Relaxed) } else { 0 };
            });
            let rounds = round + 1;
            assert_eq!((series, sum, rest), (MOST + 1, 10_000 * rounds, 8_000 * rounds));
        }
    }
}
