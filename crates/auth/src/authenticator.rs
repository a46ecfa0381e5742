//! [`Authenticator`]: whom to let in, while the configuration, the keys and the issuers change.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use tidegate_config::AuthSettings;
use tidegate_edge::http::Page;
use tidegate_protocol::Error;
use tidegate_service::{Call, Principal, epoch_ms, usage};

use crate::auth_error::AuthError;
use crate::authenticate::Authenticate;
use crate::cache::{Cache, Digest};
use crate::credential::{Credential, Credentials, End, Source};
use crate::inactive::Inactive;
use crate::issuers::Issuers;
use crate::keys::{ApiKey, DEFAULT_ENDPOINT, KeyTable, KeyWatcher, LastUse, Loaded, is_key};
use crate::refusal::Refusal;
use crate::refusal_detail;
use crate::refused_logins::RefusedLogins;
use crate::reload_log;
use crate::resource::{ProtectedResource, Resource};
use crate::scope_gate::ScopeGateLayer;
use crate::scopes::Scopes;

/// How often to look at the file of keys. Whoever is revoked is out after this and the time that one look takes.
const LOOK: Duration = Duration::from_secs(1);
/// Every so many looks it is written down which keys were used.
const LOOKS_PER_WRITE: u64 = 5;
/// How often a credential is verified anew because something changed meanwhile.
const ATTEMPTS: usize = 4;

/// Finds out who calls. A cheap handle: clones are the same.
///
/// ```no_run
/// # async fn serve<D: tidegate_service::Door>(door: D) -> Result<(), Box<dyn std::error::Error>> {
/// use tidegate_auth::{Authenticator, ProtectedResource};
/// use tidegate_config::AuthSettings;
/// use tidegate_edge::http;
///
/// let auth = AuthSettings { keys: Some("keys.toml".into()), ..AuthSettings::default() };
/// let resource = ProtectedResource {
///     path: "/mcp".into(),
///     url: "https://mcp.example.com/mcp".into(),
///     ..ProtectedResource::default()
/// };
/// let authenticator = Authenticator::start(&auth, vec![resource], Some("state".as_ref()))?;
/// let settings = http::Settings::default().allow_host("mcp.example.com");
/// let front = http::front(door, &settings, |site| {
///     let sessions = site.clone();
///     authenticator.on_revoked(move |principal| sessions.end_sessions_of(principal));
///     authenticator.layer(site)
/// });
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Authenticator(pub(crate) Arc<Shared>);

/// What all handles share.
pub(crate) struct Shared {
    state: ArcSwap<State>,
    scopes: Arc<ArcSwap<Scopes>>,
    keys: ArcSwapOption<KeyTable>,
    watcher: Mutex<Option<KeyWatcher>>,
    cache: Cache,
    inactive: Inactive,
    credentials: Credentials,
    generations: Generations,
    pub(crate) refused: RefusedLogins,
    on_revoked: Mutex<Vec<OnRevoked>>,
    state_dir: Option<PathBuf>,
    /// One change of the keys or of anything else at a time.
    reloading: Mutex<()>,
    /// Pages that everybody may see.
    open: OnceLock<Vec<Page>>,
}

type OnRevoked = Arc<dyn Fn(&Principal) + Send + Sync>;

/// What a reload replaces.
pub(crate) struct State {
    /// The default endpoint first.
    pub(crate) resources: Vec<Arc<Resource>>,
    pub(crate) issuers: Issuers,
    pub(crate) scopes: Arc<Scopes>,
}

/// Count up whenever what was verified before may not be good any more. A credential carries the number under which it was
/// verified; who verifies looks at it before and after, so that nothing slips through in between.
#[derive(Debug, Default)]
pub(crate) struct Generations {
    keys: AtomicU64,
    tokens: AtomicU64,
}

impl Authenticator {
    /// Begins to authenticate for these resources, of which one is the default endpoint. Must be called inside a runtime of tokio:
    /// a task looks at the file of keys for as long as there is a handle. Which keys were used is written to
    /// `state_dir`, if there is one.
    ///
    /// # Errors
    ///
    /// When the file of keys or an issuer cannot be used.
    pub fn start(
        settings: &AuthSettings,
        resources: Vec<ProtectedResource>,
        state_dir: Option<&Path>,
    ) -> Result<Authenticator, AuthError> {
        let (state, keys) = prepare(settings, resources, &Issuers::default())?;
        let (watcher, table) = keys.map(|(watcher, keys)| (watcher, Arc::new(KeyTable::new(&keys)))).unzip();
        let shared = Arc::new(Shared {
            scopes: Arc::new(ArcSwap::new(state.scopes.clone())),
            state: ArcSwap::from_pointee(state),
            keys: ArcSwapOption::from(table),
            watcher: Mutex::new(watcher),
            cache: Cache::new(),
            inactive: Inactive::default(),
            credentials: Credentials::default(),
            generations: Generations::default(),
            refused: RefusedLogins::default(),
            on_revoked: Mutex::default(),
            state_dir: state_dir.map(Path::to_owned),
            reloading: Mutex::default(),
            open: OnceLock::new(),
        });
        tokio::spawn(look_again_and_again(Arc::downgrade(&shared)));
        Ok(Authenticator(shared))
    }

    /// Serves these pages to those who bring no credentials, instead of telling them where to get some: how the server is, for one. Those that
    /// are [alike for all](Page::alike_for_all) are served whatever somebody brings. Later calls do nothing.
    pub fn serve_openly(&self, pages: Vec<Page>) {
        let _ = self.0.open.set(pages);
    }

    /// The page at a path that is open to everybody.
    pub(crate) fn open_page(&self, path: &str) -> Option<&Page> {
        self.0.open.get()?.iter().find(|page| page.path() == path)
    }

    /// Goes on with other settings. What was let in by an issuer or with a key that is not there any more ends.
    ///
    /// # Errors
    ///
    /// As [`start`](Authenticator::start). Then everything stays as it was.
    pub fn reload(
        &self,
        settings: &AuthSettings,
        resources: Vec<ProtectedResource>,
    ) -> Result<(), AuthError> {
        let shared = &self.0;
        let _one = lock(&shared.reloading);
        let before = shared.state.load_full();
        let (state, keys) = prepare(settings, resources, &before.issuers)?;
        for difference in reload_log::differences(&before, &state) {
            tracing::info!("{difference}");
        }
        if settings.keys.is_some() != shared.keys.load().is_some() {
            let are_accepted = if settings.keys.is_some() { "accepted" } else { "refused" };
            tracing::info!("API keys are {are_accepted} now");
        }
        let (issuers, scopes) = (state.issuers.clone(), state.scopes.clone());
        shared.scopes.store(scopes.clone());
        shared.state.store(Arc::new(state));
        // Audiences may be others now, too: everybody is looked at again.
        shared.generations.tokens.fetch_add(1, Ordering::SeqCst);
        shared.inactive.clear();
        let (watcher, table) = match keys {
            Some((watcher, keys)) => {
                (Some(watcher), Some(KeyTable::after(&keys, shared.keys.load().as_deref())))
            }
            None => (None, None),
        };
        *lock(&shared.watcher) = watcher;
        shared.replace_keys(table);
        shared.credentials.finish(End::Revoked, |one| {
            let is_trusted = match &one.source {
                Source::Token(issuer) => issuers.has(issuer),
                Source::Key(_) => true,
            };
            !is_trusted || !scopes.admit(one.verified.identity.claims.as_deref())
        });
        Ok(())
    }

    /// `service` for those who are known, and a challenge for all others.
    pub fn layer<S>(&self, service: S) -> Authenticate<S> {
        Authenticate::new(self.clone(), service)
    }

    /// Refuses calls of tools for which the caller's token lacks a scope, for `GatewayBuilder::check`. What it asks for changes with a
    /// reload.
    pub fn scope_check(&self) -> impl Fn(&Call) -> Result<(), Error> + Send + Sync + 'static {
        let scopes = self.0.scopes.clone();
        move |call| crate::scope_gate::check(call, &scopes)
    }

    /// The same as a layer around any door.
    pub fn scope_gate(&self) -> ScopeGateLayer {
        ScopeGateLayer(self.0.scopes.clone())
    }

    /// Calls `then` with every principal whose last API key was taken away, on a thread where it may wait.
    pub fn on_revoked(&self, then: impl Fn(&Principal) + Send + Sync + 'static) {
        lock(&self.0.on_revoked).push(Arc::new(then));
    }

    /// How many verified credentials are remembered.
    pub fn cached(&self) -> usize {
        self.0.cache.len()
    }

    /// The credential with this text, if it is known and still good.
    pub(crate) fn known(&self, text: &str, now_ms: u64) -> (Digest, Option<Arc<Credential>>) {
        let shared = &self.0;
        let digest = shared.cache.digest(text);
        let known = shared.cache.get(digest).filter(|one| self.is_good(one, now_ms));
        usage::Cache::Credentials.looked_up(known.is_some());
        (digest, known)
    }

    /// Whether a credential that was verified before is still good. That of a key is used by this.
    pub(crate) fn is_good(&self, credential: &Credential, now_ms: u64) -> bool {
        let is_good = credential.is_fresh(now_ms) && self.0.is_current(credential);
        if let Source::Key(used) = &credential.source
            && is_good
        {
            used.note(now_ms);
        }
        is_good
    }

    /// Verifies a credential and remembers it.
    pub(crate) async fn verify(&self, text: &str, digest: Digest) -> Result<Arc<Credential>, Refusal> {
        let shared = &self.0;
        if shared.inactive.has(digest, epoch_ms()) {
            return Err(Refusal::Inactive);
        }
        let before = shared.cache.get(digest);
        for _ in 0..ATTEMPTS {
            match shared.verify_once(text).await {
                Ok(credential) => {
                    // Whoever ends it from now on finds it; whoever did before has counted up.
                    shared.credentials.add(&credential);
                    if shared.is_current(&credential) {
                        shared.cache.insert(digest, &credential, epoch_ms());
                        return Ok(credential);
                    }
                }
                Err(refusal) => {
                    if refusal == Refusal::Inactive {
                        shared.inactive.add(digest, epoch_ms());
                    }
                    if !refusal.is_unavailable() {
                        shared.cache.remove(digest);
                        if let Some(before) = before {
                            before.finish(ending(refusal));
                        }
                    }
                    return Err(refusal);
                }
            }
        }
        Err(Refusal::KeysUnavailable)
    }

    /// What the log says of a credential that could not be verified.
    #[cold]
    pub(crate) fn detail(&self, refusal: Refusal, text: &str) -> Option<String> {
        refusal_detail::unverified(refusal, text, &self.state().issuers, self.0.keys.load().as_deref())
    }

    /// Whether a credential is meant for a resource.
    pub(crate) fn admit(&self, credential: &Credential, resource: &Resource) -> Result<(), Refusal> {
        let verified = &credential.verified;
        match &credential.source {
            Source::Key(_) => {
                let name = resource.endpoint.as_deref().unwrap_or(DEFAULT_ENDPOINT);
                let is_meant = |all: &Vec<Arc<str>>| all.iter().any(|one| **one == *name);
                if verified.endpoints.as_ref().is_none_or(is_meant) {
                    Ok(())
                } else {
                    Err(Refusal::WrongEndpoint)
                }
            }
            Source::Token(issuer) => {
                if resource.is_meant(&verified.audiences, &issuer.audience) {
                    Ok(())
                } else {
                    Err(Refusal::WrongAudience)
                }
            }
        }
    }

    pub(crate) fn state(&self) -> arc_swap::Guard<Arc<State>> {
        self.0.state.load()
    }
}

impl State {
    /// What a path belongs to: pages and other transports to the default endpoint.
    pub(crate) fn resource(&self, path: &str) -> &Arc<Resource> {
        self.resources.iter().find(|resource| resource.path == path).unwrap_or(&self.resources[0])
    }
}

impl Shared {
    fn is_current(&self, credential: &Credential) -> bool {
        credential.generation == self.generation(matches!(credential.source, Source::Key(_)))
    }

    fn generation(&self, of_keys: bool) -> u64 {
        let generation = if of_keys { &self.generations.keys } else { &self.generations.tokens };
        generation.load(Ordering::SeqCst)
    }

    async fn verify_once(&self, text: &str) -> Result<Arc<Credential>, Refusal> {
        let of_keys = is_key(text);
        let generation = self.generation(of_keys);
        let (scopes, issuers) = {
            let state = self.state.load();
            (state.scopes.clone(), state.issuers.clone())
        };
        let (verified, source) = match of_keys {
            true => {
                let table = self.keys.load_full().ok_or(Refusal::UnknownKeyId)?;
                let now_ms = epoch_ms();
                let (verified, used) = table.find(text, now_ms)?;
                used.note(now_ms);
                (verified.clone(), Source::Key(used.clone()))
            }
            false => {
                let (verified, issuer) = issuers.verify(text).await?;
                (verified, Source::Token(issuer))
            }
        };
        let has_scopes = scopes.admit(verified.identity.claims.as_deref());
        Ok(Arc::new(Credential::new(verified, source, has_scopes, generation)))
    }

    /// Puts other keys in the place of those that are good, and ends what was let in with one that is not any more.
    fn replace_keys(&self, table: Option<KeyTable>) {
        let empty = || Arc::new(KeyTable::new(&[]));
        let after = table.map(Arc::new);
        let before = self.keys.swap(after.clone()).unwrap_or_else(empty);
        let after = after.unwrap_or_else(empty);
        self.generations.keys.fetch_add(1, Ordering::SeqCst);
        self.credentials.finish(End::Revoked, |one| match &one.source {
            Source::Key(used) => !after.goes_on(&used.id, &before),
            Source::Token(_) => false,
        });
        if after.is_empty() && !before.is_empty() && self.keys.load().is_some() {
            tracing::warn!("the file of API keys has no keys any more: all that were in it are refused");
        }
        let now_ms = epoch_ms();
        for (principal, id) in after.replaced(&before, now_ms) {
            tracing::info!(
                subject = principal.subject.as_deref(),
                tenant = principal.tenant.as_deref(),
                id = &*id,
                "another API key took the place of this one; what was open with it has ended"
            );
        }
        let lost = after.lost(&before, now_ms);
        let tell = lock(&self.on_revoked).clone();
        for principal in &lost {
            tracing::info!(
                subject = principal.subject.as_deref(),
                tenant = principal.tenant.as_deref(),
                "an API key was revoked; what was open with it has ended"
            );
            tell.iter().for_each(|then| then(principal));
        }
    }

    /// One look at everything that may have changed. It may wait for the disk.
    fn look(&self, last_ms: u64, now_ms: u64, is_time_to_write: bool) {
        let _one = lock(&self.reloading);
        let looked = lock(&self.watcher).as_mut().map_or(Loaded::Same, KeyWatcher::look);
        match looked {
            Loaded::Same => {}
            Loaded::Changed(keys) => {
                let before = self.keys.load_full();
                let table = KeyTable::after(&keys, before.as_deref());
                let (added, revoked) = before.map_or((table.len(), 0), |before| table.compared(&before));
                tracing::info!(keys = keys.len(), added, revoked, "the file of API keys has changed");
                self.replace_keys(Some(table));
            }
            Loaded::Broken(error) => {
                tracing::error!("{error}. The API keys that were good before still are");
            }
        }
        let Some(table) = self.keys.load_full() else { return };
        // Not only those of the credential: a rotation may have given a key an earlier end.
        let expired = table.expired_between(last_ms, now_ms);
        if !expired.is_empty() {
            self.credentials.finish(End::Expired, |one| match &one.source {
                Source::Key(used) => expired.contains(&used.id),
                Source::Token(_) => false,
            });
        }
        if is_time_to_write
            && let Some(dir) = &self.state_dir
            && let Err(error) = LastUse::write(dir, &table)
        {
            tracing::debug!(%error, "when keys were last used cannot be written");
        }
    }
}

/// What of a credential ends when it is found not to be good any more.
fn ending(refusal: Refusal) -> End {
    match refusal {
        Refusal::Expired | Refusal::KeyExpired => End::Expired,
        _ => End::Revoked,
    }
}

type Prepared = (State, Option<(KeyWatcher, Vec<ApiKey>)>);

/// Everything that can fail, before anything is changed.
fn prepare(
    settings: &AuthSettings,
    resources: Vec<ProtectedResource>,
    before: &Issuers,
) -> Result<Prepared, AuthError> {
    if settings.keys.is_none() && settings.jwt.is_empty() && settings.introspection.is_empty() {
        return Err(AuthError::NoCredentials);
    }
    let issuers = Issuers::start(settings, before)?;
    let scopes = Arc::new(Scopes::new(&settings.scopes));
    let (mut first, rest): (Vec<_>, Vec<_>) = resources.into_iter().partition(|one| one.endpoint.is_none());
    if first.len() != 1 {
        return Err(AuthError::NoDefaultEndpoint);
    }
    first.extend(rest);
    let resource = |one| Arc::new(Resource::new(one, &issuers, &scopes));
    let resources = first.into_iter().map(resource).collect();
    let keys = match &settings.keys {
        None => None,
        Some(path) => {
            let (watcher, file) = KeyWatcher::start(path)?;
            if let Some(note) = file.note() {
                tracing::warn!("{note}");
            }
            Some((watcher, file.keys().to_vec()))
        }
    };
    Ok((State { resources, issuers, scopes }, keys))
}

/// Looks every second, until nobody authenticates any more.
async fn look_again_and_again(shared: Weak<Shared>) {
    let mut withdrawals = None;
    let mut last_ms = epoch_ms();
    for look in 1u64.. {
        tokio::time::sleep(LOOK).await;
        let Some(shared) = shared.upgrade() else { return };
        let now_ms = epoch_ms();
        shared.refused.tick(now_ms);
        let now_withdrawn = shared.state.load().issuers.withdrawals();
        if withdrawals.replace(now_withdrawn).is_some_and(|before| before != now_withdrawn) {
            // What was signed with a key that is gone is not good any more. Nobody remembers which token was signed with which, so all
            // streams end: whose token is still good opens another.
            shared.generations.tokens.fetch_add(1, Ordering::SeqCst);
            shared.credentials.finish(End::Expired, |one| matches!(one.source, Source::Token(_)));
        }
        if look % 60 == 0 {
            shared.cache.sweep(|one| one.is_fresh(now_ms) && shared.is_current(one));
        }
        if shared.keys.load().is_some() {
            let looking = move || shared.look(last_ms, now_ms, look % LOOKS_PER_WRITE == 0);
            // What panics there is told by the panic itself; the next look is another one.
            let _ = tokio::task::spawn_blocking(looking).await;
        }
        last_ms = now_ms;
    }
}

impl fmt::Debug for Authenticator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authenticator").field("cached", &self.cached()).finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
