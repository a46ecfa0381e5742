//! Subscriptions over all servers. Changes of lists come from the gateway itself, after what is on offer has changed;
//! changes of resources and tasks come from their servers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use bytestring::ByteString;
use futures_util::future::join_all;
use tidegate_protocol::{Error, Method, Object};
use tidegate_service::{Call, Context, Door, Filter, Notice, Outbox, Pause, Reply, Subscription};
use tokio::sync::oneshot;

use crate::build::State;
use crate::kind::Kind;
use crate::mount::{Mount, PATIENCE};
use crate::questions;
use crate::router::Router;
use crate::shown::CacheKey;
use crate::supervisor::listen_params;
use crate::tasks::{self, may_have_tasks, with_id};
use crate::view::Views;

/// How often to see whether a caller still listens.
const LOOK: Duration = Duration::from_millis(500);
/// The longest pause before a server that refused is asked again.
const MAX_PAUSE: Duration = Duration::from_secs(5);

/// Who wants to know of changes of the lists.
#[derive(Default)]
pub(crate) struct Subscribers(Mutex<OpenSubscriptions>);

#[derive(Default)]
struct OpenSubscriptions {
    open: Vec<Subscriber>,
    closed: bool,
}

struct Subscriber {
    filter: Filter,
    outbox: Outbox,
    /// Who it is.
    context: Context,
}

impl Subscribers {
    /// How many subscriptions of callers are open.
    pub(crate) fn len(&self) -> usize {
        self.all().open.len()
    }

    fn all(&self) -> MutexGuard<'_, OpenSubscriptions> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.open.retain(|one| !one.outbox.is_closed() && !one.outbox.is_abandoned());
        all
    }

    fn add(&self, filter: Filter, outbox: Outbox, context: Context) {
        let mut all = self.all();
        if all.closed {
            outbox.close();
        } else {
            all.open.push(Subscriber { filter, outbox, context });
        }
    }

    /// Tells those who want to know and are concerned.
    pub(crate) fn tell(&self, notice: &Notice, concerns: impl Fn(&Context) -> bool) {
        let all = self.all();
        for one in all.open.iter().filter(|one| one.filter.wants(notice) && concerns(&one.context)) {
            one.outbox.push(notice.clone());
        }
    }

    /// Tells which lists have changed: `whole`, or what that means for those who do not see everything.
    pub(crate) fn tell_changes(&self, whole: &[Notice], changes: &mut ListChanges<'_>) {
        for one in &self.all().open {
            let told = changes.of(&one.context).unwrap_or(whole);
            told.iter().filter(|notice| one.filter.wants(notice)).for_each(|notice| {
                one.outbox.push(notice.clone());
            });
        }
    }

    /// Tells legacy clients what a server has logged outside of calls, if it was in their session. A modern one hears of
    /// its own calls alone. Returns whether anybody was told.
    pub(crate) fn tell_log(&self, params: &Object, may_hear: impl Fn(&Context) -> bool) -> bool {
        let all = self.all();
        let hears = |one: &&Subscriber| !one.context.revision.is_modern() && may_hear(&one.context);
        let told = all.open.iter().filter(hears).map(|one| one.outbox.push(Notice::Log(params.to_json())));
        told.fold(false, |heard, taken| heard | taken)
    }

    /// Ends all subscriptions, those to come as well.
    pub(crate) fn close(&self) {
        let mut all = self.all();
        all.closed = true;
        for one in all.open.drain(..) {
            one.outbox.close();
        }
    }
}

/// What has changed for those who do not see everything. It is looked at once for each view.
pub(crate) struct ListChanges<'a> {
    views: &'a Views,
    before: &'a State,
    now: &'a State,
    /// By the view before, and the one now.
    known: HashMap<[Option<CacheKey>; 2], Vec<Notice>>,
}

impl<'a> ListChanges<'a> {
    pub(crate) fn new(views: &'a Views, before: &'a State, now: &'a State) -> ListChanges<'a> {
        ListChanges { views, before, now, known: HashMap::new() }
    }

    /// What a caller is told; `None` if that is what everybody is told.
    fn of(&mut self, context: &Context) -> Option<&[Notice]> {
        let keys = [self.before, self.now].map(|state| self.views.key(state, context));
        if keys == [None, None] {
            return None;
        }
        let notices = self.known.entry(keys).or_insert_with(|| {
            let changed = self.views.changed(self.before, self.now, context);
            let mut notices: Vec<Notice> = changed.into_iter().map(Kind::notice).collect();
            notices.dedup();
            notices
        });
        Some(notices)
    }
}

/// Opens a subscription.
pub(crate) async fn answer(router: &Arc<Router>, call: &Call) -> Result<Reply, Error> {
    let mut filter = Filter::read(call.params.object())?;
    if !filter.tasks.is_empty() {
        may_have_tasks(&call.context)?;
    }
    let events = Outbox::new(256);
    let mut interests: Vec<(Arc<Mount>, Interests)> = Vec::new();
    let mut want = |mount: Arc<Mount>, add: &mut dyn FnMut(&mut Interests)| {
        let at = interests.iter().position(|(other, _)| Arc::ptr_eq(other, &mount)).unwrap_or_else(|| {
            interests.push((mount, Interests::default()));
            interests.len() - 1
        });
        add(&mut interests[at].1);
    };
    filter.uris.retain(|uri| {
        let offered = ByteString::from(uri.as_str());
        let Some(place) = router.whose_of_many(&offered, call) else { return false };
        let own = place.own.unwrap_or_else(|| offered.clone());
        want(place.mount, &mut |interests| _ = interests.uris.insert(own.clone(), offered.clone()));
        true
    });
    filter.tasks.retain(|handle| {
        let Some((mount, own)) = tasks::open(router, &call.context, handle) else { return false };
        want(mount, &mut |interests| _ = interests.tasks.insert(own.clone(), handle.as_str().into()));
        true
    });
    // What is a caller's own comes and goes without anybody else hearing of it.
    if filter.resources {
        let state = router.state.load();
        let is_there = |mount: &&Arc<Mount>| {
            mount.has_own_resources()
                && router.views.may_have_resources_of(&state, &call.context, mount.name())
        };
        for mount in state.mounts.iter().filter(is_there) {
            want(mount.clone(), &mut |interests| interests.resources = true);
        }
    }
    let acknowledged = filter.to_json();
    router.subscribers.add(filter, events.clone(), followed(&call.context));
    let followers = interests.into_iter().map(|(mount, interests)| {
        let (context, events) = (followed(&call.context), events.clone());
        let follower = Follower { router: Arc::downgrade(router), mount, interests, context, events };
        let (opened, open) = oneshot::channel();
        tokio::spawn(follower.follow(opened));
        open
    });
    // What happens after the subscription is confirmed is not to be missed. Nobody waits long for anybody.
    let _ = tokio::time::timeout(PATIENCE, join_all(followers)).await;
    Ok(Reply::Subscription(Subscription { acknowledged, events }))
}

/// A caller's context for a subscription that lasts longer than the call.
fn followed(context: &Context) -> Context {
    let mut context = context.clone();
    context.outbox = None;
    context.progress_token = None;
    context.deadline = None;
    context.cancel = Default::default();
    context.param_headers = None;
    context
}

/// What a caller wants to know of one server: from the server's spelling to the caller's.
#[derive(Default)]
struct Interests {
    uris: HashMap<ByteString, ByteString>,
    tasks: HashMap<ByteString, ByteString>,
    /// Whether resources have come or gone.
    resources: bool,
}

impl Interests {
    fn filter(&self) -> Filter {
        Filter {
            resources: self.resources,
            uris: self.uris.keys().map(|uri| uri.to_string()).collect(),
            tasks: self.tasks.keys().map(|id| id.to_string()).collect(),
            ..Filter::default()
        }
    }

    /// A change as the caller knows it.
    fn translate(&self, server: &str, notice: Notice) -> Option<Notice> {
        match notice {
            Notice::ResourcesChanged => self.resources.then_some(notice),
            Notice::ResourceUpdated(own) => self.uris.get(&own).cloned().map(Notice::ResourceUpdated),
            Notice::Task { id, task } => {
                let handle = self.tasks.get(&id)?.clone();
                let task = questions::in_object(server, with_id(&task, &handle));
                Some(Notice::Task { task, id: handle })
            }
            _ => None,
        }
    }
}

/// Brings a caller what happens at one server, for as long as both are there.
struct Follower {
    router: Weak<Router>,
    mount: Arc<Mount>,
    interests: Interests,
    context: Context,
    events: Outbox,
}

impl Follower {
    /// `opened` is dropped once the server has been asked, whatever it said.
    async fn follow(self, opened: oneshot::Sender<()>) {
        let over = self.mount.over.clone();
        tokio::select! {
            () = self.follow_on(opened) => {}
            // Whoever subscribes again finds the server that is there now.
            () = over.cancelled() => self.events.close(),
        }
    }

    async fn follow_on(&self, opened: oneshot::Sender<()>) {
        let mut pause = Pause::new(Duration::from_millis(250), MAX_PAUSE);
        let mut opened = Some(opened);
        let mut missed = false;
        while !self.events.is_closed() {
            let Ok(params) = listen_params(&self.interests.filter()) else { return };
            let call = Call::new(Method::Listen, params, self.context.clone());
            let answered = self.mount.door.answer(call).await;
            drop(opened.take());
            match answered {
                Ok(Reply::Subscription(subscription)) => {
                    let theirs = ServerSubscription(subscription.events);
                    if missed {
                        // What happened in the meantime nobody knows.
                        for notice in self.interests.filter().everything() {
                            self.pass_on(notice);
                        }
                    }
                    self.pump(&theirs.0).await;
                    pause.reset();
                }
                Ok(Reply::Error(error)) => {
                    tracing::debug!(server = self.mount.name(), %error, "a subscription was refused");
                }
                Ok(_) => return,
            }
            missed = true;
            tokio::time::sleep(pause.get()).await;
            pause.failed();
        }
    }

    async fn pump(&self, theirs: &Outbox) {
        let mut look = tokio::time::interval(LOOK);
        loop {
            tokio::select! {
                told = theirs.next() => match told {
                    Some(notice) => self.pass_on(notice),
                    None => return,
                },
                _ = look.tick() => if self.events.is_closed() {
                    return;
                }
            }
        }
    }

    fn pass_on(&self, notice: Notice) {
        let notice = self.interests.translate(self.mount.name(), notice);
        if let Some(notice) = notice.filter(|notice| self.is_seen(notice)) {
            self.events.push(notice);
        }
    }

    /// Whether the caller still sees what has changed: the configuration may be another one than when it subscribed.
    fn is_seen(&self, notice: &Notice) -> bool {
        let Some(router) = self.router.upgrade() else { return false };
        let (state, server) = (router.state.load(), self.mount.name());
        match notice {
            Notice::ResourceUpdated(uri) => router.views.may_read(&state, &self.context, uri, &self.mount),
            Notice::ResourcesChanged => router.views.may_have_resources_of(&state, &self.context, server),
            // Who may no longer call a tool hears no more of its tasks.
            Notice::Task { id, .. } => tasks::open(&router, &self.context, id).is_some(),
            _ => router.views.knows_server(&state, &self.context, server),
        }
    }
}

/// A subscription with a server that ends with its owner.
struct ServerSubscription(Outbox);

impl Drop for ServerSubscription {
    fn drop(&mut self) {
        self.0.close();
    }
}
