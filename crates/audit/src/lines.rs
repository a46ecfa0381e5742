//! Reading a trail line by line: one at a time, and no more of one than a record can have.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use crate::chain::LONGEST_LINE;

/// The lines of a file.
#[derive(Debug)]
pub(crate) struct Lines {
    reader: BufReader<File>,
    bytes: Vec<u8>,
    number: u64,
}

/// A line.
#[derive(Debug)]
pub(crate) struct Line<'a> {
    /// Its number, counted from 1.
    pub(crate) number: u64,
    /// What is in it, without the line break. Of one that is too long for a record, the beginning.
    pub(crate) bytes: &'a [u8],
    /// How long it is.
    pub(crate) length: u64,
    /// Whether it ends with a line break.
    pub(crate) is_ended: bool,
}

impl Lines {
    pub(crate) fn open(path: &Path) -> io::Result<Lines> {
        let reader = BufReader::with_capacity(LONGEST_LINE, File::open(path)?);
        Ok(Lines { reader, bytes: Vec::new(), number: 0 })
    }

    /// The next line.
    pub(crate) fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        self.bytes.clear();
        let (mut length, mut is_ended) = (0, false);
        while !is_ended {
            let buffer = match self.reader.fill_buf() {
                Ok(buffer) => buffer,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if buffer.is_empty() {
                break;
            }
            let end = buffer.iter().position(|byte| *byte == b'\n');
            let part = &buffer[..end.unwrap_or(buffer.len())];
            // One more than a record has: that tells it from one.
            let room = (LONGEST_LINE + 1).saturating_sub(self.bytes.len());
            self.bytes.extend_from_slice(&part[..part.len().min(room)]);
            length += part.len() as u64;
            is_ended = end.is_some();
            let used = part.len() + usize::from(is_ended);
            self.reader.consume(used);
        }
        if length == 0 && !is_ended {
            return Ok(None);
        }
        self.number += 1;
        Ok(Some(Line { number: self.number, bytes: &self.bytes, length, is_ended }))
    }
}
