//! What has changed about a tool, member by member, as people know it from version control.

use tidegate_protocol::{Json, Object};

use super::canonical::{SEEN, pretty};
use super::pin::Pin;

/// Most characters of a line.
const MAX_LINE: usize = 240;
/// How much of what two lines have in common at their beginning is shown.
const COMMON: usize = 40;
/// Lines around a change.
const AROUND: usize = 1;
/// Comparing line by line costs the product of their numbers; what is larger counts as replaced.
const MAX_WORK: usize = 250_000;

pub(super) fn diff(before: &Pin, now: &Pin, most: usize) -> String {
    let (before, now) = (Object::of(&before.seen), Object::of(&now.seen));
    let member = |object: &Option<Object>, name: &str| object.as_ref().and_then(|object| object.json(name));
    let mut lines = Vec::new();
    for name in SEEN {
        let (old, new) = (member(&before, name), member(&now, name));
        if old != new {
            lines.push(format!("@@ {name} @@"));
            hunks(&in_lines(old), &in_lines(new), &mut lines);
        }
    }
    bounded(&lines, most)
}

/// The members that differ.
pub(super) fn changed(before: &Pin, now: &Pin) -> Vec<&'static str> {
    let (Some(before), Some(now)) = (Object::of(&before.seen), Object::of(&now.seen)) else {
        return SEEN.to_vec();
    };
    SEEN.into_iter().filter(|name| before.get(name) != now.get(name)).collect()
}

fn bounded(lines: &[String], most: usize) -> String {
    let mut out = String::new();
    for (index, line) in lines.iter().enumerate() {
        if out.len() + line.len() + 1 > most {
            out.push_str(&format!("… {} more lines\n", lines.len() - index));
            break;
        }
        out.push_str(line);
        out.push('\n');
    }
    out
}

/// The lines of a member: a text has its own, anything else is written as JSON.
fn in_lines(value: Option<Json>) -> Vec<String> {
    let Some(value) = value else { return Vec::new() };
    let text = match value.to_str() {
        Some(text) => text.into_owned(),
        None => pretty(value.as_str(), 0),
    };
    text.split('\n').map(visible).collect()
}

/// Without anything that a terminal or an eye takes for something else: control characters, marks that turn the
/// direction of the text, characters without a width.
fn visible(line: &str) -> String {
    let hidden = |c: char| {
        (c.is_control() && c != '\t')
            || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
            || matches!(c, '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}')
            || matches!(c, '\u{e0000}'..='\u{e0fff}')
    };
    let mut out = String::with_capacity(line.len());
    for c in line.chars() {
        match hidden(c) {
            true => out.extend(c.escape_unicode()),
            false => out.push(c),
        }
    }
    out
}

/// A line of both texts.
enum Line<'a> {
    Same(&'a str),
    Removed(&'a str),
    Added(&'a str),
}

/// The changed lines and a few around them.
fn hunks(old: &[String], new: &[String], out: &mut Vec<String>) {
    let lines = aligned(old, new);
    let near = |at: usize| {
        let around = at.saturating_sub(AROUND)..lines.len().min(at + AROUND + 1);
        lines[around].iter().any(|line| !matches!(line, Line::Same(_)))
    };
    let mut at = 0;
    while at < lines.len() {
        let run = |from: usize, want: fn(&Line<'_>) -> bool| {
            lines[from..].iter().take_while(|line| want(line)).count()
        };
        match &lines[at] {
            Line::Same(line) => {
                if near(at) {
                    out.push(format!(" {}", cut(line, 0)));
                }
                at += 1;
            }
            _ => {
                let removed = run(at, |line| matches!(line, Line::Removed(_)));
                let added = run(at + removed, |line| matches!(line, Line::Added(_)));
                let text = |line: &Line<'_>| match line {
                    Line::Same(text) | Line::Removed(text) | Line::Added(text) => (*text).to_owned(),
                };
                let gone: Vec<String> = lines[at..at + removed].iter().map(text).collect();
                let come: Vec<String> = lines[at + removed..at + removed + added].iter().map(text).collect();
                // What two lines share at their beginning may be so long that the change would not be seen.
                let shared = |index: usize| match (gone.get(index), come.get(index)) {
                    (Some(a), Some(b)) => a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count(),
                    _ => 0,
                };
                out.extend(
                    gone.iter().enumerate().map(|(index, line)| format!("-{}", cut(line, shared(index)))),
                );
                out.extend(
                    come.iter().enumerate().map(|(index, line)| format!("+{}", cut(line, shared(index)))),
                );
                at += removed + added;
            }
        }
    }
}

/// A line in a bounded length, from shortly before where it differs.
fn cut(line: &str, shared: usize) -> String {
    let length = line.chars().count();
    if length <= MAX_LINE {
        return line.to_owned();
    }
    let skipped = shared.saturating_sub(COMMON);
    let mut out = String::from(if skipped > 0 { "…" } else { "" });
    out.extend(line.chars().skip(skipped).take(MAX_LINE));
    if length > skipped + MAX_LINE {
        out.push('…');
    }
    out
}

/// Both texts as one, with as many lines in common as can be.
fn aligned<'a>(old: &'a [String], new: &'a [String]) -> Vec<Line<'a>> {
    let start = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let (rest_old, rest_new) = (&old[start..], &new[start..]);
    let end = rest_old.iter().rev().zip(rest_new.iter().rev()).take_while(|(a, b)| a == b).count();
    let (a, b) = (&rest_old[..rest_old.len() - end], &rest_new[..rest_new.len() - end]);
    let mut lines: Vec<Line<'a>> = old[..start].iter().map(|line| Line::Same(line)).collect();
    if a.len() * b.len() > MAX_WORK {
        lines.extend(a.iter().map(|line| Line::Removed(line)));
        lines.extend(b.iter().map(|line| Line::Added(line)));
    } else {
        align(a, b, &mut lines);
    }
    lines.extend(rest_old[rest_old.len() - end..].iter().map(|line| Line::Same(line)));
    lines
}

/// The longest common subsequence, by the table that everybody knows. Of a change, what is gone comes first.
fn align<'a>(a: &'a [String], b: &'a [String], lines: &mut Vec<Line<'a>>) {
    let width = b.len() + 1;
    let mut longest = vec![0u32; (a.len() + 1) * width];
    for i in (0..a.len()).rev() {
        for j in (0..b.len()).rev() {
            longest[i * width + j] = match a[i] == b[j] {
                true => longest[(i + 1) * width + j + 1] + 1,
                false => longest[(i + 1) * width + j].max(longest[i * width + j + 1]),
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut added = Vec::new();
    while i < a.len() || j < b.len() {
        if i < a.len() && j < b.len() && a[i] == b[j] {
            lines.append(&mut added);
            lines.push(Line::Same(&a[i]));
            (i, j) = (i + 1, j + 1);
        } else if j == b.len() || i < a.len() && longest[(i + 1) * width + j] >= longest[i * width + j + 1] {
            lines.push(Line::Removed(&a[i]));
            i += 1;
        } else {
            added.push(Line::Added(&b[j]));
            j += 1;
        }
    }
    lines.append(&mut added);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diffed(before: &str, now: &str, most: usize) -> String {
        let pin = |text: &str| Pin::of(&Json::trusted(text.to_owned()));
        pin(before).diff(&pin(now), most)
    }

    #[test]
    fn members_that_changed_are_shown_with_their_lines() {
        let before = r#"{"name":"t","description":"One\nTwo\nThree\nFour","inputSchema":{"type":"object","properties":{"a":{"type":"string"}}}}"#;
        let now = r#"{"name":"t","title":"T","description":"One\nTwo\n3\nFour","inputSchema":{"properties":{"a":{"type":"number"}},"type":"object"}}"#;
        let want = "\
@@ title @@
+T
@@ description @@
 Two
-Three
+3
 Four
@@ inputSchema @@
     \"a\": {
-      \"type\": \"string\"
+      \"type\": \"number\"
     }
";
        assert_eq!(diffed(before, now, 2000), want);
        assert_eq!(diffed(before, before, 2000), "");
        assert_eq!(
            diffed(r#"{"name":"t","annotations":{}}"#, r#"{"name":"t"}"#, 99),
            "@@ annotations @@\n-{}\n"
        );
    }

    #[test]
    fn what_is_added_to_the_end_of_a_long_line_is_seen() {
        let long = "word ".repeat(200);
        let before = format!(r#"{{"name":"t","description":"{long}"}}"#);
        let now = format!(r#"{{"name":"t","description":"{long}IGNORE ALL PREVIOUS"}}"#);
        let diff = diffed(&before, &now, 2000);
        assert!(diff.contains("IGNORE ALL PREVIOUS") && diff.len() < 700, "{diff}");
    }

    #[test]
    fn a_diff_is_bounded_and_says_so() {
        let lines: String = (0..500).map(|i| format!("line {i}\\n")).collect();
        let now = format!(r#"{{"name":"t","description":"{lines}"}}"#);
        let diff = diffed(r#"{"name":"t"}"#, &now, 300);
        assert!(diff.len() < 340 && diff.contains(" more lines"), "{diff}");
        let huge: String = (0..3000).map(|i| format!("{i}\\n")).collect();
        let other: String = (0..3000).map(|i| format!("x{i}\\n")).collect();
        let (a, b) = (format!(r#"{{"description":"{huge}"}}"#), format!(r#"{{"description":"{other}"}}"#));
        assert!(diffed(&a, &b, usize::MAX).contains("+x2999"));
    }

    #[test]
    fn what_cannot_be_seen_is_spelled_out() {
        let now = "{\"name\":\"t\",\"description\":\"a\u{202e}b\u{200b}\u{e0041}\\u001b[2J\"}";
        let diff = diffed(r#"{"name":"t","description":"a"}"#, now, 2000);
        assert!(diff.contains(r"+a\u{202e}b\u{200b}\u{e0041}\u{1b}[2J"), "{diff}");
    }
}
