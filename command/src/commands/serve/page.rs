//! The page of the memory, beside the endpoint.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tidegate::edge::http::Page;
use tidegate_config::{Settings, Source};

/// Whether the page is served: while the memory is among the servers. Clones are handles on the same.
#[derive(Clone)]
pub(super) struct MemoryPage(Arc<AtomicBool>);

impl MemoryPage {
    /// As a configuration has it.
    pub(super) fn of(settings: &Settings) -> MemoryPage {
        let page = MemoryPage(Arc::default());
        page.follow(settings);
        page
    }

    /// Another configuration is in force.
    pub(super) fn follow(&self, settings: &Settings) {
        let is_memory = |source: &Source| matches!(source, Source::Builtin(name) if name == "memory");
        let is_served = settings.servers.iter().any(|server| is_memory(&server.source));
        self.0.store(is_served, Ordering::Relaxed);
    }

    /// The path of the page, if it is served.
    pub(super) fn path(&self, endpoint: &str) -> Option<&'static str> {
        // An endpoint at the page's own path is what was asked for.
        (endpoint != tidegate_memory::PAGE && self.is_served()).then_some(tidegate_memory::PAGE)
    }

    /// Its files.
    pub(super) fn files(&self, endpoint: &str) -> Vec<Page> {
        let files = tidegate_memory::page(endpoint).into_iter();
        files
            .map(|file| {
                let page = self.clone();
                Page::new(file.path, file.media_type, file.body).only_while(move || page.is_served())
            })
            .collect()
    }

    fn is_served(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
