//! JSON with comments and trailing commas, as editors write it.

/// Blanks out comments, trailing commas and a byte order mark. Everything keeps its place, so that the line and
/// column of a later error are true.
pub(super) fn plain(text: &str) -> String {
    let mut out: Vec<u8> = text.as_bytes().to_vec();
    if text.starts_with('\u{feff}') {
        out[..3].fill(b' ');
    }
    let mut at = 0;
    // A comma that has seen nothing but blanks since.
    let mut comma = None;
    while let Some(&byte) = out.get(at) {
        match (byte, out.get(at + 1)) {
            (b'"', _) => {
                comma = None;
                at = string_end(&out, at);
                continue;
            }
            (b'/', Some(b'/')) => {
                while at < out.len() && out[at] != b'\n' {
                    out[at] = b' ';
                    at += 1;
                }
                continue;
            }
            (b'/', Some(b'*')) => {
                let end = find(&out, at + 2, b"*/").map_or(out.len(), |end| end + 2);
                for byte in &mut out[at..end] {
                    if *byte != b'\n' {
                        *byte = b' ';
                    }
                }
                at = end;
                continue;
            }
            (b',', _) => comma = Some(at),
            (b'}' | b']', _) => {
                if let Some(comma) = comma.take() {
                    out[comma] = b' ';
                }
            }
            (byte, _) if !byte.is_ascii_whitespace() => comma = None,
            _ => {}
        }
        at += 1;
    }
    // Whole characters were blanked byte by byte, so this is UTF-8 still.
    String::from_utf8(out).unwrap_or_else(|_| text.to_owned())
}

/// The place after the string that starts at `at`.
fn string_end(text: &[u8], at: usize) -> usize {
    let mut at = at + 1;
    while let Some(byte) = text.get(at) {
        match byte {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    text.len()
}

fn find(text: &[u8], from: usize, wanted: &[u8]) -> Option<usize> {
    let rest = text.get(from..)?;
    rest.windows(wanted.len()).position(|window| window == wanted).map(|at| from + at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_file_comments_and_trailing_commas_go() {
        for (jsonc, json) in [
            ("{}", "{}"),
            ("{\"a\":1,}", "{\"a\":1}"),
            ("[1, 2 , ]", "[1,2]"),
            ("{\"a\": [1, /* x, */ ], // ]\n}", "{\"a\":[1]}"),
            ("// ä\n{\"a\": \"// no /* , } */\"}", "{\"a\":\"// no /* , } */\"}"),
            ("{\"a\": \"\\\",}\",}", "{\"a\":\"\\\",}\"}"),
            ("\u{feff}{\"ü\": \"ö\" /* ß */}", "{\"ü\":\"ö\"}"),
            ("{\"a\":1 /* open", ""),
            ("{\"a\": \"open", ""),
            ("{,}", "{}"),
            ("{\"a\":,}", ""),
            ("[1,,]", ""),
        ] {
            let plain = plain(jsonc);
            assert_eq!(plain.len(), jsonc.len(), "{jsonc}");
            assert_eq!(plain.matches('\n').count(), jsonc.matches('\n').count(), "{jsonc}");
            let read = serde_json::from_str::<serde_json::Value>(&plain);
            assert_eq!(read.map(|value| value.to_string()).unwrap_or_default(), json, "{jsonc}");
        }
    }
}
