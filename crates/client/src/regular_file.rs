//! Reading files of the user: regular ones, and no more of them than makes sense.

use std::fs::File;
use std::io::{Error, ErrorKind, Read, Result};
use std::path::Path;

/// The bytes of a file that has at most `most` of them.
///
/// A pipe, a device or a directory is an error at once: the one would have to be waited for, the other never ends.
pub fn read_regular(path: &Path, most: u64) -> Result<Vec<u8>> {
    // Before it is opened, because opening a pipe waits for somebody to write to it.
    if !std::fs::metadata(path)?.is_file() {
        return Err(Error::new(
            ErrorKind::InvalidInput,
            "it is a directory, a pipe or a device, and not a file",
        ));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        let what = format!("it is larger than {} KiB, so it cannot be the right file", most / 1024);
        return Err(Error::new(ErrorKind::InvalidData, what));
    }
    Ok(bytes)
}

/// The same for text in UTF-8.
pub fn read_regular_text(path: &Path, most: u64) -> Result<String> {
    let not_text = |_| Error::new(ErrorKind::InvalidData, "it is not text in UTF-8");
    String::from_utf8(read_regular(path, most)?).map_err(not_text)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn only_files_within_bounds_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, [b'x'; 2048]).unwrap();
        assert_eq!(read_regular_text(&file, 2048).unwrap().len(), 2048);
        assert!(read_regular(&file, 2047).unwrap_err().to_string().contains("larger than 1 KiB"));
        std::fs::write(&file, [0xff]).unwrap();
        assert!(read_regular_text(&file, 9).unwrap_err().to_string().contains("UTF-8"));
        std::fs::remove_file(&file).unwrap();
        for other in ["/dev/zero", "/dev/null", "/"] {
            let error = read_regular(Path::new(other), 9).unwrap_err();
            assert!(error.to_string().contains("and not a file"), "{other}: {error}");
        }
        assert_eq!(read_regular(&file, 9).unwrap_err().kind(), ErrorKind::NotFound);
    }
}
