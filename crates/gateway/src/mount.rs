//! [`Mount`]: one server behind the gateway.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use arc_swap::{ArcSwap, ArcSwapOption};
use tidegate_client::{BareClientDoor, Client, ServerInfo, Target};
use tidegate_config::{ServerSettings, Source};
use tidegate_protocol::{ClientCapabilities, Error, Object, Symbol};
use tidegate_service::budget::MAX_LISTS;
use tidegate_service::events::{self, Event, ServerStateChanged};
use tidegate_service::layers::BreakerState;
use tidegate_service::{Call, Context, Current, Door, OWN_RESOURCES, Reply, UNLISTED};
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use crate::catalog::{self, About, Catalog, Part};
use crate::kind::Kind;
use crate::loops;
use crate::status::{self, Health, ServerStatus};

/// How long whoever wants a list waits for a server that has just been mounted.
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);
/// How long a server whose skills could not be listed is not asked for them again.
const SKILLS_PAUSE: Duration = Duration::from_secs(10);

/// How long a server may take for what an extension lists.
const WITHIN: Duration = Duration::from_secs(10);

/// One server: its settings, the connection to it, what it lists and how it is doing.
pub(crate) struct Mount {
    pub(crate) settings: ServerSettings,
    /// The name, as the records of calls have it.
    label: Arc<str>,
    pub(crate) client: Client,
    pub(crate) door: BareClientDoor,
    catalog: ArcSwap<Catalog>,
    /// Which lists were known before the server was first asked, and whether it was known what it says of itself.
    knew: ([bool; Kind::COUNT], bool),
    pub(crate) facts: ArcSwapOption<ServerInfo>,
    health: Mutex<(Health, Instant)>,
    /// Whether the first attempt to read its lists is over, however it ended.
    settled: watch::Sender<bool>,
    mounted: Instant,
    in_flight: AtomicUsize,
    /// Milliseconds after `mounted` of the last call.
    last_used: AtomicU64,
    /// One more than the milliseconds after `mounted` at which skills could last not be listed; 0 if they always could.
    skills_failed: AtomicU64,
    /// Whether it is down: calls look here, without a lock.
    down: AtomicBool,
    /// Whether it was let rest; a call wakes it.
    resting: AtomicBool,
    /// Wakes the supervisor: a call came to a server at rest, or a list is wanted anew.
    pub(crate) wake: Notify,
    /// Tells the supervisor to try at once a server that it has left alone for a while.
    pub(crate) try_again: Notify,
    /// Which gateway this is, to notice servers that lead back to it.
    gateway: Arc<str>,
    /// One reader of lists at a time.
    reading: tokio::sync::Mutex<()>,
    /// Whether something is known that is not on disk yet.
    pub(crate) unsaved: AtomicBool,
    /// One writer of the lists on disk at a time.
    pub(crate) saving: Mutex<()>,
    /// Fires when the server is unmounted.
    pub(crate) over: CancellationToken,
}

impl Mount {
    /// A server that is not connected to yet. `kept` is what it listed the last time.
    pub(crate) fn new(
        settings: ServerSettings,
        client: Client,
        kept: Catalog,
        gateway: Arc<str>,
    ) -> Arc<Mount> {
        let now = Instant::now();
        let knew = (Kind::ALL.map(|kind| kept.part(kind).is_some()), kept.about.is_some());
        Arc::new(Mount {
            knew,
            label: settings.name.as_str().into(),
            door: client.bare_door(),
            settings,
            client,
            catalog: ArcSwap::from_pointee(kept),
            facts: ArcSwapOption::empty(),
            health: Mutex::new((Health::Starting, now)),
            settled: watch::channel(false).0,
            mounted: now,
            in_flight: AtomicUsize::new(0),
            last_used: AtomicU64::new(0),
            skills_failed: AtomicU64::new(0),
            down: AtomicBool::new(false),
            resting: AtomicBool::new(false),
            wake: Notify::new(),
            try_again: Notify::new(),
            gateway,
            reading: tokio::sync::Mutex::default(),
            unsaved: AtomicBool::new(false),
            saving: Mutex::default(),
            over: CancellationToken::new(),
        })
    }

    pub(crate) fn name(&self) -> &str {
        &self.settings.name
    }

    /// Whether the server says that it has tools which it does not list.
    pub(crate) fn has_unlisted_tools(&self) -> bool {
        self.facts.load().as_deref().is_some_and(|facts| says(facts, UNLISTED))
    }

    /// Whether the server says that each caller has resources of their own.
    pub(crate) fn has_own_resources(&self) -> bool {
        self.facts.load().as_deref().is_some_and(|facts| says(facts, OWN_RESOURCES))
    }

    /// Makes a call.
    pub(crate) async fn call(&self, call: Call) -> Reply {
        Current::sent_to(&self.label);
        let is_told = events::is_wanted(events::Kind::CallEnded);
        let revision = || self.facts.load().as_ref().map(|facts| facts.revision);
        let known = is_told.then(revision).flatten();
        // Now, because a call that is given up never comes back here.
        Current::spoke(known);
        let _running = self.begin();
        let Ok(reply) = self.door.answer(call).await;
        if is_told && known.is_none() {
            Current::spoke(revision());
        }
        reply
    }

    /// Whether it is a server of this program.
    pub(crate) fn is_of_program(&self) -> bool {
        !matches!(self.settings.source, Source::Target(Target::Command(_) | Target::Url(_)))
    }

    /// Counts a call for as long as the guard lives.
    fn begin(&self) -> Running<'_> {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        self.touch();
        if self.resting.load(Ordering::Relaxed) {
            self.wake.notify_one();
        }
        Running(self)
    }

    /// Lets the server rest. `false` if somebody still wants something of it.
    pub(crate) async fn rest(&self) -> bool {
        self.resting.store(true, Ordering::Relaxed);
        let rests = self.in_flight() == 0 && self.client.rest().await;
        if !rests {
            self.resting.store(false, Ordering::Relaxed);
        }
        rests
    }

    fn touch(&self) {
        self.last_used.store(self.since_mounted(), Ordering::Relaxed);
    }

    /// In milliseconds.
    fn since_mounted(&self) -> u64 {
        self.mounted.elapsed().as_millis() as u64
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// For how long nobody has called.
    pub(crate) fn idle_for(&self) -> Duration {
        if self.in_flight() > 0 {
            return Duration::ZERO;
        }
        let last = Duration::from_millis(self.last_used.load(Ordering::Relaxed));
        self.mounted.elapsed().saturating_sub(last)
    }

    /// The context of what the gateway itself asks.
    pub(crate) fn context(&self) -> Context {
        let mut context = Context::local();
        context.caller = Some(self.client.caller());
        // Some servers hide what they could not do for a client that cannot be asked. Callers can.
        context.capabilities = ClientCapabilities::all();
        context.client_info = Some(self.settings.options.client_info.clone());
        context
    }

    pub(crate) fn catalog(&self) -> Arc<Catalog> {
        self.catalog.load_full()
    }

    /// Reads these lists anew. Returns which of them are not what they were.
    pub(crate) async fn read(&self, kinds: &[Kind]) -> Result<Vec<Kind>, Error> {
        let _turn = self.reading.lock().await;
        self.read_in_turn(kinds).await
    }

    /// Reads a list anew, unless somebody else has just done so.
    pub(crate) async fn refresh(&self, kind: Kind) -> Result<Vec<Kind>, Error> {
        let asked = Instant::now();
        let _turn = self.reading.lock().await;
        match self.catalog().part(kind).and_then(|part| part.read) {
            Some(read) if read >= asked => Ok(Vec::new()),
            _ => self.read_in_turn(&[kind]).await,
        }
    }

    async fn read_in_turn(&self, kinds: &[Kind]) -> Result<Vec<Kind>, Error> {
        let facts = self.client.server().await.map_err(|error| {
            let told = match error.symbol {
                Symbol::ServerCapabilityMissing => error.public_message,
                _ => format!("The server {:?} cannot be reached", self.name()),
            };
            Error::new(error.symbol, told).with_detail(error.message)
        })?;
        loops::check(&self.gateway, &facts)?;
        let context = self.context();
        let mut read = Vec::new();
        for &kind in kinds {
            if !kind.offered(&facts) {
                read.push((kind, Part::none()));
                continue;
            }
            // What is a caller's own is listed for that caller, when they ask.
            let shared_only = kind == Kind::Resources && says(&facts, OWN_RESOURCES);
            let so_far: usize = read.iter().map(|(_, part)| Part::bytes(part)).sum();
            let room = MAX_LISTS.saturating_sub(self.bytes_besides(kinds) + so_far);
            let reading = catalog::read(&self.door, kind, &context, shared_only, room);
            let read_part = match kind {
                // Whatever else the server has does not wait for what an extension lists.
                Kind::Skills => {
                    tokio::time::timeout(WITHIN, reading).await.unwrap_or_else(|_| Err(late(kind)))
                }
                _ => reading.await,
            };
            let part = match read_part {
                Ok(part) => part,
                Err(error) if is_gone(&error) && kind != Kind::Skills => return Err(error),
                // Some servers have resources and have never heard of templates, or say that they have what they have not.
                Err(error) if error.symbol() == Symbol::MethodNotFound => Part::none(),
                // Tools are what most servers are for: that they cannot be known is worth more than a line in the log.
                Err(error) if kind == Kind::Tools => return Err(error),
                // Another list that is broken does not spoil the rest; what was known of it stays.
                Err(error) => {
                    if kind == Kind::Skills {
                        self.skills_failed.store(self.since_mounted() + 1, Ordering::Relaxed);
                    }
                    tracing::warn!(server = self.name(), %error, "Cannot read {}", kind.method());
                    match self.catalog().part(kind) {
                        Some(known) => known.clone(),
                        None => Part { ttl: Duration::ZERO, ..Part::none() },
                    }
                }
            };
            read.push((kind, part));
        }
        let mut catalog = (*self.catalog()).clone();
        let about = Some(About::of(&facts));
        let mut is_new = catalog.about != about;
        catalog.about = about;
        let mut changed = Vec::new();
        let skills = &mut catalog.parts[Kind::Skills.index()];
        if !Kind::Skills.offered(&facts) {
            if skills.take().is_some_and(|known| !known.entries.is_empty()) {
                changed.push(Kind::Skills);
            }
        } else if kinds.contains(&Kind::Resources)
            && let Some(skills) = skills
        {
            // Files of skills are resources, and no other change of skills is ever announced.
            skills.ttl = Duration::ZERO;
        }
        self.facts.store(Some(Arc::new(facts)));
        for (kind, part) in read {
            let known = &mut catalog.parts[kind.index()];
            if !known.as_ref().is_some_and(|known| known.same_as(&part)) {
                changed.push(kind);
            }
            *known = Some(part);
        }
        is_new |= !changed.is_empty();
        self.catalog.store(Arc::new(catalog));
        if is_new {
            self.unsaved.store(true, Ordering::Relaxed);
        }
        Ok(changed)
    }

    /// What the lists take that are not among these.
    fn bytes_besides(&self, kinds: &[Kind]) -> usize {
        let others = Kind::ALL.into_iter().filter(|kind| !kinds.contains(kind));
        others.filter_map(|kind| Some(self.catalog().part(kind)?.bytes())).sum()
    }

    /// Whether a list may no longer be what the server would say: its time is over, and nobody tells of changes.
    pub(crate) fn is_stale(&self, kind: Kind) -> bool {
        let facts = self.facts.load();
        let Some(facts) = &*facts else { return false };
        let catalog = self.catalog();
        if !kind.offered(facts) {
            return false;
        }
        // What an extension lists is read when somebody wants it, and nobody tells when it has changed.
        if kind == Kind::Skills {
            // A server that cannot say it is left alone for a while: each caller would wait for it anew.
            let failed = self.skills_failed.load(Ordering::Relaxed);
            if failed > 0 && self.since_mounted().saturating_sub(failed) < SKILLS_PAUSE.as_millis() as u64 {
                return false;
            }
            return catalog.part(kind).is_none_or(|part| part.good_for(Instant::now()).is_zero());
        }
        let Some(part) = catalog.part(kind) else { return false };
        let Some(read) = part.read else { return false };
        // A server that tells of changes is believed for a while longer than it promises; a legacy one promises nothing.
        let believed = match kind.announced(facts) || facts.era() == tidegate_protocol::Era::Legacy {
            true => part.ttl.max(self.settings.options.cache_ttl),
            false => part.ttl,
        };
        read.elapsed() >= believed
    }

    /// Whether the server says that it tells of changes of any list.
    pub(crate) fn announces(&self) -> bool {
        let facts = self.facts.load();
        facts.as_ref().is_some_and(|facts| Kind::ALL.iter().any(|kind| kind.announced(facts)))
    }

    /// Waits until the first attempt to read the lists is over, but not for long.
    pub(crate) async fn settled(&self, patience: Duration) {
        let mut settled = self.settled.subscribe();
        let left = patience.saturating_sub(self.mounted.elapsed());
        if *settled.borrow() || left.is_zero() {
            return;
        }
        let _ = tokio::time::timeout(left, settled.wait_for(|settled| *settled)).await;
    }

    fn is_settled(&self) -> bool {
        *self.settled.borrow()
    }

    /// Whether a list of the server is on offer, or will not come soon. What was read and is not on offer yet does not count.
    pub(crate) fn is_listed(&self, kind: Kind) -> bool {
        self.knew.0[kind.index()] || self.is_settled()
    }

    /// The same for what it says of itself.
    pub(crate) fn is_introduced(&self) -> bool {
        self.knew.1 || self.is_settled()
    }

    /// Waits this long, or until somebody wants it to be tried again.
    pub(crate) async fn leave_alone(&self, pause: Duration) {
        let _ = tokio::time::timeout(pause, self.try_again.notified()).await;
    }

    /// The first attempt is over.
    pub(crate) fn settle(&self) {
        self.settled.send_replace(true);
    }

    fn health(&self) -> MutexGuard<'_, (Health, Instant)> {
        self.health.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes how the server is doing; says so in the log when that is news.
    pub(crate) fn set_health(&self, health: Health) {
        let mut known = self.health();
        if health != Health::Resting {
            self.resting.store(false, Ordering::Relaxed);
        }
        self.down.store(matches!(health, Health::Down { .. }), Ordering::Relaxed);
        if known.0 == health {
            return;
        }
        let same_word = known.0.as_str() == health.as_str();
        self.tell_health(&known.0, known.1.elapsed(), &health);
        let since = if same_word { known.1 } else { Instant::now() };
        *known = (health, since);
    }

    /// Tells how the server is doing, which for `lasted` was `before`.
    fn tell_health(&self, before: &Health, lasted: Duration, now: &Health) {
        let is_ready = *now == Health::Ready;
        let tools = is_ready.then(|| self.offered_tools());
        let facts = self.facts.load();
        let revision = facts.as_ref().filter(|_| is_ready).map(|facts| facts.revision);
        let message: Cow<'_, str> = match now {
            Health::Down { why, .. } => format!("not available: {why}").into(),
            Health::Ready => {
                let took = match before {
                    Health::Starting => Some(seconds(lasted)),
                    Health::Down { .. } => Some(format!("after {}", seconds(lasted))),
                    _ => None,
                };
                let about: Vec<_> =
                    revision.map(|revision| revision.as_str().to_owned()).into_iter().chain(took).collect();
                let about = if about.is_empty() { String::new() } else { format!(" ({})", about.join(", ")) };
                format!("ready: {}{about}", status::tools(tools.unwrap_or_default())).into()
            }
            Health::Resting => "stopped because nobody uses it; the next call starts it again".into(),
            Health::Starting => "its process ended; starting it again".into(),
        };
        events::emit(&Event::ServerStateChanged(ServerStateChanged {
            server: self.name(),
            state: now.as_str(),
            is_down: matches!(now, Health::Down { .. }),
            was_down: matches!(before, Health::Down { .. }),
            tools,
            revision,
            message: &message,
        }));
    }

    /// How many of its tools the configuration lets through.
    fn offered_tools(&self) -> usize {
        let catalog = self.catalog();
        let entries = catalog.part(Kind::Tools).map_or(&[][..], |part| &part.entries);
        entries.iter().filter(|entry| self.settings.offers(&entry.key)).count()
    }

    /// Whether the server cannot be used.
    pub(crate) fn is_down(&self) -> bool {
        self.down.load(Ordering::Relaxed)
    }

    /// That the server is down and why, as far as callers are told.
    pub(crate) fn down_in_words(&self) -> String {
        match &self.health().0 {
            Health::Down { told, .. } => format!("The server {:?} is down. {told}", self.name()),
            _ => format!("The server {:?} is down", self.name()),
        }
    }

    /// Why it is down, for whoever runs the gateway.
    pub(crate) fn down_because(&self) -> Option<String> {
        match &self.health().0 {
            Health::Down { why, .. } => Some(format!("The server {:?} is down: {why}", self.name())),
            _ => None,
        }
    }

    /// Whether the breaker is not closed. What failing calls have opened is closed by a caller's trial call: the gateway
    /// asks nothing of its own meanwhile, because an answer to it would say that the server is well when its callers know
    /// better.
    pub(crate) fn is_held(&self) -> bool {
        self.client.circuit().state() != BreakerState::Closed
    }

    pub(crate) fn status(&self) -> ServerStatus {
        let (health, since) = self.health().clone();
        let catalog = self.catalog();
        ServerStatus {
            name: self.name().to_owned(),
            health,
            since,
            revision: self.facts.load().as_ref().map(|facts| facts.revision),
            breaker: self.client.circuit().state(),
            in_flight: self.in_flight(),
            listed: Kind::CORE.map(|kind| catalog.part(kind).map_or(0, |part| part.entries.len())),
            tools: self.offered_tools(),
            in_use: self.client.in_use(),
        }
    }

    /// Ends the server once its calls are done, or when the time is over.
    pub(crate) async fn close(&self, drain: Duration) {
        self.over.cancel();
        let done = async {
            while self.in_flight() > 0 {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        if tokio::time::timeout(drain, done).await.is_err() {
            tracing::warn!(
                server = self.name(),
                calls = self.in_flight(),
                "Stopped with calls still running"
            );
        }
        self.client.close().await;
    }
}

/// A length of time as people say it: `0.4 s`, `12 s`, `3 min`.
fn seconds(time: Duration) -> String {
    match time.as_secs() {
        0..10 => format!("{:.1} s", time.as_secs_f64()),
        seconds @ 10..120 => format!("{seconds} s"),
        seconds => format!("{} min", seconds / 60),
    }
}

/// Whether a server says so among its experimental capabilities.
fn says(facts: &ServerInfo, what: &str) -> bool {
    let said = || Some(Object::of(&facts.capabilities)?.object("experimental")?.has(what));
    said().unwrap_or_default()
}

/// A list that did not come.
fn late(kind: Kind) -> Error {
    Error::new(Symbol::Timeout, format!("The server did not answer {} within {WITHIN:?}", kind.method()))
}

/// Whether a failure says that the server is not there, rather than that it does not do something.
fn is_gone(error: &Error) -> bool {
    use Symbol::{CircuitOpen, Timeout, Unauthorized, Unavailable};
    matches!(error.symbol(), Unavailable | Timeout | CircuitOpen | Unauthorized)
}

/// A call that is running.
struct Running<'a>(&'a Mount);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
        self.0.touch();
    }
}

impl std::fmt::Debug for Mount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Mount({})", self.name())
    }
}
