//! [`Batch`]: some records in a row, as text. All places that they go to share it.

use crate::chain::{Chain, Hash, Position};
use crate::kind::Kind;

/// A record in a batch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Record {
    /// Where its line ends, line break included.
    pub(crate) end: usize,
    pub(crate) kind: Kind,
    pub(crate) ms: u64,
}

/// Some records in a row.
#[derive(Debug)]
pub(crate) struct Batch {
    /// Their lines.
    pub(crate) bytes: Vec<u8>,
    pub(crate) records: Vec<Record>,
    /// The number of the first.
    pub(crate) first: u64,
    /// The hash that the first one follows.
    pub(crate) previous: Hash,
    /// The last of them.
    pub(crate) last: Position,
}

impl Batch {
    /// A batch that goes on from here, with room for lines of so many bytes.
    pub(crate) fn after(at: Position, room: usize) -> Batch {
        let (first, previous) = (at.seq + 1, at.hash);
        Batch { bytes: Vec::with_capacity(room), records: Vec::new(), first, previous, last: at }
    }

    /// Adds a record.
    pub(crate) fn push(&mut self, chain: &mut Chain, ms: u64, kind: Kind, members: &[u8]) {
        chain.append(&mut self.bytes, ms, kind.as_str(), members);
        self.records.push(Record { end: self.bytes.len(), kind, ms });
        self.last = chain.at();
    }

    /// The lines from the record with this index on, each with what is known of it and without its line break.
    pub(crate) fn lines(&self, from: usize) -> impl Iterator<Item = (Record, &[u8])> {
        self.records.iter().enumerate().skip(from).map(|(at, record)| {
            let start = at.checked_sub(1).map_or(0, |before| self.records[before].end);
            (*record, &self.bytes[start..record.end - 1])
        })
    }
}
