//! The words of a text, as the index has them: in small letters, without accents.
//!
//! Texts and queries go through here before the index sees them, so what a query means does not depend on what the
//! index would take for syntax.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};

use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

use super::characters::{self, CharacterKind};

/// Longest word; of a longer one only the beginning counts.
const LONGEST: usize = 64;
/// How often a word in the title counts.
const IN_TITLE: u32 = 4;

/// Letters with accents, after the letter that is meant.
const ACCENTS: [&str; 14] = [
    "aàáâãäåāăąǎạảấầẩẫậắằẳẵặ",
    "cçćĉċč",
    "dďđ",
    "eèéêëēĕėęěẹẻẽếềểễệ",
    "gĝğġģ",
    "iìíîïĩīĭįıịỉ",
    "lĺļľł",
    "nñńņňǹ",
    "oòóôõöøōŏőọỏốồổỗộớờởỡợ",
    "rŕŗř",
    "sśŝşšș",
    "tţťŧț",
    "uùúûüũūŭůűųụủứừửữự",
    "yýÿŷỳỵỷỹzźżž",
];

/// What the walk through a text comes upon.
enum Piece<'a> {
    /// A word and where it begins, in bytes.
    Word(usize, &'a str),
    /// Letters of a script that puts no spaces between words.
    Run(&'a [(usize, char)]),
}

/// Goes through the words of a text.
fn walk(text: &str, each: &mut dyn FnMut(Piece<'_>)) {
    let (mut word, mut begin, mut run) = (String::new(), 0, Vec::new());
    for (at, c) in text.char_indices().chain([(text.len(), ' ')]) {
        let kind = characters::kind(c);
        if kind == CharacterKind::Mark {
            continue;
        }
        if kind != CharacterKind::Letter && !word.is_empty() {
            each(Piece::Word(begin, shortened(&word)));
            word.clear();
        }
        if kind != CharacterKind::Dense && !run.is_empty() {
            each(Piece::Run(&run));
            run.clear();
        }
        match kind {
            CharacterKind::Letter => {
                if word.is_empty() {
                    begin = at;
                }
                match c.is_ascii() {
                    true => word.push(c.to_ascii_lowercase()),
                    false => word.extend(
                        c.to_lowercase().filter(|c| characters::kind(*c) != CharacterKind::Mark).map(plain),
                    ),
                }
            }
            CharacterKind::Dense => run.push((at, c)),
            CharacterKind::Picture => each(Piece::Word(at, c.encode_utf8(&mut [0; 4]))),
            CharacterKind::Mark | CharacterKind::Between => {}
        }
    }
}

/// Hands each word that a text is to be found by to `each`, and where it begins. Where words have no spaces between them,
/// these are all letters and all pairs of neighbours.
pub(crate) fn each_word_at(text: &str, mut each: impl FnMut(usize, &str)) {
    let mut pair = String::new();
    walk(text, &mut |piece| match piece {
        Piece::Word(at, word) => each(at, word),
        Piece::Run(run) => {
            for (n, (at, c)) in run.iter().enumerate() {
                each(*at, c.encode_utf8(&mut [0; 4]));
                if let Some((_, next)) = run.get(n + 1) {
                    pair.clear();
                    pair.extend([*c, *next]);
                    each(*at, &pair);
                }
            }
        }
    });
}

/// Hands each word that a text is to be found by to `each`.
pub(crate) fn each_word(text: &str, mut each: impl FnMut(&str)) {
    each_word_at(&composed(text), |_, word| each(word));
}

/// The distinct words of a query, in its order. Where words have no spaces between them, these are the pairs of
/// neighbours, and a letter alone only if it has none.
pub(crate) fn distinct(text: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let mut seen = HashSet::new();
    let mut add = |word: &str| {
        if !seen.contains(word) {
            seen.insert(word.to_owned());
            all.push(word.to_owned());
        }
    };
    walk(&composed(text), &mut |piece| match piece {
        Piece::Word(_, word) => add(word),
        Piece::Run([(_, alone)]) => add(alone.encode_utf8(&mut [0; 4])),
        Piece::Run(run) => run.windows(2).for_each(|pair| add(&String::from_iter([pair[0].1, pair[1].1]))),
    });
    all
}

/// A name or title for comparing: its words with one space between. If it has none, it is what it is, in small letters.
pub(crate) fn name(text: &str) -> String {
    let mut all = String::new();
    walk(&composed(text), &mut |piece| {
        if !all.is_empty() {
            all.push(' ');
        }
        match piece {
            Piece::Word(_, word) => all.push_str(word),
            Piece::Run(run) => all.extend(run.iter().map(|(_, c)| c)),
        }
    });
    match all.is_empty() {
        true => text.trim().to_lowercase().replace(char::is_control, ""),
        false => all,
    }
}

/// Whether the text consists of words and spaces alone.
pub(crate) fn is_plain(text: &str) -> bool {
    text.chars().all(|c| c.is_whitespace() || characters::kind(c) != CharacterKind::Between)
}

/// The text with each letter and its marks as one character, where there is one for them.
fn composed(text: &str) -> Cow<'_, str> {
    match text.is_ascii() || is_nfc_quick(text.chars()) == IsNormalized::Yes {
        true => Cow::Borrowed(text),
        false => Cow::Owned(text.nfc().collect()),
    }
}

fn plain(c: char) -> char {
    if c < '\u{c0}' {
        return c;
    }
    let row = ACCENTS.iter().find(|row| row.contains(c));
    // The last row has two letters: y and z.
    match row.map(|row| (row, row.find(c), row.find('z'))) {
        Some((_, Some(at), Some(z))) if at > z => 'z',
        Some((row, ..)) => row.chars().next().unwrap_or(c),
        None => c,
    }
}

fn shortened(word: &str) -> &str {
    let end = word.char_indices().nth(LONGEST).map_or(word.len(), |(at, _)| at);
    &word[..end]
}

/// How often each word is there.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Tally(BTreeMap<String, u32>);

impl Tally {
    /// The words of a page: those of its title count more often.
    pub(crate) fn of(titles: [&str; 2], body: &str) -> Tally {
        let mut tally = Tally::default();
        for title in titles {
            each_word(title, |word| tally.add(word, IN_TITLE));
        }
        each_word(body, |word| tally.add(word, 1));
        tally
    }

    fn add(&mut self, word: &str, times: u32) {
        match self.0.get_mut(word) {
            Some(count) => *count += times,
            None => drop(self.0.insert(word.to_owned(), times)),
        }
    }

    /// All of them.
    pub(crate) fn words(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// How many words the page has, each as often as it counts.
    pub(crate) fn size(&self) -> i64 {
        self.0.values().map(|count| i64::from(*count)).sum()
    }

    /// As it is stored: `word word:3`.
    pub(crate) fn written(&self) -> String {
        let mut text = String::new();
        for (word, count) in &self.0 {
            if !text.is_empty() {
                text.push(' ');
            }
            text.push_str(word);
            if *count > 1 {
                text.push(':');
                text.push_str(&count.to_string());
            }
        }
        text
    }
}

/// The words of a tally that was stored.
pub(crate) fn stored(text: &str) -> impl Iterator<Item = &str> {
    text.split(' ').filter(|entry| !entry.is_empty()).map(|entry| match entry.split_once(':') {
        Some((word, _)) => word,
        None => entry,
    })
}

/// Looks for one word in tallies that were stored.
#[derive(Debug)]
pub(crate) struct Finder(memchr::memmem::Finder<'static>);

impl Finder {
    pub(crate) fn new(word: &str) -> Finder {
        Finder(memchr::memmem::Finder::new(word.as_bytes()).into_owned())
    }

    /// How often the word is there.
    pub(crate) fn count(&self, text: &str) -> u32 {
        let (bytes, length) = (text.as_bytes(), self.0.needle().len());
        for at in self.0.find_iter(bytes) {
            // It may be a part of another word.
            if at > 0 && bytes[at - 1] != b' ' {
                continue;
            }
            match bytes.get(at + length) {
                None | Some(b' ') => return 1,
                Some(b':') => {
                    let digits = bytes[at + length + 1..].iter().take_while(|byte| byte.is_ascii_digit());
                    let number = |count: u32, digit: &u8| {
                        count.saturating_mul(10).saturating_add(u32::from(digit - b'0'))
                    };
                    return digits.fold(0, number);
                }
                Some(_) => {}
            }
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_small_and_plain() {
        assert_eq!(
            distinct("Café CAFE cafe\u{301} naïve-Ünïcode's 日本 x2"),
            ["cafe", "naive", "unicode", "s", "日本", "x2"]
        );
        assert_eq!(name("  Acme,  Inc. "), "acme inc");
        assert_eq!(distinct("\" OR * : ^ ( -"), ["or"]);
        assert_eq!(name("Žižek Øystein İstanbul"), "zizek oystein istanbul");
        assert_eq!(name(" -> "), "->");
        assert_eq!(distinct(&"é".repeat(100))[0].chars().count(), LONGEST);
    }

    #[test]
    fn scripts_without_spaces_are_cut() {
        let indexed = |text: &str| {
            let mut all = Vec::new();
            each_word(text, |word| all.push(word.to_owned()));
            all
        };
        assert_eq!(indexed("Rust入門、x"), ["rust", "入", "入門", "門", "x"]);
        assert_eq!(distinct("日本の首都 首"), ["日本", "本の", "の首", "首都", "首"]);
        assert_eq!(distinct("한국어 ไทย"), ["한국", "국어", "ไท", "ทย"]);
        assert_eq!(distinct("か\u{3099}く"), ["がく"], "however it is written");
        assert_eq!(distinct("😀smile 👍🏽❤\u{fe0f}"), ["😀", "smile", "👍", "❤"]);
        assert_eq!((name("東京 Tower"), name("東京都")), ("東京 tower".to_owned(), "東京都".to_owned()));
        assert!(is_plain("Café 日本 😀") && !is_plain("C++"));
        let mut places = Vec::new();
        each_word_at("é 日本", |at, _| places.push(at));
        assert_eq!(places, [0, 3, 3, 6]);
    }

    #[test]
    fn a_tally_is_read_as_it_was_written() {
        let tally = Tally::of(["Ann", "person"], "tea, tea and Ann");
        let written = tally.written();
        let read: Vec<_> = stored(&written).collect();
        assert_eq!(read, ["and", "ann", "person", "tea"]);
        assert_eq!(tally.size(), 12);
        for (word, count) in
            [("and", 1), ("ann", 5), ("person", 4), ("tea", 2), ("an", 0), ("nn", 0), ("son", 0)]
        {
            assert_eq!(Finder::new(word).count(&written), count, "{word}");
        }
        assert_eq!(Finder::new("tea").count("steam tea:12"), 12);
        assert_eq!(stored("").count(), 0);
    }
}
