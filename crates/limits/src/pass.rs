//! [`Entering`] and [`Pass`]: a call on its way in, and one that is in.

use std::sync::Arc;
use std::time::Duration;

use smallvec::SmallVec;
use tidegate_protocol::Error;
use tidegate_service::fair_queue::{Entry, FairKey, Place, Priority, Waiting};
use tidegate_service::{Held, Reply, Stage, noted};
use tokio::time::Instant;

use crate::gates::Slot;
use crate::refusal::Reached;
use crate::runs::Booking;
use crate::scope::Scope;
use crate::store::LimitStore;

/// A call that was not refused: it may go on at once, or has to wait for its turn.
#[derive(Debug)]
#[must_use = "whoever drops this has left the queue"]
// The large one is the usual one: boxing it would cost every call an allocation.
#[allow(clippy::large_enum_variant)]
pub enum Entering {
    /// It may go on.
    Passed(Pass),
    /// It is in line. Boxed: waiting is rare.
    Waiting(Box<Queued>),
}

impl Entering {
    /// Waits for the turn of the call, if it has to. Dropping the future leaves the queue.
    pub async fn pass(self) -> Result<Pass, Error> {
        match self {
            Entering::Passed(pass) => Ok(pass),
            Entering::Waiting(queued) => Box::pin(queued.served()).await,
        }
    }
}

/// A call in line.
#[derive(Debug)]
pub struct Queued {
    pub(crate) waiting: Waiting,
    /// What it waits for.
    pub(crate) slot: Slot<'static>,
    /// What it needs after that, and between whom these are fair. They are taken in the same order by every call, so that no two wait
    /// for each other.
    pub(crate) rest: Vec<(Slot<'static>, FairKey)>,
    pub(crate) pass: Pass,
    pub(crate) store: Arc<LimitStore>,
    pub(crate) priority: Priority,
    /// When the caller stops waiting.
    pub(crate) deadline: Option<Instant>,
}

impl Queued {
    async fn served(self: Box<Self>) -> Result<Pass, Error> {
        let Queued { waiting, slot, rest, mut pass, store, priority, deadline } = *self;
        let place = noted(Stage::Limit, waiting)
            .await
            .map_err(|why| pass.reached(&slot).unserved(slot.limit, why))?;
        pass.hold(&slot, place);
        for (slot, fair) in rest {
            let place = match store.gates.enter(&slot, || (fair, priority), deadline) {
                Entry::Entered(place) => place,
                Entry::Waits(waiting) => noted(Stage::Limit, waiting)
                    .await
                    .map_err(|why| pass.reached(&slot).unserved(slot.limit, why))?,
                Entry::Full => return Err(pass.reached(&slot).full(slot.limit)),
            };
            pass.hold(&slot, place);
        }
        pass.begin();
        Ok(pass)
    }
}

/// A call that is in. Its places are given back when this is dropped, and the time that it took counts for its run.
#[derive(Debug)]
#[must_use = "the places of the call are given back when this is dropped"]
pub struct Pass {
    pub(crate) places: SmallVec<[Place; 4]>,
    /// The numbers of these places, and those of the call that this one is part of.
    pub(crate) held: SmallVec<[u64; 4]>,
    /// Boxed: most calls are of no run.
    pub(crate) run: Option<Box<RunPart>>,
    /// The smallest of the limits for results.
    pub(crate) response: Option<ResponseLimit>,
    pub(crate) has_tenant: bool,
}

/// How large a result may be, and who says so.
#[derive(Debug)]
pub(crate) struct ResponseLimit {
    pub(crate) most: usize,
    pub(crate) scope: Scope,
    pub(crate) is_rule: bool,
}

/// The part of a call in its run.
#[derive(Debug)]
pub(crate) struct RunPart {
    pub(crate) store: Arc<LimitStore>,
    pub(crate) booking: Booking,
    /// When the call was let in; `None` before that.
    pub(crate) began: Option<Instant>,
    /// Whether the time that it takes counts: that of a part of another call is part of that one's.
    pub(crate) counts_time: bool,
    /// How large the result was.
    pub(crate) result_bytes: u64,
}

impl Pass {
    /// One that nothing is limited for.
    pub(crate) fn free() -> Pass {
        Pass { places: SmallVec::new(), held: SmallVec::new(), run: None, response: None, has_tenant: false }
    }

    /// The call runs from now on.
    pub(crate) fn begin(&mut self) {
        if let Some(run) = &mut self.run {
            run.began = Some(Instant::now());
        }
    }

    /// What belongs into the extensions of the call before it goes on, if it may make other calls in this process: those are known
    /// by it as its parts, and wait for nothing that it has. `None` if it has nothing.
    pub fn held(&self) -> Option<Arc<Held>> {
        let has_something = self.run.is_some() || !self.held.is_empty();
        has_something.then(|| Arc::new(Held(self.held.as_slice().into())))
    }

    pub(crate) fn hold(&mut self, slot: &Slot<'_>, place: Place) {
        self.places.push(place);
        self.held.push(slot.key.subject);
    }

    /// What came of the call: whether it may be sent, and how large it was for the run.
    pub fn answered(mut self, reply: &Reply) -> Result<(), Error> {
        let size = match reply {
            Reply::Complete(result) | Reply::Task(result) => result.len(),
            Reply::InputRequired(_) | Reply::Subscription(_) | Reply::Error(_) => 0,
        };
        if let Some(run) = &mut self.run {
            run.result_bytes = size as u64;
        }
        match &self.response {
            Some(ResponseLimit { most, scope, is_rule }) if size > *most => {
                let reached =
                    Reached { scope: *scope, name: "", has_tenant: self.has_tenant, is_rule: *is_rule };
                Err(reached.response(size, *most))
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn reached<'a>(&self, slot: &'a Slot<'_>) -> Reached<'a> {
        Reached { scope: slot.scope, name: &slot.name, has_tenant: self.has_tenant, is_rule: slot.is_rule }
    }
}

impl Drop for RunPart {
    fn drop(&mut self) {
        let runs = &self.store.runs;
        match self.began {
            // It was refused, or went away before its turn.
            None => runs.undo(&self.booking),
            Some(began) => {
                let time = if self.counts_time { began.elapsed() } else { Duration::ZERO };
                runs.end(&self.booking, time, self.result_bytes);
            }
        }
    }
}
