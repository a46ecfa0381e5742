//! From bytes to text: what is no text is refused, and nothing is ever unpacked.

use encoding_rs::{Encoding, UTF_8};

use super::kind::READABLE;
use crate::error::{Fault, Result};

/// How archives and packed files begin.
const PACKED: &[(&[u8], &str)] = &[
    (b"PK\x03\x04", "a ZIP archive or an office document"),
    (b"PK\x05\x06", "a ZIP archive"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"BZh", "a bzip2 archive"),
    (b"\xfd7zXZ\0", "an xz archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"Rar!\x1a\x07", "a RAR archive"),
    (b"\x28\xb5\x2f\xfd", "a zstd archive"),
    (b"\x04\x22\x4d\x18", "an lz4 archive"),
    (b"!<arch>\n", "an ar archive"),
    (b"MSCF\0\0\0\0", "a cabinet archive"),
];
/// How other files begin that people are likely to try.
const OTHER: &[(&[u8], &str)] = &[
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old office document"),
    (b"\x89PNG", "an image"),
    (b"\xff\xd8\xff", "an image"),
    (b"GIF8", "an image"),
    (b"\x7fELF", "a program"),
    (b"SQLite format 3\0", "a database"),
];
/// Where the mark of a tar archive stands.
const TAR: usize = 257;

/// How far into a page its own word for how it is written is looked for, as browsers do.
const HEAD: usize = 1024;

/// The text of these bytes: UTF-8, UTF-16 with its mark, or what `charset` says; of a page in HTML also what it says of
/// itself.
pub(crate) fn decode(field: &str, bytes: &[u8], charset: Option<&str>, html: bool) -> Result<String> {
    refuse_packed(field, bytes)?;
    let own = if html && charset.is_none() { own_charset(bytes) } else { None };
    let charset = charset.or(own.as_deref());
    let text = match bytes {
        [0xff, 0xfe, rest @ ..] => utf16(field, rest, u16::from_le_bytes)?,
        [0xfe, 0xff, rest @ ..] => utf16(field, rest, u16::from_be_bytes)?,
        [0xef, 0xbb, 0xbf, rest @ ..] => utf8(field, rest, None)?,
        bytes => utf8(field, bytes, charset)?,
    };
    tidy(field, &text)
}

/// A text as it is kept: lines end with a line feed.
pub(crate) fn tidy(field: &str, text: &str) -> Result<String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let odd =
        |c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t' | '\u{b}' | '\u{c}' | '\u{1b}' | '\u{8}');
    let (odd, all) = text.chars().fold((0, 0), |(found, all), c| (found + usize::from(odd(c)), all + 1));
    if text.contains('\0') || odd * 50 > all {
        return Err(binary(field, "binary data"));
    }
    Ok(match text.contains('\r') {
        true => text.replace("\r\n", "\n").replace('\r', "\n"),
        false => text.to_owned(),
    })
}

fn refuse_packed(field: &str, bytes: &[u8]) -> Result<()> {
    let what = PACKED.iter().find(|(begins, _)| bytes.starts_with(begins)).map(|(_, what)| *what);
    let tar = bytes.get(TAR..).is_some_and(|rest| rest.starts_with(b"ustar")).then_some("a tar archive");
    if let Some(what) = what.or(tar) {
        return Err(Fault::input(
            field,
            format!("is {what}, and archives are not unpacked; unpack it and give the files: {READABLE}"),
        ));
    }
    // A document of this kind may have a few bytes before its mark.
    if bytes[..bytes.len().min(1024)].windows(5).any(|begin| begin == b"%PDF-") {
        return Err(pdf(field));
    }
    match OTHER.iter().find(|(begins, _)| bytes.starts_with(begins)) {
        Some((_, what)) => Err(binary(field, what)),
        None => Ok(()),
    }
}

/// What is said of a PDF.
pub(crate) fn pdf(field: &str) -> Fault {
    let what = format!(
        "is a PDF, which cannot be read; turn it into text first (pdftotext): {READABLE} can be read"
    );
    Fault::input(field, what)
}

/// What the head of a page says it is written in: `<meta charset="…">`, or the same in the older way.
fn own_charset(bytes: &[u8]) -> Option<String> {
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(HEAD)]).to_ascii_lowercase();
    head.split("<meta").skip(1).find_map(|meta| {
        let (_, after) = meta.split('>').next()?.split_once("charset")?;
        let value = after.trim_start().strip_prefix('=')?.trim_start_matches(['"', '\'', ' ']);
        let name = value.split(|c: char| !(c.is_ascii_alphanumeric() || "-_:.+".contains(c))).next()?;
        (!name.is_empty()).then(|| name.to_owned())
    })
}

fn binary(field: &str, what: &str) -> Fault {
    Fault::input(field, format!("is {what} and not text; {READABLE} can be read"))
}

fn utf16(field: &str, bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Result<String> {
    let (pairs, rest) = bytes.as_chunks::<2>();
    let text = char::decode_utf16(pairs.iter().map(|pair| unit(*pair))).collect::<Result<String, _>>();
    text.ok().filter(|_| rest.is_empty()).ok_or_else(|| binary(field, "damaged UTF-16"))
}

fn utf8(field: &str, bytes: &[u8], charset: Option<&str>) -> Result<String> {
    let charset = charset.map(|name| name.trim_matches('"').to_ascii_lowercase()).unwrap_or_default();
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Ok(text.to_owned());
    }
    if bytes.contains(&0) {
        return Err(binary(field, "binary data"));
    }
    if charset.is_empty() {
        return Err(Fault::input(field, "is not UTF-8; save it as UTF-8 and try again"));
    }
    match Encoding::for_label(charset.as_bytes()) {
        Some(encoding) if encoding == UTF_8 => {
            Err(Fault::input(field, "is not UTF-8, although it says so; save it as UTF-8 and try again"))
        }
        Some(encoding) => match encoding.decode_without_bom_handling_and_without_replacement(bytes) {
            Some(text) => Ok(text.into_owned()),
            None => {
                let name = encoding.name();
                Err(Fault::input(
                    field,
                    format!("is not {name}, although it says so; save it as UTF-8 and try again"),
                ))
            }
        },
        None => Err(Fault::input(
            field,
            format!(
                "is written in {:?}, which cannot be read; save it as UTF-8",
                super::abbreviated(&charset)
            ),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(bytes: &[u8]) -> String {
        decode("text", bytes, None, false).unwrap_err().message
    }

    #[test]
    fn texts_come_out_whatever_they_are_written_in() {
        assert_eq!(decode("text", "\u{feff}ä\r\nb\rc".as_bytes(), None, false).unwrap(), "ä\nb\nc");
        assert_eq!(decode("text", b"\xff\xfea\0\xe4\0", None, false).unwrap(), "aä");
        assert_eq!(decode("text", b"\xfe\xff\0a\0\xe4", None, false).unwrap(), "aä");
        assert_eq!(decode("text", b"caf\xe9 \x80", Some("ISO-8859-1"), false).unwrap(), "café €");
        assert_eq!(
            decode("text", "café".as_bytes(), Some("ISO-8859-1"), false).unwrap(),
            "café",
            "what it really is"
        );
        assert_eq!(decode("text", b"", None, false).unwrap(), "");
    }

    #[test]
    fn what_is_no_text_is_refused_with_a_sentence() {
        for (begins, what) in PACKED {
            let why = refused(&[*begins, b"........"].concat());
            assert!(why.contains(what) && why.contains("not unpacked"), "{why}");
        }
        let mut tar = vec![b'a'; TAR];
        tar.extend_from_slice(b"ustar\0");
        assert!(refused(&tar).contains("tar archive"));
        assert!(refused(b"\n%PDF-1.7\n...").contains("pdftotext"));
        assert!(refused(b"\x89PNG\r\n").contains("an image"));
        assert!(refused(b"abc\0def").contains("binary data"));
        assert!(refused(b"\x01\x02\x03\x04abc").contains("binary data"));
        assert!(refused(b"caf\xe9").contains("is not UTF-8"));
        assert!(refused(b"\xff\xfea").contains("damaged UTF-16"));
        let why = decode("url", b"\x8c\xe9", Some("klingon"), false).unwrap_err().message;
        assert!(why.contains("klingon"), "{why}");
        let why = decode("url", b"\x8c", Some("shift_jis"), false).unwrap_err().message;
        assert!(why.contains("is not Shift_JIS"), "{why}");
    }

    #[test]
    fn a_page_says_what_it_is_written_in() {
        let page = |meta: &str| [b"<html><head>", meta.as_bytes(), b"</head>caf\xe9 \x80"].concat();
        for meta in [
            "<meta charset=\"windows-1252\">",
            "<META name=x><meta charset = 'ISO-8859-1' />",
            "<meta charset=latin1>",
            "<meta http-equiv=\"Content-Type\" content=\"text/html; charset=windows-1252\">",
        ] {
            let text = decode("url", &page(meta), None, true).unwrap();
            assert!(text.ends_with("café €"), "{meta}: {text}");
            assert!(decode("url", &page(meta), None, false).is_err(), "only a page says so");
            let why = decode("url", &page(meta), Some("utf-8"), true).unwrap_err().message;
            assert!(why.contains("although it says so"), "the server knows better: {why}");
        }
        assert!(decode("url", &page("<p charset=latin1>"), None, true).is_err());
        let text = decode("url", b"<meta charset=shift_jis>\x8e\x9f", None, true).unwrap();
        assert!(text.ends_with('\u{6b21}'), "{text}");
    }
}
