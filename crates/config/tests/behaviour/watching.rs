//! Being told that a configuration has changed. No test asserts how fast; the bounds are there so that nothing hangs.

use std::time::Duration;

use tidegate_config::Watcher;
use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::folder::Folder;

/// Longer than this, and something hangs.
const PATIENCE: Duration = Duration::from_secs(30);
/// Long enough for a poll and a wait.
const QUIET: Duration = Duration::from_millis(2800);

/// A signal reaches every watcher of the process, so they run one after the other.
static ONE_AT_A_TIME: Mutex<()> = Mutex::const_new(());

async fn changes(watcher: &mut Watcher) {
    timeout(PATIENCE, watcher.changed()).await.expect("no change was told");
}

async fn stays_quiet(watcher: &mut Watcher) {
    assert!(timeout(QUIET, watcher.changed()).await.is_err(), "a change was told");
}

#[tokio::test]
async fn changes_are_told_once() {
    let _guard = ONE_AT_A_TIME.lock().await;
    let folder = Folder::new();
    let path = folder.write("t.toml", "");
    let mut watcher = Watcher::start(&path);
    folder.write("t.toml", "drain = \"1s\"");
    changes(&mut watcher).await;
    // Written again, but the same; and something else in the same folder.
    folder.write("t.toml", "drain = \"1s\"");
    folder.write("other.toml", "x");
    stays_quiet(&mut watcher).await;
    // As editors do it.
    let new = folder.write("t.toml.new", "drain = \"2s\"");
    std::fs::rename(new, &path).unwrap();
    changes(&mut watcher).await;
    std::fs::remove_file(&path).unwrap();
    changes(&mut watcher).await;
    folder.write("t.toml", "drain = \"3s\"");
    changes(&mut watcher).await;
}

#[tokio::test]
async fn a_change_between_two_calls_is_not_lost() {
    let _guard = ONE_AT_A_TIME.lock().await;
    let folder = Folder::new();
    let path = folder.write("t.toml", "");
    let mut watcher = Watcher::start(&path);
    for text in ["drain = \"1s\"", "drain = \"2s\""] {
        folder.write("t.toml", text);
        // Given up in the middle of it.
        assert!(timeout(Duration::from_millis(50), watcher.changed()).await.is_err());
        changes(&mut watcher).await;
    }
}

#[tokio::test]
async fn files_that_are_referred_to_count() {
    let _guard = ONE_AT_A_TIME.lock().await;
    let folder = Folder::new();
    folder.write("keys/key", "one");
    folder.write("vars", "A=1");
    let text = "[servers.x]\ncommand = \"a\"\nenv_file = \"vars\"\nenv = { K = \"${file:keys/key}\" }";
    let path = folder.write("t.toml", text);
    let mut watcher = Watcher::start(&path);
    folder.write("keys/key", "two");
    changes(&mut watcher).await;
    folder.write("vars", "A=2");
    changes(&mut watcher).await;
    // Even those that a broken configuration refers to, or that are not there yet.
    folder.write("t.toml", "[servers.x]\nurl = \"${file:later}\"\nbad = 1");
    changes(&mut watcher).await;
    folder.write("later", "https://example.com");
    changes(&mut watcher).await;
    folder.write("vars", "A=3");
    stays_quiet(&mut watcher).await;
}

#[tokio::test]
async fn a_variable_that_comes_is_told() {
    let _guard = ONE_AT_A_TIME.lock().await;
    let folder = Folder::new();
    let path = folder.write("t.toml", "[servers.x]\ncommand = \"a ${TIDEGATE_TEST_COMES_LATER}\"");
    let load = || {
        tidegate_config::Config::load(&path, &crate::builtins(), &|name| std::env::var(name).ok()).unwrap()
    };
    let mut watcher = Watcher::start(&path);
    assert_eq!(load().disabled.len(), 1);
    folder.write(".env", "TIDEGATE_TEST_COMES_LATER=1");
    changes(&mut watcher).await;
    assert_eq!((load().disabled.len(), load().servers.len()), (0, 1));
}

#[cfg(unix)]
#[tokio::test]
async fn a_signal_is_told_even_if_nothing_has_changed() {
    let _guard = ONE_AT_A_TIME.lock().await;
    let folder = Folder::new();
    let path = folder.write("t.toml", "");
    let mut watcher = Watcher::start(&path);
    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::HUP).unwrap();
    changes(&mut watcher).await;
    stays_quiet(&mut watcher).await;
}
