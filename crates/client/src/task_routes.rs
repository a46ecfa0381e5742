//! [`TaskRoutes`]: the tasks that live on a connection to a legacy server, and who hears what it says about them.

use std::sync::{Arc, Mutex, MutexGuard};

use tidegate_protocol::{Id, Params, Request, meta};

use crate::ticket::{Event, Ticket};

/// Most questions about tasks that nobody follows (yet).
const MAX_STRAYS: usize = 16;

/// What a legacy server says about a task names the task (2025-11-25 basic/utilities/tasks, Related Task Metadata), on
/// whichever stream it comes.
#[derive(Default)]
pub(crate) struct TaskRoutes(Mutex<State>);

#[derive(Default)]
struct State {
    followed: Vec<Followed>,
    /// Questions that came before anybody had read that there is a task.
    strays: Vec<(String, Request)>,
}

struct Followed {
    task: String,
    /// The request that made the task: its progress is still told under this id.
    token: Id,
    ticket: Arc<Ticket>,
}

impl TaskRoutes {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// From now on what is said about `task` goes to `ticket`.
    pub(crate) fn follow(&self, task: &str, token: &Id, ticket: &Arc<Ticket>) {
        let mut state = self.state();
        let (early, others): (Vec<_>, Vec<_>) =
            std::mem::take(&mut state.strays).into_iter().partition(|(of, _)| of == task);
        state.strays = others;
        state.followed.retain(|one| one.task != task);
        state.followed.push(Followed { task: task.to_owned(), token: token.clone(), ticket: ticket.clone() });
        drop(state);
        early.into_iter().for_each(|(_, question)| ticket.push(Event::Question(question)));
    }

    /// Nobody wants to hear of the task any more.
    pub(crate) fn forget(&self, task: &str) {
        self.state().followed.retain(|one| one.task != task);
    }

    /// Who is asked what is asked about a task.
    pub(crate) fn asked(&self, task: &str) -> Option<Arc<Ticket>> {
        self.state().followed.iter().find(|one| one.task == task).map(|one| one.ticket.clone())
    }

    /// Who hears of progress under this token.
    pub(crate) fn progress(&self, token: &Id) -> Option<Arc<Ticket>> {
        self.state().followed.iter().find(|one| one.token == *token).map(|one| one.ticket.clone())
    }

    /// Keeps a question for whoever will follow its task. Comes back with the oldest if there are too many.
    pub(crate) fn keep(&self, task: String, question: Request) -> Option<Request> {
        let mut state = self.state();
        state.strays.push((task, question));
        (state.strays.len() > MAX_STRAYS).then(|| state.strays.remove(0).1)
    }
}

/// The task that a message is about.
pub(crate) fn task_of(params: &Params) -> Option<String> {
    let related = params.meta()?.json(meta::RELATED_TASK)?;
    tidegate_protocol::Object::of(&related)?.str("taskId").map(|id| id.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ticket::Sink;
    use futures_util::FutureExt;
    use tidegate_protocol::{Incoming, Limits, Message, Method};

    fn question(id: usize, task: &str) -> Request {
        let text = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"roots/list","params":{{"_meta":{{"{}":{{"taskId":"{task}"}}}}}}}}"#,
            meta::RELATED_TASK
        );
        match Incoming::parse(text.into(), &Limits::default()) {
            Ok(Incoming::One(Message::Request(request))) => request,
            other => panic!("{other:?}"),
        }
    }

    fn ticket() -> Arc<Ticket> {
        Arc::new(Ticket::new(Id::from(1), Method::ToolsCall, Sink::default()))
    }

    #[test]
    fn what_comes_early_is_kept_for_its_task() {
        let related = TaskRoutes::default();
        assert_eq!(task_of(&question(1, "a").params).as_deref(), Some("a"));
        assert!(related.keep("a".into(), question(1, "a")).is_none());
        assert!(related.keep("b".into(), question(2, "b")).is_none());
        let mine = ticket();
        related.follow("a", &Id::from(7), &mine);
        assert!(matches!(mine.next().now_or_never(), Some(Event::Question(q)) if q.id == Id::from(1)));
        assert!(mine.next().now_or_never().is_none(), "the other one is somebody else's");
        assert!(related.asked("a").is_some() && related.asked("b").is_none());
        assert!(related.progress(&Id::from(7)).is_some() && related.progress(&Id::from(1)).is_none());
        related.forget("a");
        assert!(related.asked("a").is_none());
    }

    #[test]
    fn what_nobody_follows_is_bounded() {
        let related = TaskRoutes::default();
        let kept = |n: usize| related.keep("a".into(), question(n, "a"));
        assert!((0..MAX_STRAYS).all(|n| kept(n).is_none()));
        assert_eq!(
            kept(99).map(|oldest| oldest.id),
            Some(Id::from(0)),
            "the oldest comes back, to be refused"
        );
    }
}
