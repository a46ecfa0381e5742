//! The pages of servers that are part of the program, beside the endpoint.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tidegate::edge::http::Page;
use tidegate_builtin::{Builtin, Pages};
use tidegate_config::{Settings, Source};

use crate::builtins::registry;

/// Which of them are served: those of servers that are configured. Clones are handles on the same.
#[derive(Clone)]
pub(super) struct BuiltinPages(Arc<[Served]>);

/// The pages of one server.
struct Served {
    builtin: Builtin,
    is_served: AtomicBool,
}

/// Where somebody finds the pages of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Link {
    /// What they are called.
    pub(super) title: &'static str,
    /// The words of the link.
    pub(super) words: &'static str,
    pub(super) path: &'static str,
}

impl BuiltinPages {
    /// As a configuration has it.
    pub(super) fn of(settings: &Settings) -> BuiltinPages {
        let all = registry().builtins.iter();
        let pages =
            all.map(|builtin| Served { builtin: *builtin, is_served: AtomicBool::default() }).collect();
        let pages = BuiltinPages(pages);
        pages.follow(settings);
        pages
    }

    /// Another configuration is in force.
    pub(super) fn follow(&self, settings: &Settings) {
        for served in self.0.iter() {
            let is_it =
                |source: &Source| matches!(source, Source::Builtin(name) if name == served.builtin.name());
            let is_served = settings.servers.iter().any(|server| is_it(&server.source));
            served.is_served.store(is_served, Ordering::Relaxed);
        }
    }

    /// Where those are that are served now.
    pub(super) fn links(&self, endpoint: &str) -> Vec<Link> {
        let served = self.0.iter().filter(|served| served.is_served.load(Ordering::Relaxed));
        served
            .filter_map(|served| {
                let Pages { title, link, files } = served.builtin.pages(endpoint)?;
                let path = files.first()?.path;
                // An endpoint at the page's own path is what was asked for.
                (path != endpoint).then_some(Link { title, words: link, path })
            })
            .collect()
    }

    /// Their files.
    pub(super) fn files(&self, endpoint: &str) -> Vec<Page> {
        let pages = |at: usize| {
            let all = self.clone();
            let files = self.0[at].builtin.pages(endpoint).into_iter().flat_map(|pages| pages.files);
            files.map(move |file| {
                let all = all.clone();
                Page::new(file.path, file.media_type, file.body)
                    .only_while(move || all.0[at].is_served.load(Ordering::Relaxed))
            })
        };
        (0..self.0.len()).flat_map(pages).collect()
    }
}
