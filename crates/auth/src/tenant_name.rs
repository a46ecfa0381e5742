//! Which names a tenant can have.
//!
//! Tenants are compared byte by byte. So that two names which look the same are the same, a name is in the composed form of Unicode
//! (NFC) and has nothing in it that cannot be seen. Nothing is put right here: what is no name is refused.

use unicode_normalization::is_nfc;

/// How many characters a name has at most.
const LONGEST: usize = 200;

/// Whether a tenant can have this name: 1 to 200 characters in Unicode's composed form, no white space around them, no control
/// characters, none that are invisible or change the direction of writing.
pub fn is_tenant_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 4 * LONGEST
        && name.chars().count() <= LONGEST
        && name.trim().len() == name.len()
        && !name.chars().any(|char| char.is_control() || is_unseen(char))
        && is_nfc(name)
}

/// Format characters, fillers, selectors and separators: what is not seen, or changes how the rest is seen.
fn is_unseen(char: char) -> bool {
    matches!(char,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{ffff}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e000}'..='\u{f8ff}' | '\u{e0000}'..='\u{10ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_tricks() {
        let long = "ü".repeat(200);
        for good in
            ["a", "acme", "Acme Ltd.", "org_1/eu", "Ärzte", "東京", "пример", long.as_str(), "a'b\"c", "../x"]
        {
            assert!(is_tenant_name(good), "{good}");
        }
        let longer = "a".repeat(201);
        for bad in [
            "",
            " ",
            " acme",
            "acme ",
            "acme\u{a0}",
            "\u{3000}acme",
            "ac\0me",
            "ac\nme",
            "acme\u{7f}",
            "acme\u{85}x",
            "acme\u{200b}",
            "ac\u{200d}me",
            "\u{feff}acme",
            "\u{202e}emca",
            "ac\u{2066}me\u{2069}",
            "acme\u{ad}",
            "a\u{308}rzte",
            "acme\u{fe0f}",
            "acme\u{e0041}",
            "acme\u{3164}",
            "\u{212b}ngstrom",
            longer.as_str(),
        ] {
            assert!(!is_tenant_name(bad), "{bad:?}");
        }
    }
}
