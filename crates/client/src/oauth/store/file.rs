//! [`FileStore`]: tokens in files that only their owner can read.
//!
//! There is one file for each pair of MCP server and authorization server, so that processes which log in to different
//! servers never write the same file. A file is replaced as a whole, so that a reader sees the old tokens or the new
//! ones, and a crash leaves one of the two.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use etcetera::BaseStrategy;
use futures_util::future::BoxFuture;
use ring::digest::{SHA256, digest};
use tidegate_protocol::Error;
use url::Url;

use super::{Credentials, StoreGuard, TokenStore, lock};
use crate::oauth::fault::Fault;
use crate::oauth::jwt::random_text;

/// Keeps tokens in a directory, which several processes may share.
#[derive(Debug, Clone)]
pub struct FileStore {
    directory: PathBuf,
}

impl FileStore {
    /// The store of this user: `tidegate/tokens` in `$XDG_CONFIG_HOME`, in `~/.config`, or where else the system keeps
    /// configuration.
    pub fn of_user() -> Result<FileStore, Error> {
        let base = etcetera::choose_base_strategy()
            .map_err(|_| Fault::Store("the home directory of this user is not known; set HOME".to_owned()))?;
        Ok(FileStore::at(base.config_dir().join("tidegate").join("tokens")))
    }

    /// A store in this directory, which is made when something is kept.
    pub fn at(directory: impl Into<PathBuf>) -> FileStore {
        FileStore { directory: directory.into() }
    }

    /// The directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// What the names of all files of a server start with: its host for people, a digest for the rest, which may hold
    /// secrets.
    fn prefix(server: &str) -> String {
        let url = Url::parse(server).ok();
        let host = url.as_ref().and_then(Url::host_str).unwrap_or("server");
        let fits = |c: char| if c.is_ascii_alphanumeric() || "-.".contains(c) { c } else { '_' };
        let host: String = host.chars().map(fits).take(100).collect();
        format!("{host}-{}", short_digest(server))
    }

    fn path(&self, server: &str, issuer: &str) -> PathBuf {
        self.directory.join(format!("{}-{}.json", FileStore::prefix(server), short_digest(issuer)))
    }

    /// The files of a server.
    fn paths(&self, server: &str) -> io::Result<Vec<PathBuf>> {
        let entries = match fs::read_dir(&self.directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let prefix = FileStore::prefix(server) + "-";
        let mut paths = Vec::new();
        for entry in entries {
            let entry = entry?;
            if entry
                .file_name()
                .to_str()
                .is_some_and(|name| name.starts_with(&prefix) && name.ends_with(".json"))
            {
                paths.push(entry.path());
            }
        }
        Ok(paths)
    }

    fn read(&self, server: &str) -> Result<Vec<Credentials>, Fault> {
        /// No login is larger.
        const MAX_BYTES: u64 = 1024 * 1024;
        let mut found = Vec::new();
        for path in self.paths(server).map_err(|error| self.trouble("read", &self.directory, &error))? {
            let text = match crate::read_regular(&path, MAX_BYTES) {
                Ok(text) => text,
                // Somebody logged out this very moment.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(self.trouble("read", &path, &error)),
            };
            match serde_json::from_slice::<Credentials>(&text) {
                Ok(credentials) if credentials.server == server => found.push(credentials),
                Ok(_) => {}
                // A new login writes it anew, so this is no reason to fail.
                Err(_) => {
                    tracing::warn!(path = %path.display(), "ignored a damaged token file")
                }
            }
        }
        found.sort_by_key(|credentials| std::cmp::Reverse(credentials.saved_at));
        Ok(found)
    }

    fn write(&self, credentials: &Credentials) -> Result<(), Fault> {
        self.prepare()?;
        let path = self.path(&credentials.server, &credentials.issuer);
        let text = serde_json::to_vec_pretty(credentials)
            .map_err(|error| Fault::Store(format!("tokens cannot be written as JSON: {error}")))?;
        let fresh = self.directory.join(format!(".{}.tmp", random_text::<16>()));
        let written = create_private(&fresh)
            .and_then(|mut file| file.write_all(&text).and_then(|()| file.sync_all()))
            .and_then(|()| fs::rename(&fresh, &path));
        written.map_err(|error| {
            _ = fs::remove_file(&fresh);
            self.trouble("write", &path, &error)
        })
    }

    fn delete(&self, server: &str) -> Result<usize, Fault> {
        let paths = self.paths(server).map_err(|error| self.trouble("read", &self.directory, &error))?;
        for path in &paths {
            match fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(self.trouble("remove", path, &error));
                }
                _ => {}
            }
        }
        Ok(paths.len())
    }

    /// Makes the directory, and makes it private even if somebody made it otherwise.
    fn prepare(&self) -> Result<(), Fault> {
        make_private(&self.directory).map_err(|error| self.trouble("make", &self.directory, &error))
    }

    fn trouble(&self, what: &str, path: &Path, error: &io::Error) -> Fault {
        Fault::Store(format!(
            "cannot {what} {}: {error}; check the permissions of {}",
            path.display(),
            self.directory.display()
        ))
    }

    /// Does `work` where waiting for a disk holds up nobody.
    fn aside<T: Send + 'static>(
        &self,
        work: impl FnOnce(&FileStore) -> Result<T, Fault> + Send + 'static,
    ) -> BoxFuture<'static, Result<T, Error>> {
        let store = self.clone();
        Box::pin(async move {
            match tokio::task::spawn_blocking(move || work(&store)).await {
                Ok(done) => done.map_err(Error::from),
                Err(_) => Err(Error::internal()),
            }
        })
    }
}

impl TokenStore for FileStore {
    fn load<'a>(&'a self, server: &'a str) -> BoxFuture<'a, Result<Vec<Credentials>, Error>> {
        let server = server.to_owned();
        self.aside(move |store| store.read(&server))
    }

    fn save<'a>(&'a self, credentials: &'a Credentials) -> BoxFuture<'a, Result<(), Error>> {
        let credentials = credentials.clone();
        self.aside(move |store| store.write(&credentials))
    }

    fn remove<'a>(&'a self, server: &'a str) -> BoxFuture<'a, Result<usize, Error>> {
        let server = server.to_owned();
        self.aside(move |store| store.delete(&server))
    }

    fn lock<'a>(&'a self, server: &'a str, wait: Duration) -> BoxFuture<'a, Result<StoreGuard, Error>> {
        let path = self.directory.join(format!("{}.lock", FileStore::prefix(server)));
        Box::pin(async move {
            self.aside(FileStore::prepare).await?;
            match lock::acquire(&path, wait).await {
                Ok(Some(file)) => Ok(StoreGuard::new(file)),
                Ok(None) => {
                    let what =
                        "another process is logging in to the same server; try again when that is done";
                    Err(Fault::Store(what.to_owned()).into())
                }
                Err(error) => Err(self.trouble("lock", &path, &error).into()),
            }
        })
    }

    fn place(&self, credentials: &Credentials) -> String {
        self.path(&credentials.server, &credentials.issuer).display().to_string()
    }
}

fn short_digest(text: &str) -> String {
    digest(&SHA256, text.as_bytes()).as_ref()[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(unix)]
fn create_private(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

#[cfg(unix)]
fn make_private(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
    if let Some(parent) = path.parent() {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
    }
    match fs::DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        Err(_) => {}
        Ok(()) => return Ok(()),
    }
    match fs::metadata(path)?.permissions().mode() & 0o077 {
        0 => Ok(()),
        _ => fs::set_permissions(path, fs::Permissions::from_mode(0o700)),
    }
}

#[cfg(not(unix))]
fn create_private(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).open(path)
}

/// Elsewhere the directories of a user are private by inheritance.
#[cfg(not(unix))]
fn make_private(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)
}
