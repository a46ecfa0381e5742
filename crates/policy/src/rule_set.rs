//! [`RuleSet`]: some of the rules of a policy, a bit for each.

use smallvec::SmallVec;

/// Some of the rules of a policy. Those of one policy all have the same length.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct RuleSet(SmallVec<[u64; 2]>);

impl RuleSet {
    /// None of so many rules.
    pub(crate) fn none(rules: usize) -> RuleSet {
        RuleSet(SmallVec::from_elem(0, rules.div_ceil(64)))
    }

    pub(crate) fn insert(&mut self, rule: usize) {
        if let Some(word) = self.0.get_mut(rule / 64) {
            *word |= 1 << (rule % 64);
        }
    }

    pub(crate) fn remove(&mut self, rule: usize) {
        if let Some(word) = self.0.get_mut(rule / 64) {
            *word &= !(1 << (rule % 64));
        }
    }

    pub(crate) fn contains(&self, rule: usize) -> bool {
        self.0.get(rule / 64).is_some_and(|word| word & (1 << (rule % 64)) != 0)
    }

    pub(crate) fn add(&mut self, other: &RuleSet) {
        self.0.iter_mut().zip(&other.0).for_each(|(word, other)| *word |= other);
    }

    pub(crate) fn keep(&mut self, other: &RuleSet) {
        self.0.iter_mut().zip(&other.0).for_each(|(word, other)| *word &= other);
    }

    /// Whether both have one in common.
    pub(crate) fn meets(&self, other: &RuleSet) -> bool {
        self.0.iter().zip(&other.0).any(|(word, other)| word & other != 0)
    }

    /// Those that both have, the first one first.
    pub(crate) fn both<'a>(&'a self, other: &'a RuleSet) -> impl Iterator<Item = usize> + 'a {
        self.0.iter().zip(&other.0).enumerate().flat_map(|(at, (word, other))| {
            let mut left = word & other;
            std::iter::from_fn(move || {
                let bit = left.trailing_zeros() as usize;
                (left != 0).then(|| {
                    left &= left - 1;
                    at * 64 + bit
                })
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_over_several_words() {
        let (mut some, mut others) = (RuleSet::none(200), RuleSet::none(200));
        for rule in [0, 63, 64, 130, 199] {
            some.insert(rule);
        }
        for rule in [63, 130, 131] {
            others.insert(rule);
        }
        assert_eq!(some.both(&others).collect::<Vec<_>>(), [63, 130]);
        assert!(some.contains(199) && !some.contains(198) && some.meets(&others));
        others.add(&some);
        assert!(others.contains(0) && others.contains(131));
        others.remove(131);
        others.keep(&some);
        assert_eq!(others, some);
        assert_eq!(RuleSet::none(0).both(&RuleSet::none(0)).count(), 0);
    }
}
