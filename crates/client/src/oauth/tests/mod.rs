//! Tests against servers of our own. Nothing here leaves this machine.

mod browsers;
mod discovery;
mod files;
mod grants;
mod limits;
mod logins;
mod logs;
mod renewal;
mod world;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tidegate_protocol::{Error, Symbol};

/// The error must be about credentials and say these things.
fn says(error: &Error, parts: &[&str]) {
    assert_eq!(error.symbol(), Symbol::Unauthorized, "{error:?}");
    for part in parts {
        assert!(error.detail().contains(part), "{part:?} is not in: {error}");
    }
    assert!(!format!("{error:?}").contains("secret-"), "{error:?}");
}

/// Counts what a closure is called for.
#[derive(Clone, Default)]
struct Counter(Arc<AtomicUsize>);

impl Counter {
    fn up(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    fn get(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}
