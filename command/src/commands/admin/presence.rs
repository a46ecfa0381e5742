//! [`Presence`]: what a running gateway says of itself in the state directory, so that commands find it.
//!
//! Each gateway has two files there, whose names nobody else has: a socket, which is the admin API for whoever may open it, and a
//! note about who it is, with the token for its URL. Nobody but the user may look into their folder. Who ends in an orderly way removes
//! both; what others left behind is recognised because nobody listens there any more.

use std::io;
use std::path::{Path, PathBuf};
#[cfg(unix)]
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The folder in the state directory.
const FOLDER: &str = "admin";
/// More files than this are not looked at: a folder with so many is nobody's work.
const MOST: usize = 1024;
/// A larger note is none.
const LARGEST: u64 = 64 * 1024;
/// How long a gateway may take to take a connection before it counts as busy.
#[cfg(unix)]
const WITHIN: Duration = Duration::from_secs(1);

/// How clients reach a gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Transport {
    /// At a URL.
    Http,
    /// The one client that started it, over stdio.
    Stdio,
}

impl Transport {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Transport::Http => "http",
            Transport::Stdio => "stdio",
        }
    }
}

/// A running gateway.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Presence {
    /// Its process.
    pub(crate) pid: u32,
    /// When it started.
    pub(crate) started: String,
    /// How clients reach it.
    pub(crate) transport: Transport,
    /// Where its admin API is over HTTP, without a path; none where it is not.
    pub(crate) url: Option<String>,
    /// Its configuration; none if it began without one.
    pub(crate) config: Option<PathBuf>,
    /// What its API over HTTP wants to see before it changes anything, where nobody has keys.
    pub(crate) token: Option<String>,
    /// Where its socket is; none if there is none.
    #[serde(skip)]
    pub(crate) socket: Option<PathBuf>,
}

/// Where gateways with this state directory say that they run.
pub(crate) fn folder(state_dir: &Path) -> PathBuf {
    state_dir.join(FOLDER)
}

/// All gateways that run with this state directory, the oldest first.
pub(crate) async fn running(state_dir: &Path) -> Vec<Presence> {
    let mut running = Vec::new();
    for note in notes(state_dir) {
        let Some(mut presence) = read(&note) else { continue };
        let socket = note.with_extension("sock");
        let is_there = match has_listener(&socket).await {
            Some(answers) => {
                presence.socket = Some(socket);
                answers
            }
            None => is_alive(presence.pid),
        };
        if is_there {
            running.push(presence);
        }
    }
    running.sort_by(|one, other| (&one.started, one.pid).cmp(&(&other.started, other.pid)));
    running
}

/// Removes what gateways left behind that did not end in an orderly way.
pub(crate) async fn sweep(state_dir: &Path) {
    for path in files(state_dir, "sock") {
        if has_listener(&path).await == Some(false) {
            let _ = std::fs::remove_file(&path);
            let _ = std::fs::remove_file(path.with_extension("json"));
        }
    }
    for note in notes(state_dir) {
        let is_alone = !note.with_extension("sock").exists();
        if is_alone && read(&note).is_none_or(|presence| !is_alive(presence.pid)) {
            let _ = std::fs::remove_file(&note);
        }
    }
}

fn notes(state_dir: &Path) -> Vec<PathBuf> {
    files(state_dir, "json")
}

/// The files of one kind. What others could have put there is not looked at.
fn files(state_dir: &Path, extension: &str) -> Vec<PathBuf> {
    if !is_own(&folder(state_dir)) {
        return Vec::new();
    }
    let Ok(entries) = std::fs::read_dir(folder(state_dir)) else { return Vec::new() };
    let paths = entries.take(MOST).filter_map(|entry| Some(entry.ok()?.path()));
    paths.filter(|path| path.extension().is_some_and(|found| found == extension) && is_own(path)).collect()
}

fn read(note: &Path) -> Option<Presence> {
    let text = tidegate_client::read_regular_text(note, LARGEST).ok()?;
    serde_json::from_str(&text).ok()
}

/// Whether somebody listens at a socket; `None` if there is no socket.
#[cfg(unix)]
async fn has_listener(socket: &Path) -> Option<bool> {
    // A path that is too long for a socket is not there, but cannot be asked about in this way.
    std::fs::symlink_metadata(socket).ok()?;
    match tokio::time::timeout(WITHIN, tokio::net::UnixStream::connect(socket)).await {
        Ok(Ok(_)) => Some(true),
        Ok(Err(error)) if error.kind() == io::ErrorKind::NotFound => None,
        Ok(Err(error)) => Some(error.kind() == io::ErrorKind::WouldBlock),
        // So busy that it takes no connection.
        Err(_) => Some(true),
    }
}

#[cfg(not(unix))]
async fn has_listener(_: &Path) -> Option<bool> {
    None
}

/// Whether there is a process of this number, as far as can be told.
#[cfg(unix)]
fn is_alive(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    // One of somebody else's cannot be asked, but is there.
    pid.is_some_and(|pid| {
        rustix::process::test_kill_process(pid)
            .map_or_else(|error| error == rustix::io::Errno::PERM, |()| true)
    })
}

#[cfg(not(unix))]
fn is_alive(_: u32) -> bool {
    true
}

/// The files of a gateway that runs. They are removed with this.
#[derive(Debug)]
pub(crate) struct PresenceFiles {
    note: PathBuf,
    is_noted: bool,
}

impl PresenceFiles {
    /// Makes the folder, which nobody else may look into, and chooses names that nobody else has.
    pub(crate) fn prepare(state_dir: &Path) -> io::Result<PresenceFiles> {
        let folder = folder(state_dir);
        make_private(&folder)?;
        let mark: [u8; 4] = tidegate_service::random();
        let name = format!("{}-{:08x}.json", std::process::id(), u32::from_le_bytes(mark));
        Ok(PresenceFiles { note: folder.join(name), is_noted: false })
    }

    /// Where the socket is to be.
    pub(crate) fn socket(&self) -> PathBuf {
        self.note.with_extension("sock")
    }

    /// Says who this is. It comes after the socket, so that nobody finds one without the other.
    pub(crate) fn write(&mut self, presence: &Presence) -> io::Result<()> {
        let text = serde_json::to_string(presence).map_err(io::Error::other)?;
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&self.note)?;
        self.is_noted = true;
        io::Write::write_all(&mut file, text.as_bytes())
    }
}

impl Drop for PresenceFiles {
    fn drop(&mut self) {
        if self.is_noted {
            let _ = std::fs::remove_file(&self.note);
        }
        let _ = std::fs::remove_file(self.socket());
    }
}

/// Whether a folder or a file is this user's, and nobody else can write to it.
#[cfg(unix)]
fn is_own(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let is_own = |about: std::fs::Metadata| {
        about.uid() == rustix::process::geteuid().as_raw() && about.mode() & 0o022 == 0 && !about.is_symlink()
    };
    std::fs::symlink_metadata(path).is_ok_and(is_own)
}

#[cfg(not(unix))]
fn is_own(_: &Path) -> bool {
    true
}

/// A folder that nobody but this user may look into. One that others could write to is not used.
#[cfg(unix)]
fn make_private(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let about = std::fs::symlink_metadata(folder)?;
    let is_own = about.is_dir() && about.uid() == rustix::process::geteuid().as_raw();
    if !is_own {
        return Err(io::Error::other(format!("{} is not a folder of this user", folder.display())));
    }
    if about.mode() & 0o077 != 0 {
        std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
}

#[cfg(not(unix))]
fn make_private(folder: &Path) -> io::Result<()> {
    std::fs::create_dir_all(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn presence(pid: u32) -> Presence {
        Presence {
            pid,
            started: "2026-07-28T12:00:00.000Z".to_owned(),
            transport: Transport::Http,
            url: Some("http://127.0.0.1:8765".to_owned()),
            config: None,
            token: Some("t".to_owned()),
            socket: None,
        }
    }

    /// A process that has ended.
    fn gone() -> u32 {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = child.id();
        child.wait().unwrap();
        pid
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn what_was_left_behind_is_recognised_and_removed() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("state");
        assert!(running(&state).await.is_empty(), "there is no such folder");
        let mut own = PresenceFiles::prepare(&state).unwrap();
        let _listener = tokio::net::UnixListener::bind(own.socket()).unwrap();
        own.write(&presence(1)).unwrap();
        // One that ended without a word, with a socket and without.
        let mut dead = PresenceFiles::prepare(&state).unwrap();
        drop(tokio::net::UnixListener::bind(dead.socket()).unwrap());
        dead.write(&presence(2)).unwrap();
        let mut without = PresenceFiles::prepare(&state).unwrap();
        without.write(&presence(gone())).unwrap();
        // One without a socket that runs, and what is no note at all.
        let mut alive = PresenceFiles::prepare(&state).unwrap();
        alive.write(&presence(std::process::id())).unwrap();
        std::fs::write(folder(&state).join("broken.json"), "{").unwrap();

        let pids = |found: Vec<Presence>| found.into_iter().map(|one| one.pid).collect::<Vec<_>>();
        assert_eq!(pids(running(&state).await), [1, std::process::id()]);
        let files = || std::fs::read_dir(folder(&state)).unwrap().count();
        assert_eq!(files(), 7);
        sweep(&state).await;
        assert_eq!((pids(running(&state).await), files()), (vec![1, std::process::id()], 3));
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&folder(&state)), mode(&own.note)), (0o700, 0o600));
        drop((own, alive, dead, without));
        assert_eq!(files(), 0);
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_that_others_could_look_into_is_closed() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder(dir.path())).unwrap();
        std::fs::set_permissions(folder(dir.path()), std::fs::Permissions::from_mode(0o777)).unwrap();
        PresenceFiles::prepare(dir.path()).unwrap();
        let mode = std::fs::metadata(folder(dir.path())).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        // A link is somebody else's idea of where it is.
        std::fs::remove_dir_all(folder(dir.path())).unwrap();
        std::os::unix::fs::symlink("/tmp", folder(dir.path())).unwrap();
        assert!(PresenceFiles::prepare(dir.path()).is_err());
    }
}
