//! [`KeyWatcher`]: has the file of API keys changed?

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use sha2::{Digest, Sha256};

use super::api_key::ApiKey;
use super::error::KeyFileError;
use super::key_file::{KeyFile, text_of};

/// How long a file that has changed must stay as it is. An editor that empties a file before it writes it would end all keys.
const SETTLE: Duration = Duration::from_millis(50);

/// Looks at the file of API keys whenever it is asked to. It waits for the disk, so it belongs on a thread where that is fine.
#[derive(Debug)]
pub(crate) struct KeyWatcher {
    path: PathBuf,
    stamp: Option<Stamp>,
    /// Of the content that was told last, good or not.
    told: Option<[u8; 32]>,
    /// Whether that was not good.
    broken: bool,
}

/// What a look at the file has shown.
#[derive(Debug)]
pub(crate) enum Loaded {
    /// Nothing new.
    Same,
    /// Other keys.
    Changed(Vec<ApiKey>),
    /// Something that cannot be read; told once. What was good before still is.
    Broken(KeyFileError),
}

impl KeyWatcher {
    /// Reads the file for the first time.
    pub(crate) fn start(path: &Path) -> Result<(KeyWatcher, KeyFile), KeyFileError> {
        let stamp = Stamp::of(path);
        let text = text_of(path)?;
        let file = KeyFile::parse(path, &text)?;
        Ok((KeyWatcher { path: path.to_owned(), stamp, told: Some(digest(&text)), broken: false }, file))
    }

    /// Looks again. Nothing is read while the file looks the same from outside.
    pub(crate) fn look(&mut self) -> Loaded {
        let stamp = Stamp::of(&self.path);
        if stamp == self.stamp && stamp.is_some() {
            return Loaded::Same;
        }
        let text = match text_of(&self.path) {
            Ok(text) => text,
            Err(error) => return self.broken(None, error),
        };
        std::thread::sleep(SETTLE);
        if Stamp::of(&self.path) != stamp {
            return Loaded::Same; // the next look will see
        }
        let content = digest(&text);
        if self.told == Some(content) {
            self.stamp = stamp;
            return Loaded::Same;
        }
        match KeyFile::parse(&self.path, &text) {
            Ok(file) => {
                (self.stamp, self.told, self.broken) = (stamp, Some(content), false);
                Loaded::Changed(file.keys().to_vec())
            }
            Err(error) => {
                self.stamp = stamp;
                self.broken(Some(content), error)
            }
        }
    }

    fn broken(&mut self, content: Option<[u8; 32]>, error: KeyFileError) -> Loaded {
        if self.broken && self.told == content {
            return Loaded::Same;
        }
        (self.told, self.broken) = (content, true);
        Loaded::Broken(error)
    }
}

fn digest(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

/// What a file looks like from outside. Editors replace files, so the same name and time are not enough.
#[derive(Debug, PartialEq, Eq)]
struct Stamp {
    modified: Option<SystemTime>,
    size: u64,
    inode: u64,
}

impl Stamp {
    fn of(path: &Path) -> Option<Stamp> {
        let about = std::fs::metadata(path).ok()?;
        #[cfg(unix)]
        let inode = std::os::unix::fs::MetadataExt::ino(&about);
        #[cfg(not(unix))]
        let inode = 0;
        Some(Stamp { modified: about.modified().ok(), size: about.len(), inode })
    }
}

#[cfg(test)]
mod tests {
    use super::super::NewKey;
    use super::*;

    #[test]
    fn changes_are_told_once_and_what_is_broken_too() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys.toml");
        assert!(KeyWatcher::start(&path).is_err());
        let add = |name: &str| {
            let new = NewKey { name: name.into(), ..NewKey::default() };
            KeyFile::change(&path, |file| file.add(new, 1000)).unwrap();
        };
        add("ann");
        let (mut watcher, file) = KeyWatcher::start(&path).unwrap();
        assert_eq!(file.keys().len(), 1);
        assert!(matches!(watcher.look(), Loaded::Same));
        add("bob");
        assert!(matches!(watcher.look(), Loaded::Changed(keys) if keys.len() == 2));
        assert!(matches!(watcher.look(), Loaded::Same));
        // The same content in another file.
        let text = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(matches!(watcher.look(), Loaded::Broken(error) if error.is_missing()));
        assert!(matches!(watcher.look(), Loaded::Same));
        save(&path, b"[[keys]]\n");
        assert!(matches!(watcher.look(), Loaded::Broken(KeyFileError::Invalid { .. })));
        assert!(matches!(watcher.look(), Loaded::Same));
        save(&path, &text);
        assert!(matches!(watcher.look(), Loaded::Changed(keys) if keys.len() == 2));
    }

    fn save(path: &Path, text: &[u8]) {
        super::super::save::replace(path, std::str::from_utf8(text).unwrap()).unwrap();
    }
}
