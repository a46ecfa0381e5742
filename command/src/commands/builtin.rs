//! The servers that are part of the program.

mod opening;

use std::path::PathBuf;

use tidegate::demo;
use tidegate::protocol::{Error, Profile, Symbol};
use tidegate_client::{AppError, ClientBuilder, Target};
use tidegate_config::{Embeddings, MemorySettings, MemoryStore, ServerSettings};
use tidegate_memory::{Embedder, Endpoint, Fault, Listed, Models, Options, Provider, ProviderKind, Store};
use tidegate_service::BoxDoor;

use super::connection;
use opening::{Opened, Opening};

/// Where the memory is kept, if neither the configuration says it nor the usual place is right.
const MEMORY_FILE: &str = "TIDEGATE_MEMORY_FILE";

/// A server of the program. Clones are the same.
#[derive(Clone)]
pub(crate) struct Builtin {
    pub(crate) target: Target,
    /// The memory, if it is that.
    memory: Option<Opening>,
}

impl Builtin {
    /// A server of the program. `errors` is for the demonstration server, if its settings say nothing of them; `tools` leads
    /// to the tools of other servers.
    pub(crate) fn new(
        name: &str,
        settings: &ServerSettings,
        errors: Profile,
        tools: Option<BoxDoor>,
    ) -> Result<Builtin, AppError> {
        let errors = match Profile::from(settings.options.profile) {
            Profile::Strict => errors,
            said => said,
        };
        match name {
            "demo" => Ok(Builtin { target: Target::from_door(demo::server(errors)), memory: None }),
            "memory" => {
                let (name, memory) = (settings.name.clone(), settings.memory.clone().unwrap_or_default());
                let opening = Opening::new(move || {
                    memory_of(&memory, errors, tools.clone()).map_err(|error| {
                        Error::new(error.symbol(), format!("server {name:?}: {}", error.message()))
                    })
                });
                Ok(Builtin { target: Target::from_door(opening.clone()), memory: Some(opening) })
            }
            name => {
                let known = tidegate_config::BUILTINS.join(" and ");
                let what = format!(
                    "server {:?}: {name:?} is not a built-in server; there are {known}",
                    settings.name
                );
                Err(connection::app_error(&Error::new(Symbol::InvalidParams, what)))
            }
        }
    }

    /// Has the client end the server, too, when it is closed.
    pub(crate) fn ends_with(self, builder: ClientBuilder) -> ClientBuilder {
        match self.memory {
            Some(memory) => builder.on_close(move || memory.clone().close()),
            None => builder,
        }
    }

    /// Whether it can be used; the error says it as the operator should hear it.
    pub(crate) async fn open(&self) -> Result<(), AppError> {
        match &self.memory {
            Some(memory) => memory.open().await.map_err(|error| connection::app_error(&error)),
            None => Ok(()),
        }
    }
}

fn memory_of(settings: &MemorySettings, errors: Profile, tools: Option<BoxDoor>) -> Result<Opened, Error> {
    let mut options = Options::default();
    options.errors = errors;
    options.listed = if settings.all_tools { Listed::All } else { Listed::Core };
    options.tools = tools;
    options.folders = settings.folders.clone();
    options.allow_private_addresses = settings.private_addresses;
    options.max_tenants = settings.max_tenants;
    options.embeddings = match &settings.embeddings {
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
    };
    options.models = models(settings);
    let (agents, bounds) = (&settings.agents, &mut options.agents);
    bounds.time = agents.time.unwrap_or(bounds.time);
    bounds.steps = agents.steps.unwrap_or(bounds.steps);
    bounds.tokens = agents.tokens.unwrap_or(bounds.tokens);
    // Last, so that nothing has to be closed again.
    let store = open(&place(settings)?)?;
    Ok(Opened { door: tidegate_memory::server_with(store.clone(), options), store })
}

/// Where the memory is kept.
pub(crate) fn place(settings: &MemorySettings) -> Result<MemoryStore, Error> {
    match &settings.store {
        Some(store) => Ok(store.clone()),
        None => usual_file().map(MemoryStore::File),
    }
}

/// Opens the memory that is kept there.
pub(crate) fn open(place: &MemoryStore) -> Result<Store, Error> {
    let (store, place) = match place {
        MemoryStore::Postgres(address) => {
            (Store::connect(address), "the configured PostgreSQL database".to_owned())
        }
        MemoryStore::File(file) => (Store::open(file), file.display().to_string()),
    };
    store.map_err(|fault| unusable(&format!("the memory in {place} cannot be used"), &fault))
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
pub(crate) fn usual_models() -> Result<PathBuf, Error> {
    usual_folder(|| "set HOME, or pass a folder with --folder".to_owned()).map(|folder| folder.join("model"))
}

/// The model that `tidegate model` brought.
fn usual_model() -> Option<Embedder> {
    let folders = std::fs::read_dir(usual_models().ok()?).ok()?.flatten().map(|entry| entry.path());
    let is_whole =
        |folder: &PathBuf| tidegate_memory::MODEL_FILES.iter().all(|file| folder.join(file).exists());
    let folder = folders.filter(is_whole).min()?;
    Embedder::folder(&folder)
        .inspect_err(|fault| tracing::warn!(%fault, "the memory searches by words only"))
        .ok()
}

fn usual_folder(otherwise: impl Fn() -> String) -> Result<PathBuf, Error> {
    tidegate_config::usual_data_dir().ok_or_else(|| {
        Error::new(Symbol::InvalidParams, format!("the home directory is unknown: {}", otherwise()))
    })
}
