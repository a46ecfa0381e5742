//! Files of environment variables (`.env`).

use std::collections::BTreeMap;

use crate::target::is_variable;

/// Reads the text of a file of variables, `NAME=value` lines: `#` comments, an `export` in front, values in quotes.
/// `Err` is the number of the first line that is none of that; the line itself may be a secret.
pub fn parse(text: &str) -> Result<BTreeMap<String, String>, usize> {
    let (variables, wrong) = parse_lines(text);
    match wrong.first() {
        Some(line) => Err(*line),
        None => Ok(variables),
    }
}

/// The same for a file that somebody else may have written: every line that can be read, and the numbers of those that
/// cannot.
pub fn parse_lines(text: &str) -> (BTreeMap<String, String>, Vec<usize>) {
    let mut variables = BTreeMap::new();
    let mut wrong = Vec::new();
    for (at, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        match pair(line) {
            Some((name, value)) => drop(variables.insert(name.to_owned(), value)),
            None => wrong.push(at + 1),
        }
    }
    (variables, wrong)
}

fn pair(line: &str) -> Option<(&str, String)> {
    let (name, value) = line.strip_prefix("export ").unwrap_or(line).split_once('=')?;
    let name = name.trim();
    is_variable(name).then_some(())?;
    Some((name, unquoted(value.trim())?))
}

/// The value without its quotes or the comment behind it; `None` if a quote is not closed.
fn unquoted(value: &str) -> Option<String> {
    if let Some(rest) = value.strip_prefix('\'') {
        return rest.split_once('\'').map(|(inner, _)| inner.to_owned());
    }
    let Some(rest) = value.strip_prefix('"') else {
        let bare = value.split(" #").next().unwrap_or(value);
        return Some(bare.trim_end().to_owned());
    };
    let mut out = String::new();
    let mut chars = rest.chars();
    loop {
        match chars.next()? {
            '"' => return Some(out),
            '\\' => match chars.next()? {
                'n' => out.push('\n'),
                't' => out.push('\t'),
                c @ ('"' | '\\' | '$') => out.push(c),
                c => out.extend(['\\', c]),
            },
            c => out.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_file_env_files() {
        let text = "\u{feff}# comment\n\nA=1\nexport B = two words # why\nC='# $x'\nD=\"a\\n\\\"b\\\" \\w\" # c\r\nE=\nF=a#b\n";
        let read = parse(text).unwrap();
        let read: Vec<_> = read.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(
            read,
            [("A", "1"), ("B", "two words"), ("C", "# $x"), ("D", "a\n\"b\" \\w"), ("E", ""), ("F", "a#b"),]
        );
        for (text, line) in [("A=1\nnonsense", 2), ("A='open", 1), ("\n\n1A=2", 3), ("A=\"open\\", 1)] {
            assert_eq!(parse(text), Err(line), "{text}");
        }
        let (good, wrong) = parse_lines("A=1\nnonsense\nB=2\n'");
        assert_eq!((good.len(), wrong), (2, vec![2, 4]));
    }
}
