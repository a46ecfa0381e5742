//! Sizes.

use crate::written::Size;

/// A number of bytes, at least one. The error is a sentence.
pub(super) fn size(size: &Size) -> Result<usize, String> {
    let bytes = match size {
        Size::Bytes(bytes) => Some(*bytes),
        Size::Text(text) => of_text(text.trim()),
    };
    match bytes.map(usize::try_from) {
        Some(Ok(0)) => Err("must be more than 0".to_owned()),
        Some(Ok(bytes)) => Ok(bytes),
        _ => {
            Err("must be a number of bytes, or a string such as \"512KiB\", \"16MiB\" or \"1GB\"".to_owned())
        }
    }
}

fn of_text(text: &str) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let unit = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "kb" => 1000,
        "kib" | "k" => 1 << 10,
        "mb" => 1_000_000,
        "mib" | "m" => 1 << 20,
        "gb" => 1_000_000_000,
        "gib" | "g" => 1 << 30,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        for (text, bytes) in [
            ("16MiB", Some(16 << 20)),
            ("16 mib", Some(16 << 20)),
            ("1000", Some(1000)),
            ("64kB", Some(64_000)),
            ("1GB", Some(1_000_000_000)),
            ("2g", Some(2 << 30)),
            ("0", None),
            ("", None),
            ("1.5MiB", None),
            ("-1", None),
            ("99999999999GiB", None),
            ("5 apples", None),
        ] {
            assert_eq!(size(&Size::Text(text.to_owned())).ok(), bytes, "{text}");
        }
        assert_eq!(size(&Size::Bytes(0)).ok(), None);
        assert_eq!(size(&Size::Bytes(5)).ok(), Some(5));
    }
}
