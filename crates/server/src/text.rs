//! Small helpers for JSON text that this crate writes itself.

use tidegate_protocol::Json;

/// What the JSON writers wrote, which is always UTF-8.
pub(crate) fn json(written: Vec<u8>) -> Json {
    Json::trusted(String::from_utf8(written).expect("the writers write UTF-8"))
}

/// Bytes as lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}
