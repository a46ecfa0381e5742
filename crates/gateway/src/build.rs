//! Building what is on offer: from a configuration, and anew whenever a server lists something else.

use std::collections::VecDeque;
use std::sync::Arc;

use tidegate_client::AppError;
use tidegate_config::{Settings, ToolSettings};
use tidegate_service::Notice;
use tokio::task::JoinHandle;

use crate::gateway::{Inner, configuration_error};
use crate::keeper;
use crate::kept;
use crate::kind::Kind;
use crate::mount::Mount;
use crate::pins::Pins;
use crate::snapshot::{Snapshot, Source};

/// How many earlier snapshots are kept for cursors that name them.
const KEPT: usize = 4;

/// What calls read: the servers and what they offer together.
pub(crate) struct State {
    pub(crate) mounts: Vec<Arc<Mount>>,
    pub(crate) snapshot: Snapshot,
    pub(crate) tools: ToolSettings,
}

impl State {
    /// No servers.
    pub(crate) fn empty(settings: &Settings) -> State {
        State {
            mounts: Vec::new(),
            snapshot: Snapshot::new(0, &[], &settings.tools, &Pins::default()),
            tools: settings.tools.clone(),
        }
    }
}

/// What changing the state needs.
pub(crate) struct Building {
    pub(crate) settings: Settings,
    pub(crate) pins: Pins,
    next: u64,
    /// The states before this one, for cursors.
    pub(crate) earlier: VecDeque<Arc<State>>,
    pub(crate) closed: bool,
    /// Servers that are being closed because no configuration has them any more.
    pub(crate) leaving: Vec<JoinHandle<()>>,
}

impl Building {
    pub(crate) fn new(settings: &Settings) -> Building {
        Building {
            settings: settings.clone(),
            pins: Pins::default(),
            next: 1,
            earlier: VecDeque::new(),
            closed: false,
            leaving: Vec::new(),
        }
    }
}

impl Inner {
    /// Puts a configuration in force.
    pub(crate) fn apply(self: &Arc<Self>, settings: Settings) -> Result<(), AppError> {
        let mut building = self.building();
        if building.closed {
            return Err(configuration_error("The gateway is closed"));
        }
        let before = self.state.load_full();
        let mut pins = Pins::load(&settings.tools, &building.pins)?;
        let mut mounts = Vec::new();
        let mut new = Vec::new();
        for server in &settings.servers {
            let same = |mount: &&Arc<Mount>| {
                mount.settings.name == server.name && mount.settings.digest == server.digest
            };
            if let Some(mount) = before.mounts.iter().find(same) {
                // Whoever reloads may have set right what is not in the configuration.
                mount.client.forget_failures();
                mounts.push(mount.clone());
                continue;
            }
            let client = (self.dial)(server)?.lazy()?;
            let known = kept::load(settings.state_dir.as_deref(), server);
            let mount = Mount::new(server.clone(), client, known, self.id.clone());
            new.push(mount.clone());
            mounts.push(mount);
        }
        let gone: Vec<_> = before
            .mounts
            .iter()
            .filter(|old| !mounts.iter().any(|mount| Arc::ptr_eq(mount, old)))
            .cloned()
            .collect();
        let learned: Vec<_> =
            mounts.iter().map(|mount| pins.learn(&mount.settings, &mount.catalog())).collect();
        self.watch_pins(&mut pins);
        building.pins = pins;
        let drain = settings.drain;
        building.settings = settings;
        self.publish(&mut building, mounts);
        building.leaving.retain(|leaving| !leaving.is_finished());
        for mount in gone {
            tracing::info!(server = mount.name(), "unmounted");
            building.leaving.push(tokio::spawn(async move { mount.close(drain).await }));
        }
        drop(building);
        learned.into_iter().for_each(|learned| learned.save());
        for mount in new {
            tokio::spawn(keeper::keep(mount, self.on_read()));
        }
        Ok(())
    }

    /// What a keeper calls when it has read lists.
    fn on_read(self: &Arc<Self>) -> Arc<keeper::OnRead> {
        let inner = Arc::downgrade(self);
        Arc::new(move |mount: &Arc<Mount>, changed: &[Kind], told: &[Kind]| {
            if let Some(inner) = inner.upgrade() {
                inner.read(mount, changed, told);
            }
        })
    }

    /// A server's lists were read: those that `changed`, and those of which the server has `told`.
    pub(crate) fn read(&self, mount: &Arc<Mount>, changed: &[Kind], told: &[Kind]) {
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
        for notice in told.iter().map(|kind| kind.notice()) {
            if !notices.contains(&notice) {
                self.subscribers.tell(&notice);
                notices.push(notice);
            }
        }
        let state_dir = building.settings.state_dir.clone();
        drop(building);
        learned.save();
        if !changed.is_empty() {
            kept::save(state_dir, mount);
        }
    }

    /// Builds anew and tells whoever wants to know what is different. Returns what was told.
    pub(crate) fn publish(&self, building: &mut Building, mounts: Vec<Arc<Mount>>) -> Vec<Notice> {
        let sources: Vec<Source<'_>> = mounts
            .iter()
            .map(|mount| Source { settings: &mount.settings, catalog: mount.catalog() })
            .collect();
        let tools = building.settings.tools.clone();
        let snapshot = Snapshot::new(building.next, &sources, &tools, &building.pins);
        drop(sources);
        building.next += 1;
        let before = self.state.load_full();
        for report in snapshot.reports.iter().filter(|report| !before.snapshot.reports.contains(report)) {
            tracing::warn!("{report}");
        }
        let different: Vec<Kind> = Kind::ALL
            .into_iter()
            .filter(|kind| !snapshot.list(*kind).same_as(before.snapshot.list(*kind)))
            .collect();
        self.state.store(Arc::new(State { mounts, snapshot, tools }));
        building.earlier.push_front(before);
        building.earlier.truncate(KEPT);
        let mut notices: Vec<Notice> = different.into_iter().map(Kind::notice).collect();
        notices.dedup();
        for notice in &notices {
            self.subscribers.tell(notice);
        }
        notices
    }
}
