//! Sizes.

/// A number of bytes as people say it.
pub(super) fn human(bytes: u64) -> String {
    const STEP: f64 = 1024.0;
    if bytes == 1 {
        return "1 byte".to_owned();
    }
    if bytes < 1024 {
        return format!("{bytes} bytes");
    }
    let mut size = bytes as f64 / STEP;
    let mut units = ["KB", "MB", "GB"].iter();
    let mut unit = "KB";
    while let Some(next) = units.next() {
        unit = next;
        // What would be shown as 1024.0 is one of the next.
        if size < STEP - 0.05 || units.len() == 0 {
            break;
        }
        size /= STEP;
    }
    format!("{size:.1} {unit}")
}

/// How many bytes a base64 text stands for.
pub(super) fn of_base64(text: &str) -> u64 {
    let digits = text.bytes().filter(|byte| byte.is_ascii_alphanumeric() || b"+/-_".contains(byte)).count();
    digits as u64 * 3 / 4
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn term_sizes() {
        for (bytes, text) in [
            (0, "0 bytes"),
            (1, "1 byte"),
            (1023, "1023 bytes"),
            (1024, "1.0 KB"),
            (3277, "3.2 KB"),
            (1024 * 1024 - 1, "1.0 MB"),
            (5 << 30, "5.0 GB"),
            (5 << 40, "5120.0 GB"),
        ] {
            assert_eq!(human(bytes), text);
        }
        for (text, bytes) in [("", 0), ("YQ==", 1), ("YWI=", 2), ("YWJj", 3), ("YWJj\nYQ", 4)] {
            assert_eq!(of_base64(text), bytes, "{text}");
        }
    }
}
