//! Which names say that what they name is a secret, and where such names and their values stand in a text.

/// What stands where a secret was.
pub(super) const HIDDEN: &str = "***";

/// Names whose values are secrets, without case and punctuation, wherever in a name they stand.
const PARTS: [&str; 15] = [
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
    "credential",
    "cookie",
    "bearer",
    "signature",
];
/// Names that are secrets as a whole: as a part of others they mean something else.
const WHOLE: [&str; 8] = ["auth", "xauth", "jwt", "pin", "otp", "totp", "pass", "sid"];

/// Names that are longer or shorter are none.
const LONGEST_NAME: usize = 64;
const SHORTEST_NAME: usize = 3;

/// Whether what has this name is a secret.
pub(super) fn is_secret(name: &str) -> bool {
    let plain: String =
        name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).take(256).collect();
    // Counts of tokens are no tokens.
    let is_count = ["tokens", "progresstoken"].iter().any(|count| plain.ends_with(count));
    !is_count && (WHOLE.contains(&plain.as_str()) || PARTS.iter().any(|secret| plain.contains(secret)))
}

/// The text without its secrets, if it has any: what a line says after a name (`password: x`, `Authorization: Bearer x`), what a name has
/// (`--token=x`, `?api_key=x&`), and who logs in with an address (`https://user:x@example.org`).
pub(super) fn hidden_in(text: &str) -> Option<String> {
    let lines: Vec<_> = text.split('\n').map(|line| (line, in_line(line))).collect();
    if lines.iter().all(|(_, hidden)| hidden.is_none()) {
        return None;
    }
    let lines: Vec<&str> = lines.iter().map(|(line, hidden)| hidden.as_deref().unwrap_or(line)).collect();
    Some(lines.join("\n"))
}

fn in_line(line: &str) -> Option<String> {
    let named = line.find([':', '=']).filter(|at| *at <= LONGEST_NAME && is_header(line, *at));
    let bearer = line.to_ascii_lowercase().find("bearer ").map(|at| at + "bearer".len());
    if let Some(end) = named.map(|at| at + 1).or(bearer)
        && !line[end..].trim().is_empty()
    {
        return Some(format!("{} {HIDDEN}", &line[..end]));
    }
    let (mut out, mut done) = (String::new(), 0);
    for (at, _) in line.match_indices([':', '=']) {
        if at < done {
            continue;
        }
        let value = match line[at..].strip_prefix("://") {
            Some(address) => login(address).map(|length| (at + 3, length)),
            None => value_of(line, at),
        };
        if let Some((start, length)) = value {
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
    line[..at].split_whitespace().count() <= words && is_secret(&line[..at])
}

/// How much of an address says who logs in.
fn login(address: &str) -> Option<usize> {
    let end = address.find(|c: char| c.is_whitespace() || "/?#\"'<>".contains(c)).unwrap_or(address.len());
    address[..end].rfind('@')
}

/// Where the value of the name before this colon or equals sign stands, if the name says that it is a secret.
fn value_of(line: &str, at: usize) -> Option<(usize, usize)> {
    let before = line[..at].trim_end_matches(['"', '\'', '\\']);
    let is_of_name = |c: char| c.is_alphanumeric() || "_-.".contains(c);
    let name = before.rfind(|c| !is_of_name(c)).map_or(before, |at| {
        let rest = &before[at..];
        &rest[rest.chars().next().map_or(0, char::len_utf8)..]
    });
    if !(SHORTEST_NAME..=LONGEST_NAME).contains(&name.len()) || !is_secret(name) {
        return None;
    }
    let after = &line[at + 1..];
    let value = after.trim_start_matches([' ', '"', '\'', '\\']);
    let is_quoted = after.len() > value.len() && !after[..after.len() - value.len()].trim().is_empty();
    let ends = |c: char| match is_quoted {
        true => "\"'\\".contains(c),
        false => c.is_whitespace() || "&;,\"'<>)]}#".contains(c),
    };
    let length = value.find(ends).unwrap_or(value.len());
    (length > 0).then(|| (line.len() - value.len(), length))
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
            ("https://api.example/v1?api_key=hunter22&page=2", "https://api.example/v1?api_key=***&page=2"),
            ("see https://ann:hunter22@example.org/a, then", "see https://***@example.org/a, then"),
            ("psql host=db password=hunter22 user=ann", "psql host=db password=*** user=ann"),
            ("run --token=\"hunter22 and more\" --yes", "run --token=\"***\" --yes"),
            ("it has {\"api_key\": \"hunter22\", \"a\": 1}", "it has {\"api_key\": \"***\", \"a\": 1}"),
            ("it has {\\\"jwt\\\": \\\"hunter22\\\"}", "it has {\\\"jwt\\\": \\\"***\\\"}"),
            ("the new token: hunter22, until noon", "the new token: ***, until noon"),
        ] {
            assert_eq!(hidden_in(text).as_deref(), Some(hidden), "{text}");
        }
        for plain in [
            "time: now",
            "https://example.org/a?page=2#x=y",
            "max_tokens=100",
            "author=Ann, pinned=true",
            "mail ann@example.org: yes",
            "é=ü:ß",
            "a secret garden",
        ] {
            assert_eq!(hidden_in(plain), None, "{plain}");
        }
    }
}
