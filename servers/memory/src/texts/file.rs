//! Files that may be read: those below folders that whoever runs the server has named, and no others.

use std::fs::{File, Metadata};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use super::kind::Kind;
use super::{SourceText, abbreviated, decode};
use crate::error::{Code, Fault, Result};

/// Reads a file below one of these folders. A path that is not absolute is looked for in each of them.
pub(crate) fn read(field: &str, path: &str, folders: &[PathBuf], max: usize) -> Result<SourceText> {
    if folders.is_empty() {
        return Err(Fault::input(
            field,
            "this server may not read files. Whoever runs it can name folders whose files may be read (folders); or give \
             the contents as \"text\"",
        ));
    }
    if path.is_empty() || path.contains('\0') {
        return Err(Fault::input(field, "must be the path of a file"));
    }
    let found = folders.iter().find_map(|folder| inside(folder, Path::new(path)));
    let Some(FileLocation { folder, file: real }) = found else {
        // The same sentence whether it exists or not: what is elsewhere is nobody's business.
        return Err(Fault::input(
            field,
            format!("there is no file {:?} in the folders that may be read", abbreviated(path)),
        ));
    };
    let bytes =
        open(field, path, &real).and_then(|file| bytes(field, file, max)).map_err(
            |trouble| match trouble {
                ReadFailure::Refused(fault) => fault,
                ReadFailure::Io(error) => {
                    tracing::warn!(%error, path = %real.display(), "a file cannot be read");
                    Fault::new(
                        Code::Outside,
                        format!("{field}: {:?} cannot be read: {}", abbreviated(path), error.kind()),
                    )
                }
            },
        )?;
    let name = real.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let text = decode::decode(field, &bytes, None, Kind::of_name(&name) == Some(Kind::Html))?;
    let kind = Kind::of_name(&name).unwrap_or_else(|| Kind::of_text(&text));
    let below = real.strip_prefix(&folder).unwrap_or(&real);
    let shelf = folder.file_name().map(PathBuf::from).unwrap_or_default();
    Ok(SourceText {
        text,
        kind,
        origin: Some(format!("file:{}", real.display())),
        source: shelf.join(below).to_string_lossy().into_owned(),
        name: Some(name),
        base: None,
    })
}

/// A file, and the folder that it is below, both without links.
struct FileLocation {
    folder: PathBuf,
    file: PathBuf,
}

/// The real path, if it is below the folder once all links are followed.
fn inside(folder: &Path, path: &Path) -> Option<FileLocation> {
    let folder = folder.canonicalize().ok()?;
    let file = folder.join(path).canonicalize().ok()?;
    file.starts_with(&folder).then_some(FileLocation { folder, file })
}

enum ReadFailure {
    Refused(Fault),
    Io(std::io::Error),
}

impl From<std::io::Error> for ReadFailure {
    fn from(error: std::io::Error) -> ReadFailure {
        ReadFailure::Io(error)
    }
}

/// Opens a file that is one, and no device or pipe, and that is still the one that was looked at.
fn open(field: &str, given: &str, path: &Path) -> Result<File, ReadFailure> {
    let plain = |what: &Metadata| {
        let why = match (what.is_file(), what.is_dir()) {
            (true, _) => return Ok(()),
            (_, true) => "is a folder: give the files in it one by one",
            _ => "is no file, but a device or a pipe",
        };
        Err(ReadFailure::Refused(Fault::input(field, format!("{:?} {why}", abbreviated(given)))))
    };
    plain(&std::fs::symlink_metadata(path)?)?;
    let file = File::open(path)?;
    let opened = file.metadata()?;
    plain(&opened)?;
    // Somebody may have put a link in its place in between.
    match path.canonicalize()? == path && same(&opened, &std::fs::symlink_metadata(path)?) {
        true => Ok(file),
        false => Err(ReadFailure::Refused(Fault::input(
            field,
            format!("{:?} changed while it was opened", abbreviated(given)),
        ))),
    }
}

#[cfg(unix)]
fn same(a: &Metadata, b: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    (a.dev(), a.ino()) == (b.dev(), b.ino())
}

#[cfg(not(unix))]
fn same(a: &Metadata, b: &Metadata) -> bool {
    a.file_type() == b.file_type() && a.len() == b.len()
}

fn bytes(field: &str, file: File, max: usize) -> Result<Vec<u8>, ReadFailure> {
    let mut bytes = Vec::new();
    // One more than may be, to see whether there is more.
    file.take(max as u64 + 1).read_to_end(&mut bytes)?;
    match bytes.len() > max {
        true => Err(ReadFailure::Refused(too_large(field, max))),
        false => Ok(bytes),
    }
}

pub(crate) fn too_large(field: &str, max: usize) -> Fault {
    Fault::input(field, format!("is larger than the {max} bytes that a document may have; give it in parts"))
}
