//! [`Lane`]: one session with a legacy server, and whose it is.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use tidegate_protocol::json::ObjectWriter;
use tidegate_protocol::{ClientCapabilities, Error, Json, Level, Method, Symbol};
use tidegate_service::{CallerId, Context, Principal};

use super::handshake::{hello, welcome};
use crate::allowance::Allowance;
use crate::changes::Owner;
use crate::facts::ServerFacts;
use crate::options::Options;
use crate::peer::{Peer, Waiting};
use crate::ticket::{Event, Sink};
use crate::upstream_error::upstream_error;
use crate::wire;

/// Whose session it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum LaneKey {
    /// Everybody's: nothing was declared on it, so nothing can be asked.
    Shared,
    /// Everybody's too, for what nobody can be asked in, such as lists. Everything was declared on it, because some
    /// servers hide tools from clients that they cannot ask; whatever they do ask here is refused.
    Lists,
    /// One caller's: what a server remembers of it never meets another.
    Caller { caller: Option<CallerId>, principal: Principal, capabilities: Json, info: Json },
    /// One call's, of somebody who cannot be told from others.
    Once(u64),
}

/// On which terms a lane is opened.
#[derive(Debug, Clone)]
pub(crate) struct Terms {
    pub(crate) key: LaneKey,
    pub(crate) capabilities: ClientCapabilities,
    pub(crate) info: Json,
}

impl Terms {
    /// The terms of the shared lane.
    pub(crate) fn shared(options: &Options) -> Terms {
        Terms {
            key: LaneKey::Shared,
            capabilities: ClientCapabilities::none(),
            info: options.client_info.clone(),
        }
    }

    /// The terms of the lane for lists.
    pub(crate) fn lists(options: &Options) -> Terms {
        Terms { key: LaneKey::Lists, capabilities: ClientCapabilities::all(), ..Terms::shared(options) }
    }

    /// The terms on which a call of this caller is made.
    pub(crate) fn of(context: &Context, options: &Options) -> Terms {
        let info = context.client_info.clone().unwrap_or_else(|| options.client_info.clone());
        let capabilities = context.capabilities.clone();
        let anonymous = context.caller.is_none() && context.principal.subject.is_none();
        let key = if anonymous {
            LaneKey::Once(fastrand::u64(..))
        } else {
            LaneKey::Caller {
                caller: context.caller,
                principal: context.principal.clone(),
                capabilities: capabilities.as_json().clone(),
                info: info.clone(),
            }
        };
        Terms { key, capabilities, info }
    }
}

/// One session.
pub(crate) struct Lane {
    pub(crate) peer: Arc<Peer>,
    pub(crate) facts: ServerFacts,
    pub(crate) key: LaneKey,
    /// Whether tools can be called as tasks.
    pub(crate) tasks: bool,
    state: Mutex<State>,
}

struct State {
    used: Instant,
    level: Option<Level>,
    subscribed: HashSet<String>,
}

impl Lane {
    /// Shakes hands over a connection: `initialize`, a look at the answer, `notifications/initialized`, and only then
    /// anything else.
    pub(crate) async fn open(peer: Arc<Peer>, terms: &Terms, options: &Options) -> Result<Arc<Lane>, Error> {
        let within =
            Allowance::new(Instant::now(), options.init_timeout, false, None).granted_by("start_timeout");
        let facts = shake_hands(&peer, terms, options, &within).await?;
        peer.line.established(facts.revision);
        let told = peer.line.tell(wire::notification("notifications/initialized", None));
        tokio::time::timeout_at(within.ends(None).into(), told)
            .await
            .map_err(|_| within.over().unexecuted())??;
        if let LaneKey::Caller { caller, principal, .. } = &terms.key {
            peer.desk.belongs_to(Owner { caller: *caller, principal: principal.clone() });
        }
        peer.line.listen().await;
        let state = State { used: Instant::now(), level: None, subscribed: HashSet::new() };
        let tasks = facts.offers_tasks();
        Ok(Arc::new(Lane { peer, facts, key: terms.key.clone(), tasks, state: Mutex::new(state) }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Notes that the lane is in use.
    pub(crate) fn touch(&self) {
        self.state().used = Instant::now();
    }

    /// How long it has not been in use.
    pub(crate) fn idle(&self, now: Instant) -> Duration {
        if self.peer.desk.tickets.len() > 0 {
            return Duration::ZERO;
        }
        now.saturating_duration_since(self.state().used)
    }

    /// Makes the server say at least what a caller wants to hear. Which caller hears what is decided when it comes.
    pub(crate) async fn want_logs(&self, level: Option<Level>, within: &Allowance) {
        let Some(level) = level else { return };
        if !self.facts.has_capability("logging") {
            return;
        }
        {
            let mut state = self.state();
            if state.level.is_some_and(|now| now <= level) {
                return;
            }
            state.level = Some(level);
        }
        let mut params = ObjectWriter::new();
        params.str("level", level.as_str());
        if let Err(error) = self.ask(Method::SetLevel, &params.finish(), within).await {
            tracing::debug!(server = %self.peer.desk.name, %error, "the server did not take the log level");
        }
    }

    /// Subscribes to exactly these resources.
    pub(crate) async fn subscribe(&self, wanted: HashSet<String>, within: &Allowance) -> Result<(), Error> {
        let (more, less): (Vec<_>, Vec<_>) = {
            let state = self.state();
            let more = wanted.difference(&state.subscribed).cloned().collect();
            (more, state.subscribed.difference(&wanted).cloned().collect())
        };
        for (uris, method) in [(more, Method::ResourcesSubscribe), (less, Method::ResourcesUnsubscribe)] {
            for uri in uris {
                let mut params = ObjectWriter::new();
                params.str("uri", &uri);
                self.ask(method.clone(), &params.finish(), within).await?;
                let mut state = self.state();
                match method {
                    Method::ResourcesSubscribe => _ = state.subscribed.insert(uri),
                    _ => _ = state.subscribed.remove(&uri),
                }
            }
        }
        Ok(())
    }

    /// One request of our own.
    pub(crate) async fn ask(&self, method: Method, params: &Json, within: &Allowance) -> Result<Json, Error> {
        ask(&self.peer, method, params, within).await
    }
}

/// One request of our own on a connection, and its result.
pub(crate) async fn ask(
    peer: &Peer,
    method: Method,
    params: &Json,
    within: &Allowance,
) -> Result<Json, Error> {
    let write = |out: &mut Vec<u8>, _: &_| out.extend_from_slice(params.as_str().as_bytes());
    let ticket = peer.send(method.clone(), Sink::default(), params.len(), write)?;
    let waiting = Waiting::new(peer, ticket);
    loop {
        match within.next(&waiting.ticket).await? {
            Event::Answer(Ok(result)) => return Ok(result),
            Event::Answer(Err(error)) => return Err(upstream_error(&method, None, &error)),
            Event::Lost(error) => return Err(error),
            Event::Question(question) => {
                let what = "This request may not ask anything";
                let refusal = Err(Error::new(Symbol::InvalidRequest, what));
                peer.desk.answer(&question.id, &refusal);
            }
            Event::Notified(_) => {}
        }
    }
}

async fn shake_hands(
    peer: &Peer,
    terms: &Terms,
    options: &Options,
    within: &Allowance,
) -> Result<ServerFacts, Error> {
    let params = hello(options.offer, &terms.capabilities, &terms.info);
    let result = ask(peer, Method::Initialize, &params, within).await?;
    welcome(&peer.desk.name, options.offer, &result, peer.line.transport())
}
