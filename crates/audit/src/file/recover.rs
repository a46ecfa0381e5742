//! Where a trail goes on after a restart: at its last complete record, or where its head says if that is further.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use super::head;
use super::names::put_aside;
use crate::chain::{LONGEST_LINE, Link, Position};

/// How a file ends.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct End {
    /// The last complete record, or what the first one will follow.
    pub(super) last: Position,
    /// How many bytes after it are no record: whoever wrote them was stopped in the middle.
    pub(super) torn: u64,
    /// Whether the file does not end with a line break.
    pub(super) is_open: bool,
}

/// How a file ends; `None` if there is nothing in it, or nothing that a record was torn from.
pub(super) fn end(file: &mut File) -> io::Result<Option<End>> {
    let length = file.metadata()?.len();
    let window = length.min(2 * LONGEST_LINE as u64);
    file.seek(SeekFrom::Start(length - window))?;
    let mut bytes = Vec::new();
    file.take(window).read_to_end(&mut bytes)?;
    let is_whole = window == length;
    let is_open = bytes.last().is_some_and(|last| *last != b'\n');
    if !is_open {
        bytes.pop();
    }
    let (mut rest, mut torn) = (&bytes[..], 0);
    while !rest.is_empty() {
        let start = rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let line = &rest[start..];
        let found = Link::read(line).map(|link| Position { seq: link.seq, hash: link.stated });
        if let Some(last) = found.or_else(|| head::read_opening(line)) {
            return Ok(Some(End { last, torn, is_open }));
        }
        torn += line.len() as u64;
        rest = &rest[..start.saturating_sub(1)];
    }
    match is_whole {
        true if length == 0 => Ok(None),
        // The very first write was torn.
        true if is_open && !bytes.contains(&b'\n') => Ok(None),
        _ => Err(io::Error::new(io::ErrorKind::InvalidData, "its last record cannot be read")),
    }
}

/// The last record of the newest file that was put aside, for when there is no other.
pub(super) fn end_of_aside(path: &Path) -> io::Result<Option<Position>> {
    let Some((_, newest)) = put_aside(path)?.pop() else { return Ok(None) };
    Ok(end(&mut File::open(newest)?)?.map(|end| end.last))
}
