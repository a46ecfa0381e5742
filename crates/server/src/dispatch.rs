//! The framework's own service: finds out what a call wants and who answers it.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tidegate_protocol::{Error, Json, Method, Profile, Revision};
use tidegate_service::{Call, Reply};

use crate::run::{Run, Step};
use crate::server::Core;
use crate::{batch, complete, discover, hub, list, prompt, resource, tasks, tool};

/// What became of a call before anything had to wait.
pub(crate) enum Started {
    /// It is answered.
    Ready(Reply),
    /// It is answered, and the answer is a tool's failure.
    Failed(Reply),
    /// A handler is at work.
    Running(Run),
}

impl Started {
    pub(crate) fn failed(error: Error) -> Started {
        Started::Failed(Reply::Error(error))
    }

    pub(crate) fn tool_failed(result: Json) -> Started {
        Started::Failed(Reply::Complete(result))
    }
}

impl From<Result<Reply, Error>> for Started {
    fn from(result: Result<Reply, Error>) -> Started {
        result.map_or_else(Started::failed, Started::Ready)
    }
}

/// The door without any layer around it; see [`ServerDoor::bare`](crate::ServerDoor::bare).
#[derive(Clone)]
pub struct Framework(pub(crate) Arc<Core>);

impl tower::Service<Call> for Framework {
    type Response = Reply;
    type Error = Infallible;
    type Future = Answer;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: Call) -> Answer {
        let revision = call.context.revision;
        Answer { core: self.0.clone(), revision, state: Some(start(&self.0, call)) }
    }
}

fn start(core: &Arc<Core>, call: Call) -> Started {
    if let Err(error) = call.context.check_hops() {
        return Started::failed(error);
    }
    // A tool is found first, so that its refusal looks like that tool's failure.
    if call.method != Method::ToolsCall
        && let Err(error) = core.admit(&call)
    {
        return Started::failed(error.into_error());
    }
    let has = core.kinds();
    match call.method {
        Method::ToolsCall if has.tools => tool::call(core, call),
        Method::ToolsList if has.tools => list::tools(core, &call).into(),
        Method::PromptsList if has.prompts => list::prompts(core, &call).into(),
        Method::PromptsGet if has.prompts => prompt::get(core, call),
        Method::ResourcesList if has.resources => list::resources(core, call),
        Method::ResourcesTemplatesList if has.resources => list::templates(core, &call).into(),
        Method::ResourcesRead if has.resources => resource::read(core, call),
        Method::Complete if has.completions => complete::complete(core, call),
        Method::Discover => Started::Ready(discover::discover(core, &call)),
        Method::Listen => hub::listen(core, &call).into(),
        Method::TasksGet if has.tasks => tasks::get(core, &call).into(),
        Method::TasksUpdate if has.tasks => tasks::update(core, &call).into(),
        Method::TasksCancel if has.tasks => tasks::cancel(core, &call).into(),
        Method::Other(ref name) if core.settings.call_batch && has.tools && *name == batch::METHOD => {
            batch::call(core, call)
        }
        // What a client tells that nobody has asked for has no effect, and is no failure either.
        ref told if told.is_notification() => Started::Failed(Reply::complete(call.context.revision, "")),
        other => Started::Failed(Reply::method_not_found(&other)),
    }
}

/// The future of [`Framework`].
pub struct Answer {
    core: Arc<Core>,
    revision: Revision,
    state: Option<Started>,
}

/// An error that the framework has decided on, with the number that the profile's clients know it by.
fn in_profile(profile: Profile, revision: Revision, reply: Reply) -> Reply {
    let Reply::Error(error) = reply else { return reply };
    // What a tool's failure looks like was settled before; a layer must not change it again.
    Reply::Error(error.in_profile(profile, revision).as_protocol())
}

impl Future for Answer {
    type Output = Result<Reply, Infallible>;

    fn poll(mut self: Pin<&mut Self>, poll: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let (reply, ok) = match this.state.take() {
            Some(Started::Ready(reply)) => (reply, true),
            Some(Started::Failed(reply)) => (reply, false),
            Some(Started::Running(mut run)) => match run.poll_call(poll) {
                Poll::Ready(Step::Done(reply, ok)) => (reply, ok),
                Poll::Ready(Step::Detach) => tasks::detach(run),
                Poll::Pending => {
                    this.state = Some(Started::Running(run));
                    return Poll::Pending;
                }
            },
            // Polled again after it was done, which futures may not be.
            None => (Reply::Error(Error::internal()), false),
        };
        if ok {
            this.core.counters.succeeded();
        }
        Poll::Ready(Ok(in_profile(this.core.settings.profile, this.revision, reply)))
    }
}
