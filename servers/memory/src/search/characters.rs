//! What a character is to the words of a text.

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum CharacterKind {
    /// A letter or digit of a word.
    Letter,
    /// A letter of a script that puts no spaces between words, or attaches so much to them that they are hardly told apart.
    Dense,
    /// An emoji, which is a word by itself.
    Picture,
    /// Belongs to the letter or picture before it.
    Mark,
    /// Stands between words.
    Between,
}

/// Thai and Lao, Myanmar, Khmer; Hangul, Kana, Bopomofo and Han. The letters that flags consist of are taken in pairs, too.
const DENSE: [(char, char); 20] = [
    ('\u{e01}', '\u{e3a}'),
    ('\u{e40}', '\u{e4e}'),
    ('\u{e81}', '\u{ecd}'),
    ('\u{1000}', '\u{1049}'),
    ('\u{1050}', '\u{109f}'),
    ('\u{1100}', '\u{11ff}'),
    ('\u{1780}', '\u{17d3}'),
    ('\u{2e80}', '\u{2fdf}'),
    ('\u{3005}', '\u{3007}'),
    ('\u{3041}', '\u{309f}'),
    ('\u{30a1}', '\u{30fa}'),
    ('\u{30fc}', '\u{318f}'),
    ('\u{31f0}', '\u{31ff}'),
    ('\u{3400}', '\u{4dbf}'),
    ('\u{4e00}', '\u{9fff}'),
    ('\u{ac00}', '\u{d7ff}'),
    ('\u{f900}', '\u{faff}'),
    ('\u{ff66}', '\u{ff9f}'),
    ('\u{1f1e6}', '\u{1f1ff}'),
    ('\u{20000}', '\u{3ffff}'),
];

/// Signs that are pictures.
const PICTURES: [(char, char); 4] = [
    ('\u{2300}', '\u{23ff}'),
    ('\u{2600}', '\u{27bf}'),
    ('\u{2b00}', '\u{2bff}'),
    ('\u{1f000}', '\u{1faff}'),
];

pub(super) fn kind(c: char) -> CharacterKind {
    let within = |ranges: &[(char, char)]| ranges.iter().any(|(first, last)| (*first..=*last).contains(&c));
    if c.is_ascii() {
        return if c.is_ascii_alphanumeric() { CharacterKind::Letter } else { CharacterKind::Between };
    }
    match c {
        // Accents; what joins pictures, or says how to draw them; and the colours of skin.
        '\u{300}'..='\u{36f}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}' | '\u{1f3fb}'..='\u{1f3ff}' => {
            CharacterKind::Mark
        }
        // Most letters of other languages come before.
        '\u{e01}'.. if within(&DENSE) => CharacterKind::Dense,
        _ if c.is_alphanumeric() => CharacterKind::Letter,
        '\u{2300}'.. if within(&PICTURES) => CharacterKind::Picture,
        _ => CharacterKind::Between,
    }
}

/// The word in letters and digits that every database takes for such: pictures are told by their numbers.
pub(super) fn spelt_out(word: &str, into: &mut String) {
    for c in word.chars() {
        match c.is_alphanumeric() {
            true => into.push(c),
            false => into.push_str(&format!("u{:x}", u32::from(c))),
        }
    }
}
