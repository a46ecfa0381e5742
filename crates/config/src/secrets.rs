//! Secrets and other things that a configuration only refers to: `${NAME}`, `${NAME:-default}`, `${file:/path}`.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use tidegate_client::fill_in;
use tidegate_service::secrets::register_setting;

use crate::dotenv::Dotenv;
use crate::missing_reference::Missing;
use crate::{permissions, read_file};

/// Fills in what a configuration refers to, and remembers which files that took.
pub(crate) struct Secrets<'a> {
    variable: &'a dyn Fn(&str) -> Option<String>,
    /// The folder of the configuration, from which relative paths start.
    folder: PathBuf,
    home: Option<PathBuf>,
    dotenv: Dotenv,
    files: RefCell<Vec<PathBuf>>,
    notes: RefCell<Vec<String>>,
}

/// Why a reference cannot be filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    /// What it refers to does not exist.
    Missing(Missing),
    /// It is no reference: a sentence.
    Wrong(String),
}

/// No secret is larger.
const MAX_SECRET: u64 = 64 * 1024;

impl<'a> Secrets<'a> {
    pub(crate) fn new(origin: &Path, variable: &'a dyn Fn(&str) -> Option<String>) -> Secrets<'a> {
        Secrets {
            variable,
            folder: folder(origin),
            home: etcetera::home_dir().ok(),
            dotenv: Dotenv::beside(origin),
            files: RefCell::default(),
            notes: RefCell::default(),
        }
    }

    /// The text with everything filled in. What is filled in is not looked at again. `$${` stands for `${`. The error is
    /// everything that cannot be filled in.
    pub(crate) fn text(&self, text: &str) -> Result<String, Vec<Fault>> {
        let mut faults = Vec::new();
        let mut fill = |inner: &str| {
            let value = self.value(inner).unwrap_or_else(|more| {
                faults.extend(more);
                String::new()
            });
            Ok::<_, std::convert::Infallible>(Some(value))
        };
        let filled: Result<Vec<String>, _> = text.split("$${").map(|part| fill_in(part, &mut fill)).collect();
        match (filled, faults.is_empty()) {
            (Ok(parts), true) => Ok(parts.join("${")),
            (Ok(_), false) => Err(faults),
            (Err(never), _) => match never {},
        }
    }

    /// A path as it was written: from the home directory, or relative to the configuration.
    pub(crate) fn path(&self, text: &str) -> PathBuf {
        self.folder.join(self.untilded(text))
    }

    /// `~/` as the home directory.
    pub(crate) fn untilded(&self, text: &str) -> PathBuf {
        match (text.strip_prefix("~/"), &self.home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => PathBuf::from(text),
        }
    }

    /// Reads a file that the configuration refers to, of at most so many bytes. The error is a sentence.
    pub(crate) fn file(&self, path: &Path, most: u64) -> Result<String, String> {
        self.files.borrow_mut().push(path.to_owned());
        let text = read_file::text_within(path, most)
            .map_err(|reason| format!("the file {} {reason}", path.display()))?;
        if let Some(note) = permissions::note(path) {
            let mut notes = self.notes.borrow_mut();
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
        Ok(text)
    }

    /// Remembers a file that the configuration refers to, and that others read.
    pub(crate) fn watch(&self, path: &Path) {
        self.files.borrow_mut().push(path.to_owned());
    }

    /// The files that were read, or should have been, and what is to be said about them.
    pub(crate) fn into_parts(self) -> (Vec<PathBuf>, Vec<String>) {
        let (dotenv, more) = self.dotenv.into_parts();
        let mut files: Vec<PathBuf> = self.files.into_inner().into_iter().chain(dotenv).collect();
        files.sort();
        files.dedup();
        let mut notes = self.notes.into_inner();
        notes.extend(more.into_iter().filter(|note| !notes.contains(note)).collect::<Vec<_>>());
        (files, notes)
    }

    /// What stands between `${` and `}` as its value.
    fn value(&self, inner: &str) -> Result<String, Vec<Fault>> {
        if let Some(path) = inner.strip_prefix("file:") {
            let path = self.path(&self.text(path)?);
            let text = self
                .file(&path, MAX_SECRET)
                .map_err(|sentence| vec![Fault::Missing(Missing::File(sentence))])?;
            let text = text.strip_suffix('\n').unwrap_or(&text);
            let text = text.strip_suffix('\r').unwrap_or(text);
            register_setting(text);
            return Ok(text.to_owned());
        }
        let (name, default) = match inner.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inner, None),
        };
        let name = name.strip_prefix("env:").unwrap_or(name);
        if !is_variable(name) {
            // What is between the braces is no secret yet, but may be one that was pasted in the wrong place.
            return Err(vec![Fault::Wrong(
                "contains a ${…} that is not ${NAME}, ${NAME:-default} or ${file:/path}; write $${ for a literal ${"
                    .to_owned(),
            )]);
        }
        match ((self.variable)(name).or_else(|| self.dotenv.get(name)), default) {
            (Some(value), _) => {
                register_setting(&value);
                Ok(value)
            }
            (None, Some(default)) => self.text(default),
            (None, None) => Err(vec![Fault::Missing(Missing::Variable(name.to_owned()))]),
        }
    }
}

/// The folder that a file is in.
pub(crate) fn folder(file: &Path) -> PathBuf {
    let here = std::env::current_dir().unwrap_or_default();
    here.join(file).parent().map(|folder| folder.components().collect()).unwrap_or(here)
}

/// Whether this can be the name of an environment variable in a shell.
pub(crate) fn is_variable(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_folder::Folder;

    fn variable(name: &str) -> Option<String> {
        match name {
            "A" => Some("one".to_owned()),
            "EMPTY" => Some(String::new()),
            "DOLLAR" => Some("${A}".to_owned()),
            "DIR" => Some("sub".to_owned()),
            "KEY" => Some("sk-config-0001".to_owned()),
            _ => None,
        }
    }

    #[test]
    fn everything_is_filled_in() {
        let folder = Folder::new();
        folder.write("sub/key", "hush\r\n");
        folder.write("two", "a\n\n");
        let origin = folder.path("tidegate.toml");
        let secrets = Secrets::new(&origin, &variable);
        for (text, value) in [
            ("plain $5 $A ${", "plain $5 $A ${"),
            ("a${A}b${env:A}", "aonebone"),
            ("${EMPTY}${EMPTY:-x}", ""),
            ("${NONE:-}", ""),
            ("${NONE:-x y}", "x y"),
            ("${env:NONE:-${A}}/b", "one/b"),
            ("${DOLLAR}", "${A}"),
            ("$${A} ${A} $$", "${A} one $$"),
            ("Bearer ${file:sub/key}", "Bearer hush"),
            ("${file:${DIR}/key}", "hush"),
            ("${file:two}", "a\n"),
        ] {
            assert_eq!(secrets.text(text).as_deref(), Ok(value), "{text}");
        }
        let (files, notes) = secrets.into_parts();
        let mut wanted = vec![folder.path(".env"), folder.path("sub/key"), folder.path("two")];
        wanted.sort();
        assert_eq!(files, wanted, "a .env that was looked for is watched");
        assert!(!notes.iter().any(|note| note.contains(".env")), "{notes:?}");
    }

    #[test]
    fn what_was_filled_in_is_shown_nowhere() {
        let folder = Folder::new();
        folder.write("key", "sk-config-0002\n");
        let origin = folder.path("tidegate.toml");
        let secrets = Secrets::new(&origin, &variable);
        secrets.text("Bearer ${KEY} ${file:key} ${NONE:-by-default}").unwrap();
        let shown = tidegate_service::secrets::mask("sk-config-0001, sk-config-0002, by-default");
        assert_eq!(shown, "***, ***, by-default");
    }

    #[test]
    fn what_is_missing_is_named() {
        let folder = Folder::new();
        let origin = folder.path("tidegate.toml");
        let secrets = Secrets::new(&origin, &variable);
        let unset = |name: &str| Fault::Missing(Missing::Variable(name.to_owned()));
        assert_eq!(secrets.text("${A}${NONE}"), Err(vec![unset("NONE")]));
        assert_eq!(secrets.text("${NONE} ${A} ${OTHER}"), Err(vec![unset("NONE"), unset("OTHER")]));
        assert_eq!(secrets.text("${NONE:-${INNER}}"), Err(vec![unset("INNER")]));
        for (text, part) in [
            ("${file:gone}", "gone cannot be read"),
            ("${sk-1234 5678}", "is not ${NAME}"),
            ("${}", "is not ${NAME}"),
        ] {
            let error = format!("{:?}", secrets.text(text).unwrap_err());
            assert!(error.contains(part) && !error.contains("1234"), "{text}: {error}");
        }
        let files = secrets.into_parts().0;
        assert!(files.contains(&folder.path("gone")), "a file that does not exist yet is watched");
    }

    #[cfg(unix)]
    #[test]
    fn what_is_no_file_is_an_error_at_once() {
        let folder = Folder::new();
        folder.write("large", "x".repeat(64 * 1024 + 1));
        folder.write("full", "x".repeat(64 * 1024));
        let pipe = folder.path("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.is_ok_and(|status| status.success()));
        let origin = folder.path("tidegate.toml");
        let secrets = Secrets::new(&origin, &variable);
        for (text, part) in [
            ("${file:pipe}", "is not a regular file"),
            ("${file:/dev/zero}", "is not a regular file"),
            ("${file:.}", "is a directory"),
            ("${file:large}", "is larger than 64 KiB"),
        ] {
            let error = format!("{:?}", secrets.text(text).unwrap_err());
            assert!(error.contains(part), "{text}: {error}");
        }
        assert_eq!(secrets.text("${file:full}").map(|text| text.len()), Ok(64 * 1024));
    }

    #[cfg(unix)]
    #[test]
    fn files_that_others_may_read_are_noted_once() {
        use std::os::unix::fs::PermissionsExt;
        let folder = Folder::new();
        for (name, mode) in [("open", 0o644), ("closed", 0o600)] {
            let path = folder.write(name, "hush");
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        }
        let origin = folder.path("tidegate.toml");
        let secrets = Secrets::new(&origin, &variable);
        secrets.text("${file:open}${file:open}${file:closed}").unwrap();
        let (_, notes) = secrets.into_parts();
        assert_eq!(notes.len(), 1);
        assert!(
            notes[0].contains("open can be read by other users") && notes[0].contains("mode 644"),
            "{notes:?}"
        );
    }
}
