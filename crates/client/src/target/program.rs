//! Whether the program of a [`Command`] is there to be started.

use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};

use super::Command;

/// Why a program cannot be started. No variant repeats its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProgramError {
    /// No folder of `PATH` has it.
    NotInPath(String),
    /// There is no such file.
    NoFile(PathBuf),
    /// The file may not be executed.
    NotExecutable(PathBuf),
    /// There is no such directory to run it in.
    NoDirectory(PathBuf),
}

impl Command {
    /// Where the program is, as the system would find it: in the `PATH` that the program gets, or relative to where it runs.
    pub fn locate(&self) -> Result<PathBuf, ProgramError> {
        if let Some(cwd) = self.cwd.as_ref().filter(|cwd| !cwd.is_dir()) {
            return Err(ProgramError::NoDirectory(cwd.clone()));
        }
        if self.program.contains(std::path::is_separator) {
            let here = self.cwd.as_deref().unwrap_or(Path::new("."));
            return executable(&here.join(&self.program));
        }
        let environment = self.environment();
        let path = environment.iter().find(|(name, _)| name.eq_ignore_ascii_case("PATH"));
        in_path(&self.program, path.map(|(_, path)| path.as_os_str()))
    }
}

/// Finds a program by its name in a list of folders, such as that of `PATH`.
fn in_path(name: &str, path: Option<&OsStr>) -> Result<PathBuf, ProgramError> {
    let mut found = Err(ProgramError::NotInPath(name.to_owned()));
    for folder in path.into_iter().flat_map(std::env::split_paths) {
        match executable(&folder.join(name)) {
            Ok(path) => return Ok(path),
            Err(error @ ProgramError::NotExecutable(_)) => found = Err(error),
            Err(_) => {}
        }
    }
    found
}

/// The file, or the same with an ending that makes it a program.
fn executable(path: &Path) -> Result<PathBuf, ProgramError> {
    const ENDINGS: &[&str] = if cfg!(windows) { &["", ".exe", ".cmd", ".bat", ".com"] } else { &[""] };
    let with = |ending: &&str| {
        let mut name = path.as_os_str().to_owned();
        name.push(ending);
        PathBuf::from(name)
    };
    match ENDINGS.iter().map(with).find(|path| path.is_file()) {
        Some(path) if may_execute(&path) => Ok(path),
        Some(path) => Err(ProgramError::NotExecutable(path)),
        None => Err(ProgramError::NoFile(path.to_owned())),
    }
}

#[cfg(unix)]
fn may_execute(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|file| file.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn may_execute(_path: &Path) -> bool {
    true
}

impl fmt::Display for ProgramError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotInPath(name) => write!(f, "`{name}` was not found in PATH"),
            Self::NoFile(path) => write!(f, "`{}` does not exist", path.display()),
            Self::NotExecutable(path) => write!(f, "`{}` is not executable", path.display()),
            Self::NoDirectory(path) => write!(f, "the directory `{}` does not exist", path.display()),
        }
    }
}

impl std::error::Error for ProgramError {}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_as_the_system_finds_them() {
        let own = tempfile::tempdir().unwrap();
        let folder = own.path();
        std::fs::write(folder.join("plain"), "x").unwrap();
        let command = |program: &str| {
            let mut command = Command { program: program.to_owned(), ..Command::default() };
            command.env.insert("PATH".to_owned(), format!("{}:/bin:/usr/bin", folder.display()));
            command.cwd = Some(folder.to_owned());
            command
        };
        assert!(command("sh").locate().is_ok());
        for (program, part) in [
            ("no-such-program", "`no-such-program` was not found in PATH"),
            ("./absent", "absent` does not exist"),
            ("./plain", "plain` is not executable"),
            ("plain", "plain` is not executable"),
        ] {
            let said = command(program).locate().unwrap_err().to_string();
            assert!(said.contains(part), "{program}: {said}");
        }
        let gone = Command { cwd: Some(folder.join("gone")), ..command("sh") };
        assert!(gone.locate().unwrap_err().to_string().starts_with("the directory `"));
    }
}
