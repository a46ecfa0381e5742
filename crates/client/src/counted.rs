//! [`Counted`]: one of several that are open.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts for as long as it lives.
pub(crate) struct Counted(Arc<AtomicUsize>);

impl Counted {
    pub(crate) fn one_more(of: &Arc<AtomicUsize>) -> Counted {
        of.fetch_add(1, Ordering::AcqRel);
        Counted(of.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}
