//! [`Turns`]: calls of different clients that a server may ask something, one client after the other.
//!
//! Over a pipe nothing says which call a question belongs to. Where that has proved to matter, or where the clients are
//! different users', only one of them at a time has calls in a session that can be asked.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

use tidegate_protocol::{Error, Symbol};
use tidegate_service::Principal;
use tokio::sync::oneshot;

use super::owner::ClientIdentity;

/// Most calls that wait for their turn.
const MAX_WAITING: usize = 1024;
/// Most of one client.
const MAX_OF_ONE: usize = 64;

/// Whose turn it is: a user's, or one client's of theirs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Holder {
    principal: Principal,
    client: Option<ClientIdentity>,
}

impl Holder {
    pub(crate) fn user(client: &ClientIdentity) -> Holder {
        Holder { principal: client.principal.clone(), client: None }
    }

    pub(crate) fn client(client: &ClientIdentity) -> Holder {
        Holder { principal: client.principal.clone(), client: Some(client.clone()) }
    }
}

/// Whose turn it is in one session, and who waits.
#[derive(Default)]
pub(crate) struct Turns(Mutex<State>);

#[derive(Default)]
struct State {
    holder: Option<Holder>,
    /// How many calls the holder has under way.
    calls: usize,
    waiting: VecDeque<(Holder, oneshot::Sender<Turn>)>,
}

impl Turns {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Waits until a call of this holder may begin. Its calls run together, but not past others who wait.
    pub(crate) async fn take(self: &Arc<Self>, holder: Holder) -> Result<Turn, Error> {
        let waits = {
            let mut state = self.state();
            // Who has left waits no more.
            state.waiting.retain(|(_, sender)| !sender.is_closed());
            let free = match &state.holder {
                None => true,
                Some(now) => *now == holder && state.waiting.is_empty(),
            };
            if free {
                state.holder = Some(holder);
                state.calls += 1;
                return Ok(Turn(self.clone()));
            }
            let theirs = state.waiting.iter().filter(|(other, _)| *other == holder).count();
            if state.waiting.len() >= MAX_WAITING || theirs >= MAX_OF_ONE {
                let what = "Too many calls wait until the calls of other clients to this server are done";
                return Err(Error::new(Symbol::RateLimited, what).unexecuted());
            }
            let (sender, waits) = oneshot::channel();
            state.waiting.push_back((holder, sender));
            waits
        };
        waits.await.map_err(|_| Error::internal())
    }

    /// A call is done: when it was the holder's last, it is the next one's turn.
    fn done(self: &Arc<Self>) {
        let mut turns = Vec::new();
        {
            let mut state = self.state();
            state.calls = state.calls.saturating_sub(1);
            if state.calls > 0 {
                return;
            }
            state.holder = None;
            while let Some((holder, _)) = state.waiting.front() {
                if state.holder.as_ref().is_some_and(|now| now != holder) {
                    break;
                }
                let Some((holder, sender)) = state.waiting.pop_front() else { break };
                if sender.is_closed() {
                    continue;
                }
                state.holder = Some(holder);
                state.calls += 1;
                turns.push(sender);
            }
        }
        for sender in turns {
            // Whoever has left gives it back by dropping it.
            drop(sender.send(Turn(self.clone())));
        }
    }
}

/// A call's turn, until it is dropped.
pub(crate) struct Turn(Arc<Turns>);

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.done();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use tidegate_service::Context;

    fn client(name: &str) -> ClientIdentity {
        let mut context = Context::local();
        context.principal.subject = Some(name.into());
        ClientIdentity::of(&context)
    }

    #[test]
    fn one_client_after_the_other_and_none_is_passed_over() {
        let turns = Arc::new(Turns::default());
        let (ann, bob) = (Holder::client(&client("ann")), Holder::client(&client("bob")));
        let take = |who: &Holder| turns.take(who.clone()).now_or_never();
        let first = take(&ann).unwrap().unwrap_or_else(|_| panic!());
        let second = take(&ann).unwrap().unwrap_or_else(|_| panic!());
        let mut bobs = Box::pin(turns.take(bob.clone()));
        assert!(bobs.as_mut().now_or_never().is_none());
        let mut anns = Box::pin(turns.take(ann.clone()));
        assert!(anns.as_mut().now_or_never().is_none(), "not past Bob, who waits");
        drop(first);
        assert!(bobs.as_mut().now_or_never().is_none());
        drop(second);
        let bobs = bobs.now_or_never().unwrap().unwrap_or_else(|_| panic!());
        assert!(anns.as_mut().now_or_never().is_none());
        drop(bobs);
        let anns = anns.now_or_never().unwrap();
        assert!(anns.is_ok());
    }

    #[test]
    fn who_leaves_holds_up_nobody() {
        let turns = Arc::new(Turns::default());
        let [ann, bob, eve] = ["ann", "bob", "eve"].map(|name| Holder::user(&client(name)));
        let first = turns.take(ann).now_or_never().unwrap();
        let mut bobs = Box::pin(turns.take(bob));
        let mut eves = Box::pin(turns.take(eve));
        assert!(bobs.as_mut().now_or_never().is_none() && eves.as_mut().now_or_never().is_none());
        drop(bobs);
        drop(first);
        assert!(eves.now_or_never().is_some_and(|turn| turn.is_ok()));
    }
}
