//! What the command line takes as TARGET.

use std::path::{Path, PathBuf};

use tidegate_service::nearest_name;

use super::{Entry, EntrySettings, ServersFile, well_known_files};
use crate::target::{Target, TargetError};

/// A server that was found by [`Target::find`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ResolvedTarget {
    /// Its name: that of the entry, or [`Target::name`].
    pub name: String,
    /// What to connect to.
    pub target: Target,
    /// The file that it is an entry of.
    pub file: Option<PathBuf>,
    /// Whether that file says not to use it.
    pub disabled: bool,
    /// How it is to be used, as far as that file says so.
    pub settings: EntrySettings,
    /// What that file says about it that has no effect here.
    pub notes: Vec<String>,
}

impl Target {
    /// Finds the server that a user means, and its name. The first rule that fits holds:
    ///
    /// 1. With a `file`, the text is the name of an entry in it. It may be empty if there is only one.
    /// 2. `http://…` and `https://…` are addresses.
    /// 3. The path of a `.json` file, if need be followed by `#` and the name of an entry: `servers.json#github`. The
    ///    name may be left out if there is only one.
    /// 4. One word that is the name of an entry in one of the [`well_known_files`], the first of which wins.
    /// 5. Anything else is a command line, see [`Target::parse`].
    ///
    /// The file that an entry was found in and what it says in vain go to the log; [`Target::find`] returns them.
    pub fn resolve(text: &str, file: Option<&Path>) -> Result<(String, Target), TargetError> {
        let found = Target::find(text, file)?;
        if let Some(file) = &found.file {
            tracing::info!(server = found.name, file = %file.display(), "Server taken from file");
        }
        for note in &found.notes {
            tracing::debug!(server = found.name, "{note}");
        }
        if found.disabled {
            tracing::warn!(server = found.name, "This server is disabled in its file; using it anyway");
        }
        Ok((found.name, found.target))
    }

    /// The same as [`Target::resolve`], with everything that is known about it.
    pub fn find(text: &str, file: Option<&Path>) -> Result<ResolvedTarget, TargetError> {
        find(text, file, &well_known_files(), &is_program)
    }
}

fn find(
    text: &str,
    file: Option<&Path>,
    well_known: &[(&str, PathBuf)],
    is_program: &dyn Fn(&str) -> bool,
) -> Result<ResolvedTarget, TargetError> {
    let text = text.trim();
    if let Some(file) = file {
        return entry_of(file, text);
    }
    if let Some((file, name)) = file_and_name(text) {
        return if file.is_file() { entry_of(&file, name) } else { Err(TargetError::NoFile(file)) };
    }
    // More than a word is never looked up: a file in the current directory could otherwise stand in for a command
    // line that somebody typed.
    let is_word = !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || matches!(c, '/' | '\\'));
    if is_word {
        let files = readable(well_known);
        if let Some(file) = files.iter().find(|file| file.servers.contains_key(text)) {
            return Ok(ResolvedTarget::new(file.get(text)?, file.origin()));
        }
        if !is_program(text) {
            near_miss(text, &files)?;
        }
    }
    let target = Target::parse(text)?;
    Ok(ResolvedTarget {
        name: target.name(),
        target,
        file: None,
        disabled: false,
        settings: EntrySettings::default(),
        notes: Vec::new(),
    })
}

impl ResolvedTarget {
    fn new(entry: Entry, file: &Path) -> ResolvedTarget {
        let Entry { name, target, disabled, settings, notes } = entry;
        ResolvedTarget { name, target, file: Some(file.to_owned()), disabled, settings, notes }
    }
}

fn entry_of(path: &Path, name: &str) -> Result<ResolvedTarget, TargetError> {
    let file = ServersFile::load(path)?;
    let entry = if name.is_empty() { file.only()? } else { file.get(name)? };
    Ok(ResolvedTarget::new(entry, path))
}

/// Splits `servers.json#github`. A file that does not exist is one still, if the text cannot be a command line.
fn file_and_name(text: &str) -> Option<(PathBuf, &str)> {
    let (file, name) = match text.rsplit_once(".json#") {
        Some((file, name)) if !Path::new(text).is_file() => (&text[..file.len() + ".json".len()], name),
        _ if text.ends_with(".json") => (text, ""),
        _ => return None,
    };
    let path = PathBuf::from(file);
    let is_address = file.contains("://");
    (path.is_file() || !(is_address || file.contains(char::is_whitespace))).then_some((path, name))
}

/// Those of the files that are there and can be read; the others are somebody else's problem.
fn readable(well_known: &[(&str, PathBuf)]) -> Vec<ServersFile> {
    let readable = |(_, path): &(&str, PathBuf)| match ServersFile::load(path) {
        Ok(file) => Some(file),
        Err(error) => {
            tracing::debug!(%error, "Skipped a file of servers");
            None
        }
    };
    well_known.iter().filter(|(_, path)| path.is_file()).filter_map(readable).collect()
}

fn near_miss(word: &str, files: &[ServersFile]) -> Result<(), TargetError> {
    match files.iter().find_map(|file| Some((nearest_name(word, file.names())?, file))) {
        Some((meant, file)) => Err(TargetError::NearMiss {
            word: word.to_owned(),
            meant: meant.to_owned(),
            file: file.origin.clone(),
        }),
        None => Ok(()),
    }
}

/// Whether `PATH` has a program of this name.
fn is_program(name: &str) -> bool {
    let Some(path) = std::env::var_os("PATH") else { return false };
    let endings: &[&str] = if cfg!(windows) { &["", ".exe", ".cmd", ".bat", ".com"] } else { &[""] };
    std::env::split_paths(&path)
        .any(|folder| endings.iter().any(|ending| folder.join(format!("{name}{ending}")).is_file()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory of its own, removed at the end.
    struct Folder(tempfile::TempDir);

    impl Folder {
        fn new() -> Folder {
            Folder(tempfile::tempdir().unwrap())
        }

        fn path(&self, name: &str) -> PathBuf {
            self.0.path().join(name)
        }

        fn write(&self, name: &str, text: &str) -> PathBuf {
            let path = self.path(name);
            std::fs::write(&path, text).unwrap();
            path
        }
    }

    #[test]
    fn servers_file_resolve_rules() {
        let folder = Folder::new();
        let one = folder.write("one.json", r#"{"mcpServers": {"solo": {"command": "from-one"}}}"#);
        let two = folder.write(
            "two.json",
            r#"{"mcpServers": {"github": {"command": "from-two"}, "git": {"url": "https://two.example"},
                "my server": {"command": "x"}, "broken": {}}}"#,
        );
        let spoiled = folder.write("spoiled.json", "{");
        let files =
            [("a", spoiled), ("b", folder.path("absent.json")), ("c", one.clone()), ("d", two.clone())];
        let find = |text: &str, file: Option<&Path>| {
            find(text, file, &files, &|name| name == "githuc")
                .map(|found| (found.name, found.target.to_string(), found.file))
        };
        let (one_text, two_text) = (one.to_str().unwrap(), two.to_str().unwrap());
        for (text, file, name, target, from) in [
            ("git", Some(&two), "git", "https://two.example/", Some(&two)),
            ("", Some(&one), "solo", "from-one", Some(&one)),
            ("https://a.example/x.json", None, "a.example", "https://a.example/x.json", None),
            (one_text, None, "solo", "from-one", Some(&one)),
            (&format!("{two_text}#my server"), None, "my server", "x", Some(&two)),
            ("solo", None, "solo", "from-one", Some(&one)),
            ("github", None, "github", "from-two", Some(&two)),
            ("githuc", None, "githuc", "githuc", None),
            ("unheard-of", None, "unheard-of", "unheard-of", None),
            ("my server", None, "my", "my server", None),
            ("server --config x.json", None, "server", "server --config x.json", None),
            ("./github", None, "github", "./github", None),
        ] {
            let found = find(text, file.map(|path| path.as_path())).unwrap();
            assert_eq!(found, (name.to_owned(), target.to_owned(), from.cloned()), "{text}");
        }
        for (text, file, part) in [
            ("", None, "no server given"),
            ("githb", None, "did you mean \"github\" ("),
            ("githb", Some(&two), "did you mean \"github\"? It has: broken, git, github, my server"),
            ("", Some(&two), "has several servers; choose one"),
            (two_text, None, "two.json#broken. It has: broken, git, github, my server"),
            ("broken", None, "needs a \"command\" or a \"url\""),
            ("./absent.json", None, "the file ./absent.json does not exist"),
            ("absent.json#x", None, "the file absent.json does not exist"),
        ] {
            let error = find(text, file.map(|path| path.as_path())).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
