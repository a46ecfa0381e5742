//! The stream of a session on which the server speaks without being asked.

use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use http::HeaderValue;
use tidegate_protocol::{Incoming, Symbol, headers};
use tidegate_service::Pause;
use tokio::sync::{mpsc, oneshot};

use super::{COME_BACK, Session, forgotten, garbled};
use crate::http::{Answered, Body, Events};

/// How long the stream of the session may take to open before the first request goes out all the same.
const STREAM_OPENS: Duration = Duration::from_millis(300);
/// How long an answer waits at most for what was said before it on the stream of the session.
const CAUGHT_UP: Duration = Duration::from_millis(50);
/// How many answers may wait for that at once.
const MAX_CATCHING_UP: usize = 256;

impl Session {
    fn reader(&self) -> MutexGuard<'_, Option<mpsc::Sender<oneshot::Sender<()>>>> {
        self.reader.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// An answer has come: what the server said on the stream of the session before that is read first.
    pub(super) async fn read_what_came_before(&self) {
        if !self.hears_logs.load(Ordering::Relaxed) {
            return;
        }
        let Some(reader) = self.reader().clone() else { return };
        let (read, all_read) = oneshot::channel();
        if reader.try_send(read).is_ok() {
            _ = tokio::time::timeout(CAUGHT_UP, all_read).await;
        }
    }

    /// Opens the stream on which the server speaks without being asked, and keeps it open. Waits a moment for it,
    /// because a server may ask its questions there.
    pub(super) async fn listen(self: &Arc<Self>) {
        let (opened, open) = tokio::sync::oneshot::channel();
        let session = self.clone();
        tokio::spawn(async move {
            let ended = session.ended.clone();
            tokio::select! {
                () = session.keep_listening(opened) => {}
                () = ended.cancelled() => {}
            }
        });
        _ = tokio::time::timeout(STREAM_OPENS, open).await;
    }

    async fn keep_listening(&self, opened: tokio::sync::oneshot::Sender<()>) {
        let mut opened = Some(opened);
        let mut last: Option<HeaderValue> = None;
        let mut pause = Pause::new(COME_BACK, Duration::from_secs(60));
        let mut before = false;
        loop {
            let mut headers = self.headers();
            if let Some(last) = last.clone() {
                headers.push(http::HeaderName::from_static(headers::LAST_EVENT_ID), last);
            }
            let answered = self.http.get(headers).await;
            opened.take();
            match answered {
                Ok(Answered { status, body: Body::Events(mut events), .. }) if status.is_success() => {
                    pause.reset();
                    // Without an event to come back to, what was said in the meantime is lost.
                    if std::mem::replace(&mut before, true) && last.is_none() {
                        self.inbox.missed();
                    }
                    let (reader, mut asked) = mpsc::channel(MAX_CATCHING_UP);
                    *self.reader() = Some(reader);
                    self.read_all(&mut events, &mut asked).await;
                    *self.reader() = None;
                    if let Some(id) = events.last_event_id().and_then(|id| HeaderValue::from_str(id).ok()) {
                        last = Some(id);
                    }
                    if let Some(asked) = events.retry() {
                        pause.set(asked);
                    }
                }
                // What was there before is gone, and so is the session (2025-11-25 transports, Session Management).
                Ok(answered) if before && self.is_forgotten(&answered) => {
                    return self.inbox.closed(forgotten(answered.status), None);
                }
                // 2025-11-25 transports: a server that has no such stream answers 405. Whatever else it says, it will
                // say again.
                Ok(answered) if answered.status.is_client_error() => return,
                Ok(_) | Err(_) => pause.failed(),
            }
            tokio::time::sleep(pause.get()).await;
        }
    }

    /// Reads the stream to its end. Who asks whether everything was read is answered when there is nothing to read.
    async fn read_all(&self, events: &mut Events, asked: &mut mpsc::Receiver<oneshot::Sender<()>>) {
        loop {
            let event = {
                let mut next = std::pin::pin!(events.next());
                loop {
                    tokio::select! {
                        biased;
                        event = &mut next => break event,
                        Some(read) = asked.recv() => drop(read.send(())),
                    }
                }
            };
            match event {
                Ok(Some(event)) if event.data.is_empty() => {}
                Ok(Some(event)) => match Incoming::parse(event.data, &self.limits) {
                    Ok(Incoming::One(message)) => self.inbox.message(message, None),
                    Ok(Incoming::Batch(batch)) => {
                        for message in batch.into_iter().filter_map(Result::ok) {
                            self.inbox.message(message, None);
                        }
                    }
                    Err(bad) => self.inbox.spoiled(bad.id.as_ref(), garbled(&bad.error)),
                },
                Ok(None) => return,
                Err(error) if error.symbol() == Symbol::TooLarge => self.inbox.spoiled(None, error),
                Err(_) => return,
            }
        }
    }
}
