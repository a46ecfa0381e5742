//! [`Location`]: where a store is kept, a file or a server.

use std::path::{Path, PathBuf};
#[cfg(feature = "postgres")]
use std::sync::Arc;

use super::schema::Schema;
use super::sql::Session;
use super::sqlite;
use crate::error::{Code, Fault, Result};

/// Where a store is kept.
#[derive(Clone)]
pub(super) struct Location {
    kind: Kind,
    schema: &'static Schema,
}

#[derive(Clone)]
enum Kind {
    /// A file of SQLite.
    File(PathBuf),
    /// A database of a PostgreSQL server.
    #[cfg(feature = "postgres")]
    Server(Arc<super::postgres::Server>),
}

impl Location {
    /// The file, which is made if it is not there.
    pub(super) fn file(path: &Path, schema: &'static Schema) -> Result<Location> {
        prepare(path).map_err(|error| {
            Fault::new(Code::Database, format!("{} cannot be created: {error}", path.display()))
        })?;
        Ok(Location { kind: Kind::File(path.to_owned()), schema })
    }

    /// The database that the URL names.
    #[cfg(feature = "postgres")]
    pub(super) fn server(url: &str, schema: &'static Schema) -> Result<Location> {
        let server = super::postgres::Server::new(url, schema.temporary)?;
        Ok(Location { kind: Kind::Server(Arc::new(server)), schema })
    }

    /// The database that the URL names.
    #[cfg(not(feature = "postgres"))]
    pub(super) fn server(_url: &str, _schema: &'static Schema) -> Result<Location> {
        Err(Fault::new(
            Code::Database,
            "Tidegate was built without PostgreSQL support; use the path of a file",
        ))
    }

    /// Whether it is a file.
    #[cfg(test)]
    pub(super) fn is_file(&self) -> bool {
        matches!(self.kind, Kind::File(_))
    }

    /// What is kept there.
    pub(super) fn schema(&self) -> &'static Schema {
        self.schema
    }

    /// A connection. Only one of a process writes.
    pub(super) fn open(&self, writes: bool) -> Result<Box<dyn Session>> {
        Ok(match &self.kind {
            Kind::File(path) => Box::new(sqlite::open(path, writes.then_some(self.schema.temporary))?),
            #[cfg(feature = "postgres")]
            Kind::Server(server) => Box::new(super::postgres::Postgres::open(server.clone(), writes)?),
        })
    }
}

/// Makes the folder and the file, for nobody else to read: a memory is as private as a diary.
///
/// A file that is there is not opened. Whoever closes a file gives up all locks that the process has on it, those of a
/// memory that is in use included; another process could then take it that nobody uses it.
fn prepare(path: &Path) -> std::io::Result<()> {
    let mut folders = std::fs::DirBuilder::new();
    folders.recursive(true);
    let mut file = std::fs::OpenOptions::new();
    file.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
        folders.mode(0o700);
        file.mode(0o600);
    }
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        folders.create(folder)?;
    }
    match file.open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        made => made.map(drop),
    }
}
