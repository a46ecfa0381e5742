//! The text of a tool's result, read off in one pass.

use std::borrow::Cow;

use crate::json::{Json, Limits, Scan, Scanner, empty_members, scan_members};

/// The texts of all blocks of a tool's result, a line end between two. Nothing else of the result is built or copied.
///
/// `None` if the result is not an object, or if it or one of the blocks has a name twice.
///
/// ```
/// use tidegate_protocol::{Json, content::joined_text};
///
/// let result = Json::trusted(r#"{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}"#);
/// assert_eq!(joined_text(&result).as_deref(), Some("a\nb"));
/// ```
pub fn joined_text(result: &Json) -> Option<String> {
    let mut scanner = Scanner::new(result.as_str(), &Limits { max_depth: 127, max_bytes: usize::MAX });
    let mut joined = Joined::default();
    scan_members(&mut scanner, 0, &mut empty_members(), |name, scanner| {
        match name == "content" && scanner.peek() == Some(b'[') {
            true => joined.blocks(scanner),
            false => scanner.value(1),
        }
    })
    .ok()?;
    (!joined.unreadable).then(|| joined.text.unwrap_or_default())
}

#[derive(Default)]
struct Joined {
    text: Option<String>,
    unreadable: bool,
}

impl Joined {
    fn blocks(&mut self, scanner: &mut Scanner<'_>) -> Scan<()> {
        scanner.expect(b'[')?;
        if scanner.next_token() == Some(b']') {
            return scanner.expect(b']');
        }
        loop {
            match scanner.next_token() {
                Some(b'{') => self.block(scanner)?,
                _ => scanner.value(2)?,
            }
            if scanner.next_token() != Some(b',') {
                return scanner.expect(b']');
            }
            scanner.at += 1;
        }
    }

    fn block(&mut self, scanner: &mut Scanner<'_>) -> Scan<()> {
        let mut raw = None;
        scan_members(scanner, 2, &mut empty_members(), |name, scanner| {
            let start = scanner.at;
            scanner.value(3)?;
            if name == "text" {
                raw = Some(start..scanner.at);
            }
            Ok(())
        })?;
        if let Some(raw) = raw.map(|at| &scanner.text[at]).filter(|raw| raw.starts_with('"')) {
            match decoded(raw) {
                Some(text) => self.add(text),
                None => self.unreadable = true,
            }
        }
        Ok(())
    }

    fn add(&mut self, text: Cow<'_, str>) {
        match &mut self.text {
            None => self.text = Some(text.into_owned()),
            Some(all) => {
                all.push('\n');
                all.push_str(&text);
            }
        }
    }
}

/// What a JSON string says; `None` for half of a surrogate pair, which no text can hold.
fn decoded(raw: &str) -> Option<Cow<'_, str>> {
    if raw.contains('\\') {
        return serde_json::from_str::<String>(raw).ok().map(Cow::Owned);
    }
    raw.get(1..raw.len() - 1).map(Cow::Borrowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_nothing_else() {
        for (content, text) in [
            (r#"[{"type":"text","text":"a"}]"#, Some("a")),
            (
                r#" [ { "text" : "a\n" } , {"data":{"text":"x"}}, {"text":""},{"text":"\u00fc"} ] "#,
                Some("a\n\n\nü"),
            ),
            (r#"[{"text":1},7,null,[{"text":"x"}],{"text":"b"}]"#, Some("b")),
            ("[]", Some("")),
            ("[ ]", Some("")),
            ("{}", Some("")),
            ("null", Some("")),
            (r#"[{"text":"a","text":"b"}]"#, None),
            (r#"[{"text":"\ud800"}]"#, None),
        ] {
            let result = Json::trusted(format!(r#"{{"a":[1],"content":{content},"z":{{}}}}"#));
            assert_eq!(joined_text(&result).as_deref(), text, "{content}");
        }
        assert_eq!(joined_text(&Json::empty_object()).as_deref(), Some(""));
        assert_eq!(joined_text(&Json::trusted("[]")), None);
    }
}
