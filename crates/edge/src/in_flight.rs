//! [`InFlight`]: the requests that have not been answered yet, so that they can be cancelled and ids stay unique.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};

use tidegate_protocol::{Error, Id, Symbol};
use tokio_util::sync::CancellationToken;

/// The requests in flight of one connection or session.
pub(crate) struct InFlight {
    max: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    running: HashMap<Id, Running>,
    next: Turn,
}

impl State {
    fn admit(&self, id: &Id, max: usize) -> Result<(), Error> {
        // Nothing to look up is the common case of a client that waits for its answers.
        if self.running.is_empty() {
            return Ok(());
        }
        if self.running.contains_key(id) {
            let what = format!("Invalid request: id {id} is in use by a request that is still in flight");
            return Err(Error::new(Symbol::DuplicateId, what));
        }
        if self.running.len() >= max {
            let what = "Too many requests of this client are in flight. Wait for some to finish";
            return Err(Error::new(Symbol::RateLimited, what));
        }
        Ok(())
    }
}

struct Running {
    turn: Turn,
    token: CancellationToken,
}

/// Tells requests apart that have had the same id one after the other.
pub(crate) type Turn = u64;

impl InFlight {
    /// Room for `max` requests.
    pub(crate) fn new(max: usize) -> InFlight {
        InFlight { max, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing that can panic happens under the lock.
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Notes that a request runs. Refuses an id that is in flight already, and more requests than allowed.
    pub(crate) fn begin(&self, id: &Id, token: CancellationToken) -> Result<Turn, Error> {
        let mut state = self.state();
        state.admit(id, self.max)?;
        let turn = state.next;
        state.next += 1;
        state.running.insert(id.detached(), Running { turn, token });
        Ok(turn)
    }

    /// Whether a request with this id may run, without noting that it does. For requests that are answered at once.
    pub(crate) fn admit(&self, id: &Id) -> Result<(), Error> {
        self.state().admit(id, self.max)
    }

    /// Notes that a request has ended. If it was cancelled, its id may be another request's by now.
    pub(crate) fn finish(&self, id: &Id, turn: Turn) {
        let mut state = self.state();
        if state.running.get(id).is_some_and(|running| running.turn == turn) {
            state.running.remove(id);
        }
    }

    /// Cancels the request with this id and frees the id. Returns whether there was one.
    pub(crate) fn cancel(&self, id: &Id) -> bool {
        let running = self.state().running.remove(id);
        running.map(|running| running.token.cancel()).is_some()
    }

    /// Cancels all.
    pub(crate) fn cancel_all(&self) {
        let running = std::mem::take(&mut self.state().running);
        for running in running.into_values() {
            running.token.cancel();
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.state().running.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_free_once_cancelled_and_then_means_the_new_request() {
        let requests = InFlight::new(2);
        let (id, first, second) = (Id::from(1), CancellationToken::new(), CancellationToken::new());
        let old = requests.begin(&id, first.clone()).unwrap();
        assert_eq!(requests.begin(&id, second.clone()).unwrap_err().symbol(), Symbol::DuplicateId);
        assert!(requests.cancel(&id) && first.is_cancelled());
        let new = requests.begin(&id, second.clone()).unwrap();
        requests.finish(&id, old);
        assert_eq!(requests.len(), 1, "the end of the old one is not the end of the new one");
        assert!(requests.cancel(&id) && second.is_cancelled() && !requests.cancel(&id));
        requests.finish(&id, new);
        assert_eq!(requests.len(), 0);
    }

    #[test]
    fn bounded() {
        let requests = InFlight::new(1);
        requests.begin(&Id::from(1), CancellationToken::new()).unwrap();
        let refused = requests.begin(&Id::from("1"), CancellationToken::new()).unwrap_err();
        assert_eq!(refused.symbol(), Symbol::RateLimited);
        requests.cancel_all();
        assert!(requests.begin(&Id::from("1"), CancellationToken::new()).is_ok());
    }
}
