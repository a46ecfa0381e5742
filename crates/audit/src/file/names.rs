//! What the files of a trail are called: `audit.jsonl` is written, `audit.jsonl.000000000001` was put aside and begins with the record
//! of that number, `audit.jsonl.head` has the last record's number and hash, `audit.jsonl.lock` is whose trail it is.

use std::io;
use std::path::{Path, PathBuf};

pub(crate) use tidegate_service::appended::beside;

/// So many digits have the numbers of files that were put aside, at least.
const DIGITS: usize = 12;

/// What a file is called after it was put aside.
pub(super) fn aside(path: &Path, first: u64) -> PathBuf {
    beside(path, &format!("{first:0DIGITS$}"))
}

/// The files that were put aside, oldest first, with the number of the first record of each.
pub(crate) fn put_aside(path: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let number = entry.file_name().to_str().and_then(|other| {
            let digits = other.strip_prefix(name)?.strip_prefix('.')?;
            let is_number = digits.len() >= DIGITS && digits.bytes().all(|byte| byte.is_ascii_digit());
            digits.parse().ok().filter(|_| is_number)
        });
        found.extend(number.map(|number| (number, folder.join(entry.file_name()))));
    }
    found.sort();
    Ok(found)
}

/// All files of a trail, oldest first.
pub(crate) fn trail(path: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files: Vec<PathBuf> = match put_aside(path) {
        Ok(found) => found.into_iter().map(|(_, path)| path).collect(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error),
    };
    if path.exists() {
        files.push(path.to_owned());
    }
    Ok(files)
}
