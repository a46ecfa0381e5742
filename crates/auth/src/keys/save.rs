//! Replacing a private file as a whole: a reader sees the old one or the new one, and a crash leaves one of the two.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Writes a file that only its owner can read and puts it in the place of the old one.
pub(super) fn replace(path: &Path, text: &str) -> io::Result<()> {
    // Whoever keeps the file elsewhere and has a link here wants to keep the link.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let draft = beside(&path, &format!("{}.draft", std::process::id()));
    let _ = fs::remove_file(&draft); // of a process with the same number that did not come to an end
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options.open(&draft).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&draft, &path)
    });
    if written.is_err() {
        let _ = fs::remove_file(&draft); // of no use to anybody
    }
    written
}

/// A hidden file in the same folder.
pub(super) fn beside(path: &Path, what: &str) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{what}"))
}
