//! Files that are appended to for as long as the process runs, while somebody else may move or remove them: the audit trail, the log.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// Opens a file to append to, and creates it with its directory if it is not there: readable for its owner only.
pub fn open(path: &Path) -> io::Result<File> {
    create_folder_of(path)?;
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Creates the directory that a file is to be in.
pub fn create_folder_of(path: &Path) -> io::Result<()> {
    match path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        Some(folder) => std::fs::create_dir_all(folder),
        None => Ok(()),
    }
}

/// Whether an open file is still the one at this path.
pub fn is_in_place(file: &File, path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let id = |about: std::fs::Metadata| (about.dev(), about.ino());
        let (there, ours) = (std::fs::metadata(path), file.metadata());
        there.ok().map(id) == ours.ok().map(id)
    }
    #[cfg(not(unix))]
    {
        let _ = file;
        path.exists()
    }
}

/// The path of a file beside another one: its name, a dot and this.
pub fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.file_name().map(OsString::from).unwrap_or_default();
    name.push(".");
    name.push(suffix);
    path.with_file_name(name)
}
