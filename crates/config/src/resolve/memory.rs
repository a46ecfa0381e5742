//! What the settings of the memory mean.

use std::time::Duration;

use tidegate_service::secrets::keep_setting;

use super::Resolver;
use crate::memory::{AgentBounds, ApiKey, Embeddings, MemorySettings, MemoryStore, ModelProvider};
use crate::written::memory::{self as written, Listed, Memory, ProviderKind};

/// Most steps of an agent.
const MOST_STEPS: usize = 1_000;

impl Resolver<'_> {
    pub(super) fn memory(&mut self, memory: &Memory) -> MemorySettings {
        let models: Vec<_> = memory.models.iter().map(|(name, model)| self.provider(name, model)).collect();
        MemorySettings {
            all_tools: matches!(memory.tools, Some(Listed::All)),
            store: memory.store.as_deref().and_then(|store| self.store(store)),
            folders: memory
                .folders
                .iter()
                .filter_map(|folder| self.path(&["memory", "folders"], folder))
                .collect(),
            private_addresses: memory.allow_private_addresses.unwrap_or_default(),
            max_tenants: memory.max_tenants.map(|most| usize::try_from(most).unwrap_or(usize::MAX)),
            embeddings: memory.embeddings.as_ref().and_then(|embeddings| self.embeddings(embeddings)),
            models,
            model: memory.model.clone(),
            agents: memory.agents.as_ref().map(|agents| self.agents(agents)).unwrap_or_default(),
        }
    }

    fn agents(&mut self, written: &written::Agents) -> AgentBounds {
        let at = |name: &'static str| ["memory", "agents", name];
        let time = written.time.as_ref().map(|time| {
            let usual = Duration::from_secs(60);
            self.some_time(&at("time"), Some(time), usual)
        });
        for (name, number) in [("steps", written.steps), ("tokens", written.tokens)] {
            if number == Some(0) {
                self.wrong(&at(name), "must be at least 1");
            }
        }
        let steps = written.steps.and_then(|steps| usize::try_from(steps).ok());
        if steps.is_some_and(|steps| steps > MOST_STEPS) {
            self.wrong(&at("steps"), format!("must be at most {MOST_STEPS}"));
        }
        AgentBounds { time, steps, tokens: written.tokens }
    }

    fn store(&mut self, store: &str) -> Option<MemoryStore> {
        if store.starts_with("postgres://") || store.starts_with("postgresql://") {
            keep_setting(store);
            return Some(MemoryStore::Postgres(store.to_owned()));
        }
        if store.contains("://") {
            self.wrong(&["memory", "store"], "must be a file, or a URL that starts with postgres://");
            return None;
        }
        self.path(&["memory", "store"], store).map(MemoryStore::File)
    }

    fn embeddings(&mut self, written: &written::Embeddings) -> Option<Embeddings> {
        let at = ["memory", "embeddings"];
        match (&written.folder, &written.url, &written.model) {
            (Some(folder), None, None) => {
                if written.api_key.is_some() {
                    self.note(&["memory", "embeddings", "api_key"], "has no effect: the model is a folder.");
                }
                self.path(&["memory", "embeddings", "folder"], folder).map(Embeddings::Folder)
            }
            (None, Some(url), Some(model)) => Some(Embeddings::Endpoint {
                url: self.address(&["memory", "embeddings", "url"], url)?,
                model: model.clone(),
                api_key: key(&written.api_key),
            }),
            (Some(_), _, _) => {
                self.wrong(&at, "has both a folder and an endpoint; keep one of them");
                None
            }
            _ => {
                let fields = ["folder", "url", "model"];
                self.required(&at, &fields, "needs a folder with a model, or a url and a model");
                None
            }
        }
    }

    fn provider(&mut self, name: &str, provider: &written::Provider) -> ModelProvider {
        let at = ["memory", "models", name, "url"];
        ModelProvider {
            name: name.to_owned(),
            anthropic: matches!(provider.kind, ProviderKind::Anthropic),
            url: provider.url.as_deref().and_then(|url| self.address(&at, url)),
            api_key: key(&provider.api_key),
            models: provider.models.clone(),
        }
    }

    fn address(&mut self, at: crate::places::Path<'_>, url: &str) -> Option<String> {
        let fits = url.starts_with("http://") || url.starts_with("https://");
        if !fits {
            self.wrong(at, "must be a URL that starts with http:// or https://");
        }
        fits.then(|| url.to_owned())
    }
}

/// A key that is there: an empty one stands for a variable that may not be set.
fn key(written: &Option<String>) -> Option<ApiKey> {
    let key = written.as_ref().filter(|key| !key.is_empty())?;
    keep_setting(key);
    Some(ApiKey(key.clone()))
}
