//! Expressions of PostgreSQL that tables and queries must write in the same way.

/// An expression for a text without its accents.
pub(crate) fn unaccented(text: &str) -> String {
    format!("regexp_replace(normalize({text}, NFD), '[\\u0300-\\u036f]', '', 'g')")
}

/// An expression for a text without its accents and with spaces for signs. It depends on no language and no setting.
#[cfg_attr(not(feature = "postgres"), expect(dead_code, reason = "there is no such index then"))]
pub(crate) fn plain(text: &str) -> String {
    const SIGNS: &str = "!\"#$%&''()*+,-./:;<=>?@[\\]^_`{|}~";
    // One quote is written as two.
    let spaces = " ".repeat(SIGNS.len() - 1);
    let signs =
        "[\\u00a0-\\u00a9\\u00ab-\\u00b1\\u00b4\\u00b6-\\u00b8\\u00bb\\u00bf\\u2000-\\u206f\\u3000-\\u303f]";
    format!("regexp_replace(translate({}, '{SIGNS}', '{spaces}'), '{signs}', ' ', 'g')", unaccented(text))
}
