//! Reading a file of the user, within bounds.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

/// No configuration is larger than this: whatever is, is some other file.
pub(crate) const MAX_BYTES: u64 = 1024 * 1024;

/// The text of a file. The error is what follows the name of the file in a sentence.
pub(crate) fn text(path: &Path) -> Result<String, String> {
    text_within(path, MAX_BYTES)
}

/// The same with another bound, in bytes.
pub(crate) fn text_within(path: &Path, most: u64) -> Result<String, String> {
    let cannot = |error: std::io::Error| match error.kind() {
        ErrorKind::NotFound => "cannot be read: there is no such file".to_owned(),
        ErrorKind::PermissionDenied => "cannot be read: permission denied".to_owned(),
        _ => format!("cannot be read: {error}"),
    };
    let about = std::fs::metadata(path).map_err(cannot)?;
    if about.is_dir() {
        return Err("is a directory, not a file".to_owned());
    }
    // Before it is opened, because opening a pipe waits for somebody to write to it.
    if !about.is_file() {
        return Err("is not a regular file".to_owned());
    }
    let mut bytes = Vec::new();
    File::open(path).and_then(|file| file.take(most + 1).read_to_end(&mut bytes)).map_err(cannot)?;
    if bytes.len() as u64 > most {
        let size = if most < MAX_BYTES { format!("{} KiB", most / 1024) } else { "1 MiB".to_owned() };
        return Err(format!("is larger than {size}"));
    }
    String::from_utf8(bytes).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = good.iter().filter(|byte| **byte == b'\n').count() + 1;
        format!("is not valid UTF-8 (line {line})")
    })
}
