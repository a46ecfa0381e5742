//! [`ConfigError`]: what is wrong with a configuration, all of it at once.

use std::fmt;
use std::path::{Path, PathBuf};

/// Why a configuration cannot be used: a sentence for each thing that is wrong. None of them repeats a value, which may
/// be a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    file: PathBuf,
    problems: Vec<Problem>,
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// Line and column, both counted from 1, where they are known.
    pub at: Option<(usize, usize)>,
    /// The field, such as `servers.github.timeout`, where it is known.
    pub field: Option<String>,
    /// What is wrong and what to do.
    pub sentence: String,
}

impl ConfigError {
    pub(crate) fn new(file: &Path, problems: Vec<Problem>) -> ConfigError {
        ConfigError { file: file.to_owned(), problems }
    }

    /// Something about the file as a whole.
    pub(crate) fn whole(file: &Path, sentence: impl Into<String>) -> ConfigError {
        ConfigError::new(file, vec![Problem { at: None, field: None, sentence: sentence.into() }])
    }

    /// The file.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Everything that is wrong, at least one thing.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }
}

impl fmt::Display for ConfigError {
    /// A line for each problem: `tidegate.toml:3:1: servers.github.timeout: …`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{}", self.file.display())?;
            if let Some((line, column)) = problem.at {
                write!(f, ":{line}:{column}")?;
            }
            write!(f, ": {problem}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(field) = &self.field {
            write!(f, "{field}: ")?;
        }
        f.write_str(&self.sentence)
    }
}

impl std::error::Error for ConfigError {}
