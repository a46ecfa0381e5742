//! Importing the servers of other programs.

mod own;
mod program;
mod translate;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use tidegate_client::{ServersFile, ServersFileError};
use tidegate_service::nearest_name;

use self::own::Own;
use self::program::Kept;
use crate::config::Variables;
use crate::edit::{EditError, Open};
use crate::entry::ServerEntry;
use crate::names;

pub use program::{Found, Program, found};

/// The program, or the file, that servers are imported from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// A program, by its well-known files.
    Program(Program),
    /// A file in any form that a program uses.
    File(PathBuf),
}

/// How to import.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// Whether to replace servers of the same name.
    pub replace: bool,
    /// Whether to write nothing.
    pub dry_run: bool,
}

/// What was imported, or would be.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Imported {
    /// The files that were read.
    pub files: Vec<PathBuf>,
    /// The servers, with the names that they have now, in their order.
    pub servers: Vec<(String, ServerEntry)>,
    /// The environment variables that they need and that are not set, by server.
    pub missing: Vec<(String, Vec<String>)>,
    /// What was skipped or should be looked at, one sentence each.
    pub notes: Vec<String>,
}

/// Why nothing was imported.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ImportError {
    /// None of the program's files exists.
    Nowhere(Vec<PathBuf>),
    /// Neither a program that is known nor a file.
    Unknown {
        /// What was asked for.
        word: String,
        /// The program that may be meant.
        near: Option<&'static str>,
    },
    /// The file cannot be read.
    File(ServersFileError),
    /// The configuration cannot be changed.
    Edit(EditError),
}

impl Origin {
    /// Reads the name of a program, such as `cursor`, or the path of a file.
    pub fn parse(text: &str) -> Origin {
        match Program::named(text) {
            Some(program) => Origin::Program(program),
            None => Origin::File(PathBuf::from(text)),
        }
    }

    /// The files to read, each once. Those of a program may hold no servers, or be broken, without spoiling the others.
    fn load(&self, notes: &mut Vec<String>) -> Result<Vec<ServersFile>, ImportError> {
        let program = match self {
            Origin::Program(program) => program,
            Origin::File(path) => return load(path).map(|file| vec![file]),
        };
        let candidates = program.files();
        let mut files = Vec::new();
        let mut exists = false;
        for (_, path) in candidates.iter().filter(|(_, path)| path.is_file()) {
            exists = true;
            match ServersFile::load(path) {
                Ok(file) => files.push(file),
                // Files such as ~/.claude.json and settings.json hold much else.
                Err(ServersFileError::NoServers { .. }) => {}
                Err(error) => notes.push(format!("Skipped a file: {error}.")),
            }
        }
        match exists {
            true => Ok(files),
            false => Err(ImportError::Nowhere(candidates.into_iter().map(|(_, path)| path).collect())),
        }
    }
}

fn load(path: &Path) -> Result<ServersFile, ImportError> {
    let text = path.to_string_lossy();
    if !path.exists() && !text.contains(['/', '\\', '.']) {
        let near = nearest_name(&text, Program::ALL.iter().map(|program| program.name()));
        return Err(ImportError::Unknown { word: text.into_owned(), near });
    }
    ServersFile::load(path).map_err(ImportError::File)
}

/// Adds the servers of another program to a configuration. References to variables stay references. Tidegate itself is
/// skipped, and so is a server whose name is taken, unless it is to be replaced.
pub fn import(
    path: &Path,
    from: &Origin,
    options: Options,
    env: Variables<'_>,
) -> Result<Imported, ImportError> {
    let mut open = Open::read(path).map_err(ImportError::Edit)?;
    let mut imported = Imported::default();
    let files = from.load(&mut imported.notes)?;
    let own = Own::of(&open);
    let mut kept = BTreeMap::new();
    for file in &files {
        imported.files.push(file.origin().to_owned());
        for name in file.names() {
            imported
                .take(&mut open, &own, &mut kept, file, name, options.replace)
                .map_err(ImportError::Edit)?;
        }
    }
    for (name, entry) in imported.servers.iter().filter(|(_, entry)| !entry.disabled) {
        let missing = entry.missing_variables(path, env);
        if !missing.is_empty() {
            imported.missing.push((name.clone(), missing));
        }
    }
    if !options.dry_run && !imported.servers.is_empty() {
        open.save().map_err(ImportError::Edit)?;
    }
    Ok(imported)
}

impl Imported {
    fn take(
        &mut self,
        open: &mut Open,
        own: &Own,
        kept: &mut BTreeMap<String, Kept>,
        file: &ServersFile,
        name: &str,
        replace: bool,
    ) -> Result<(), EditError> {
        let fit = names::made_fit(name);
        let description = match file.describe(name) {
            Ok(description) => description,
            Err(ServersFileError::Entry { reason, .. }) => {
                self.notes.push(format!("{name:?} is skipped: {reason}."));
                return Ok(());
            }
            Err(error) => {
                self.notes.push(format!("{name:?} is skipped: {error}."));
                return Ok(());
            }
        };
        if own.is(&description) {
            self.notes.push(format!("{name:?} is skipped: it is Tidegate itself."));
            return Ok(());
        }
        if let Some(earlier) = kept.get(&fit) {
            // The same server in two places is no news.
            if earlier.description != description {
                let (here, there) = (file.origin().display(), earlier.file.display());
                self.notes.push(format!(
                    "{name:?} of {here} is skipped: {there} has a different server of that name."
                ));
            }
            return Ok(());
        }
        if open.has(&fit) && !replace {
            self.notes.push(format!("{fit:?} already exists and is unchanged; replace it with --replace."));
            return Ok(());
        }
        if fit != name {
            self.notes.push(format!("{name:?} is called {fit:?} here."));
        }
        self.notes.extend(description.notes.iter().map(|note| format!("{fit:?}: {note}.")));
        let entry = translate::entry(file, &description);
        for secret in entry.literal_secrets() {
            self.notes.push(format!(
                "{fit:?}: the value of {secret} looks like a secret and is stored in plain text. Put it in .env or the \
                 environment, and refer to it as ${{{}}}.",
                translate::variable(secret)
            ));
        }
        open.add(&fit, &entry, true)?;
        kept.insert(fit.clone(), Kept { file: file.origin().to_owned(), description });
        self.servers.push((fit, entry));
        Ok(())
    }
}

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ImportError::Nowhere(files) => {
                let files: Vec<_> = files.iter().map(|file| file.display().to_string()).collect();
                write!(f, "nothing to import: none of these files exists: {}", files.join(", "))
            }
            ImportError::Unknown { word, near } => {
                write!(f, "there is no file {word:?}, and no program of that name is known")?;
                match near {
                    Some(near) => write!(f, "; did you mean {near:?}?"),
                    None => Ok(()),
                }
            }
            ImportError::File(error) => error.fmt(f),
            ImportError::Edit(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ImportError {}
