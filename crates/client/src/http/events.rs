//! [`Events`]: an event stream that is being read.

use std::sync::Arc;
use std::time::Duration;

use bytestring::ByteString;
use tidegate_protocol::sse::{SseDecoder, SseEvent, SseFault};
use tidegate_protocol::{Error, Symbol};
use tidegate_service::budget::{Budget, FREE, Hold, Purpose};
use tidegate_service::wire_trace;

use super::connection::Flow;
use super::failure;

/// An event stream. Dropping it closes its connection, unless the stream has ended.
pub(crate) struct Events {
    /// Whose they are, for the log.
    server: Arc<str>,
    flow: Flow,
    decoder: SseDecoder,
    /// What has come of the next event, set aside if it is much.
    hold: Option<Hold>,
}

/// One event.
#[derive(Debug)]
pub(crate) struct Event {
    /// Its type; none is `message`.
    pub(crate) kind: Option<String>,
    /// Its data, counted for as long as any part of it is held.
    pub(crate) data: ByteString,
}

impl Events {
    pub(super) fn new(flow: Flow, limit: usize, server: Arc<str>) -> Events {
        Events { server, flow, decoder: SseDecoder::new(limit), hold: None }
    }

    /// The next event; `None` at the end of the stream. May be dropped and called again without loss.
    ///
    /// An event that is too large is an error of its own, and the stream goes on behind it. A broken connection is an
    /// error as well, and then the stream has ended.
    pub(crate) async fn next(&mut self) -> Result<Option<Event>, Error> {
        // However many come at once, others get their turn, and whoever wants to end this does.
        tokio::task::consume_budget().await;
        loop {
            match self.decoder.next_event() {
                Some(Ok(event)) => {
                    // The first event of a stream that can be resumed is often empty.
                    if !event.data.is_empty() {
                        wire_trace::received_from(&self.server, event.data.as_bytes());
                    }
                    return Ok(Some(self.counted(event)));
                }
                Some(Err(SseFault::TooLarge(limit))) => {
                    let host = self.flow.host();
                    let what = format!("an event from {host} is larger than the limit of {limit} bytes");
                    let told = format!("An event of the server is larger than the limit of {limit} bytes");
                    return Err(Error::new(Symbol::TooLarge, told).with_detail(what));
                }
                Some(Err(other)) => return Err(Error::new(Symbol::Unavailable, other.to_string())),
                None => {}
            }
            match self.flow.data().await {
                Some(Ok(data)) => {
                    self.decoder.push(&data);
                    if self.decoder.buffered() > FREE {
                        let hold = self.hold.get_or_insert_with(|| Budget::of_process().hold_anyway(0));
                        hold.grow_to(self.decoder.buffered(), Purpose::Answer)?;
                    }
                }
                Some(Err(e)) => return Err(failure::broken(self.flow.host(), &e)),
                None => return Ok(None),
            }
        }
    }

    /// What was set aside for an event goes with it.
    fn counted(&mut self, event: SseEvent) -> Event {
        let hold = self.hold.take();
        let SseEvent { event: kind, data, .. } = event;
        if data.len() <= FREE {
            return Event { kind, data: data.into() };
        }
        let mut hold = hold.unwrap_or_else(|| Budget::of_process().hold_anyway(0));
        hold.set(data.len());
        let data = ByteString::try_from(hold.keep(data.into())).unwrap_or_default();
        Event { kind, data }
    }

    /// The id of the last event that had one, to resume behind it.
    pub(crate) fn last_event_id(&self) -> Option<&str> {
        self.decoder.last_event_id()
    }

    /// How long the server wants us to wait before we come back, if it said so.
    pub(crate) fn retry(&self) -> Option<Duration> {
        self.decoder.retry().map(Duration::from_millis)
    }
}
