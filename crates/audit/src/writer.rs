//! [`Writer`]: the thread that makes the chain. It takes what happened, gives each record its number and its hash, and hands them on.

use std::sync::Arc;

use tidegate_service::epoch_ms;

use crate::backlog::Backlog;
use crate::batch::Batch;
use crate::chain::Chain;
use crate::kind::Kind;
use crate::queue::{Queue, entries};
use crate::record::hash;
use crate::text::{key, member, number};

/// Larger batches are split, so that a place has room for some of them.
const LARGEST_BATCH: usize = 256 << 10;

/// What makes the chain.
pub(crate) struct Writer {
    pub(crate) queue: Arc<Queue>,
    pub(crate) places: Vec<Arc<Backlog>>,
    pub(crate) chain: Chain,
    /// How many bytes each place can hold.
    pub(crate) limit: usize,
}

impl Writer {
    /// Chains what comes until it is over. `start` has the members of the first record.
    pub(crate) fn run(mut self, start: &[u8]) {
        let mut batch = Batch::after(self.chain.at(), 2 * start.len());
        batch.push(&mut self.chain, epoch_ms(), Kind::Start, start);
        self.hand_on(batch);
        let mut buffer = Vec::new();
        loop {
            let taken = self.queue.take(&mut buffer);
            let largest = LARGEST_BATCH.min(self.limit / 8);
            // With its number, time and hash, a record is less than twice as long as its members.
            let room = (2 * buffer.len()).min(largest + 4096);
            let mut batch = Batch::after(self.chain.at(), room);
            self.say_what_is_lost(&mut batch);
            for (ms, kind, members) in entries(&buffer) {
                batch.push(&mut self.chain, ms, kind, members);
                if batch.bytes.len() >= largest {
                    self.hand_on(batch);
                    batch = Batch::after(self.chain.at(), room);
                }
            }
            if taken.dropped > 0 {
                let mut members = Vec::new();
                number!(&mut members, "count", taken.dropped);
                batch.push(&mut self.chain, epoch_ms(), Kind::Dropped, &members);
                tracing::warn!(
                    count = taken.dropped,
                    "{} records of the audit trail were dropped, because too many were waiting",
                    taken.dropped
                );
            }
            if let Some(by) = taken.close_by {
                self.hand_on(batch);
                // A place that has lost records says so before the end, if it gets that far in time.
                self.places.iter().for_each(|place| place.wait_for_room(by));
                let mut last = Batch::after(self.chain.at(), 4096);
                self.say_what_is_lost(&mut last);
                last.push(&mut self.chain, epoch_ms(), Kind::Stop, b"");
                self.hand_on(last);
                self.places.iter().for_each(|place| place.close(by));
                return;
            }
            self.hand_on(batch);
        }
    }

    /// A place that takes records again is told first which ones it did not get. `previous` lets that be verified without them.
    fn say_what_is_lost(&mut self, batch: &mut Batch) {
        let to = self.chain.at().seq;
        for place in &self.places {
            let Some(from) = place.resume() else { continue };
            let mut members = Vec::new();
            member!(&mut members, "sink", place.name);
            number!(&mut members, "from", from);
            number!(&mut members, "to", to);
            key!(&mut members, "previous");
            hash(&mut members, &self.chain.at().hash);
            batch.push(&mut self.chain, epoch_ms(), Kind::Lost, &members);
        }
    }

    fn hand_on(&self, batch: Batch) {
        if !batch.records.is_empty() {
            let batch = Arc::new(batch);
            self.places.iter().for_each(|place| place.offer(&batch));
        }
    }
}
