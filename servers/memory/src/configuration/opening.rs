//! Opening the memory that a configuration describes.

use std::path::PathBuf;

use tidegate_builtin::{Host, Opened, data_dir};
use tidegate_protocol::{Error, Symbol};

use super::settings::{Embeddings, MemorySettings, MemoryStore};
use crate::embeddings::{Embedder, Endpoint};
use crate::error::Fault;
use crate::models::{Kind as ProviderKind, Models, Provider};
use crate::server::settings::{Bounds, Listed, MemoryServerSettings};
use crate::store::Store;

/// Where the memory is kept, if neither the configuration says it nor the usual place is right.
const MEMORY_FILE: &str = "TIDEGATE_MEMORY_FILE";

/// Opens the memory that the settings describe.
pub(super) fn opened(settings: &MemorySettings, host: Host) -> Result<Opened, Error> {
    let (said, usual) = (&settings.agents, Bounds::default());
    let agents = Bounds {
        time: said.time.unwrap_or(usual.time),
        steps: said.steps.unwrap_or(usual.steps),
        tokens: said.tokens.unwrap_or(usual.tokens),
        ..usual
    };
    let server = MemoryServerSettings {
        errors: host.errors,
        listed: if settings.all_tools { Listed::All } else { Listed::Core },
        tools: host.tools,
        allows: host.allows,
        is_authenticated: host.is_authenticated,
        folders: settings.folders.clone(),
        allow_private_addresses: settings.private_addresses,
        max_tenants: settings.max_tenants,
        embeddings: embedder(settings)?,
        models: models(settings),
        agents,
        ..MemoryServerSettings::default()
    };
    warn(settings, host.is_authenticated);
    // Last, so that nothing has to be closed again.
    let store = settings.place()?.open()?;
    let door = crate::server::server_with(store.clone(), server).bare();
    Ok(Opened::new(door).on_close(move || {
        let store = store.clone();
        async move { store.close().await }
    }))
}

/// Tells the operator what callers from elsewhere get at on this machine, because the configuration says so.
fn warn(settings: &MemorySettings, is_authenticated: bool) {
    if !is_authenticated {
        return;
    }
    for folder in &settings.folders {
        let folder = folder.display();
        tracing::warn!(%folder, "every authenticated caller, whatever their tenant, can ingest files of this folder");
    }
    if settings.private_addresses {
        tracing::warn!("every authenticated caller can ingest pages of this machine and its network");
    }
}

/// What makes vectors of texts, if anything does.
fn embedder(settings: &MemorySettings) -> Result<Option<Embedder>, Error> {
    Ok(match &settings.embeddings {
        None => usual_model(),
        Some(Embeddings::Folder(folder)) => Some(Embedder::folder(folder).map_err(|fault| {
            unusable(&format!("the model in {} cannot be used", folder.display()), &fault)
        })?),
        Some(Embeddings::Endpoint { url, model, api_key }) => {
            let mut endpoint = Endpoint::new(url, model);
            endpoint.key = api_key.as_ref().map(|key| key.0.clone());
            let made = Embedder::endpoint(endpoint);
            Some(made.map_err(|fault| unusable("the endpoint for embeddings cannot be used", &fault))?)
        }
    })
}

impl MemorySettings {
    /// Where the memory is kept.
    pub fn place(&self) -> Result<MemoryStore, Error> {
        match &self.store {
            Some(store) => Ok(store.clone()),
            None => usual_file().map(MemoryStore::File),
        }
    }
}

impl MemoryStore {
    /// Opens the memory that is kept there. The error is for the operator.
    pub fn open(&self) -> Result<Store, Error> {
        let (store, place) = match self {
            MemoryStore::Postgres(address) => {
                (Store::connect(address), "the configured PostgreSQL database".to_owned())
            }
            MemoryStore::File(file) => (Store::open(file), file.display().to_string()),
        };
        store.map_err(|fault| unusable(&format!("the memory in {place} cannot be used"), &fault))
    }
}

/// The models of the configuration, or else those of the environment.
fn models(settings: &MemorySettings) -> Models {
    let providers = settings.models.iter().map(|provider| {
        let kind = if provider.anthropic { ProviderKind::Anthropic } else { ProviderKind::OpenAi };
        let mut one = Provider::usual(kind);
        if let Some(url) = &provider.url {
            one = one.at(url);
        }
        if let Some(key) = &provider.api_key {
            one = one.api_key(key.0.as_str());
        }
        one.named(&provider.name).models(provider.models.clone())
    });
    let mut models = match settings.models.is_empty() {
        true => Models::from_env(),
        false => Models::new(providers),
    };
    if let Some(model) = &settings.model {
        models.default_model = Some(model.clone());
    }
    models
}

fn unusable(what: &str, fault: &Fault) -> Error {
    Error::new(Symbol::Unavailable, format!("{what}: {fault}"))
}

fn usual_file() -> Result<PathBuf, Error> {
    if let Some(file) = std::env::var_os(MEMORY_FILE).filter(|file| !file.is_empty()) {
        return Ok(file.into());
    }
    let what = || format!("set HOME, or {MEMORY_FILE} to where the memory is kept");
    usual_folder(what).map(|folder| folder.join("memory.db"))
}

/// Where `tidegate model` puts a model, in a folder with its name.
pub fn usual_models() -> Result<PathBuf, Error> {
    usual_folder(|| "set HOME, or pass a folder with --folder".to_owned()).map(|folder| folder.join("model"))
}

/// The model that `tidegate model` brought.
fn usual_model() -> Option<Embedder> {
    let folders = std::fs::read_dir(usual_models().ok()?).ok()?.flatten().map(|entry| entry.path());
    let is_whole =
        |folder: &PathBuf| crate::embeddings::MODEL_FILES.iter().all(|file| folder.join(file).exists());
    let folder = folders.filter(is_whole).min()?;
    Embedder::folder(&folder)
        .inspect_err(|fault| tracing::warn!(%fault, "the memory searches by words only"))
        .ok()
}

fn usual_folder(otherwise: impl Fn() -> String) -> Result<PathBuf, Error> {
    data_dir().ok_or_else(|| {
        Error::new(Symbol::InvalidParams, format!("the home directory is unknown: {}", otherwise()))
    })
}
