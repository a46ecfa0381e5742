//! [`Starts`]: which servers were started while others were, so that nobody is blamed for being slow who only had to share
//! the machine.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts starts. Clones count together.
#[derive(Clone, Default)]
pub(super) struct Starts(Arc<Counts>);

#[derive(Default)]
struct Counts {
    begun: AtomicUsize,
    ended: AtomicUsize,
}

/// A start that is under way.
pub(super) struct Start<'a> {
    starts: &'a Starts,
    /// The number of this start, from 1.
    number: usize,
    was_alone: bool,
}

impl Starts {
    pub(super) fn begin(&self) -> Start<'_> {
        let number = self.0.begun.fetch_add(1, Ordering::SeqCst) + 1;
        let was_alone = self.0.ended.load(Ordering::SeqCst) + 1 == number;
        Start { starts: self, number, was_alone }
    }
}

impl Start<'_> {
    /// Whether nothing else was started in the meantime.
    pub(super) fn was_alone(&self) -> bool {
        self.was_alone && self.starts.0.begun.load(Ordering::SeqCst) == self.number
    }
}

impl Drop for Start<'_> {
    fn drop(&mut self) {
        self.starts.0.ended.fetch_add(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_that_overlap_are_not_alone() {
        let starts = Starts::default();
        let first = starts.begin();
        assert!(first.was_alone());
        let second = starts.begin();
        assert!(!first.was_alone() && !second.was_alone());
        drop(first);
        assert!(!second.was_alone(), "it was not for a while");
        drop(second);
        assert!(starts.begin().was_alone());
    }
}
