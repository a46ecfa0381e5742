//! [`Cx`]: what a handler knows about the call it serves, and how it talks back.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Instant;

use futures_util::task::AtomicWaker;
use serde::Serialize;
use tidegate_protocol::json::ObjectWriter;
use tidegate_protocol::{Capability, ClientCapabilities, Error, Feature, Json, Level, Revision};
use tidegate_service::{Call, Context, CorrelationId, Held, Notice, Outbox, Principal};

use crate::interact::Replay;
use crate::server::Core;
use crate::tasks::Task;
use crate::tool::ToolError;
use tidegate_service::stats::Stats;

/// The context of one call. Cheap to clone, good for as long as anybody holds it.
///
/// Besides telling who calls and on which terms, it sends progress and log messages ([`Cx::progress`], [`Cx::log`]),
/// and asks the client: [`Cx::elicit`], [`Cx::sample`], [`Cx::roots`].
#[derive(Clone)]
pub struct Cx(Arc<Shared>);

struct Shared {
    call: Call,
    core: Arc<Core>,
    /// The last progress that was told, as bits; progress must increase.
    progress: AtomicU64,
    /// Questions and answers. Made when the first question is asked or the first answer arrives.
    replay: Mutex<Option<Box<Replay>>>,
    /// Whoever polls the handler, so that a question asked from another task is noticed.
    runner: AtomicWaker,
    /// The task that the call has become.
    task: OnceLock<Arc<Task>>,
    may_detach: AtomicBool,
    detach: AtomicBool,
    /// Whoever waits for the call to become a task.
    detaching: AtomicWaker,
}

/// No progress was told yet: a number that every other is greater than.
const NO_PROGRESS: u64 = f64::NEG_INFINITY.to_bits();

impl Cx {
    /// The context of a call. Fails when the call brings answers or a state that are not acceptable.
    pub(crate) fn new(core: Arc<Core>, call: Call) -> Result<Cx, Error> {
        let replay = Replay::resume(&core, &call)?;
        // What was told in earlier rounds of the call is not told again.
        let told = replay.as_ref().and_then(|replay| replay.progress()).map_or(NO_PROGRESS, f64::to_bits);
        Ok(Cx(Arc::new(Shared {
            call,
            core,
            progress: AtomicU64::new(told),
            replay: Mutex::new(replay),
            runner: AtomicWaker::new(),
            task: OnceLock::new(),
            may_detach: AtomicBool::new(false),
            detach: AtomicBool::new(false),
            detaching: AtomicWaker::new(),
        })))
    }

    pub(crate) fn call(&self) -> &Call {
        &self.0.call
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.0.core
    }

    fn context(&self) -> &Context {
        &self.0.call.context
    }

    /// The last progress that was told, in this round of the call or an earlier one.
    pub(crate) fn told(&self) -> Option<f64> {
        Some(f64::from_bits(self.0.progress.load(Ordering::Relaxed))).filter(|told| told.is_finite())
    }

    pub(crate) fn replay(&self) -> MutexGuard<'_, Option<Box<Replay>>> {
        // Nothing panics while the lock is held; should it, what was asked is still whole.
        self.0.replay.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(crate) fn runner(&self) -> &AtomicWaker {
        &self.0.runner
    }

    /// The task that the call has become, if it has.
    pub(crate) fn task(&self) -> Option<&Arc<Task>> {
        self.0.task.get()
    }

    pub(crate) fn become_task(&self, task: Arc<Task>) {
        // Only the runner does this, and only once.
        let _ = self.0.task.set(task);
        self.0.detaching.wake();
    }

    pub(crate) fn allow_detach(&self) {
        self.0.may_detach.store(true, Ordering::Release);
    }

    pub(crate) fn wants_detach(&self) -> bool {
        self.0.detach.load(Ordering::Acquire)
    }

    /// Goes on in the background: the caller gets a task, and what follows runs as that task.
    ///
    /// For tools that ask first ([`Tool::asks_first`](crate::Tool::asks_first)). Where the call is no task (the client
    /// does not know tasks) or is one already, this does nothing.
    pub async fn detach(&self) {
        if !self.0.may_detach.load(Ordering::Acquire) {
            return;
        }
        std::future::poll_fn(|poll| {
            if self.task().is_some() {
                return std::task::Poll::Ready(());
            }
            self.0.detaching.register(poll.waker());
            self.0.detach.store(true, Ordering::Release);
            self.0.runner.wake();
            std::task::Poll::Pending
        })
        .await;
    }

    /// Tells how far the work is. `progress` must increase, else nothing is sent; nor is anything when the caller did
    /// not ask. A handler that runs again because it asked the client something may tell the same again: only what is
    /// new is sent. For a task, the message becomes its status message.
    pub fn progress<'a>(
        &self,
        progress: f64,
        total: impl Into<Option<f64>>,
        message: impl Into<Option<&'a str>>,
    ) {
        self.tell_progress(progress, total.into(), message.into(), None);
    }

    /// The same for a piece of the answer itself: the message is text that follows what was sent before. Its `_meta` has
    /// `dev.tidegate/text`, so that programs can tell it from a message about the work.
    pub fn progress_text(&self, progress: f64, text: &str) {
        self.tell_progress(progress, None, Some(text), Some(tidegate_protocol::meta::TEXT));
    }

    fn tell_progress(&self, progress: f64, total: Option<f64>, message: Option<&str>, mark: Option<&str>) {
        if let Some(task) = self.task() {
            // SEP-2663: progress notifications are not supported on tasks. A piece of text is no status.
            if let Some(message) = message.filter(|_| mark.is_none()) {
                task.set_message(message);
            }
            return;
        }
        let (Some(token), Some(outbox)) = (&self.context().progress_token, &self.context().outbox) else {
            return;
        };
        let increased = self.0.progress.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| {
            (progress > f64::from_bits(last)).then_some(progress.to_bits())
        });
        if increased.is_err() {
            return;
        }
        let mut w = ObjectWriter::with_capacity(96);
        w.json("progressToken", token);
        number(&mut w, "progress", progress);
        if let Some(total) = total {
            number(&mut w, "total", total);
        }
        if let Some(message) = message {
            w.str("message", message);
        }
        if let Some(mark) = mark {
            w.value("_meta", &serde_json::json!({mark: true}));
        }
        outbox.push(Notice::Progress(w.finish()));
    }

    /// Sends a log message to the client, if it wants messages of this level.
    pub fn log<'a>(&self, level: Level, logger: impl Into<Option<&'a str>>, data: impl Serialize) {
        let Some(outbox) = self.log_outbox(level) else { return };
        let mut w = ObjectWriter::with_capacity(96);
        w.str("level", level.as_str());
        if let Some(logger) = logger.into() {
            w.str("logger", logger);
        }
        w.value("data", &data);
        outbox.push(Notice::Log(w.finish()));
    }

    fn log_outbox(&self, level: Level) -> Option<&Outbox> {
        if self.task().is_some() || self.context().log_level.is_none_or(|least| level < least) {
            return None;
        }
        self.context().outbox.as_ref()
    }

    /// Sends a debug message to the client, if it wants such.
    pub fn debug(&self, message: &str) {
        self.log(Level::Debug, None, message);
    }

    /// Sends an info message to the client, if it wants such.
    pub fn info(&self, message: &str) {
        self.log(Level::Info, None, message);
    }

    /// Sends a warning to the client, if it wants such.
    pub fn warning(&self, message: &str) {
        self.log(Level::Warning, None, message);
    }

    /// Sends an error message to the client, if it wants such.
    pub fn error(&self, message: &str) {
        self.log(Level::Error, None, message);
    }

    /// Whether the answer is no longer wanted.
    pub fn is_cancelled(&self) -> bool {
        match self.task() {
            Some(task) => task.cancel.is_cancelled(),
            None => self.context().cancel.is_cancelled(),
        }
    }

    /// Waits until the answer is no longer wanted.
    ///
    /// The handler's own future is dropped at that moment, so this is for work that it has given to others.
    pub async fn cancelled(&self) {
        if self.task().is_none() {
            self.context().cancel.cancelled().await;
        }
        // The call may have become a task in the meantime, and a task outlives its request.
        if let Some(task) = self.task() {
            task.cancel.cancelled().await;
        }
    }

    /// The id that every log line of this call carries.
    pub fn correlation_id(&self) -> CorrelationId {
        self.context().correlation
    }

    /// Who calls, as established by the transport.
    pub fn principal(&self) -> &Principal {
        &self.context().principal
    }

    /// The endpoint that was called, where there are several; `None` for the default one.
    pub fn endpoint(&self) -> Option<&str> {
        self.context().endpoint.as_deref()
    }

    /// The context of a call that is made in the caller's name: it says who calls, what is known of them, and at which
    /// endpoint, so that nothing is reached that the caller could not reach.
    pub fn on_behalf(&self) -> Context {
        let (own, mut context) = (self.context(), Context::local());
        context.correlation = own.correlation;
        context.principal = own.principal.clone();
        context.endpoint = own.endpoint.clone();
        context.client_info = own.client_info.clone();
        context.hops = own.hops;
        context.claims = own.claims.clone();
        // It is part of this one, which waits for it: it must not wait for what this one has.
        context.is_admitted = own.is_admitted;
        if let Some(held) = own.extensions.get::<Held>() {
            context.extensions.insert(held);
        }
        context
    }

    /// Who the client says it is.
    pub fn client_info(&self) -> Option<&Json> {
        self.context().client_info.as_ref()
    }

    /// The revision that the client speaks.
    pub fn revision(&self) -> Revision {
        self.context().revision
    }

    /// What the client says it can do.
    pub fn capabilities(&self) -> &ClientCapabilities {
        &self.context().capabilities
    }

    /// Whether the client can do this.
    pub fn can(&self, capability: Capability) -> bool {
        let known = match capability {
            Capability::ElicitForm => Feature::Elicitation,
            Capability::ElicitUrl => Feature::UrlElicitation,
            Capability::SamplingTools => Feature::SamplingTools,
            Capability::Sampling | Capability::Roots | Capability::Tasks => {
                return self.capabilities().has(capability);
            }
        };
        self.revision().allows(known) && self.capabilities().has(capability)
    }

    /// Fails the call with `-32021` unless the client can do this.
    pub fn require(&self, capability: Capability) -> Result<(), ToolError> {
        if self.can(capability) {
            return Ok(());
        }
        Err(ToolError::protocol(Error::missing_capabilities(&[capability])))
    }

    /// When the caller stops waiting. A task has its own time.
    pub fn deadline(&self) -> Option<Instant> {
        if self.task().is_some() { None } else { self.context().deadline }
    }

    /// The `_meta` that came with the call.
    pub fn meta(&self) -> Option<&tidegate_protocol::Object> {
        self.call().params.meta()
    }

    /// The arguments of the call as they came, unchecked: those of a tool or a prompt, and while one of them is completed,
    /// those that are already filled in.
    pub fn arguments(&self) -> Option<tidegate_protocol::Object> {
        let params = self.call().params.object();
        params.object("arguments").or_else(|| params.object("context")?.object("arguments"))
    }

    /// The URI that is read, as it came, if this is a `resources/read`.
    pub fn uri(&self) -> Option<String> {
        self.call().params.str("uri").map(|uri| uri.into_owned())
    }

    /// The server's statistics.
    pub fn stats(&self) -> Stats {
        self.core().counters.snapshot()
    }

    /// The server, to tell of changes or to change what it offers.
    pub fn server(&self) -> crate::ServerHandle {
        crate::ServerHandle::new(self.core().clone())
    }

    /// Lets go of the stream on which the answer would come, so that the client has to come back for it: for work
    /// that takes longer than connections live. Only streams that can be resumed are let go of.
    pub fn close_stream(&self) {
        if let Some(outbox) = &self.context().outbox {
            outbox.push(Notice::CloseStream);
        }
    }
}

impl std::fmt::Debug for Cx {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cx").field("call", self.call()).finish_non_exhaustive()
    }
}

/// Whole numbers are written without a fraction, as people write them.
fn number(w: &mut ObjectWriter, name: &str, value: f64) {
    if value.fract() == 0.0 && value.abs() < 9e15 {
        w.value(name, &(value as i64));
    } else {
        w.value(name, &value);
    }
}
