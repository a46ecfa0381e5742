//! The supervisor: a task for each server that connects to it, reads its lists, hears of changes, notices when it is gone
//! and when it is back, and lets it rest when nobody uses it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use tidegate_client::Target;
use tidegate_config::Source;
use tidegate_protocol::json::ObjectWriter;
use tidegate_protocol::{Error, Json, Limits, Method, Params};
use tidegate_service::layers::BreakerState;
use tidegate_service::{Call, Door, Filter, Notice, Outbox, Reply};
use tokio::task::JoinSet;

use crate::kind::Kind;
use crate::mount::Mount;
use crate::status::Health;

/// How often a server that is gone is asked whether it is back: often at first, because most are back soon.
const PROBE_EVERY: Duration = Duration::from_secs(1);
const PROBE_EVERY_LATER: Duration = Duration::from_secs(10);
const LATER: Duration = Duration::from_secs(180);
/// How long one such question may take. The next one does not wait for it.
const PROBE_WITHIN: Duration = Duration::from_secs(5);
/// How long a server may take to say that it will tell of changes. Its lists do not wait longer for that.
const LISTEN_WITHIN: Duration = Duration::from_secs(2);
/// How often a server that should tell of changes and does not is asked again.
const LISTEN_EVERY: Duration = Duration::from_secs(15);
/// A server that is lost sooner than this after it was back has not really come back.
const LIVES: Duration = Duration::from_secs(10);
/// How often to look whether the server is still there and still used.
const LOOK: Duration = Duration::from_secs(1);
/// Changes that come together are read together.
const GATHER: Duration = Duration::from_millis(10);

/// Told when lists of a server were read: which of them are not what they were, and which of them the server said have
/// changed. A server that says so is believed, whatever its list says.
pub(crate) type OnRead = dyn Fn(Arc<Mount>, Vec<Kind>, Vec<Kind>) -> BoxFuture<'static, ()> + Send + Sync;

/// Supervises a server until it is unmounted.
pub(crate) async fn run(mount: Arc<Mount>, on_read: Arc<OnRead>) {
    let over = mount.over.clone();
    tokio::select! {
        () = over.cancelled() => {}
        () = supervise(&mount, &*on_read) => {}
    }
    mount.settle();
}

async fn supervise(mount: &Arc<Mount>, on_read: &OnRead) {
    let mut first = true;
    let mut deaths = 0;
    loop {
        wait_until_back(mount, first).await;
        first = false;
        // A server whose lists nobody knows has no callers: then it is this that tries it.
        let held = mount.facts.load().is_some() && mount.is_held();
        // Listening comes first, so that no change is missed in between.
        let events = if held { None } else { listen(mount).await };
        let read = if held { Ok(Vec::new()) } else { mount.read(&Kind::CORE).await };
        match read {
            Ok(changed) => {
                mount.set_health(Health::Ready);
                on_read(mount.clone(), changed, Vec::new()).await;
                mount.settle();
            }
            Err(error) => {
                let (why, told) = (error.to_string(), error.message().to_owned());
                mount.set_health(Health::Down { why, told });
                mount.settle();
                mount.leave_alone(PROBE_EVERY).await;
                continue;
            }
        }
        let since = Instant::now();
        let pending = if held { PendingReads::all() } else { PendingReads::default() };
        match watch(mount, events, pending, on_read).await {
            Ending::Lost(why) => {
                let told = "Its calls kept failing".to_owned();
                mount.set_health(Health::Down { why, told });
                deaths = if since.elapsed() < LIVES { deaths + 1 } else { 0 };
                mount.leave_alone(pause(deaths)).await;
            }
            Ending::Ended => {
                deaths = if since.elapsed() < LIVES { deaths + 1 } else { 0 };
                match pause(deaths) {
                    // It is started again at once, and calls wait for that: nobody has lost anything yet.
                    Duration::ZERO => mount.set_health(Health::Starting),
                    pause => {
                        let told = "Its process has ended".to_owned();
                        mount.set_health(Health::Down { why: told.clone(), told });
                        mount.leave_alone(pause).await;
                    }
                }
            }
            Ending::Resting => {
                mount.set_health(Health::Resting);
                mount.wake.notified().await;
            }
        }
    }
}

/// How long to leave a server alone that was lost so many times in a row soon after it was back: hardly at first, because
/// most are back soon; much longer when it seems that it cannot live.
fn pause(deaths: u32) -> Duration {
    match deaths {
        0 | 1 => Duration::ZERO,
        2..20 => Duration::from_millis(100 << deaths.min(4)),
        _ => PROBE_EVERY_LATER,
    }
}

/// Asks until the server answers. Questions overlap, so that one that is never answered does not hide that the next
/// would be.
async fn wait_until_back(mount: &Arc<Mount>, first: bool) {
    let begun = Instant::now();
    let mut asking = JoinSet::new();
    // A process may take long to start, and to install itself before that: it is asked once and waited for.
    let mut starting = first && is_process(mount);
    loop {
        let client = mount.client.clone();
        let within = if starting { mount.settings.options.init_timeout } else { PROBE_WITHIN };
        asking.spawn(async move { client.probe(within).await });
        let every = if begun.elapsed() < LATER { PROBE_EVERY } else { PROBE_EVERY_LATER };
        let mut next = std::pin::pin!(tokio::time::sleep(every));
        loop {
            tokio::select! {
                Some(answered) = asking.join_next() => match answered {
                    Ok(Ok(())) => return,
                    Ok(Err(error)) => {
                        starting = false;
                        let (why, told) = (error.message, error.public_message);
                        mount.set_health(Health::Down { why, told });
                        mount.settle();
                    }
                    Err(_) => starting = false,
                },
                () = &mut next, if !starting => break,
                () = mount.wake.notified(), if begun.elapsed() >= LATER => break,
                () = mount.try_again.notified() => break,
            }
        }
    }
}

/// Whether the server is a process that the gateway starts.
fn is_process(mount: &Mount) -> bool {
    matches!(&mount.settings.source, Source::Target(Target::Command(_)))
}

/// Asks to be told of changes. A server that cannot tell is read again when its lists are old.
async fn listen(mount: &Arc<Mount>) -> Option<Outbox> {
    let params = listen_params(&Filter::lists()).ok()?;
    let call = Call::new(Method::Listen, params, mount.context());
    match tokio::time::timeout(LISTEN_WITHIN, mount.door.answer(call)).await {
        Ok(Ok(Reply::Subscription(subscription))) => Some(subscription.events),
        Ok(Ok(Reply::Error(error))) => {
            tracing::debug!(server = mount.name(), %error, "The server does not announce changes");
            None
        }
        Ok(Ok(_)) => None,
        Err(_) => {
            tracing::debug!(server = mount.name(), "The server did not answer whether it announces changes");
            None
        }
    }
}

/// The parameters of `subscriptions/listen`.
pub(crate) fn listen_params(filter: &Filter) -> Result<Params, Error> {
    let mut w = ObjectWriter::new();
    w.json("notifications", &filter.to_json());
    let json: Json = w.finish();
    Params::parse(&json, &Limits { max_depth: 127, max_bytes: usize::MAX }).map_err(|_| Error::internal())
}

/// Why a server is left alone.
enum Ending {
    /// It cannot be reached.
    Lost(String),
    /// Its process has ended.
    Ended,
    Resting,
}

/// Lists that are to be read again.
#[derive(Default)]
struct PendingReads {
    kinds: Vec<Kind>,
    /// Those of them of which the server itself has said that they have changed. Of the others nobody knows, and nobody is
    /// told anything unless they turn out to be different.
    said: Vec<Kind>,
}

impl PendingReads {
    fn all() -> PendingReads {
        PendingReads { kinds: Kind::CORE.to_vec(), said: Vec::new() }
    }

    /// What happened for a while nobody knows.
    fn add_all(&mut self) {
        self.kinds = Kind::CORE.to_vec();
    }

    fn add(&mut self, kinds: Vec<Kind>, said: bool) {
        if said {
            self.said.extend(&kinds);
        }
        self.kinds.extend(kinds);
        for kinds in [&mut self.kinds, &mut self.said] {
            kinds.sort_by_key(|kind| kind.index());
            kinds.dedup();
        }
    }
}

async fn watch(
    mount: &Arc<Mount>,
    events: Option<Outbox>,
    mut pending: PendingReads,
    on_read: &OnRead,
) -> Ending {
    let is_process = is_process(mount);
    let mut events = Events(events);
    let mut look = tokio::time::interval(LOOK);
    look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let kept = mount.settings.options.sessions.idle;
    let mut rest_after = mount.settings.idle.filter(|_| is_process).map(|idle| idle.min(kept));
    let mut listened = Instant::now();
    loop {
        tokio::select! {
            told = events.next() => match told {
                Some(notice) => {
                    let mut kinds = kinds_of(&notice);
                    tokio::time::sleep(GATHER).await;
                    while let Some(notice) = events.try_next() {
                        kinds.extend(kinds_of(&notice));
                    }
                    pending.add(kinds, !events.take_missed());
                    if !mount.is_held() {
                        read(mount, &mut pending, on_read).await;
                    }
                }
                None => {
                    listened = Instant::now();
                    events = Events(if mount.is_held() { None } else { listen(mount).await });
                    pending.add_all();
                }
            },
            () = mount.wake.notified() => {}
            _ = look.tick() => {
                let circuit = mount.client.circuit().report();
                if circuit.unreachable {
                    let why = circuit.last_failure;
                    return Ending::Lost(why.map_or_else(|| "it cannot be reached".to_owned(), |why| why.to_string()));
                }
                if is_process && !mount.client.is_running() {
                    return Ending::Ended;
                }
                let held = circuit.state != BreakerState::Closed;
                if !held && events.0.is_none() && listened.elapsed() >= LISTEN_EVERY && mount.announces() {
                    listened = Instant::now();
                    events = Events(listen(mount).await);
                    if events.0.is_some() {
                        pending.add_all();
                    }
                }
                if !held && !pending.kinds.is_empty() {
                    read(mount, &mut pending, on_read).await;
                }
                if rest_after.is_some_and(|after| mount.idle_for() >= after) && !mount.client.keeps_state() {
                    drop(events);
                    if at_rest(mount).await {
                        return Ending::Resting;
                    }
                    // Somebody still wants something of it.
                    events = Events(if held { None } else { listen(mount).await });
                    rest_after = rest_after.map(|after| after + mount.settings.idle.unwrap_or(after));
                }
            }
        }
    }
}

/// Lets a server rest that nobody uses. That nobody listens any more is noticed after a moment only.
async fn at_rest(mount: &Arc<Mount>) -> bool {
    for _ in 0..20 {
        if mount.rest().await {
            return true;
        }
        if mount.in_flight() > 0 {
            return false;
        }
        tokio::time::sleep(LOOK / 10).await;
    }
    false
}

async fn read(mount: &Arc<Mount>, pending: &mut PendingReads, on_read: &OnRead) {
    match mount.read(&pending.kinds).await {
        Ok(changed) => on_read(mount.clone(), changed, std::mem::take(pending).said).await,
        Err(error) => tracing::warn!(server = mount.name(), %error, "A list has changed, but cannot be read"),
    }
}

fn kinds_of(notice: &Notice) -> Vec<Kind> {
    Kind::CORE.into_iter().filter(|kind| kind.notice() == *notice).collect()
}

/// A subscription that ends with its owner.
struct Events(Option<Outbox>);

impl Events {
    /// Waits for the next change; forever if the server does not tell.
    async fn next(&self) -> Option<Notice> {
        match &self.0 {
            Some(outbox) => outbox.next().await,
            None => std::future::pending().await,
        }
    }

    fn try_next(&self) -> Option<Notice> {
        self.0.as_ref()?.try_next()
    }

    /// Whether something came that nobody has said.
    fn take_missed(&self) -> bool {
        self.0.as_ref().is_some_and(Outbox::take_missed)
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        if let Some(outbox) = &self.0 {
            outbox.close();
        }
    }
}
