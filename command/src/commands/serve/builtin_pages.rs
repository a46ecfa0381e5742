//! The pages of servers that are part of the program, beside the endpoint.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tidegate::edge::http::Page;
use tidegate_builtin::{Builtin, Pages};
use tidegate_config::{Settings, Source};

use crate::builtins::registry;

/// Which of them are served: those of servers that are configured. Clones are handles on the same.
#[derive(Clone)]
pub(super) struct BuiltinPages(Arc<[ServedPages]>);

/// The pages of one server.
struct ServedPages {
    /// The name of the server.
    builtin: &'static str,
    pages: Pages,
    is_served: AtomicBool,
}

/// Where somebody finds the pages of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PageLink {
    /// What they are called.
    pub(super) title: &'static str,
    /// The words of the link.
    pub(super) words: &'static str,
    pub(super) path: &'static str,
}

impl BuiltinPages {
    /// As a configuration has it.
    pub(super) fn of(settings: &Settings) -> BuiltinPages {
        let served = |builtin: &Builtin| {
            let pages = builtin.pages(&settings.listen.path)?;
            Some(ServedPages { builtin: builtin.name(), pages, is_served: AtomicBool::default() })
        };
        let pages = BuiltinPages(registry().builtins.iter().filter_map(served).collect());
        pages.follow(settings);
        pages
    }

    /// Another configuration is in force.
    pub(super) fn follow(&self, settings: &Settings) {
        for served in self.0.iter() {
            let is_it = |source: &Source| matches!(source, Source::Builtin(name) if name == served.builtin);
            let is_served = settings.servers.iter().any(|server| is_it(&server.source));
            served.is_served.store(is_served, Ordering::Relaxed);
        }
    }

    /// Where those are that are served now.
    pub(super) fn links(&self, endpoint: &str) -> Vec<PageLink> {
        let served = self.0.iter().filter(|served| served.is_served.load(Ordering::Relaxed));
        let link = |served: &ServedPages| {
            // An endpoint at the page's own path is what was asked for.
            let path = served.pages.path().filter(|path| *path != endpoint)?;
            Some(PageLink { title: served.pages.title, words: served.pages.link, path })
        };
        served.filter_map(link).collect()
    }

    /// Their files.
    pub(super) fn files(&self) -> Vec<Page> {
        let all = self.0.iter().enumerate();
        all.flat_map(|(at, served)| served.pages.files.iter().map(move |file| (at, file)))
            .map(|(at, file)| {
                let all = self.clone();
                let is_served = move || all.0[at].is_served.load(Ordering::Relaxed);
                Page::new(file.path, file.media_type, file.body.clone()).only_while(is_served)
            })
            .collect()
    }
}
