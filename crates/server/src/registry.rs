//! [`Registry`]: everything the server offers at one moment. Changed by making the next one.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use indexmap::IndexMap;
use tidegate_protocol::Json;

use crate::prompt::PromptEntry;
use crate::resource::{ResourceEntry, TemplateEntry};
use crate::tool::{TaskSupport, ToolEntry};

/// What the server offers, in the order of registration. Each entry has a number that only grows, so that a cursor
/// stays good when entries come and go.
#[derive(Default)]
pub(crate) struct Registry {
    pub(crate) tools: Shelf<ToolEntry>,
    pub(crate) aliases: HashMap<String, String>,
    pub(crate) prompts: Shelf<PromptEntry>,
    /// By URI.
    pub(crate) resources: Shelf<ResourceEntry>,
    /// By template.
    pub(crate) templates: Shelf<TemplateEntry>,
    pub(crate) next: u64,
    /// Whole lists that everybody may see, written when first asked for: tools, prompts, resources, templates; each
    /// as the modern and the two legacy forms want it.
    pub(crate) lists: [[OnceLock<Json>; 3]; 4],
}

/// Entries by name, in order.
pub(crate) struct Shelf<T>(IndexMap<String, (u64, Arc<T>)>);

impl<T> Default for Shelf<T> {
    fn default() -> Self {
        Shelf(IndexMap::new())
    }
}

impl<T> Clone for Shelf<T> {
    fn clone(&self) -> Self {
        Shelf(self.0.clone())
    }
}

impl<T> Shelf<T> {
    pub(crate) fn get(&self, name: &str) -> Option<&Arc<T>> {
        self.0.get(name).map(|(_, entry)| entry)
    }

    /// The entries and their numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &Arc<T>)> {
        self.0.values().map(|(number, entry)| (*number, entry))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    pub(crate) fn insert(&mut self, name: String, number: u64, entry: T) {
        self.0.insert(name, (number, Arc::new(entry)));
    }

    pub(crate) fn remove(&mut self, name: &str) -> bool {
        self.0.shift_remove(name).is_some()
    }
}

impl Registry {
    /// A copy to change. The written lists stay behind.
    pub(crate) fn next(&self) -> Registry {
        Registry {
            tools: self.tools.clone(),
            aliases: self.aliases.clone(),
            prompts: self.prompts.clone(),
            resources: self.resources.clone(),
            templates: self.templates.clone(),
            next: self.next,
            lists: Default::default(),
        }
    }

    /// The number for the next entry.
    pub(crate) fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// A tool by its name or an older one.
    pub(crate) fn tool(&self, name: &str) -> Option<&Arc<ToolEntry>> {
        self.tools.get(name).or_else(|| self.tools.get(self.aliases.get(name)?))
    }

    pub(crate) fn tools(&self) -> impl Iterator<Item = &Arc<ToolEntry>> {
        self.tools.iter().map(|(_, tool)| tool)
    }

    /// Whether any tool can run as a task.
    pub(crate) fn has_tasks(&self) -> bool {
        self.tools().any(|tool| tool.task != TaskSupport::Forbidden)
    }

    /// Whether anything can be completed.
    pub(crate) fn has_completions(&self) -> bool {
        self.prompts.iter().any(|(_, prompt)| prompt.completes())
            || self.templates.iter().any(|(_, template)| template.completes())
    }
}
