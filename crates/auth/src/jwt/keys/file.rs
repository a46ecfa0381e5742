//! [`KeyFile`]: keys in a file, which is looked at again and again.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::fetch::MOST_BYTES;
use super::key_set::KeySet;
use crate::jwt::SetupError;

/// A file with a JSON Web Key Set.
pub(super) struct KeyFile {
    path: PathBuf,
    /// What was in it last; `None` if it could not be read.
    seen: Option<Vec<u8>>,
}

/// Keys, and what is wrong with single ones.
type Noted = (KeySet, Vec<String>);

impl KeyFile {
    /// Reads the file, which must have a key that can verify tokens.
    pub(super) fn open(path: &Path) -> Result<(KeyFile, KeySet, Vec<String>), SetupError> {
        let fault = |why| SetupError::KeyFile { path: path.to_owned(), why };
        let content = read(path).map_err(|error| fault(error.to_string()))?;
        let mut notes = Vec::new();
        let keys = KeySet::read(&content, &mut notes).map_err(fault)?;
        if keys.is_empty() {
            let why = notes.first().map_or("it has no key that could verify a token", String::as_str);
            return Err(fault(why.to_owned()));
        }
        Ok((KeyFile { path: path.to_owned(), seen: Some(content) }, keys, notes))
    }

    /// What is in it now, if that has changed. What is wrong with it is told once.
    pub(super) fn look(&mut self) -> Option<Result<Noted, SetupError>> {
        let fault = |why| SetupError::KeyFile { path: self.path.clone(), why };
        let content = match read(&self.path) {
            Ok(content) => content,
            Err(error) => {
                let told = self.seen.take().is_none();
                return (!told).then(|| Err(fault(error.to_string())));
            }
        };
        if self.seen.as_ref() == Some(&content) {
            return None;
        }
        let mut notes = Vec::new();
        let keys = KeySet::read(&content, &mut notes).map_err(fault);
        self.seen = Some(content);
        Some(keys.map(|keys| (keys, notes)))
    }
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    // Before it is opened, because opening a pipe waits for somebody to write to it.
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut content = Vec::new();
    File::open(path)?.take(MOST_BYTES as u64 + 1).read_to_end(&mut content)?;
    if content.len() > MOST_BYTES {
        return Err(io::Error::other(format!("it has more than {MOST_BYTES} bytes")));
    }
    Ok(content)
}
