//! The words of a text, as the index has them: in small letters, without accents.
//!
//! Texts and queries go through here before the index sees them, so what a query means does not depend on what the
//! index would take for syntax.

use std::collections::BTreeMap;

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

/// Hands each word of the text to `each`.
pub(crate) fn each_word(text: &str, mut each: impl FnMut(&str)) {
    let mut word = String::new();
    for c in text.chars().chain([' ']) {
        if c.is_ascii_alphanumeric() {
            word.push(c.to_ascii_lowercase());
        } else if c.is_alphanumeric() {
            word.extend(c.to_lowercase().filter(|c| !is_mark(*c)).map(plain));
        } else if !is_mark(c) && !word.is_empty() {
            each(shortened(&word));
            word.clear();
        }
    }
}

/// The distinct words of a query, in its order.
pub(crate) fn distinct(text: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    each_word(text, |word| {
        if !all.iter().any(|known| known == word) {
            all.push(word.to_owned());
        }
    });
    all
}

/// A name or title for comparing: its words with one space between.
pub(crate) fn name(text: &str) -> String {
    let mut all = String::new();
    each_word(text, |word| {
        if !all.is_empty() {
            all.push(' ');
        }
        all.push_str(word);
    });
    all
}

/// A mark that belongs to the letter before it.
fn is_mark(c: char) -> bool {
    ('\u{300}'..='\u{36f}').contains(&c)
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
        assert_eq!(distinct(&"é".repeat(100))[0].chars().count(), LONGEST);
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
