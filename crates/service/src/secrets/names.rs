//! Which names say that what they name is a secret, and where such names and their values stand in a text.

use std::borrow::Cow;

use super::HIDDEN;

/// Names whose values are secrets, without case and punctuation, wherever in a name they stand.
const PARTS: [&str; 19] = [
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "pwd",
    "secret",
    "token",
    "authorization",
    "apikey",
    "accesskey",
    "privatekey",
    "sshkey",
    "signingkey",
    "encryptionkey",
    "credential",
    "cookie",
    "bearer",
    "signature",
    "sessionid",
];
/// Names that are secrets as a whole: as a part of others they mean something else.
const WHOLE: [&str; 8] = ["auth", "xauth", "jwt", "pin", "otp", "totp", "pass", "sid"];
/// Names that only sound like it.
const HARMLESS: [&str; 3] = ["tokeniz", "secretar", "progresstoken"];

/// Names that are longer or shorter are none.
const LONGEST_NAME: usize = 64;
const SHORTEST_NAME: usize = 3;
/// How far a name is looked for before the end of a tag, and a login after the scheme of an address, in bytes: a text has many places to
/// look at, and each must be quickly done with.
const LONGEST_TAG: usize = 256;
const LONGEST_LOGIN: usize = 1024;

/// Whether what has this name is a secret.
pub(super) fn is_secret(name: &str) -> bool {
    let plain = plain(name);
    let is_harmless = HARMLESS.iter().any(|known| plain.contains(known));
    !is_harmless && (WHOLE.contains(&plain.as_str()) || PARTS.iter().any(|secret| plain.contains(secret)))
}

/// Whether a number of this name is one that says how many there are: of tokens, or of tests.
pub(super) fn is_count(name: &str) -> bool {
    let plain = plain(name);
    plain.ends_with("tokens") || plain.ends_with("tokencount") || plain == "pass"
}

fn plain(name: &str) -> String {
    let lower: String = name.chars().take(256).flat_map(char::to_lowercase).collect();
    // As in an address.
    let lower = lower.replace("%5f", "").replace("%2d", "");
    lower.chars().filter(|c| c.is_alphanumeric()).collect()
}

/// The text without its secrets: what a line says after a name (`password: x`, `Authorization: Bearer x`), what a name or an option has
/// (`--token=x`, `--token x`, `?api_key=x&`), who logs in with an address (`https://user:x@example.org`), and private keys.
pub fn hide_in_text(text: &str) -> Cow<'_, str> {
    let (mut lines, mut is_changed) = (Vec::new(), false);
    let mut hiding = Hiding::Nothing;
    for line in text.split('\n') {
        let hidden = match hiding {
            Hiding::Key => Some(HIDDEN.to_owned()),
            Hiding::Next if !line.trim().is_empty() => Some(behind_indent(line)),
            Hiding::Indented if line.starts_with([' ', '\t']) => Some(behind_indent(line)),
            _ => in_line(line),
        };
        hiding = hiding.after(line);
        is_changed |= hidden.is_some();
        lines.push(hidden.map_or(Cow::Borrowed(line), Cow::Owned));
    }
    if is_changed { lines.join("\n").into() } else { text.into() }
}

/// What is hidden of the lines to come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Hiding {
    Nothing,
    /// The next one that says something: the name stood alone.
    Next,
    /// All that are indented.
    Indented,
    /// All until a private key ends.
    Key,
}

impl Hiding {
    fn after(self, line: &str) -> Hiding {
        let trimmed = line.trim();
        if trimmed.contains("-----BEGIN") && trimmed.contains("PRIVATE KEY") && !trimmed.contains("-----END")
        {
            return Hiding::Key;
        }
        match self {
            Hiding::Key if !trimmed.contains("-----END") => return Hiding::Key,
            Hiding::Next if trimmed.is_empty() => return Hiding::Next,
            Hiding::Indented if line.starts_with([' ', '\t']) => return Hiding::Indented,
            _ => {}
        }
        match trimmed.split_once(':') {
            Some((name, value)) if name.len() <= LONGEST_NAME && is_header(trimmed, name.len()) => {
                match value.trim() {
                    "" => Hiding::Next,
                    value if value.starts_with(['|', '>']) => Hiding::Indented,
                    _ => Hiding::Nothing,
                }
            }
            _ => Hiding::Nothing,
        }
    }
}

fn behind_indent(line: &str) -> String {
    format!("{}{HIDDEN}", &line[..line.len() - line.trim_start().len()])
}

fn in_line(line: &str) -> Option<String> {
    let named = line.find([':', '=']).filter(|at| *at <= LONGEST_NAME && is_header(line, *at));
    if let Some(end) = named.map(|at| at + 1).or_else(|| after_bearer(line)) {
        let value = line[end..].trim();
        let is_counted = is_number(value) && is_count(&line[..end]);
        if !value.is_empty() && !value.starts_with(['|', '>']) && !is_counted {
            return Some(format!("{} {HIDDEN}", &line[..end]));
        }
    }
    let (mut out, mut done) = (String::new(), 0);
    let mut signs = line.match_indices([':', '=', '>', '-']).map(|(at, _)| at);
    while let Some(at) = signs.by_ref().find(|at| *at >= done) {
        if let Some((start, length)) = value_at(line, at) {
            out.push_str(&line[done..start]);
            out.push_str(HIDDEN);
            done = start + length;
        }
    }
    (done > 0).then(|| out + &line[done..])
}

/// Whether what stands before this colon or equals sign is the name of a secret and the rest of the line its value. A sentence is no name,
/// and neither is a command with an option.
fn is_header(line: &str, at: usize) -> bool {
    let words = if line[at..].starts_with(':') { 2 } else { 1 };
    let name = &line[..at];
    !name.starts_with(['<', '{']) && name.split_whitespace().count() <= words && is_secret(name)
}

/// Where a token begins that a line has after the word for it. The bearer of a letter has none.
fn after_bearer(line: &str) -> Option<usize> {
    const WORD: &str = "bearer";
    let end = line.to_ascii_lowercase().find(WORD)? + WORD.len();
    let after = &line[end..];
    let token = after.split_whitespace().next().filter(|_| after.starts_with(char::is_whitespace))?;
    let is_random = token.chars().any(|c| c.is_ascii_digit() || "-_.=".contains(c)) || token.len() >= 20;
    (token.len() >= 6 && is_random).then_some(end)
}

/// At most so many bytes from the beginning of a text.
pub(crate) fn first_of(text: &str, most: usize) -> &str {
    &text[..(0..=most.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)]
}

/// The same from its end.
fn last_of(text: &str, most: usize) -> &str {
    let begin = text.len().saturating_sub(most);
    &text[(begin..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len())..]
}

/// Whether the first word of a text is a number.
fn is_number(text: &str) -> bool {
    let word = text.split([' ', ',', ';']).next().unwrap_or_default();
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())
}

/// Where the secret stands that this sign says is there, and how long it is.
fn value_at(line: &str, at: usize) -> Option<(usize, usize)> {
    let rest = &line[at..];
    match rest.as_bytes()[0] {
        b':' => match rest.strip_prefix("://").or_else(|| rest.strip_prefix(":\\/\\/")) {
            Some(address) => login(address).map(|length| (line.len() - address.len(), length)),
            None => value_of(line, at),
        },
        b'=' => value_of(line, at),
        // <password>x</password>
        b'>' => {
            let name = last_of(&line[..at], LONGEST_TAG).rsplit_once('<')?.1.split_whitespace().next()?;
            let length = rest[1..].find('<').unwrap_or(rest.len() - 1);
            let is_named = (SHORTEST_NAME..=LONGEST_NAME).contains(&name.len()) && is_secret(name);
            (is_named && length > 0).then_some((at + 1, length))
        }
        _ => option(line, at),
    }
}

/// The value of an option that is a word of its own: `--password x`, `-u user:x`.
fn option(line: &str, at: usize) -> Option<(usize, usize)> {
    let begins = line[..at].chars().next_back().is_none_or(|c| c.is_whitespace() || "\"'`(".contains(c));
    let word = first_of(&line[at..], LONGEST_NAME + 1).split(char::is_whitespace).next().filter(|_| begins);
    // Whoever wrote no blank wrote no option: its end is not looked for.
    let word = word.filter(|word| word.len() <= LONGEST_NAME)?;
    let after = &line[at + word.len()..];
    let value = after.trim_start();
    let length = value.find(char::is_whitespace).unwrap_or(value.len());
    let is_login = matches!(word, "-u" | "--user") && value[..length].contains(':');
    let is_named = !word.contains(['=', ':']) && is_secret(word);
    let is_value = length > 0 && !value.starts_with('-');
    (is_value && (is_login || is_named)).then_some((line.len() - value.len(), length))
}

/// How much of an address says who logs in.
fn login(address: &str) -> Option<usize> {
    let address = first_of(address, LONGEST_LOGIN);
    let end = address.find(|c: char| c.is_whitespace() || "\"'<>".contains(c)).unwrap_or(address.len());
    let at = address[..end].rfind('@')?;
    let before = &address[..at];
    let first = before.split(['/', '?', '#']).next().unwrap_or_default();
    // A password may have a slash in it, and a path may have an at sign.
    let has_password = first.split_once(':').is_some_and(|(_, port)| !is_number(port));
    (first.len() == before.len() || has_password).then_some(at)
}

/// Where the value of the name before this colon or equals sign stands, if the name says that it is a secret.
fn value_of(line: &str, at: usize) -> Option<(usize, usize)> {
    let before = line[..at].trim_end().trim_end_matches(['"', '\'', '\\']);
    let is_of_name = |c: char| c.is_alphanumeric() || "_-.%".contains(c);
    let name = before.rfind(|c| !is_of_name(c)).map_or(before, |at| {
        let rest = &before[at..];
        &rest[rest.chars().next().map_or(0, char::len_utf8)..]
    });
    if !(SHORTEST_NAME..=LONGEST_NAME).contains(&name.len()) || !is_secret(name) {
        return None;
    }
    let after = line[at + 1..].trim_start();
    let value = after.trim_start_matches(['"', '\'', '\\']);
    let quote = after[..after.len() - value.len()].chars().next_back();
    if is_number(value) && is_count(name) {
        return None;
    }
    let plain = plain(name);
    // The scheme and the rest belong together.
    let is_whole = ["authorization", "cookie"].iter().any(|known| plain.contains(known));
    let ends = |c: char| match quote {
        Some(quote) => c == quote,
        None if is_whole => "\"'".contains(c),
        None => c.is_whitespace() || "&;\"'<>".contains(c),
    };
    let length = value.find(ends).unwrap_or(value.len());
    // What was escaped ends with the mark of it.
    let length = value[..length].trim_end_matches('\\').len();
    // Then it stands below.
    let is_below = quote.is_none() && value.starts_with(['|', '>']);
    (length > 0 && !is_below).then(|| (line.len() - value.len(), length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_hidden_and_the_rest_stays() {
        for (text, hidden) in [
            ("password: hunter22", "password: ***"),
            ("GET /\nAuthorization: Basic aHVudGVyMjI=\nok", "GET /\nAuthorization: ***\nok"),
            ("curl -H 'X: Bearer hunter22'", "curl -H 'X: Bearer ***"),
            ("curl -H 'Authorization: Basic hunter22' https://x", "curl -H 'Authorization: ***' https://x"),
            ("https://api.example/v1?api_key=hunter22&page=2", "https://api.example/v1?api_key=***&page=2"),
            ("https://api.example/v1?api%5Fkey=hunter22", "https://api.example/v1?api%5Fkey=***"),
            ("see https://ann:hunter22@example.org/a, then", "see https://***@example.org/a, then"),
            ("https:\\/\\/ann:hunter22@h", "https:\\/\\/***@h"),
            ("https://ann:a/hunter22@h/x", "https://***@h/x"),
            ("psql host=db password=hunter22 user=ann", "psql host=db password=*** user=ann"),
            ("const password = \"hunter22\";", "const password = \"***\";"),
            ("{\"password\" : \"hunter22\"}", "{\"password\" : \"***\"}"),
            ("set password=\"it's hunter22\" now", "set password=\"***\" now"),
            ("run --token=\"hunter22 and more\" --yes", "run --token=\"***\" --yes"),
            ("mysql --password hunter22 -h db", "mysql --password *** -h db"),
            ("curl -u ann:hunter22 https://x", "curl -u *** https://x"),
            ("it has {\"api_key\": \"hunter22\", \"a\": 1}", "it has {\"api_key\": \"***\", \"a\": 1}"),
            ("it has {\\\"jwt\\\": \\\"hunter22\\\"}", "it has {\\\"jwt\\\": \\\"***\\\"}"),
            ("the new token: hunter22, until noon", "the new token: *** until noon"),
            ("password:\n\n  hunter22\nend", "password:\n\n  ***\nend"),
            ("private_key: |\n  hunter\n  22\nend: 1", "private_key: |\n  ***\n  ***\nend: 1"),
            (
                "-----BEGIN RSA PRIVATE KEY-----\nhunter22\n-----END RSA PRIVATE KEY-----\nx",
                "-----BEGIN RSA PRIVATE KEY-----\n***\n***\nx",
            ),
            ("<password>hunter22</password>", "<password>***</password>"),
        ] {
            assert_eq!(hide_in_text(text), hidden, "{text}");
        }
        for plain in [
            "time: now",
            "https://example.org/a?page=2#x=y",
            "https://example.org:8080/@ann/b",
            "max_tokens=100",
            "token count: 12",
            "pass: 12, fail: 3",
            "the bearer of this letter",
            "secretary: Ann",
            "author=Ann, pinned=true",
            "mail ann@example.org: yes",
            "é=ü:ß",
            "a secret garden - with --flags",
            "a -> b",
        ] {
            assert_eq!(hide_in_text(plain), plain);
        }
    }

    /// Each place is quickly done with, however many there are: else this takes minutes.
    #[test]
    fn large_texts() {
        for piece in [
            "'-",
            "\"-a",
            ">",
            "<a>",
            "://",
            "://a@",
            "tokens=1,",
            "token=&",
            "-a ",
            "= ",
            "\"",
            ":\n",
            "bearer ",
            "\\:",
        ] {
            let text = piece.repeat((256 << 10) / piece.len());
            assert!(hide_in_text(&text).len() <= 2 * text.len(), "{piece}");
        }
    }

    /// Whatever stands where, nothing breaks.
    #[test]
    fn odd_texts() {
        let pieces = [
            "é", "=", ":", "://", "\\", "\"", "'", "@", "token", "\n", " ", "-", "--pin", "<", ">",
            "\u{2028}", "|", "/",
        ];
        let mut dice = 1_u64;
        for _ in 0..20_000 {
            let mut text = String::new();
            for _ in 0..12 {
                dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                text.push_str(pieces[(dice >> 33) as usize % pieces.len()]);
            }
            hide_in_text(&text);
        }
    }
}
