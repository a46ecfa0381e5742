//! What `[memory]` of a configuration means.

use std::time::Duration;

use tidegate_builtin::Reading;

use super::settings::{AgentBounds, ApiKey, Embeddings, MemorySettings, MemoryStore, ModelProvider};
use super::written::{self, Listed, Memory, ProviderKind};

/// Most steps of an agent.
const MOST_STEPS: usize = 1_000;

/// What it means. Everything that is wrong is told.
pub(super) fn settings(memory: &Memory, reading: &mut Reading<'_>) -> MemorySettings {
    let models: Vec<_> = memory.models.iter().map(|(name, model)| provider(name, model, reading)).collect();
    MemorySettings {
        all_tools: matches!(memory.tools, Some(Listed::All)),
        store: memory.store.as_deref().and_then(|place| store(place, reading)),
        folders: memory.folders.iter().filter_map(|folder| reading.path(&["folders"], folder)).collect(),
        private_addresses: memory.allow_private_addresses.unwrap_or_default(),
        max_tenants: memory.max_tenants.map(|most| usize::try_from(most).unwrap_or(usize::MAX)),
        embeddings: memory.embeddings.as_ref().and_then(|written| embeddings(written, reading)),
        models,
        model: memory.model.clone(),
        agents: memory.agents.as_ref().map(|written| agents(written, reading)).unwrap_or_default(),
    }
}

fn agents(written: &written::Agents, reading: &mut Reading<'_>) -> AgentBounds {
    let usual = Duration::from_secs(60);
    let time = written.time.as_ref().map(|time| reading.time(&["agents", "time"], Some(time), usual));
    for (name, number) in [("steps", written.steps), ("tokens", written.tokens)] {
        if number == Some(0) {
            reading.wrong(&["agents", name], "must be at least 1");
        }
    }
    let steps = written.steps.and_then(|steps| usize::try_from(steps).ok());
    if steps.is_some_and(|steps| steps > MOST_STEPS) {
        reading.wrong(&["agents", "steps"], format!("must be at most {MOST_STEPS}"));
    }
    AgentBounds { time, steps, tokens: written.tokens }
}

fn store(store: &str, reading: &mut Reading<'_>) -> Option<MemoryStore> {
    if store.starts_with("postgres://") || store.starts_with("postgresql://") {
        return reading.secret(Some(store)).map(MemoryStore::Postgres);
    }
    if store.contains("://") {
        reading.wrong(&["store"], "must be a file, or a URL that starts with postgres://");
        return None;
    }
    reading.path(&["store"], store).map(MemoryStore::File)
}

fn embeddings(written: &written::Embeddings, reading: &mut Reading<'_>) -> Option<Embeddings> {
    let at = ["embeddings"];
    match (&written.folder, &written.url, &written.model) {
        (Some(folder), None, None) => {
            if written.api_key.is_some() {
                reading.note(&["embeddings", "api_key"], "has no effect: the model is a folder.");
            }
            reading.path(&["embeddings", "folder"], folder).map(Embeddings::Folder)
        }
        (None, Some(url), Some(model)) => Some(Embeddings::Endpoint {
            url: address(&["embeddings", "url"], url, reading)?,
            model: model.clone(),
            api_key: reading.secret(written.api_key.as_deref()).map(ApiKey),
        }),
        (Some(_), _, _) => {
            reading.wrong(&at, "has both a folder and an endpoint; keep one of them");
            None
        }
        _ => {
            let fields = ["folder", "url", "model"];
            reading.required(&at, &fields, "needs a folder with a model, or a url and a model");
            None
        }
    }
}

fn provider(name: &str, provider: &written::Provider, reading: &mut Reading<'_>) -> ModelProvider {
    ModelProvider {
        name: name.to_owned(),
        anthropic: matches!(provider.kind, ProviderKind::Anthropic),
        url: provider.url.as_deref().and_then(|url| address(&["models", name, "url"], url, reading)),
        api_key: reading.secret(provider.api_key.as_deref()).map(ApiKey),
        models: provider.models.clone(),
    }
}

fn address(at: &[&str], url: &str, reading: &mut Reading<'_>) -> Option<String> {
    let fits = url.starts_with("http://") || url.starts_with("https://");
    if !fits {
        reading.wrong(at, "must be a URL that starts with http:// or https://");
    }
    fits.then(|| url.to_owned())
}
