//! [`KeyFile`]: the file of API keys.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use toml_edit::DocumentMut;

use super::api_key::ApiKey;
use super::error::KeyFileError;
use super::{file_lock, parse, save};

/// How large the file may be.
const MOST_BYTES: u64 = 1024 * 1024;
/// How long to wait for another process that changes it.
const PATIENCE: Duration = Duration::from_secs(5);

/// The file of API keys: `[[keys]]` with `id`, `name`, `tenant`, `roles`, `scopes`, `endpoints`, `hash`, `created`, `expires` and
/// `revoked`. What people write around the keys, comments and all, stays when something is changed.
#[derive(Debug)]
pub struct KeyFile {
    path: PathBuf,
    pub(super) document: DocumentMut,
    pub(super) keys: Vec<ApiKey>,
}

impl KeyFile {
    /// Reads the file at `path`.
    ///
    /// # Errors
    ///
    /// When there is none, when something in it is no key, or when others may write to it or to its directory.
    pub fn read(path: &Path) -> Result<KeyFile, KeyFileError> {
        KeyFile::parse(path, &text_of(path)?)
    }

    /// Changes the file at `path`, or makes it: under a lock, so that two changes at once are both made, and as a whole, so that
    /// nobody reads half of it. Where `change` fails nothing is written.
    ///
    /// # Errors
    ///
    /// Those of [`KeyFile::read`], but for a file that is not there; those of `change`; and when it cannot be written.
    pub fn change<T>(
        path: &Path,
        change: impl FnOnce(&mut KeyFile) -> Result<T, KeyFileError>,
    ) -> Result<T, KeyFileError> {
        let failed = |what| move |error| KeyFileError::Io { path: path.to_owned(), what, error };
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder).map_err(failed("made"))?;
        }
        check_folder(path)?;
        let lock = file_lock::acquire(&save::beside(path, "lock"), PATIENCE).map_err(failed("locked"))?;
        let Some(_lock) = lock else { return Err(KeyFileError::Locked { path: path.to_owned() }) };
        let mut file = match KeyFile::read(path) {
            Err(error) if error.is_missing() => KeyFile::parse(path, "")?,
            other => other?,
        };
        let answer = change(&mut file)?;
        let text = file.document.to_string();
        if text.len() as u64 > MOST_BYTES {
            return Err(KeyFileError::Rejected(format!(
                "The file of API keys {} would be larger than 1 MiB: remove old keys from it first",
                path.display()
            )));
        }
        // Nothing is written that cannot be read.
        KeyFile::parse(path, &text)?;
        save::replace(path, &text).map_err(failed("written"))?;
        Ok(answer)
    }

    /// Its keys, in their order.
    pub fn keys(&self) -> &[ApiKey] {
        &self.keys
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What to tell the operator about who else can read it.
    pub fn note(&self) -> Option<String> {
        let mode = mode_of(&self.path).filter(|mode| mode & 0o044 != 0)?;
        Some(format!(
            "The file of API keys {0} can be read by other users of this machine (mode {mode:o}). It holds no keys, but says \
             who has one. Run chmod 600 {0}.",
            self.path.display()
        ))
    }

    pub(super) fn parse(path: &Path, text: &str) -> Result<KeyFile, KeyFileError> {
        let invalid = |mistakes| KeyFileError::Invalid { path: path.to_owned(), mistakes };
        let keys = parse::parse(text).map_err(invalid)?;
        let document =
            text.parse::<DocumentMut>().map_err(|error| invalid(vec![error.message().to_owned()]))?;
        Ok(KeyFile { path: path.to_owned(), document, keys })
    }
}

/// The text of the file, if it is not too large and nobody else can change it.
pub(super) fn text_of(path: &Path) -> Result<String, KeyFileError> {
    let failed = |error| KeyFileError::Io { path: path.to_owned(), what: "read", error };
    let invalid =
        |mistake: &str| KeyFileError::Invalid { path: path.to_owned(), mistakes: vec![mistake.to_owned()] };
    // Before it is opened, because opening a pipe waits for somebody to write to it.
    if !std::fs::metadata(path).map_err(failed)?.is_file() {
        return Err(invalid("it is not a regular file"));
    }
    let file = File::open(path).map_err(failed)?;
    if let Some(mode) = mode_of(path).filter(|mode| mode & 0o022 != 0) {
        return Err(KeyFileError::Writable { path: path.to_owned(), mode });
    }
    check_folder(path)?;
    let mut bytes = Vec::new();
    file.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(invalid("it is larger than 1 MiB"));
    }
    String::from_utf8(bytes).map_err(|_| invalid("it is not UTF-8"))
}

/// Whether nobody else can put another file in the place of this one. In a directory with the sticky bit they cannot.
#[cfg(unix)]
fn check_folder(path: &Path) -> Result<(), KeyFileError> {
    use std::os::unix::fs::MetadataExt;
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let Ok(about) = std::fs::metadata(folder) else { return Ok(()) };
    // Many systems give every user a group of their own, with the same number, and let it write.
    let is_private_group = about.gid() == about.uid();
    let others = if is_private_group { 0o002 } else { 0o022 };
    match about.mode() & others != 0 && about.mode() & 0o1000 == 0 {
        true => Err(KeyFileError::Replaceable {
            path: path.to_owned(),
            folder: folder.to_owned(),
            mode: about.mode() & 0o7777,
        }),
        false => Ok(()),
    }
}

#[cfg(not(unix))]
fn check_folder(_path: &Path) -> Result<(), KeyFileError> {
    Ok(())
}

#[cfg(unix)]
fn mode_of(path: &Path) -> Option<u32> {
    use std::os::unix::fs::PermissionsExt;
    Some(std::fs::metadata(path).ok()?.permissions().mode() & 0o777)
}

#[cfg(not(unix))]
fn mode_of(_path: &Path) -> Option<u32> {
    None
}

#[cfg(test)]
mod tests {
    use super::super::NewKey;
    use super::*;

    #[test]
    fn files_that_are_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys.toml");
        assert!(KeyFile::read(&path).unwrap_err().is_missing());
        assert!(KeyFile::read(folder.path()).is_err());
        std::fs::write(&path, vec![b'#'; 1024 * 1024 + 1]).unwrap();
        assert!(KeyFile::read(&path).unwrap_err().to_string().contains("larger than 1 MiB"));
        std::fs::write(&path, [0xff]).unwrap();
        assert!(KeyFile::read(&path).unwrap_err().to_string().contains("UTF-8"));
        // What cannot be read is not overwritten.
        let add = |file: &mut KeyFile| file.add(NewKey { name: "ann".into(), ..NewKey::default() }, 0);
        assert!(KeyFile::change(&path, add).is_err());
        assert_eq!(std::fs::read(&path).unwrap(), [0xff]);
    }

    #[cfg(unix)]
    #[test]
    fn only_the_owner_may_change_it() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sub/keys.toml");
        let add = |file: &mut KeyFile| file.add(NewKey { name: "ann".into(), ..NewKey::default() }, 0);
        KeyFile::change(&path, add).unwrap();
        assert_eq!(mode_of(&path), Some(0o600));
        assert_eq!(KeyFile::read(&path).unwrap().note(), None);
        let set = |mode| std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        set(0o644);
        assert!(KeyFile::read(&path).unwrap().note().unwrap().contains("644"));
        set(0o620);
        assert!(KeyFile::read(&path).unwrap_err().to_string().contains("chmod 600"));
        set(0o600);
        let folder = path.parent().unwrap();
        let set = |mode| std::fs::set_permissions(folder, std::fs::Permissions::from_mode(mode)).unwrap();
        set(0o777);
        assert!(KeyFile::read(&path).unwrap_err().to_string().contains("chmod go-w"));
        std::fs::remove_file(&path).unwrap();
        assert!(matches!(KeyFile::change(&path, add), Err(KeyFileError::Replaceable { .. })));
        set(0o1777);
        KeyFile::change(&path, add).unwrap();
        assert!(KeyFile::read(&path).is_ok());
    }

    #[test]
    fn changes_at_once_are_all_made() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys.toml");
        std::thread::scope(|scope| {
            for name in ["a", "b", "c", "d", "e", "f"] {
                let path = &path;
                scope.spawn(move || {
                    let new = NewKey { name: name.into(), ..NewKey::default() };
                    KeyFile::change(path, |file| file.add(new, 1)).unwrap();
                });
            }
        });
        assert_eq!(KeyFile::read(&path).unwrap().keys().len(), 6);
    }
}
