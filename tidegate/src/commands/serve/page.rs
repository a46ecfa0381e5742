//! The page of the memory, beside the endpoint.

use tidegate::edge::http::{self, Page};
use tidegate_config::{Settings, Source};

/// Adds the page if the memory is among the servers, and says at which path it is.
pub(super) fn add(edge: &mut http::Settings, settings: &Settings) -> Option<&'static str> {
    let memory = |source: &Source| matches!(source, Source::Builtin(name) if name == "memory");
    // An endpoint at the page's own path is what was asked for.
    if edge.path == tidegate_memory::PAGE || !settings.servers.iter().any(|server| memory(&server.source)) {
        return None;
    }
    let files = tidegate_memory::page(&edge.path).into_iter();
    edge.pages = files.map(|file| Page::new(file.path, file.media_type, file.body)).collect();
    Some(tidegate_memory::PAGE)
}
