//! Replacing a file as a whole: a reader sees the old one or the new one, and a crash leaves one of the two.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Writes a file beside the old one and puts it in its place. A private file is readable only for its owner; any other
/// keeps its permissions.
pub(crate) fn replace(path: &Path, text: &str, private: bool) -> io::Result<()> {
    // Whoever keeps the file elsewhere and has a link here wants to keep the link.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    fs::create_dir_all(folder)?;
    let (temporary, mut file) = beside(&path, folder)?;
    let written = (|| {
        if !private && let Ok(old) = fs::metadata(&path) {
            fs::set_permissions(&temporary, old.permissions())?;
        } else if !private {
            usual_permissions(&temporary)?;
        }
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&temporary, &path)
    })();
    if written.is_err() {
        // It is of no use to anybody.
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// A new file that only its owner can read.
fn beside(path: &Path, folder: &Path) -> io::Result<(PathBuf, File)> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut number = 0;
    loop {
        let temporary = folder.join(format!(".{name}.{}-{number}.tmp", std::process::id()));
        match options.open(&temporary) {
            Ok(file) => return Ok((temporary, file)),
            // Left behind by a process of the same number, or made by another thread.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < 100 => number += 1,
            Err(error) => return Err(error),
        }
    }
}

#[cfg(unix)]
fn usual_permissions(path: &Path) -> io::Result<()> {
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o644))
}

#[cfg(not(unix))]
fn usual_permissions(_path: &Path) -> io::Result<()> {
    Ok(())
}
