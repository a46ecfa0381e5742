//! [`Server`]: says what a server offers.

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arc_swap::ArcSwap;
use serde_json::{Map, Value};
use tidegate_protocol::Profile;
use tidegate_protocol::content::Icon;
use tidegate_protocol::seal::{Key, Sealer};
use tidegate_service::layers::Limits;
use tidegate_service::{Call, Principal};

use crate::cx::Cx;
use crate::discover::Info;
use crate::interact::Overflow;
use crate::prompt::Prompt;
use crate::registry::Registry;
use crate::resource::{PageRequest, Resource, ResourcePage, ResourceTemplate, Source};
use crate::server::{Admit, Core, MayWatch, ServerDoor};
use crate::settings::{CacheHint, ServerSettings, TaskSettings};
use crate::tasks::Store;
use crate::tool::{Tool, ToolError};
use tidegate_service::layers::BreakerState;
use tidegate_service::random;
use tidegate_service::stats::{CacheStats, Counters, Thresholds};

/// A server in the making.
///
/// ```
/// use tidegate_server::{Cx, Server, Structured, Tool, ToolError, schemars};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Add {
///     a: f64,
///     b: f64,
/// }
///
/// #[derive(serde::Serialize, schemars::JsonSchema)]
/// struct Sum {
///     total: f64,
/// }
///
/// let server = Server::new("calc", "1.0.0")
///     .tool(Tool::new("add").description("Adds two numbers").read_only().handler(
///         |args: Add, _cx: Cx| async move { Ok::<_, ToolError>(Structured(Sum { total: args.a + args.b })) },
///     ))
///     .build();
/// ```
///
/// Only the methods of what is registered exist: a server without prompts answers `prompts/list` with "method not
/// found", as it does not declare them. One that will add some later says so with [`Server::dynamic`].
#[must_use = "a server does nothing until it is built and given to a transport"]
pub struct Server {
    info: Info,
    extensions: Map<String, Value>,
    settings: ServerSettings,
    limits: Limits,
    offers: Vec<Offer>,
    key: Option<Key>,
    old_keys: Vec<Key>,
    thresholds: Thresholds,
    breaker: Option<Box<dyn Fn() -> BreakerState + Send + Sync>>,
    cache_stats: Option<Box<dyn Fn() -> CacheStats + Send + Sync>>,
    admit: Option<Admit>,
    may_watch: Option<MayWatch>,
}

/// Something to register.
pub(crate) enum Offer {
    Tool(Tool),
    Prompt(Prompt),
    Resource(Resource),
    Template(ResourceTemplate),
    Source(Source),
}

impl Server {
    /// A server with a name and a version, and nothing on offer yet.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Server {
        Server {
            info: Info::new(name.into(), version.into()),
            extensions: Map::new(),
            settings: ServerSettings::default(),
            limits: Limits::default(),
            offers: Vec::new(),
            key: None,
            old_keys: Vec::new(),
            thresholds: Thresholds::default(),
            breaker: None,
            cache_stats: None,
            admit: None,
            may_watch: None,
        }
    }

    /// A name for people.
    pub fn title(mut self, title: impl Into<String>) -> Server {
        self.info.title = Some(title.into());
        self
    }

    /// What the server is.
    pub fn description(mut self, description: impl Into<String>) -> Server {
        self.info.description = Some(description.into());
        self
    }

    /// How a model should use the server.
    pub fn instructions(mut self, instructions: impl Into<String>) -> Server {
        self.info.instructions = Some(instructions.into());
        self
    }

    /// An icon.
    pub fn icon(mut self, icon: Icon) -> Server {
        self.info.icons.push(icon);
        self
    }

    /// Where people can read more.
    pub fn website_url(mut self, url: impl Into<String>) -> Server {
        self.info.website_url = Some(url.into());
        self
    }

    /// Offers a tool.
    pub fn tool(mut self, tool: Tool) -> Server {
        self.offers.push(Offer::Tool(tool));
        self
    }

    /// Which of the tools offered so far are listed, by their names; see [`Tool::unlisted`].
    pub fn listed(mut self, listed: impl Fn(&str) -> bool) -> Server {
        for offer in &mut self.offers {
            if let Offer::Tool(tool) = offer {
                tool.list(listed(tool.name()));
            }
        }
        self
    }

    /// Offers a resource.
    pub fn resource(mut self, resource: Resource) -> Server {
        self.offers.push(Offer::Resource(resource));
        self
    }

    /// Offers a family of resources.
    pub fn resource_template(mut self, template: ResourceTemplate) -> Server {
        self.offers.push(Offer::Template(template));
        self
    }

    /// Offers resources that are looked up when they are listed, page by page: for those that are too many to register, or
    /// not the same for every caller. They stand behind the resources at fixed addresses; of several sources, each behind
    /// the one before. [`Server::resource_template`] says how they are read.
    ///
    /// A source is asked for one page at a time, and asks whatever it looks in for no more than that:
    ///
    /// ```
    /// use tidegate_server::{Cx, PageRequest, Resource, ResourcePage, ResourceTemplate, Server, ToolError, Vars};
    ///
    /// /// Memos by number, as a database would find them: some that come after one.
    /// fn memos_after(number: u64, limit: usize) -> Vec<u64> {
    ///     (number + 1..=2_500).take(limit).collect()
    /// }
    ///
    /// let server = Server::new("memos", "1.0.0")
    ///     .resource_template(ResourceTemplate::new("memo://{number}", "memo").reader(
    ///         |vars: Vars, _cx: Cx| async move { Ok(format!("Memo {}", vars.get("number").unwrap_or_default())) },
    ///     ))
    ///     .resource_source(|request: PageRequest, _cx: Cx| async move {
    ///         let after = request.after.as_deref().unwrap_or("0").parse().map_err(ToolError::from_error)?;
    ///         // One more than there is room for, to see whether more follow.
    ///         let mut found = memos_after(after, request.limit + 1);
    ///         let more = found.len() > request.limit;
    ///         found.truncate(request.limit);
    ///         let memo = |n: &u64| Resource::new(format!("memo://{n}"), format!("memo-{n}")).mime_type("text/plain");
    ///         let page = ResourcePage::new(found.iter().map(memo));
    ///         Ok(match found.last().filter(|_| more) {
    ///             Some(last) => page.next(last.to_string()),
    ///             None => page,
    ///         })
    ///     })
    ///     .build();
    /// ```
    ///
    /// [`ServerHandle::resources_changed_for`](crate::ServerHandle::resources_changed_for) tells callers that theirs have
    /// come or gone.
    pub fn resource_source<F, Fut>(mut self, source: F) -> Server
    where
        F: Fn(PageRequest, Cx) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<ResourcePage, ToolError>> + Send + 'static,
    {
        self.offers.push(Offer::Source(Source::new(source)));
        self
    }

    /// Offers a prompt.
    pub fn prompt(mut self, prompt: Prompt) -> Server {
        self.offers.push(Offer::Prompt(prompt));
        self
    }

    /// Declares tools, prompts, resources and completions even where none are registered yet, because some will be
    /// added while the server runs. Without this, the methods of what is not registered do not exist.
    pub fn dynamic(mut self) -> Server {
        self.settings.dynamic = true;
        self
    }

    /// How many entries one page of a list has. Default 1000, because some clients read only the first page.
    pub fn page_size(mut self, entries: usize) -> Server {
        self.settings.page_size = entries.max(1);
        self
    }

    /// How long and for whom lists and resources may be cached. Default: not at all.
    pub fn cache(mut self, hint: CacheHint) -> Server {
        self.settings.cache = hint;
        self
    }

    /// The limits around every call.
    pub fn limits(mut self, limits: Limits) -> Server {
        self.limits = limits;
        self
    }

    /// The key that seals request states and cursors. Default: that of the gateway which the server is part of, else random
    /// for each process, so that states do not survive a restart and replicas cannot take each other's retries.
    pub fn request_state_key(mut self, key: Key) -> Server {
        self.key = Some(key);
        self
    }

    /// Also accepts states that an earlier key has sealed.
    pub fn accept_request_state_key(mut self, old: Key) -> Server {
        self.old_keys.push(old);
        self
    }

    /// For how long a client can come back with its answers. Default ten minutes.
    pub fn request_state_ttl(mut self, ttl: Duration) -> Server {
        self.settings.state_ttl = ttl;
        self
    }

    /// How often one call may ask for input. Default 32.
    pub fn max_rounds(mut self, rounds: u32) -> Server {
        self.settings.max_rounds = rounds;
        self
    }

    /// The limits of tasks.
    pub fn tasks(mut self, settings: TaskSettings) -> Server {
        self.settings.tasks = settings;
        self
    }

    /// How many subscriptions may be open at once. Default 10,000.
    pub fn max_subscriptions(mut self, max: usize) -> Server {
        self.settings.max_subscriptions = max;
        self
    }

    /// The table of numbers under which this server's clients know failures.
    pub fn error_profile(mut self, profile: Profile) -> Server {
        self.settings.profile = profile;
        self
    }

    /// Puts all tool definitions into the `tools` capability, for clients that look there.
    pub fn advertise_tools_in_capabilities(mut self, yes: bool) -> Server {
        self.settings.tools_in_capabilities = yes;
        self
    }

    /// Offers `tools/call_batch {calls: [{name, arguments}]}`, which answers `{results: [{index, name, result | error}]}`.
    ///
    /// No revision of the protocol has it; clients find it as `dev.tidegate/call-batch` among the extensions (2026-07-28)
    /// or the experimental capabilities (before).
    pub fn call_batch(mut self, yes: bool) -> Server {
        self.settings.call_batch = yes;
        self
    }

    /// Checks results against output schemas in release builds too. Debug builds always do.
    pub fn validate_output(mut self, yes: bool) -> Server {
        self.settings.validate_output = yes;
        self
    }

    /// Declares an extension with its settings.
    pub fn extension(mut self, id: impl Into<String>, settings: Value) -> Server {
        self.extensions.insert(id.into(), settings);
        self
    }

    /// Below which success rates the server is how unwell.
    pub fn health_thresholds(mut self, thresholds: Thresholds) -> Server {
        self.thresholds = thresholds;
        self
    }

    /// Where health and statistics find the state of the circuit breaker that the server stands behind.
    pub fn breaker(mut self, state: impl Fn() -> BreakerState + Send + Sync + 'static) -> Server {
        self.breaker = Some(Box::new(state));
        self
    }

    /// Where statistics find how full the server's cache is.
    pub fn cache_stats(mut self, stats: impl Fn() -> CacheStats + Send + Sync + 'static) -> Server {
        self.cache_stats = Some(Box::new(stats));
        self
    }

    /// Looks at every call before anything else does, and refuses those that are none of the caller's business. For a
    /// tool it comes before its arguments are checked, and what it refuses is the tool's failure.
    pub fn admit(mut self, admit: impl Fn(&Call) -> Result<(), ToolError> + Send + Sync + 'static) -> Server {
        self.admit = Some(Box::new(admit));
        self
    }

    /// Which resources somebody may subscribe to, by their addresses. Others are left out of what is confirmed; the rest
    /// of the subscription holds.
    pub fn may_watch(mut self, may: impl Fn(&Principal, &str) -> bool + Send + Sync + 'static) -> Server {
        self.may_watch = Some(Box::new(may));
        self
    }

    /// The finished server.
    ///
    /// # Panics
    ///
    /// When something that was registered is wrong; the sentence says what. See [`Server::try_build`].
    pub fn build(self) -> ServerDoor {
        match self.try_build() {
            Ok(door) => door,
            Err(error) => panic!("{error}"),
        }
    }

    /// The finished server, or what is wrong with it.
    pub fn try_build(mut self) -> Result<ServerDoor, BuildError> {
        self.info.settle();
        let has_own_key = self.key.is_some();
        let key = self.key.unwrap_or_else(|| Key::new(random()));
        let sealer = self.old_keys.into_iter().fold(Sealer::new(key), Sealer::accepting);
        let counters = Counters::default();
        let mut registry = Registry::default();
        for offer in self.offers {
            registry.add(offer, &counters)?;
        }
        registry.settle(self.settings.dynamic);
        let core = Arc::new(Core {
            info: self.info,
            extensions: self.extensions,
            settings: self.settings,
            registry: ArcSwap::from_pointee(registry),
            changing: Mutex::new(()),
            own_sealer: Arc::new(sealer),
            has_own_key,
            instance: random(),
            overflow: Overflow::default(),
            hub: Arc::default(),
            tasks: Store::default(),
            counters,
            thresholds: self.thresholds,
            breaker: self.breaker,
            cache_stats: self.cache_stats,
            admit: self.admit,
            may_watch: self.may_watch,
        });
        Ok(ServerDoor::new(core, &self.limits))
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("info", &self.info).finish_non_exhaustive()
    }
}

/// Why a server cannot be built, or something not be added to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildError(pub(crate) String);

impl std::fmt::Display for BuildError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BuildError {}
