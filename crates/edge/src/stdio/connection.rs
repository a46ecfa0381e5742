//! One connection: reads lines, tells the eras apart, runs requests side by side.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_util::FutureExt;
use tidegate_protocol::lines::{Line, Lines, Outline};
use tidegate_protocol::{
    Error, Id, Incoming, Json, Malformed, Message, Meta, Method, Notification, Request, Symbol,
};
use tidegate_service::budget::Budget;
use tidegate_service::trace::{self, Origin, Transport};
use tidegate_service::usage::NetworkTransport::Pipe;
use tidegate_service::{Connected, Door, Reply};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::modern_request::{Modern, ReplyFuture, Running};
use super::output::Output;
use super::{Ended, Settings};
use crate::call_id::CallId;
use crate::edge_settings::EdgeSettings;
use crate::http::modern_only;
use crate::in_flight::InFlight;
use crate::legacy::{Batch, ClientSession, drive, drive_batch, handshake, pass_on_changes};
use crate::notifications::{NotificationForwarder, is_for_service};
use crate::{budget, modern, traffic, wire};

pub(super) async fn run<D: Door>(
    door: D,
    settings: Settings,
    mut input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Unpin + Send + 'static,
    signal: impl Future<Output = Option<&'static str>>,
) -> Ended {
    let drain = settings.drain;
    let mut lines = Lines::new(settings.edge.limits.max_bytes);
    let out = Output::new(settings.max_backlog);
    // Written from this very task: what a batch of lines has answered goes out in one piece, without a wake-up each.
    let mut writer = Box::pin(out.clone().write_to(output).fuse());
    let mut connection = Connection::new(door, settings, out.clone());
    tokio::pin!(signal);
    let ended = 'serve: loop {
        while let Some(line) = lines.next() {
            let Some(hello) = connection.line(line) else { continue };
            // The lines behind a handshake wait for it; the end does not.
            tokio::select! {
                () = connection.initialize(hello) => {}
                Some(name) = &mut signal => break 'serve Ended::Signal(name),
                () = out.broken() => break 'serve Ended::OutputClosed,
                () = &mut writer => break 'serve Ended::OutputClosed,
            }
        }
        tokio::select! {
            biased;
            () = &mut writer => break Ended::OutputClosed,
            read = input.read_buf(lines.room()) => match read {
                Ok(0) => {
                    if let Some(hello) = lines.last().and_then(|line| connection.line(line)) {
                        let _ = tokio::time::timeout(drain, connection.initialize(hello)).await;
                    }
                    break Ended::Eof;
                }
                Ok(_) => {}
                Err(e) => {
                    tracing::debug!(error = %e, "the input was cut off");
                    break Ended::Eof;
                }
            },
            Some(name) = &mut signal => break Ended::Signal(name),
            () = out.broken() => break Ended::OutputClosed,
        }
    };
    // Nobody is left to answer when the output is gone.
    let drain = if ended == Ended::OutputClosed { Duration::ZERO } else { drain };
    let ending = async {
        connection.end(drain).await;
        out.close();
    };
    if ended == Ended::OutputClosed {
        ending.await;
        return ended;
    }
    // A client that reads nothing must not keep the process.
    let written = async { tokio::join!(ending, &mut writer) };
    if tokio::time::timeout(2 * drain, written).await.is_err() {
        tracing::debug!("the client did not read all of the output");
    }
    ended
}

struct Connection<D> {
    door: D,
    edge: Arc<EdgeSettings>,
    settings: Settings,
    out: Output,
    running: TaskTracker,
    /// Modern requests in flight. Those of a legacy client are its [`ClientSession`]'s.
    in_flight: Arc<InFlight>,
    /// The legacy client, once it has shaken hands.
    client: Option<Arc<ClientSession>>,
    /// Whether it really has: a lenient server takes one for granted until then.
    shook_hands: bool,
    over: CancellationToken,
    /// This connection as services know it.
    connected: Connected,
    notifications: NotificationForwarder,
}

impl<D: Door> Connection<D> {
    fn new(door: D, settings: Settings, out: Output) -> Self {
        let in_flight = Arc::new(InFlight::new(settings.edge.max_in_flight));
        Connection {
            door,
            edge: Arc::new(settings.edge.clone()),
            settings,
            out,
            running: TaskTracker::new(),
            in_flight,
            client: None,
            shook_hands: false,
            over: CancellationToken::new(),
            connected: Connected::new(),
            notifications: NotificationForwarder::default(),
        }
    }

    /// Takes a line. Everything is answered or under way when this returns, except a handshake, which is given back.
    fn line(&mut self, line: Line) -> Option<Request> {
        let revision = self.client.as_ref().map(|p| p.revision);
        let incoming = match line {
            Line::Text(bytes) => {
                traffic::received(Pipe, &bytes);
                // A line is there already: whether what it asks for may begin is decided when it is known.
                Incoming::parse_bytes(Budget::of_process().charge_anyway(bytes), &self.edge.limits)
            }
            Line::TooLong { outline, .. } => return self.too_long(&outline),
        };
        match incoming {
            Ok(Incoming::One(message)) => return self.message(message),
            Ok(Incoming::Batch(batch)) => self.batch(batch),
            Err(m) => self.out.line(&wire::error(m.id.as_ref(), &m.error, revision)),
        }
        None
    }

    /// Refuses a line that was too long to be read, so that nobody waits for what it was about.
    fn too_long(&self, outline: &Outline) -> Option<Request> {
        let what = format!(
            "Message too large: a line may have {} bytes; send it in smaller parts, or let the server take larger ones",
            self.edge.limits.max_bytes
        );
        let error = Error::new(Symbol::TooLarge, what);
        let revision = self.client.as_ref().map(|p| p.revision);
        let id = outline.id();
        match (&id, &self.client) {
            // The answer to a question of ours: whoever asked hears it.
            (Some(id), Some(client)) if outline.is_answer() => {
                client.answered(id, Err(error.to_json(client.revision)));
            }
            _ => self.out.line(&wire::error(id.as_ref(), &error, revision)),
        }
        None
    }

    fn message(&mut self, message: Message) -> Option<Request> {
        match message {
            Message::Request(request) => return self.request(request),
            Message::Notification(notification) => self.notification(notification),
            Message::Response(response) => {
                if let Some(client) = &self.client {
                    client.answered(&response.id, Ok(response.result));
                }
            }
            Message::Failure(failure) => {
                if let (Some(client), Some(id)) = (&self.client, failure.id) {
                    client.answered(&id, Err(failure.error));
                }
            }
        }
        None
    }

    fn request(&mut self, request: Request) -> Option<Request> {
        if let Err(error) = budget::admit(&request, &self.settings.principal) {
            let revision = self.client.as_ref().map(|client| client.revision);
            self.out.line(&wire::error(Some(&request.id), &error, revision));
            return None;
        }
        let eras = self.edge.eras;
        if eras.modern() && (Meta::is_modern(request.params.meta()) || !eras.legacy()) {
            self.modern(request);
            return None;
        }
        match &self.client {
            _ if request.method == Method::Initialize && !self.shook_hands => return Some(request),
            Some(client) => {
                let sink = Arc::new(self.out.clone());
                let run = drive(self.door.clone(), client.clone(), request, sink, self.edge.clone());
                let out = self.out.clone();
                self.run_now_or_later(async move {
                    if let Some(response) = run.await {
                        out.line(&response.message);
                    }
                });
            }
            None if request.method == Method::Ping => {
                self.out.line(&wire::result(&request.id, &Json::empty_object()))
            }
            // A dual-era server is asked for its versions before anything else.
            None if request.method == Method::Discover && eras.modern() => self.modern(request),
            None if self.edge.lenient_init => {
                self.client =
                    Some(Arc::new(ClientSession::bare(self.settings.principal.clone(), &self.edge)));
                return self.request(request);
            }
            None => {
                let error =
                    Error::new(Symbol::NotInitialized, "Server not initialized: send initialize first");
                self.out.line(&wire::error(Some(&request.id), &error, None));
            }
        }
        None
    }

    async fn initialize(&mut self, request: Request) {
        let principal = self.settings.principal.clone();
        match handshake(&self.door, &request, principal, &self.edge).await {
            Ok((client, result)) => {
                let client = Arc::new(client.opened());
                self.client = Some(client.clone());
                self.shook_hands = true;
                self.out.line(&wire::result(&request.id, &result));
                let feed = pass_on_changes(self.door.clone(), client, Arc::new(self.out.clone()), false);
                let over = self.over.clone();
                tokio::spawn(async move { over.run_until_cancelled(feed).await });
            }
            Err(error) => self.out.line(&wire::error(Some(&request.id), &error, None)),
        }
    }

    fn notification(&mut self, notification: Notification) {
        if notification.method == Method::Cancelled
            && let Some(id) = notification.params.json("requestId").and_then(Id::from_json)
            && self.in_flight.cancel(&id)
        {
            return;
        }
        match &self.client {
            Some(client) => client.notified(&self.door, notification),
            None if self.edge.eras.modern() && is_for_service(&notification.method) => {
                let principal = self.settings.principal.clone();
                let mut call = modern::told(notification, &self.edge, principal.into());
                call.context.caller = Some(self.connected.caller());
                call.context.cancel = self.over.child_token();
                self.notifications.forward(&self.door, call);
            }
            None => {}
        }
    }

    fn batch(&mut self, messages: Vec<Result<Message, Malformed>>) {
        let refuse = |error: &Error, revision| self.out.line(&wire::error(None, error, revision));
        let Some(client) = self.client.clone() else {
            let what = "Invalid request: batches are part of revision 2025-03-26 only; send one message";
            return refuse(&Error::new(Symbol::InvalidRequest, what), None);
        };
        let batch = match Batch::of(messages, client.revision) {
            Ok(batch) => batch,
            Err(error) => return refuse(&error, Some(client.revision)),
        };
        let sink = Arc::new(self.out.clone());
        let run = drive_batch(self.door.clone(), client, batch, sink, self.edge.clone());
        let out = self.out.clone();
        self.run_now_or_later(async move {
            let responses = run.await;
            if !responses.is_empty() {
                out.line(&wire::batch(responses));
            }
        });
    }

    fn modern(&mut self, request: Request) {
        let id = request.id.clone();
        let refuse = |out: &Output, error: &Error| {
            out.line(&wire::error(Some(&id), error, Some(tidegate_protocol::Revision::LATEST_MODERN)));
        };
        if let Some(error) = modern_only(&request, self.edge.eras) {
            return refuse(&self.out, &error);
        }
        let call = modern::read_meta(&request)
            .and_then(|meta| modern::call(request, meta, &self.edge, self.settings.principal.clone().into()));
        let mut call = match call {
            Ok(call) => call,
            Err(error) => return refuse(&self.out, &error),
        };
        if let Err(error) = self.in_flight.admit(&id) {
            return refuse(&self.out, &error);
        }
        call.context.caller = Some(self.connected.caller());
        if trace::is_on() {
            let transport = Some(Transport::Pipe);
            let origin = || Origin { request: Some(id.clone()), transport, ..Origin::default() };
            call.context.came_with(None, origin);
        }
        let (cancel, revision) = (call.context.cancel.clone(), call.context.revision);
        let named = CallId::of(&call.method, call.context.correlation, &self.edge);
        let outbox = modern::open_outbox(&mut call, self.edge.relays);
        let mut reply: ReplyFuture = Box::pin(modern::answer(&self.door, call, self.edge.eras));
        // Nothing else happens on this connection before the first poll is over: a request that is answered by then
        // needs no place on the list, and no task.
        let first = poll_once(reply.as_mut());
        if let (Poll::Ready(reply), None) = (&first, &outbox)
            && !matches!(reply, Reply::Subscription(_))
        {
            return self.out.line(&wire::modern_reply(&id, named, reply, revision));
        }
        if let Poll::Ready(done) = first {
            reply = Box::pin(std::future::ready(done));
        }
        match self.in_flight.begin(&id, cancel.clone()) {
            Ok(turn) => {
                let running = Running { in_flight: self.in_flight.clone(), id, turn };
                let (out, over) = (self.out.clone(), self.over.clone());
                let request = Modern { running, call: named, revision, cancel, outbox, reply, out, over };
                self.running.spawn(request.run());
            }
            Err(error) => refuse(&self.out, &error),
        }
    }

    /// Runs a request at once if it can be answered at once, else on a task of its own, so that the next line is
    /// never kept waiting.
    fn run_now_or_later(&self, run: impl Future<Output = ()> + Send + 'static) {
        let mut run: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(run);
        if poll_once(run.as_mut()).is_pending() {
            self.running.spawn(run);
        }
    }

    /// No more requests: a short while for those that run, then everything stops.
    async fn end(self, drain: Duration) {
        self.over.cancel();
        self.running.close();
        if tokio::time::timeout(drain, self.running.wait()).await.is_err() {
            let left = self.running.len();
            tracing::warn!(left, "stopping requests that did not finish in time");
            self.in_flight.cancel_all();
        }
        if let Some(client) = &self.client {
            client.ended.cancel();
        }
    }
}

/// Polls a future that somebody else will poll again before it waits, so that nothing hangs on the waker used here.
fn poll_once<F: Future + ?Sized>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut std::task::Context::from_waker(std::task::Waker::noop()))
}
