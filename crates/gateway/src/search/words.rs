//! Words: how names, descriptions and queries are taken apart, so that `createIssues`, `create_issue` and "creating an
//! issue" have the same words.

/// Most different words of a query that are looked at.
const MOST: usize = 48;
/// Words that say nothing about what somebody looks for.
const EMPTY_WORDS: [&str; 36] = [
    "a", "an", "and", "are", "as", "at", "be", "by", "can", "do", "for", "from", "how", "i", "if", "in",
    "into", "is", "it", "me", "my", "of", "on", "or", "please", "some", "that", "the", "this", "to", "tool",
    "want", "which", "with", "you", "your",
];

/// The words of a text: lower-cased and reduced to their stems. Ends of words are where letters and digits end, and
/// where capital letters say so; a word that capitals take apart counts as a whole too, because people write `github` for
/// `GitHub`.
pub(crate) fn each_word(text: &str, mut word: impl FnMut(&str)) {
    let mut whole = String::new();
    for run in text.split(|c: char| !c.is_alphanumeric()).filter(|run| !run.is_empty()) {
        // Nearly all words are like this, and thousands of descriptions have many of them.
        if run.bytes().all(|b| b.is_ascii_lowercase()) {
            whole.clear();
            whole.push_str(run);
            word(stem(&mut whole));
            continue;
        }
        let parts = parts(run);
        for part in &parts {
            lower(part, &mut whole);
            word(stem(&mut whole));
        }
        if parts.len() > 1 && !run.chars().any(stands_alone) {
            lower(run, &mut whole);
            word(stem(&mut whole));
        }
    }
}

/// The different words of a query, without those that say nothing, unless there are no others.
pub(crate) fn of_query(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    each_word(text, |word| {
        if words.len() < MOST && !words.iter().any(|known| known == word) {
            words.push(word.to_owned());
        }
    });
    if words.iter().any(|word| !is_empty_word(word)) {
        words.retain(|word| !is_empty_word(word));
    }
    words
}

fn is_empty_word(word: &str) -> bool {
    EMPTY_WORDS.contains(&word)
}

/// Letters and digits only, in lower case: two spellings of one name are equal.
pub(crate) fn squashed(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

fn lower(text: &str, into: &mut String) {
    into.clear();
    into.extend(text.chars().flat_map(char::to_lowercase));
}

/// The parts of a run of letters and digits: `getURLs` is `get` and `URLs`, `HTTPServer` is `HTTP` and `Server`.
fn parts(run: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    let mut before: Option<char> = None;
    let mut chars = run.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        if let Some(before) = before {
            let next = chars.peek().map(|(_, next)| *next);
            let rises = c.is_uppercase() && !before.is_uppercase();
            // The plural of an abbreviation (`URLs`) is no new word.
            let falls = c.is_uppercase()
                && next.is_some_and(|next| next.is_lowercase())
                && !(next == Some('s') && run[at + c.len_utf8()..].len() == 1);
            if rises || falls || stands_alone(c) || stands_alone(before) {
                parts.push(&run[start..at]);
                start = at;
            }
        }
        before = Some(c);
    }
    parts.push(&run[start..]);
    parts
}

/// Scripts that are written without spaces between words: each character is taken for one.
fn stands_alone(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{20000}'..='\u{2ffff}')
}

/// The stem of a lower-case English word, roughly: without the endings of plurals, `-ing`, `-ed` and a final `e`. Words
/// of other scripts stay as they are.
fn stem(word: &mut String) -> &str {
    if word.len() <= 3 || !word.bytes().all(|b| b.is_ascii_lowercase()) {
        return word;
    }
    let ends = |ends: &[&str]| ends.iter().any(|end| word.ends_with(end));
    if ends(&["sses", "xes", "ches", "shes", "zzes"]) || ends(&["ies"]) && word.len() > 4 {
        word.truncate(word.len() - 2);
    } else if word.ends_with('s') && !["ss", "us", "is"].iter().any(|end| word.ends_with(end)) {
        word.pop();
    }
    for end in ["ing", "ed"] {
        let Some(rest) = word.strip_suffix(end) else { continue };
        if rest.len() < 3 || rest.ends_with('e') || !rest.bytes().any(|b| b"aeiouy".contains(&b)) {
            continue;
        }
        word.truncate(word.len() - end.len());
        let bytes = word.as_bytes();
        let doubled = bytes.len() > 3 && bytes[bytes.len() - 1] == bytes[bytes.len() - 2];
        if doubled && !b"aeiouls".contains(&bytes[bytes.len() - 1]) {
            word.pop();
        }
        break;
    }
    if word.len() > 3 && word.ends_with('e') {
        word.pop();
    }
    if word.len() > 3 && word.ends_with('y') && !word[..word.len() - 1].ends_with(['a', 'e', 'o', 'u']) {
        word.pop();
        word.push('i');
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        let mut words = Vec::new();
        each_word(text, |word| words.push(word.to_owned()));
        words
    }

    #[test]
    fn names_of_all_styles_come_apart() {
        for (text, want) in [
            ("create_issue", &["creat", "issu"][..]),
            ("create-issue", &["creat", "issu"]),
            ("repo.create/issue", &["repo", "creat", "issu"]),
            ("createIssue", &["creat", "issu", "createissu"]),
            ("HTTPServer", &["http", "server", "httpserver"]),
            ("getURLs", &["get", "url", "geturl"]),
            ("s3 base64 v2", &["s3", "base64", "v2"]),
            ("Größe ändern", &["größe", "ändern"]),
            ("Создать задачу", &["создать", "задачу"]),
            ("検索する", &["検", "索", "す", "る"]),
            ("", &[]),
            ("--- ...", &[]),
        ] {
            assert_eq!(words(text), want, "{text}");
        }
    }

    #[test]
    fn forms_of_a_word_have_one_stem() {
        for forms in [
            &["create", "creates", "created", "creating"][..],
            &["query", "queries", "querying", "queried"],
            &["search", "searches", "searching", "searched"],
            &["box", "boxes"],
            &["list", "lists", "listing", "listed"],
            &["stop", "stops", "stopped", "stopping"],
            &["file", "files", "filed", "filing"],
            &["message", "messages"],
            &["address", "addresses"],
        ] {
            let stems: Vec<String> = forms.iter().flat_map(|form| words(form)).collect();
            assert!(stems.iter().all(|stem| *stem == stems[0]), "{forms:?}: {stems:?}");
        }
        for word in ["string", "status", "analysis", "bus", "ping", "speed"] {
            assert_eq!(words(word), [word], "stays as it is");
        }
    }

    #[test]
    fn queries_are_without_words_that_say_nothing() {
        assert_eq!(of_query("How do I create an issue? Create it!"), ["creat", "issu"]);
        assert_eq!(of_query("do it"), ["do", "it"], "unless there is nothing else");
        assert_eq!(squashed("Create-Issue v2"), "createissuev2");
    }
}
