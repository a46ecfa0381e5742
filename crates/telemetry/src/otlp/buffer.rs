//! [`SpanBuffer`]: spans that wait to be sent.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::protobuf::varint;

/// How many bytes of spans go out at once, and how many spans.
const PARCEL_BYTES: usize = 256 * 1024;
const PARCEL_SPANS: usize = 512;

/// Spans that wait to be sent, as many as there is room for. Whoever puts one in never waits; what does not fit is counted.
#[derive(Debug)]
pub struct SpanBuffer {
    room: usize,
    waiting: Mutex<Waiting>,
    /// There is enough to be worth sending.
    pub(super) enough: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    parcels: VecDeque<Parcel>,
    bytes: usize,
    dropped: u64,
    /// Of those that were dropped, how many nobody was told of yet.
    untold: u64,
}

/// Spans that go out together: fields `spans` of a `ScopeSpans`.
#[derive(Debug, Default, Clone)]
pub(super) struct Parcel {
    pub(super) spans: usize,
    pub(super) bytes: Vec<u8>,
}

impl SpanBuffer {
    /// With room for so many bytes.
    pub fn new(room: usize) -> SpanBuffer {
        SpanBuffer { room, waiting: Mutex::default(), enough: Notify::new() }
    }

    /// How many spans were dropped so far, because there was no room or nobody would have them.
    pub fn dropped(&self) -> u64 {
        self.lock().dropped
    }

    pub(crate) fn push(&self, span: &[u8]) {
        // The tag, and a length of at most five bytes.
        let most = span.len() + 6;
        let mut waiting = self.lock();
        if waiting.bytes + most > self.room {
            waiting.drop_spans(1);
            return;
        }
        let is_full = |parcel: &Parcel| {
            parcel.spans >= PARCEL_SPANS || parcel.bytes.len() + most > PARCEL_BYTES.max(most)
        };
        let is_next = waiting.parcels.back().is_none_or(is_full);
        if is_next {
            waiting.parcels.push_back(Parcel::default());
        }
        let Some(parcel) = waiting.parcels.back_mut() else { return };
        let before = parcel.bytes.len();
        parcel.bytes.push(2 << 3 | 2);
        varint(&mut parcel.bytes, span.len() as u64);
        parcel.bytes.extend_from_slice(span);
        parcel.spans += 1;
        waiting.bytes += waiting.parcels.back().map_or(0, |parcel| parcel.bytes.len() - before);
        // The one before is complete.
        let is_enough = is_next && waiting.parcels.len() == 2;
        drop(waiting);
        if is_enough {
            self.enough.notify_one();
        }
    }

    /// The oldest parcel.
    pub(super) fn take(&self) -> Option<Parcel> {
        let mut waiting = self.lock();
        let parcel = waiting.parcels.pop_front()?;
        waiting.bytes -= parcel.bytes.len();
        Some(parcel)
    }

    /// Puts a parcel back that could not be sent. If others have taken its place, it is dropped.
    pub(super) fn put_back(&self, parcel: Parcel) {
        let mut waiting = self.lock();
        if waiting.bytes + parcel.bytes.len() > self.room {
            waiting.drop_spans(parcel.spans as u64);
            return;
        }
        waiting.bytes += parcel.bytes.len();
        waiting.parcels.push_front(parcel);
    }

    /// Nobody will have these spans.
    pub(super) fn give_up(&self, spans: u64) {
        self.lock().drop_spans(spans);
    }

    /// How many were dropped since this was last asked.
    pub(super) fn untold(&self) -> u64 {
        std::mem::take(&mut self.lock().untold)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lock().parcels.is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    fn drop_spans(&mut self, spans: u64) {
        self.dropped += spans;
        self.untold += spans;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_counted() {
        let buffer = SpanBuffer::new(10_000);
        let span = [7; 92];
        (0..200).for_each(|_| buffer.push(&span));
        let kept = buffer.lock().bytes;
        assert!((9_000..=10_000).contains(&kept), "{kept}");
        let parcel = buffer.take().unwrap();
        assert_eq!((parcel.spans as u64 + buffer.dropped(), parcel.bytes.len()), (200, parcel.spans * 94));
        assert_eq!((buffer.untold(), buffer.untold()), (buffer.dropped(), 0));
        buffer.push(&span);
        let dropped = buffer.dropped();
        buffer.put_back(parcel.clone());
        assert_eq!(buffer.dropped() - dropped, parcel.spans as u64, "there is no room for all of them");
        assert_eq!(buffer.take().unwrap().spans, 1);
        buffer.put_back(parcel.clone());
        assert_eq!(buffer.take().unwrap().spans, parcel.spans);
        assert!(buffer.is_empty() && buffer.lock().bytes == 0);
        buffer.push(&[0; 20_000]);
        assert!(buffer.is_empty(), "no single one may be larger than all");
    }

    #[test]
    fn parcels_are_bounded() {
        let buffer = SpanBuffer::new(10 << 20);
        (0..PARCEL_SPANS + 1).for_each(|_| buffer.push(b"span"));
        (0..2).for_each(|_| buffer.push(&[0; PARCEL_BYTES]));
        let parcels: Vec<_> = std::iter::from_fn(|| buffer.take()).map(|parcel| parcel.spans).collect();
        assert_eq!(parcels, [PARCEL_SPANS, 1, 1, 1]);
    }
}
