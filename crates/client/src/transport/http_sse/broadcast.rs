//! [`BroadcastFilter`]: the connections of one client to a server of the old HTTP+SSE transport, which may all be told the same.
//!
//! Some bridges (supergateway is one) have a single process behind all their connections, and send whatever it says to each
//! of them. An answer finds its request by its id all the same. A question would be answered by every connection: by the one
//! whose call it is about with what the user says, and before that by all others with an error. That a bridge does so shows
//! when a connection gets the answer to a request of another; from then on one connection deals with each question.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tidegate_protocol::{Id, Message, Request};

use crate::transport::{Claim, Inbox};

/// How many requests are remembered, and how many questions.
const MAX_KNOWN: usize = 256;

/// The connections, and what is known of what they are told.
#[derive(Default)]
pub(crate) struct BroadcastFilter(Mutex<State>);

#[derive(Default)]
struct State {
    connections: Vec<(u64, Weak<dyn Inbox>)>,
    next: u64,
    /// Which connection made which request, the latest last.
    requests: VecDeque<(Id, u64)>,
    /// Whether answers to one connection have come to another.
    broadcasts: bool,
    questions: VecDeque<Question>,
}

/// A question that came to at least one connection.
struct Question {
    id: Id,
    /// The connection that deals with it.
    whose: u64,
    /// The connections to which it has come.
    seen: Vec<u64>,
}

/// What a connection does with a message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is for this connection, as far as anybody knows.
    Ours,
    /// Another connection deals with it.
    Theirs,
    /// It is a question that could be for several connections, and this one says so.
    Unclear,
}

impl BroadcastFilter {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One connection more. Returns its number.
    pub(crate) fn join(&self, inbox: &Arc<dyn Inbox>) -> u64 {
        let mut state = self.state();
        state.connections.retain(|(_, inbox)| inbox.strong_count() > 0);
        state.next += 1;
        let number = state.next;
        state.connections.push((number, Arc::downgrade(inbox)));
        number
    }

    /// A connection has gone.
    pub(crate) fn leave(&self, number: u64) {
        self.state().connections.retain(|(other, _)| *other != number);
    }

    /// A connection makes a request.
    pub(crate) fn requested(&self, number: u64, id: &Id) {
        let mut state = self.state();
        state.requests.push_back((id.clone(), number));
        if state.requests.len() > MAX_KNOWN {
            state.requests.pop_front();
        }
    }

    /// What to do with a message that has come to a connection.
    pub(crate) fn judge(&self, number: u64, message: &Message) -> Verdict {
        match message {
            Message::Response(response) => self.answered(number, &response.id),
            Message::Failure(failure) => match &failure.id {
                Some(id) => self.answered(number, id),
                None => Verdict::Ours,
            },
            Message::Notification(_) => Verdict::Ours,
            Message::Request(request) => self.asked(number, request),
        }
    }

    fn answered(&self, number: u64, id: &Id) -> Verdict {
        let mut state = self.state();
        let whose = state.requests.iter().rev().find(|(known, _)| known == id).map(|(_, whose)| *whose);
        if whose.is_none_or(|whose| whose == number) {
            return Verdict::Ours;
        }
        if !std::mem::replace(&mut state.broadcasts, true) {
            tracing::info!(
                "the bridge tells every connection everything: questions are dealt with by one of them"
            );
        }
        Verdict::Theirs
    }

    fn asked(&self, number: u64, request: &Request) -> Verdict {
        let mut state = self.state();
        if !state.broadcasts {
            return Verdict::Ours;
        }
        // Who gets the same question a second time is asked a new one: the process behind the bridge is another.
        let known = state.questions.iter_mut().rev().find(|known| known.id == request.id);
        if let Some(known) = known.filter(|known| !known.seen.contains(&number)) {
            known.seen.push(number);
            return if known.whose == number { Verdict::Ours } else { Verdict::Theirs };
        }
        let claims: Vec<(u64, Claim)> = state
            .connections
            .iter()
            .filter_map(|(number, inbox)| Some((*number, inbox.upgrade()?.claim(request))))
            .collect();
        let best = claims.iter().map(|(_, claim)| *claim).max().unwrap_or(Claim::Nothing);
        let mut best_of = claims.iter().filter(|(_, claim)| *claim == best).map(|(number, _)| *number);
        let (first, several) = (best_of.next(), best_of.next().is_some());
        let (whose, verdict) = match (best, first) {
            // Somebody has to tell the server that there is nobody.
            (Claim::Nothing, _) | (_, None) => (number, Verdict::Ours),
            (Claim::Able, _) if several => (number, Verdict::Unclear),
            (_, Some(whose)) if whose == number => (number, Verdict::Ours),
            (_, Some(whose)) => (whose, Verdict::Theirs),
        };
        state.questions.push_back(Question { id: request.id.clone(), whose, seen: vec![number] });
        if state.questions.len() > MAX_KNOWN {
            state.questions.pop_front();
        }
        verdict
    }
}

#[cfg(test)]
mod tests {
    use tidegate_protocol::{Error, Incoming, Limits};

    use super::*;

    struct Stub(Claim);

    impl Inbox for Stub {
        fn message(&self, _: Message, _: Option<&Id>) {}
        fn spoiled(&self, _: Option<&Id>, _: Error) {}
        fn claim(&self, _: &Request) -> Claim {
            self.0
        }
        fn closed(&self, _: Error, _: Option<u64>) {}
    }

    fn message(text: &'static str) -> Message {
        match Incoming::parse(text.into(), &Limits::default()) {
            Ok(Incoming::One(message)) => message,
            other => panic!("{other:?}"),
        }
    }

    fn question() -> Message {
        message(r#"{"jsonrpc":"2.0","id":0,"method":"elicitation/create","params":{"message":"?"}}"#)
    }

    /// Connections with these claims, and a bridge that broadcasts.
    fn bridge(claims: &[Claim]) -> (BroadcastFilter, Vec<Arc<dyn Inbox>>) {
        let bridge = BroadcastFilter::default();
        let all: Vec<Arc<dyn Inbox>> = claims.iter().map(|claim| Arc::new(Stub(*claim)) as _).collect();
        for inbox in &all {
            bridge.join(inbox);
        }
        bridge.requested(1, &Id::from(7));
        let answer = message(r#"{"jsonrpc":"2.0","id":7,"result":{}}"#);
        assert_eq!(bridge.judge(1, &answer), Verdict::Ours);
        assert_eq!(bridge.judge(2, &answer), Verdict::Theirs);
        (bridge, all)
    }

    #[test]
    fn one_connection_deals_with_a_question_whoever_hears_it_first() {
        use Claim::{Able, Certain, Nothing, Unable};
        use Verdict::{Ours, Theirs, Unclear};
        for (claims, order, verdicts) in [
            ([Nothing, Able, Nothing], [1, 2, 3], [Theirs, Ours, Theirs]),
            ([Nothing, Able, Unable], [3, 2, 1], [Theirs, Ours, Theirs]),
            ([Able, Certain, Able], [1, 2, 3], [Theirs, Ours, Theirs]),
            ([Unable, Nothing, Unable], [2, 1, 3], [Theirs, Ours, Theirs]),
            ([Nothing, Nothing, Nothing], [3, 1, 2], [Ours, Theirs, Theirs]),
            ([Able, Nothing, Able], [2, 1, 3], [Unclear, Theirs, Theirs]),
        ] {
            let (bridge, _all) = bridge(&claims);
            for _ in ["the first", "the same from a new process"] {
                let heard = order.map(|number| bridge.judge(number, &question()));
                assert_eq!(heard, verdicts, "{claims:?} {order:?}");
            }
        }
    }

    #[test]
    fn a_server_that_tells_each_its_own_is_believed() {
        let bridge = BroadcastFilter::default();
        let all: [Arc<dyn Inbox>; 2] = [Arc::new(Stub(Claim::Nothing)), Arc::new(Stub(Claim::Able))];
        for (at, inbox) in all.iter().enumerate() {
            assert_eq!(bridge.join(inbox), at as u64 + 1);
        }
        // An answer to a request that nobody knows any more says nothing.
        let late = message(r#"{"jsonrpc":"2.0","id":9,"result":{}}"#);
        assert_eq!(bridge.judge(1, &late), Verdict::Ours);
        for number in [1, 2] {
            assert_eq!(bridge.judge(number, &question()), Verdict::Ours);
        }
    }
}
