//! `cargo xtask browser`: the page of the memory in a real browser (`command/tests/browser`).

use anyhow::{Result, bail};

use crate::shell;

/// The step in the table of all steps.
pub(crate) const STEP: &str = "memory page in a browser";

const NO_CHROMIUM: &str =
    "Chromium and its driver are not installed (Debian: apt-get install chromium chromium-driver)";

/// What this machine lacks for it, if anything.
pub(crate) fn lacks() -> Option<&'static str> {
    let chromium = ["chromium", "chromium-browser", "google-chrome"].into_iter().any(shell::installed);
    (!(chromium && shell::installed("chromedriver"))).then_some(NO_CHROMIUM)
}

/// Runs the tests.
pub(crate) fn test() -> Result<()> {
    // All features, as in the other steps, so that nothing is compiled twice. Two browsers at a time are enough.
    let test = ["test", "--all-features", "--test", "browser", "--", "--ignored", "--test-threads=2"];
    shell::check(&mut shell::cargo(&test))
}

/// The command.
pub(crate) fn run(args: &[String]) -> Result<()> {
    if let Some(unknown) = args.first() {
        bail!("`cargo xtask browser` does not know `{unknown}`");
    }
    match lacks() {
        Some(why) => bail!(why),
        None => test(),
    }
}
