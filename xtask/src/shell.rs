//! Running other programs, and where things are.

use std::env;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

/// The root of the repository.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or_else(|| Path::new("."))
}

/// The directory that holds this program and, since all is built in one profile, its sibling binaries.
pub(crate) fn binaries() -> Result<PathBuf> {
    let this = env::current_exe().context("finding the path of xtask itself")?;
    Ok(this.parent().context("xtask has no parent directory")?.to_owned())
}

/// The target directory.
pub(crate) fn target_dir() -> Result<PathBuf> {
    // Asked of our own path and not of CARGO_TARGET_DIR, so that every way of moving the target directory works.
    let binaries = binaries()?;
    Ok(binaries.parent().context("xtask lies outside a target directory")?.to_owned())
}

/// Where the conformance tools, their results and their logs live: `target/conformance`.
pub(crate) fn conformance_dir() -> Result<PathBuf> {
    Ok(target_dir()?.join("conformance"))
}

/// A cargo command in the root of the repository, with the toolchain that built us.
pub(crate) fn cargo(args: &[&str]) -> Command {
    let program = env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut command = Command::new(program);
    command.args(args).current_dir(root()).stdin(Stdio::null());
    command
}

/// Runs a command with our own output, and fails when it does.
pub(crate) fn check(command: &mut Command) -> Result<()> {
    let line = describe(command);
    let status = command.status().with_context(|| format!("could not start `{line}`"))?;
    if !status.success() {
        bail!("`{line}` failed ({status})");
    }
    Ok(())
}

/// Runs a command and returns what it printed on stdout; its stderr is part of the error when it fails.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let line = describe(command);
    let output =
        command.stdin(Stdio::null()).output().with_context(|| format!("could not start `{line}`"))?;
    if !output.status.success() {
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        bail!("`{line}` failed ({})\n{}{}", output.status, out, err.trim_end());
    }
    String::from_utf8(output.stdout).with_context(|| format!("`{line}` printed something that is not UTF-8"))
}

/// Whether a program of that name is in the PATH.
pub(crate) fn installed(program: &str) -> bool {
    env::var_os("PATH").is_some_and(|path| {
        env::split_paths(&path)
            .any(|dir| dir.join(program).is_file() || dir.join(format!("{program}.cmd")).is_file())
    })
}

/// The command as one would type it, for messages.
fn describe(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let mut line = program.file_name().unwrap_or(program.as_os_str()).to_string_lossy().into_owned();
    for arg in command.get_args() {
        // Writing to a String cannot fail.
        let _ = write!(line, " {}", arg.to_string_lossy());
    }
    line
}
