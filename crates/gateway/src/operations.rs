//! What an operator does to single servers while the gateway runs: restart, switch off, switch on, try again.

use std::fmt;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use tidegate_config::ServerSettings;
use tidegate_service::nearest_name;

use crate::build::Building;
use crate::disk_cache;
use crate::gateway::Gateway;
use crate::mount::Mount;
use crate::router::Router;

/// How long a server may take to answer whether it is there.
const PROBE_WITHIN: Duration = Duration::from_secs(5);
/// And how long one that has to start first, whatever its `start_timeout` says: somebody waits for it.
const START_WITHIN: Duration = Duration::from_secs(20);

/// Why nothing was done to a server. Its `Display` is a sentence for whoever runs the gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum OperationError {
    /// There is no server of that name.
    Unknown {
        /// The name.
        name: String,
        /// The name that may be meant.
        near: Option<String>,
    },
    /// The server is not used.
    Disabled {
        /// Its name.
        name: String,
        /// Why it is not.
        reason: String,
    },
    /// The server cannot be used as it is configured.
    Unusable {
        /// Its name.
        name: String,
        /// What is wrong.
        why: String,
    },
    /// The gateway has ended.
    Closed,
}

impl fmt::Display for OperationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OperationError::Unknown { name, near: Some(near) } => {
                write!(f, "there is no server {name:?}; did you mean {near:?}?")
            }
            OperationError::Unknown { name, near: None } => write!(f, "there is no server {name:?}"),
            OperationError::Disabled { name, reason } => {
                write!(f, "the server {name:?} is disabled: {reason}")
            }
            OperationError::Unusable { name, why } => {
                write!(f, "the server {name:?} cannot be started: {why}")
            }
            OperationError::Closed => f.write_str("the gateway is ending"),
        }
    }
}

impl std::error::Error for OperationError {}

impl Gateway {
    /// Has a server begin anew, with another connection or process. What it lists stays on offer meanwhile. Calls that are running
    /// end where they began, within the time that the configuration gives them (`drain`).
    /// Returns why the new one does not answer, if it does not.
    pub async fn restart_server(&self, name: &str) -> Result<Option<String>, OperationError> {
        self.operate(name, |router, name| router.restart(name)).await?;
        let mount = self.router.mounted(name)?;
        let within = mount.settings.options.init_timeout.min(START_WITHIN);
        let answered = mount.client.probe(within).await;
        if answered.is_ok() {
            // What it lists is read now, after which it is said to be ready.
            mount.settled(PROBE_WITHIN).await;
        }
        Ok(answered.err().map(|error| error.message))
    }

    /// Switches a server off until it is switched on again or the process ends, whatever the configuration says: what it offers
    /// leaves all lists, and subscribers are told. Calls that are running may finish. `false` if it was off already.
    pub async fn disable_server(&self, name: &str) -> Result<bool, OperationError> {
        self.operate(name, |router, name| router.switch_off(name)).await
    }

    /// Switches a server on again that was switched off. `false` if it is on. What the configuration itself disables stays so.
    pub async fn enable_server(&self, name: &str) -> Result<bool, OperationError> {
        self.operate(name, |router, name| router.switch_on(name)).await
    }

    /// Closes the circuit breaker of a server, forgets its failures and asks it at once whether it is there. Returns why it does not
    /// answer, if it does not.
    pub async fn reset_server(&self, name: &str) -> Result<Option<String>, OperationError> {
        let mount = self.router.mounted(name)?;
        mount.client.circuit().reset();
        mount.client.forget_failures();
        let answered = mount.client.probe(PROBE_WITHIN).await;
        mount.try_again.notify_one();
        Ok(answered.err().map(|error| error.message))
    }

    /// Servers of the program are opened for it, which may take a while: not where calls are answered. It goes on if this is
    /// dropped.
    async fn operate<T: Send + 'static>(
        &self,
        name: &str,
        operation: impl FnOnce(&Arc<Router>, &str) -> Result<T, OperationError> + Send + 'static,
    ) -> Result<T, OperationError> {
        let (router, name) = (self.router.clone(), name.to_owned());
        let done = tokio::task::spawn_blocking(move || operation(&router, &name)).await;
        done.unwrap_or(Err(OperationError::Closed))
    }
}

impl Router {
    fn restart(self: &Arc<Self>, name: &str) -> Result<(), OperationError> {
        let _turn = self.reloading.lock().unwrap_or_else(PoisonError::into_inner);
        let old = self.mounted(name)?;
        let known = (*old.catalog()).clone();
        let new = self.made(&old.settings, known)?;
        let mut building = self.open_building()?;
        let mut mounts = self.state.load().mounts.clone();
        for mount in mounts.iter_mut().filter(|mount| Arc::ptr_eq(mount, &old)) {
            *mount = new.clone();
        }
        let learned = vec![building.pins.learn(&new.settings, &new.catalog())];
        self.put_in_place(building, mounts, learned, |_| "restarted by the operator; starting it anew");
        Ok(())
    }

    fn switch_off(self: &Arc<Self>, name: &str) -> Result<bool, OperationError> {
        let _turn = self.reloading.lock().unwrap_or_else(PoisonError::into_inner);
        let mut mounts = self.state.load().mounts.clone();
        let was_there = mounts.len();
        mounts.retain(|mount| mount.name() != name);
        if mounts.len() == was_there {
            return match self.mounted(name) {
                Err(OperationError::Disabled { .. }) => Ok(false),
                other => other.map(|_| false),
            };
        }
        let mut building = self.open_building()?;
        building.switched_off.insert(name.to_owned());
        self.put_in_place(
            building,
            mounts,
            Vec::new(),
            |_| "switched off by the operator, until it is enabled again or the gateway restarts",
        );
        Ok(true)
    }

    fn switch_on(self: &Arc<Self>, name: &str) -> Result<bool, OperationError> {
        let _turn = self.reloading.lock().unwrap_or_else(PoisonError::into_inner);
        let (server, state_dir) = {
            let building = self.open_building()?;
            if !building.switched_off.contains(name) {
                drop(building);
                return self.mounted(name).map(|_| false);
            }
            let server = building.settings.servers.iter().find(|server| server.name == name).cloned();
            (server, building.settings.state_dir.clone())
        };
        let Some(server) = server else { return self.mounted(name).map(|_| false) };
        let known = disk_cache::load(state_dir.as_deref(), &server);
        let new = self.made(&server, known)?;
        let mut building = self.open_building()?;
        building.switched_off.remove(name);
        // In the order of the configuration, on which names depend.
        let place = |name: &str| building.settings.servers.iter().position(|server| server.name == name);
        let mut mounts = self.state.load().mounts.clone();
        mounts.push(new.clone());
        mounts.sort_by_key(|mount| place(mount.name()));
        let learned = vec![building.pins.learn(&new.settings, &new.catalog())];
        self.put_in_place(building, mounts, learned, |_| "replaced");
        Ok(true)
    }

    /// A server that is used, or why there is none of that name.
    fn mounted(&self, name: &str) -> Result<Arc<Mount>, OperationError> {
        let state = self.state.load();
        if let Some(mount) = state.mounts.iter().find(|mount| mount.name() == name) {
            return Ok(mount.clone());
        }
        if let Some(server) = state.disabled.iter().find(|server| server.name == name) {
            let (name, reason) = (name.to_owned(), server.reason.clone());
            return Err(OperationError::Disabled { name, reason });
        }
        let names = state.mounts.iter().map(|mount| mount.name());
        let names = names.chain(state.disabled.iter().map(|server| &*server.name));
        let near = nearest_name(name, names).map(str::to_owned);
        Err(OperationError::Unknown { name: name.to_owned(), near })
    }

    /// A server that is made anew. Files may be read for it: nobody waits for that.
    fn made(
        self: &Arc<Self>,
        server: &ServerSettings,
        known: crate::catalog::Catalog,
    ) -> Result<Arc<Mount>, OperationError> {
        let is_authenticated = self.state.load().is_authenticated;
        let made = self.mount_of(server, known, &self.sealer.load_full(), is_authenticated);
        made.map_err(|error| OperationError::Unusable { name: server.name.clone(), why: error.message })
    }

    fn open_building(&self) -> Result<MutexGuard<'_, Building>, OperationError> {
        let building = self.building();
        if building.closed { Err(OperationError::Closed) } else { Ok(building) }
    }
}
