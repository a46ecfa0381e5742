//! The head: the number and the hash of the last record, beside the file, so that a tail that was cut off is noticed. And the line that
//! each file begins with: what its first record follows.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;

use super::names::beside;
use crate::chain::{Position, hex_text, unhex};

/// A file that only its owner can read.
pub(super) fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    options.open(path)
}

/// Writes the head of a trail, whole or not at all.
pub(super) fn write(trail: &Path, head: Position) -> io::Result<()> {
    let (path, new) = (beside(trail, "head"), beside(trail, "head.new"));
    let mut file = create(&new)?;
    file.write_all(
        format!("{{\"v\":1,\"seq\":{},\"hash\":\"{}\"}}\n", head.seq, hex_text(&head.hash)).as_bytes(),
    )?;
    file.sync_data()?;
    std::fs::rename(new, path)
}

/// The head of a trail; `None` if there is none. What is no head is an error.
pub(crate) fn read(trail: &Path) -> io::Result<Option<Position>> {
    let mut text = String::new();
    match File::open(beside(trail, "head")) {
        Ok(file) => file.take(1024).read_to_string(&mut text)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let head = position(text.trim_end(), "{\"v\":1,\"seq\":", ",\"hash\":\"");
    head.map(Some).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "it is not the head of a trail"))
}

/// The line that a file begins with.
pub(super) fn opening(before: Position) -> String {
    format!(
        "{{\"v\":1,\"kind\":\"file\",\"seq\":{},\"previous\":\"{}\"}}\n",
        before.seq + 1,
        hex_text(&before.hash)
    )
}

/// What the first record of a file follows, if this is the line that it begins with.
pub(crate) fn read_opening(line: &[u8]) -> Option<Position> {
    let line = std::str::from_utf8(line).ok()?;
    let first = position(line, "{\"v\":1,\"kind\":\"file\",\"seq\":", ",\"previous\":\"")?;
    Some(Position { seq: first.seq.checked_sub(1)?, hash: first.hash })
}

fn position(text: &str, before: &str, between: &str) -> Option<Position> {
    let (seq, hash) = text.strip_prefix(before)?.strip_suffix("\"}")?.split_once(between)?;
    let is_number = !seq.is_empty() && seq.bytes().all(|byte| byte.is_ascii_digit());
    Some(Position { seq: seq.parse().ok().filter(|_| is_number)?, hash: unhex(hash.as_bytes())? })
}
