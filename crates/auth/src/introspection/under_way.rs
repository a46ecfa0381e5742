//! [`UnderWay`]: questions that were asked and not answered yet.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared, WeakShared};

use crate::{Refusal, Verified};

type Outcome = Result<Verified, Refusal>;
type Question = BoxFuture<'static, Outcome>;
/// By tokens. Each has a number, to tell it from one that is asked anew.
type Questions = HashMap<Box<str>, (u64, WeakShared<Question>)>;

/// Joins questions about the same token. One ends when it is answered, or when nobody waits for the answer any more.
pub(super) struct UnderWay {
    most: usize,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    asked: u64,
    questions: Questions,
}

impl UnderWay {
    /// At most so many at once.
    pub(super) fn new(most: usize) -> UnderWay {
        UnderWay { most, state: Arc::default() }
    }

    /// The outcome of the question about this token that is under way, or else of the one that `ask` begins.
    pub(super) async fn join<F>(&self, token: &str, ask: impl FnOnce() -> F) -> Outcome
    where
        F: Future<Output = Outcome> + Send + 'static,
    {
        let question = self.question(token, ask).ok_or(Refusal::KeysUnavailable)?;
        question.await
    }

    /// `None` if there are too many already.
    fn question<F>(&self, token: &str, ask: impl FnOnce() -> F) -> Option<Shared<Question>>
    where
        F: Future<Output = Outcome> + Send + 'static,
    {
        let mut state = lock(&self.state);
        if let Some(question) = state.questions.get(token).and_then(|(_, question)| question.upgrade()) {
            return Some(question);
        }
        if state.questions.len() >= self.most {
            return None;
        }
        state.asked += 1;
        let number = state.asked;
        let end = End { state: self.state.clone(), token: token.into(), number };
        let answer = ask();
        let question = async move {
            let _end = end;
            answer.await
        };
        let question = question.boxed().shared();
        // There always is one: it has not been polled.
        if let Some(weak) = question.downgrade() {
            state.questions.insert(token.into(), (number, weak));
        }
        Some(question)
    }
}

/// Forgets a question when it has ended, in whichever way.
struct End {
    state: Arc<Mutex<State>>,
    token: Box<str>,
    number: u64,
}

impl Drop for End {
    fn drop(&mut self) {
        let mut state = lock(&self.state);
        if state.questions.get(&self.token).is_some_and(|(number, _)| *number == self.number) {
            state.questions.remove(&self.token);
        }
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::future::{pending, ready};

    #[tokio::test]
    async fn questions_end_when_they_are_answered_or_nobody_waits() {
        let under_way = UnderWay::new(2);
        let inactive = || ready(Err(Refusal::Inactive));
        assert_eq!(under_way.join("a", inactive).await.unwrap_err(), Refusal::Inactive);
        assert!(lock(&under_way.state).questions.is_empty());
        let first = under_way.question("a", pending::<Outcome>).unwrap();
        let second =
            under_way.question("a", || -> std::future::Ready<Outcome> { unreachable!("it is under way") });
        assert!(first.ptr_eq(&second.unwrap()));
        let other = under_way.question("b", pending::<Outcome>).unwrap();
        assert!(under_way.question("c", pending::<Outcome>).is_none(), "there are two already");
        drop(first);
        assert!(under_way.question("c", pending::<Outcome>).is_some());
        drop(other);
        assert!(lock(&under_way.state).questions.is_empty());
    }
}
