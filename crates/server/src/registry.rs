//! [`Registry`]: everything the server offers at one moment. Changed by making the next one.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use indexmap::IndexMap;
use tidegate_protocol::Json;

use crate::builder::{BuildError, Offer};
use crate::prompt::PromptEntry;
use crate::resource::{ResourceEntry, Source, TemplateEntry};
use crate::tool::{TaskSupport, ToolEntry};
use tidegate_service::stats::Counters;

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
    /// Where more resources come from when they are listed, in the order of registration.
    pub(crate) sources: Vec<Arc<Source>>,
    pub(crate) next: u64,
    /// What all this amounts to.
    pub(crate) kinds: Kinds,
    /// Whole lists that everybody may see, written when first asked for: tools, prompts, resources, templates; each
    /// as the modern and the two legacy forms want it.
    pub(crate) lists: [[OnceLock<Json>; 3]; 4],
}

/// Which kinds of things are on offer, and so which methods exist.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Kinds {
    pub(crate) tools: bool,
    pub(crate) prompts: bool,
    pub(crate) resources: bool,
    pub(crate) completions: bool,
    pub(crate) tasks: bool,
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

    /// The name under which an entry with this number stands.
    pub(crate) fn name_of(&self, number: u64) -> Option<&str> {
        self.0.iter().find(|(_, (one, _))| *one == number).map(|(name, _)| name.as_str())
    }

    /// The number of the entry with this name.
    pub(crate) fn number_of(&self, name: &str) -> Option<u64> {
        self.0.get(name).map(|(number, _)| *number)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
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
            sources: self.sources.clone(),
            next: self.next,
            kinds: self.kinds,
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

    /// Adds what is offered, or says why that cannot be.
    pub(crate) fn add(&mut self, offer: Offer, counters: &Counters) -> Result<(), BuildError> {
        let wrong = |kind: &str, name: &str, what: &str| BuildError(format!("{kind} {name:?}: {what}"));
        let number = self.number();
        match offer {
            Offer::Tool(tool) => {
                let name = tool.name.clone();
                let wrong = |what: &str| wrong("tool", &name, what);
                check_name(&name).map_err(|e| wrong(&e))?;
                for taken in std::iter::once(&name).chain(&tool.aliases) {
                    if self.tool(taken).is_some() {
                        return Err(wrong(&format!("there is already a tool named {taken:?}")));
                    }
                }
                let aliases = tool.aliases.clone();
                let entry = tool.compile(counters.tool(&name)).map_err(|e| wrong(&e))?;
                self.aliases.extend(aliases.into_iter().map(|alias| (alias, name.clone())));
                self.tools.insert(name, number, entry);
            }
            Offer::Prompt(prompt) => {
                let name = prompt.name.clone();
                let wrong = |what: &str| wrong("prompt", &name, what);
                if self.prompts.has(&name) {
                    return Err(wrong("there is already one of that name"));
                }
                let entry = prompt.compile().map_err(|e| wrong(&e))?;
                self.prompts.insert(name, number, entry);
            }
            Offer::Resource(resource) => {
                let uri = resource.at.clone();
                let wrong = |what: &str| wrong("resource", &uri, what);
                if self.resources.has(&uri) {
                    return Err(wrong("there is already one at that URI"));
                }
                let entry = resource.compile().map_err(|e| wrong(&e))?;
                self.resources.insert(uri, number, entry);
            }
            Offer::Template(template) => {
                let uri = template.at.clone();
                let wrong = |what: &str| wrong("resource template", &uri, what);
                if self.templates.has(&uri) {
                    return Err(wrong("it is there already"));
                }
                let entry = template.compile().map_err(|e| wrong(&e))?;
                self.templates.insert(uri, number, entry);
            }
            Offer::Source(source) => self.sources.push(Arc::new(source)),
        }
        Ok(())
    }

    /// Works out what all this amounts to.
    pub(crate) fn settle(&mut self, dynamic: bool) {
        let kinds = Kinds {
            tools: dynamic || !self.tools.is_empty(),
            prompts: dynamic || !self.prompts.is_empty(),
            resources: dynamic
                || !self.resources.is_empty()
                || !self.templates.is_empty()
                || !self.sources.is_empty(),
            completions: dynamic
                || self.prompts.iter().any(|(_, prompt)| prompt.completes())
                || self.templates.iter().any(|(_, template)| template.completes()),
            tasks: self.tools().any(|tool| tool.task != TaskSupport::Forbidden),
        };
        self.kinds = kinds;
    }
}

/// 2025-11-25 server/tools, Tool Names.
fn check_name(name: &str) -> Result<(), String> {
    let fits = (1..=128).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-./".contains(&b));
    if fits { Ok(()) } else { Err("a tool's name has 1 to 128 letters, digits, or any of _ - . /".into()) }
}
