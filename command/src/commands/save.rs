//! Saving what a terminal cannot show: images, sound, files.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde_json::Value;

use super::failure::Failure;
use super::output;
use crate::term::clean;

/// Saves what is not text in the result of a tool.
pub(crate) fn blocks(result: &Value, tool: &str, folder: &Path) -> Result<(), Failure> {
    let mut saved = 0;
    for block in list(result, "content") {
        let resource = block.get("resource");
        if let Some(data) = text(block, "data") {
            saved += one(data, &name(tool), text(block, "mimeType"), folder)?;
        } else if let Some((resource, blob)) = resource.and_then(|it| Some((it, text(it, "blob")?))) {
            saved += one(blob, &name_of(resource), text(resource, "mimeType"), folder)?;
        }
    }
    if saved == 0 {
        output::note("note: the result has nothing to save");
    }
    Ok(())
}

/// Saves all of a resource, texts too.
pub(crate) fn contents(result: &Value, folder: &Path) -> Result<(), Failure> {
    let mut saved = 0;
    for content in list(result, "contents") {
        let (name, kind) = (name_of(content), text(content, "mimeType"));
        if let Some(blob) = text(content, "blob") {
            saved += one(blob, &name, kind, folder)?;
        } else if let Some(text) = text(content, "text") {
            write(text.as_bytes(), &name, extension(kind).unwrap_or("txt"), folder)?;
            saved += 1;
        }
    }
    if saved == 0 {
        output::note("note: the resource has nothing to save");
    }
    Ok(())
}

/// Base64 as servers write it: with padding or without.
const FORGIVING: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

fn one(data: &str, name: &str, kind: Option<&str>, folder: &Path) -> Result<usize, Failure> {
    let data: String = data.split_ascii_whitespace().collect();
    match FORGIVING.decode(&data) {
        Ok(bytes) => write(&bytes, name, extension(kind).unwrap_or("bin"), folder).map(|()| 1),
        Err(error) => {
            output::note(&format!("note: {name} was not saved, because it is not valid base64: {error}"));
            Ok(0)
        }
    }
}

/// Writes a new file, never over another.
fn write(bytes: &[u8], name: &str, extension: &str, folder: &Path) -> Result<(), Failure> {
    let cannot = |path: &Path, error| Failure::usage(format!("cannot write {}: {error}", path.display()));
    std::fs::create_dir_all(folder).map_err(|error| cannot(folder, error))?;
    for number in 1.. {
        let path = path(folder, name, extension, number);
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(mut file) => {
                file.write_all(bytes).map_err(|error| cannot(&path, error))?;
                output::note(&format!("saved {} ({} bytes)", path.display(), bytes.len()));
                return Ok(());
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(cannot(&path, error)),
        }
    }
    Ok(())
}

fn path(folder: &Path, name: &str, extension: &str, number: u32) -> PathBuf {
    let (stem, extension) = match name.rsplit_once('.') {
        Some((stem, own)) if !stem.is_empty() && !own.is_empty() && own.len() <= 8 => (stem, own),
        _ => (name, extension),
    };
    match number {
        1 => folder.join(format!("{stem}.{extension}")),
        number => folder.join(format!("{stem}-{number}.{extension}")),
    }
}

/// The last part of an address, as far as it is fit for a file name.
fn name_of(resource: &Value) -> String {
    let uri = text(resource, "uri").unwrap_or_default();
    let uri = uri.split(['?', '#']).next().unwrap_or_default();
    name(uri.trim_end_matches('/').rsplit(['/', ':']).next().unwrap_or_default())
}

/// A file name that stays in its folder and hides nothing.
fn name(text: &str) -> String {
    let fits = |c: char| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    let name: String = clean::line(text).chars().map(fits).take(80).collect();
    let name = name.trim_start_matches(['.', '-']);
    if name.is_empty() { "file".to_owned() } else { name.to_owned() }
}

/// The usual ending of files of this type.
fn extension(kind: Option<&str>) -> Option<&'static str> {
    let kind = kind?.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    Some(match kind.as_str() {
        "image/png" => "png",
        "image/jpeg" => "jpg",
        "image/gif" => "gif",
        "image/webp" => "webp",
        "image/svg+xml" => "svg",
        "audio/wav" | "audio/x-wav" => "wav",
        "audio/mpeg" => "mp3",
        "audio/ogg" => "ogg",
        "video/mp4" => "mp4",
        "application/pdf" => "pdf",
        "application/zip" => "zip",
        "application/gzip" => "gz",
        "application/json" => "json",
        "text/html" => "html",
        "text/csv" => "csv",
        "text/markdown" => "md",
        "text/plain" => "txt",
        _ => return None,
    })
}

fn text<'a>(value: &'a Value, member: &str) -> Option<&'a str> {
    value.get(member).and_then(Value::as_str)
}

fn list<'a>(value: &'a Value, member: &str) -> &'a [Value] {
    value.get(member).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_stay_in_their_folder() {
        for (uri, expected) in [
            ("file:///a/b.png", "b.png"),
            ("file:///../../etc/passwd", "passwd"),
            ("demo://x/..", "file"),
            ("demo:one\\two", "one_two"),
            ("https://e.org/a b?c=d#e", "a_b"),
            ("x:///.bashrc", "bashrc"),
            ("", "file"),
        ] {
            assert_eq!(name_of(&json!({"uri": uri})), expected, "{uri}");
        }
        assert_eq!(path(Path::new("d"), "a.png", "bin", 1), Path::new("d/a.png"));
        assert_eq!(path(Path::new("d"), "a.png", "bin", 2), Path::new("d/a-2.png"));
        assert_eq!(path(Path::new("d"), "shot", "png", 3), Path::new("d/shot-3.png"));
    }
}
