//! What is on offer, and how it changes: with a configuration, whenever a server lists something else, and when somebody
//! approves something. Whoever changes it does so here.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};

use futures_util::future::join_all;
use tidegate_client::{AppError, Audience, Instances};
use tidegate_config::{DisabledServer, ServerSettings, Settings, ToolSettings, check_server_name};
use tidegate_limits::CallLimits;
use tidegate_policy::{Caller, Policy, PolicyMode};
use tidegate_protocol::seal::Sealer;
use tidegate_protocol::{Object, Profile, seal};
use tidegate_service::events::{self, Event, PolicyChanged, ServerLeft};
use tidegate_service::{Context, ContextParts, Notice};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::catalog::Catalog;
use crate::disk_cache;
use crate::endpoints::Endpoints;
use crate::gateway::configuration_error;
use crate::kind::Kind;
use crate::listen::ListChanges;
use crate::mount::{Mount, PATIENCE};
use crate::names::Report;
use crate::pins::{self, Learned, Lock, Pins};
use crate::router::Router;
use crate::sealing;
use crate::shown::ViewCache;
use crate::snapshot::{Snapshot, Source};
use crate::supervisor;

/// How many lines are logged about one server and one change of what is on offer.
const LINES: usize = 10;
/// How many earlier snapshots are kept for cursors that name them.
const KEPT: usize = 4;

/// What calls read: the servers and what they offer together.
pub(crate) struct State {
    pub(crate) mounts: Vec<Arc<Mount>>,
    pub(crate) snapshot: Snapshot,
    /// What callers see of it who do not see everything.
    pub(crate) views: ViewCache,
    pub(crate) tools: ToolSettings,
    /// What there is at which endpoint.
    pub(crate) endpoints: Arc<Endpoints>,
    /// Who may do what; none if everybody may do everything.
    pub(crate) policy: Option<Arc<Policy>>,
    /// How much of it; none for whatever the process can.
    pub(crate) limits: Option<Arc<CallLimits>>,
    /// Whether everybody is authenticated.
    pub(crate) is_authenticated: bool,
    /// The servers of the configuration that are not used.
    pub(crate) disabled: Vec<DisabledServer>,
    /// Whose numbers clients look for in the gateway's own errors.
    pub(crate) errors: Profile,
}

impl State {
    /// No servers.
    pub(crate) fn empty(settings: &Settings) -> State {
        let endpoints = Arc::new(Endpoints::new(&settings.endpoints));
        State {
            mounts: Vec::new(),
            snapshot: Snapshot::new(&[], settings, &endpoints, &Pins::default()),
            views: ViewCache::default(),
            tools: settings.tools.clone(),
            endpoints,
            policy: in_force(settings),
            limits: None,
            is_authenticated: settings.auth.is_some(),
            disabled: settings.disabled.clone(),
            errors: settings.errors,
        }
    }

    /// Whether nobody knows who makes a call, though everybody should be known.
    pub(crate) fn is_unknown(&self, context: &ContextParts) -> bool {
        self.policy.is_some() && self.is_authenticated && context.claims.is_none()
    }

    /// Who makes a call, as far as the policy is concerned. Where everybody is authenticated, nobody is let through of whom
    /// nothing is known.
    pub(crate) fn caller<'a>(&self, policy: &Policy, context: &'a ContextParts) -> Caller<'a> {
        match self.is_unknown(context) {
            true => policy.unknown_caller(context),
            false => policy.caller(context),
        }
    }
}

/// Says which policy is in force now, after another one.
pub(crate) fn tell_policy(before: Option<&Policy>, now: Option<&Policy>) {
    let refuses = |policy: Option<&Policy>| policy.is_some_and(|policy| policy.mode() == PolicyMode::Enforce);
    let spec = now.map(Policy::spec);
    let digest = format!("{:?}", spec.map(|spec| (&spec.default, spec.mode, &spec.rules)));
    let digest: String =
        seal::digest([digest.as_str()])[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    events::emit(&Event::PolicyChanged(PolicyChanged {
        rules: spec.map_or(0, |spec| spec.rules.len()),
        mode: match now.map(Policy::mode) {
            None => "none",
            Some(PolicyMode::Enforce) => "enforce",
            Some(PolicyMode::Shadow) => "shadow",
        },
        default: if now.is_none_or(Policy::allows_by_default) { "allow" } else { "deny" },
        digest: &digest,
        is_opened: refuses(before) && !refuses(now),
    }));
}

/// The policy, if it asks anybody anything.
fn in_force(settings: &Settings) -> Option<Arc<Policy>> {
    settings.policy.clone().filter(|policy| !policy.is_open())
}

/// What changing the state needs.
pub(crate) struct Building {
    pub(crate) settings: Settings,
    pub(crate) pins: Pins,
    /// The limits of the settings, made once.
    pub(crate) limits: Option<Arc<CallLimits>>,
    pub(crate) closed: bool,
    /// Servers that are being closed because no configuration has them any more.
    pub(crate) leaving: Vec<JoinHandle<()>>,
    /// The servers of the configuration that somebody has switched off since the start.
    pub(crate) switched_off: BTreeSet<String>,
}

impl Building {
    pub(crate) fn new(settings: &Settings) -> Building {
        let (settings, pins) = (settings.clone(), Pins::default());
        Building {
            settings,
            pins,
            limits: None,
            closed: false,
            leaving: Vec::new(),
            switched_off: BTreeSet::new(),
        }
    }
}

impl Router {
    /// Puts a configuration in force. Blocks while files are read and servers are made, and nobody waits for that.
    pub(crate) fn apply(self: &Arc<Self>, settings: Settings) -> Result<(), AppError> {
        let settings = self.with_mounted(settings)?;
        let _turn = self.reloading.lock().unwrap_or_else(PoisonError::into_inner);
        let is_closed = || configuration_error("The gateway is closed");
        if self.building().closed {
            return Err(is_closed());
        }
        let before = self.state.load_full();
        let pins = Pins::load(&settings.tools)?;
        let sealer = sealing::sealer(&settings)?.map_or_else(|| self.sealer.load_full(), Arc::new);
        let mut mounts = Vec::new();
        // Whoever switched one off meant it for as long as it is there.
        let mut switched_off = self.building().switched_off.clone();
        switched_off.retain(|name| settings.servers.iter().any(|server| server.name == *name));
        for server in settings.servers.iter().filter(|server| !switched_off.contains(&server.name)) {
            let same = |mount: &&Arc<Mount>| {
                mount.settings.name == server.name && mount.settings.digest == server.digest
            };
            if let Some(mount) = before.mounts.iter().find(same) {
                // Whoever reloads may have set right what is not in the configuration.
                mount.client.forget_failures();
                mounts.push(mount.clone());
                continue;
            }
            let known = disk_cache::load(settings.state_dir.as_deref(), server);
            mounts.push(self.mount_of(server, known, &sealer, settings.auth.is_some())?);
        }
        let mut building = self.building();
        if building.closed {
            return Err(is_closed());
        }
        let mut pins = pins.following(&building.pins);
        let learned: Vec<_> =
            mounts.iter().map(|mount| pins.learn(&mount.settings, &mount.catalog())).collect();
        pins::watch(self, &mut pins);
        building.pins = pins;
        building.limits = settings.limits.as_ref().map(|limits| Arc::new(CallLimits::new(limits)));
        building.settings = settings;
        building.switched_off = switched_off;
        mounts.iter().for_each(|mount| mount.client.reseal(sealer.scoped(mount.name())));
        self.sealer.store(sealer);
        self.put_in_place(building, mounts, learned, |is_replaced| match is_replaced {
            true => "configuration changed; starting it anew",
            false => "removed",
        });
        Ok(())
    }

    /// A server that is not supervised yet. `known` is what it listed the last time.
    pub(crate) fn mount_of(
        self: &Arc<Self>,
        server: &ServerSettings,
        known: Catalog,
        sealer: &Sealer,
        is_authenticated: bool,
    ) -> Result<Arc<Mount>, AppError> {
        let (gateway, name) = (Arc::downgrade(self), server.name.clone());
        let heard = move |audience: &Audience, params: &Object| {
            let Some(gateway) = gateway.upgrade() else { return false };
            let state = gateway.state.load();
            let is_there = |context: &Context| gateway.views.has_all_of(&state, context, &name);
            gateway.subscribers.tell_log(params, |context| audience.includes(context) && is_there(context))
        };
        let client = (self.dial)(server)?.sealer(sealer.scoped(&server.name)).on_session_log(heard).lazy()?;
        // A choice that is made on purpose, and that matters only where there are several users.
        if is_authenticated && server.options.sessions.instances == Instances::One {
            tracing::warn!(
                "The server {:?} has one session for all users (instances = \"one\"): what it remembers of one of them it \
                 may tell another. \"per-user\" gives each their own.",
                server.name
            );
        }
        Ok(Mount::new(server.clone(), client, known, self.id.clone()))
    }

    /// Has these servers in place of those before. Those that are new are supervised, and those that are gone are closed once
    /// their calls are done; `why` says what the log says of these, by whether another takes their place.
    pub(crate) fn put_in_place(
        self: &Arc<Self>,
        mut building: MutexGuard<'_, Building>,
        mounts: Vec<Arc<Mount>>,
        learned: Vec<Learned>,
        why: impl Fn(bool) -> &'static str,
    ) {
        let before = self.state.load_full();
        let other = |them: &[Arc<Mount>], mount: &Arc<Mount>| !them.iter().any(|it| Arc::ptr_eq(it, mount));
        let gone: Vec<_> = before.mounts.iter().filter(|old| other(&mounts, old)).cloned().collect();
        let new: Vec<_> = mounts.iter().filter(|mount| other(&before.mounts, mount)).cloned().collect();
        let drain = building.settings.drain;
        self.publish(&mut building, mounts);
        building.leaving.retain(|leaving| !leaving.is_finished());
        for mount in gone {
            let is_replaced = self.state.load().mounts.iter().any(|other| other.name() == mount.name());
            let message = why(is_replaced);
            events::emit(&Event::ServerLeft(ServerLeft { server: mount.name(), is_replaced, message }));
            building.leaving.push(tokio::spawn(async move { mount.close(drain).await }));
        }
        drop(building);
        learned.into_iter().for_each(|learned| learned.save());
        for mount in new {
            tokio::spawn(supervisor::run(mount, self.on_read()));
        }
    }

    /// A configuration with the servers that the program mounted itself behind its own.
    fn with_mounted(&self, mut settings: Settings) -> Result<Settings, AppError> {
        for server in &self.mounted {
            if let Err(why) = check_server_name(&server.name) {
                return Err(configuration_error(format!("Cannot mount {:?}: {why}", server.name)));
            }
            if settings.servers.iter().any(|other| other.name == server.name) {
                return Err(configuration_error(format!("There are two servers named {:?}", server.name)));
            }
            settings.servers.push(server.clone());
        }
        Ok(settings)
    }

    /// What a supervisor calls when it has read lists.
    fn on_read(self: &Arc<Self>) -> Arc<supervisor::OnRead> {
        let router = Arc::downgrade(self);
        Arc::new(move |mount: Arc<Mount>, changed: Vec<Kind>, told: Vec<Kind>| {
            let router = router.upgrade();
            Box::pin(async move {
                if let Some(router) = router {
                    router.take_in(mount, changed, told).await;
                }
            })
        })
    }

    /// The same as [`Router::read`], on a thread of its own: building anew what many servers offer takes a while, and so may
    /// waiting for whoever does that at this moment.
    pub(crate) async fn take_in(self: &Arc<Self>, mount: Arc<Mount>, changed: Vec<Kind>, told: Vec<Kind>) {
        let router = self.clone();
        let built = tokio::task::spawn_blocking(move || router.read(&mount, &changed, &told)).await;
        if let Err(error) = built {
            tracing::error!(%error, "Cannot update the lists of a server");
        }
    }

    /// A server's lists were read: those that `changed`, and those of which the server has `told`.
    fn read(&self, mount: &Arc<Mount>, changed: &[Kind], told: &[Kind]) {
        // That resources of single callers have come or gone is told to those callers, and changes nothing here.
        let of_single_callers =
            |kind: &Kind| kind.notice() == Notice::ResourcesChanged && mount.has_own_resources();
        let (ignored, told): (Vec<Kind>, Vec<Kind>) = told.iter().partition(|kind| of_single_callers(kind));
        if changed.is_empty() && told.is_empty() && !ignored.is_empty() {
            return;
        }
        let mut building = self.building();
        if building.closed {
            return;
        }
        let mounts = self.state.load().mounts.clone();
        if !mounts.iter().any(|mounted| Arc::ptr_eq(mounted, mount)) {
            return;
        }
        let learned = building.pins.learn(&mount.settings, &mount.catalog());
        let mut notices = self.publish(&mut building, mounts);
        let state = self.state.load_full();
        for notice in told.iter().map(|kind| kind.notice()) {
            if !notices.contains(&notice) {
                // Whoever does not see everything hears of what is different for them, and has.
                self.subscribers.tell(&notice, |context| !self.views.is_restricted(&state, context));
                notices.push(notice);
            }
        }
        let state_dir = building.settings.state_dir.clone();
        drop(building);
        learned.save();
        if mount.unsaved.swap(false, Ordering::Relaxed) {
            disk_cache::save(state_dir, mount);
        }
    }

    /// Puts other pins in force, unless the configuration is another one by now.
    pub(crate) fn repin(&self, lock: Lock, over: &CancellationToken) {
        let mut building = self.building();
        if building.closed || over.is_cancelled() {
            return;
        }
        building.pins.take(lock);
        let mounts = self.state.load().mounts.clone();
        let learned: Vec<_> =
            mounts.iter().map(|mount| building.pins.learn(&mount.settings, &mount.catalog())).collect();
        self.publish(&mut building, mounts);
        drop(building);
        learned.into_iter().for_each(|learned| learned.save());
    }

    /// Waits for servers that were just mounted, but not for long: only they themselves know what else they have, even if
    /// their lists are known from the last time.
    pub(crate) async fn all_settled(&self) {
        let state = self.state.load_full();
        join_all(state.mounts.iter().map(|mount| mount.settled(PATIENCE))).await;
    }

    /// Waits for servers that are about to say what they offer, and asks those again whose word is too old. Nobody waits
    /// long for anybody.
    pub(crate) async fn look_again(self: &Arc<Self>, kind: Kind) {
        let state = self.state.load_full();
        let is_late = |mount: &&Arc<Mount>| !mount.is_listed(kind);
        if state.mounts.iter().any(|mount| is_late(&mount)) {
            join_all(state.mounts.iter().filter(is_late).map(|mount| mount.settled(PATIENCE))).await;
        }
        let is_old = |mount: &&Arc<Mount>| mount.is_stale(kind) && !mount.is_down() && !mount.is_held();
        let old: Vec<_> = state.mounts.iter().filter(is_old).cloned().collect();
        if old.is_empty() {
            return;
        }
        let reading = old.into_iter().map(|mount| {
            let router = self.clone();
            // A task of its own: whoever does not wait for it does not stop it.
            tokio::spawn(async move {
                match mount.refresh(kind).await {
                    Ok(changed) => router.take_in(mount, changed, Vec::new()).await,
                    Err(error) => {
                        tracing::debug!(server = mount.name(), %error, "cannot refresh an outdated list")
                    }
                }
            })
        });
        let _ = tokio::time::timeout(PATIENCE, join_all(reading)).await;
    }

    /// Builds anew and tells whoever wants to know what is different. Returns what was told.
    pub(crate) fn publish(&self, building: &mut Building, mounts: Vec<Arc<Mount>>) -> Vec<Notice> {
        let sources: Vec<Source<'_>> = mounts
            .iter()
            .map(|mount| Source { settings: &mount.settings, catalog: mount.catalog() })
            .collect();
        let tools = building.settings.tools.clone();
        let before = self.state.load_full();
        let endpoints = match Endpoints::new(&building.settings.endpoints) {
            same if same == *before.endpoints => before.endpoints.clone(),
            other => Arc::new(other),
        };
        let policy = in_force(&building.settings);
        let is_authenticated = building.settings.auth.is_some();
        let spec = |policy: &Option<Arc<Policy>>| policy.as_ref().map(|policy| policy.spec().clone());
        let is_same_policy = spec(&before.policy) == spec(&policy);
        let snapshot = Snapshot::new(&sources, &building.settings, &endpoints, &building.pins);
        drop(sources);
        let said: HashSet<&Report> = before.snapshot.reports.iter().collect();
        let new = snapshot.reports.iter().filter(|report| !said.contains(report));
        for line in lines(new) {
            tracing::warn!("{line}");
        }
        let different: Vec<Kind> = Kind::ALL
            .into_iter()
            .filter(|kind| !snapshot.list(*kind).same_as(before.snapshot.list(*kind)))
            .collect();
        {
            let mut earlier = self.earlier();
            drop(said);
            earlier.push_front(before.clone());
            earlier.truncate(KEPT);
            // What an endpoint no longer has, no cursor shows.
            // Nor what somebody may no longer use.
            if !Arc::ptr_eq(&before.endpoints, &endpoints)
                || !is_same_policy
                || is_authenticated != before.is_authenticated
            {
                earlier.clear();
            }
        }
        let errors = building.settings.errors;
        let switched_off = building.switched_off.iter().map(|name| DisabledServer::switched_off(name));
        let disabled = building.settings.disabled.iter().cloned().chain(switched_off).collect();
        let views = ViewCache::default();
        let now = Arc::new(State {
            mounts,
            snapshot,
            views,
            tools,
            endpoints,
            policy,
            limits: building.limits.clone(),
            is_authenticated,
            disabled,
            errors,
        });
        self.state.store(now.clone());
        if !is_same_policy {
            tell_policy(before.policy.as_deref(), now.policy.as_deref());
        }
        let mut notices: Vec<Notice> = different.into_iter().map(Kind::notice).collect();
        notices.dedup();
        self.subscribers.tell_changes(&notices, &mut ListChanges::new(&self.views, &before, &now));
        notices
    }
}

/// What to log of reports: a server that changes thousands of names is told of in a few lines.
fn lines<'a>(reports: impl Iterator<Item = &'a Report>) -> Vec<String> {
    let (mut lines, mut counts) = (Vec::new(), BTreeMap::<&str, usize>::new());
    for Report { server, sentence } in reports {
        let count = counts.entry(server).or_default();
        *count += 1;
        if *count <= LINES {
            lines.push(sentence.clone());
        }
    }
    let more = counts.into_iter().filter(|(_, count)| *count > LINES);
    lines.extend(more.map(|(server, count)| format!("and {} more about {server:?}", count - LINES)));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_with_thousands_of_reports_gets_a_few_lines() {
        let many = (0..10_000).map(|n| Report::new("loud", format!("loud {n}")));
        let reports: Vec<Report> = many.chain([Report::new("quiet", "once".to_owned())]).collect();
        let lines = lines(reports.iter());
        assert_eq!(lines.len(), LINES + 2, "{lines:?}");
        assert_eq!((&*lines[0], &*lines[LINES - 1]), ("loud 0", "loud 9"));
        assert_eq!(lines[LINES..], ["once", "and 9990 more about \"loud\""]);
    }
}
