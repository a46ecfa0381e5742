//! Sources: resources that are looked up when somebody lists them, page by page.

use std::future::Future;

use futures_util::future::BoxFuture;
use tidegate_protocol::Json;

use super::Resource;
use crate::cx::Cx;
use crate::tool::ToolError;

/// The part of a list that a source is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageRequest {
    /// Where to go on: what [`ResourcePage::next`] was given. `None` at the beginning.
    pub after: Option<String>,
    /// How many resources there is room for; at least one.
    pub limit: usize,
}

/// What a source answers: resources, and whether more follow.
#[derive(Debug, Default)]
pub struct ResourcePage {
    entries: Vec<Resource>,
    next: Option<String>,
}

impl ResourcePage {
    /// These resources, and no more after them. What they say of themselves is listed; how they are read is the business
    /// of a [`ResourceTemplate`](crate::ResourceTemplate), so they need no reader.
    pub fn new(entries: impl IntoIterator<Item = Resource>) -> ResourcePage {
        ResourcePage { entries: entries.into_iter().collect(), next: None }
    }

    /// More follow: `after` tells the source where. It names a place among the things themselves, such as the number of
    /// the last one, rather than a count: then nothing is skipped or repeated when some come or go in between. Clients
    /// see it sealed.
    pub fn next(mut self, after: impl Into<String>) -> ResourcePage {
        self.next = Some(after.into());
        self
    }

    /// The definitions, at most `limit`, and where more follow.
    pub(crate) fn written(self, limit: usize) -> (Vec<Json>, Option<String>) {
        debug_assert!(self.entries.len() <= limit, "a source gave more than there is room for");
        let entries = self.entries.into_iter().take(limit);
        (entries.map(|entry| entry.described.definition("uri", &entry.at)).collect(), self.next)
    }
}

type Look = BoxFuture<'static, Result<ResourcePage, ToolError>>;

/// A source as the running server holds it.
pub(crate) struct Source(Box<dyn Fn(PageRequest, Cx) -> Look + Send + Sync>);

impl Source {
    pub(crate) fn new<F, Fut>(look: F) -> Source
    where
        F: Fn(PageRequest, Cx) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<ResourcePage, ToolError>> + Send + 'static,
    {
        Source(Box::new(move |request, cx| Box::pin(look(request, cx))))
    }

    pub(crate) fn look(&self, request: PageRequest, cx: Cx) -> Look {
        (self.0)(request, cx)
    }
}
