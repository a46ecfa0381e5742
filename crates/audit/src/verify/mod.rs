//! Whether a trail is as it was written: [`verify`].
//!
//! Files are read oldest first, line by line. After something that is damaged it goes on where it can, so that all damage is listed:
//! a record that was changed still says the hash that the next one follows.

mod about;
mod report;
mod walk;

use std::io;
use std::path::Path;

pub use report::{Damage, Head, Mark, Report, What};

use crate::file::head;
use crate::file::names::{beside, trail};
use crate::lines::Lines;
use walk::{Place, Walk};

/// Verifies the trail that is written to this file, with the files that were put aside. `expected` is the head of an earlier time that was
/// noted elsewhere.
pub fn verify(path: &Path, expected: Option<Head>) -> io::Result<Report> {
    // Before the records: meanwhile there may be more of them, and never fewer.
    let head = head::read(path);
    let files = trail(path)?;
    let mut walk = Walk::new(head.as_ref().ok().copied().flatten(), expected);
    for (index, file) in files.iter().enumerate() {
        let is_last = index + 1 == files.len();
        walk.begin_file();
        let mut lines = Lines::open(file)?;
        while let Some(line) = lines.next()? {
            walk.line(Place { file: index, line: line.number }, &line, is_last);
        }
    }
    if head.is_err() {
        walk.head_is_unreadable();
    }
    Ok(walk.finish(files, &beside(path, "head")))
}
