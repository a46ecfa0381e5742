//! [`Ring`]: the lines as bytes, the oldest out first.

use std::collections::VecDeque;

use tracing::Metadata;

/// Lines, bounded in bytes.
pub(super) struct Ring {
    bytes: VecDeque<u8>,
    heads: VecDeque<Head>,
    /// The number of the first line that is there.
    first: u64,
    /// How many bytes came before those that are there.
    before: u64,
    /// How many bytes lines and their heads may take.
    limit: usize,
}

struct Head {
    time_ms: u64,
    /// Where its bytes begin, counted from the first byte ever.
    at: u64,
    /// What it is about; `None` for calls.
    about: Option<&'static Metadata<'static>>,
}

/// A line as it is kept.
#[derive(Debug)]
pub(super) struct Raw {
    pub(super) number: u64,
    pub(super) time_ms: u64,
    pub(super) about: Option<&'static Metadata<'static>>,
    pub(super) bytes: Vec<u8>,
}

const HEAD: usize = size_of::<Head>();

impl Ring {
    pub(super) fn new(limit: usize) -> Ring {
        // At once, so that it never takes twice as much.
        Ring { bytes: VecDeque::with_capacity(limit), heads: VecDeque::new(), first: 1, before: 0, limit }
    }

    /// Adds a line and forgets as many old ones as it takes. One that is larger than everything is counted and not kept.
    pub(super) fn push(&mut self, time_ms: u64, about: Option<&'static Metadata<'static>>, line: &[u8]) {
        let needed = line.len() + HEAD;
        while self.bytes.len() + self.heads.len() * HEAD + needed > self.limit && self.forget_first() {}
        if needed > self.limit {
            self.first += 1;
            return;
        }
        let at = self.before + self.bytes.len() as u64;
        self.heads.push_back(Head { time_ms, at, about });
        self.bytes.extend(line);
    }

    fn forget_first(&mut self) -> bool {
        if self.heads.pop_front().is_none() {
            return false;
        }
        let length = self.start(0).unwrap_or(self.bytes.len());
        self.bytes.drain(..length);
        self.before += length as u64;
        self.first += 1;
        true
    }

    /// Where the bytes of a line begin among those that are there.
    fn start(&self, index: usize) -> Option<usize> {
        self.heads.get(index).map(|head| (head.at - self.before) as usize)
    }

    /// The number of the first line that is there, or of the next one.
    pub(super) fn first(&self) -> u64 {
        self.first
    }

    /// The number that the next line gets.
    pub(super) fn end(&self) -> u64 {
        self.first + self.heads.len() as u64
    }

    /// The number of the line after this one. A number that no line has had is from another process, and says nothing.
    pub(super) fn place(&self, after: Option<u64>) -> Option<u64> {
        after.filter(|number| *number < self.end()).map(|number| number + 1)
    }

    /// Copies lines from this one on, or from the first one that is there: so many at most, and not many more bytes than this.
    pub(super) fn read(&self, from: u64, most: usize, bytes: usize, into: &mut Vec<Raw>) {
        let (mut number, mut copied) = (from.max(self.first), 0);
        while number < self.end() && into.len() < most && copied < bytes {
            let index = (number - self.first) as usize;
            let (Some(head), Some(start)) = (self.heads.get(index), self.start(index)) else { return };
            let end = self.start(index + 1).unwrap_or(self.bytes.len());
            let (front, back) = self.bytes.as_slices();
            let mut line = Vec::with_capacity(end - start);
            line.extend_from_slice(&front[start.min(front.len())..end.min(front.len())]);
            line.extend_from_slice(&back[start.saturating_sub(front.len())..end.saturating_sub(front.len())]);
            copied += line.len();
            into.push(Raw { number, time_ms: head.time_ms, about: head.about, bytes: line });
            number += 1;
        }
    }
}
