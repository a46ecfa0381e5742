//! The canonical form of a definition: what a model sees of it, spelled in one way only.
//!
//! As in RFC 8785: members sorted, no white space, strings and numbers in their shortest form. What that cannot tell
//! apart is meant to be the same; whatever else differs is a change. An object with a key twice has no canonical form
//! (readers disagree which of the two counts), so it stays as it is spelled, and every change of it is one.

use tidegate_protocol::json::write_str;
use tidegate_protocol::{Json, Object};

/// What a model sees of a tool.
pub(crate) const SEEN: [&str; 6] =
    ["name", "title", "description", "inputSchema", "outputSchema", "annotations"];

/// What a model sees of a definition, in canonical form.
pub(crate) fn seen(definition: &Json) -> Json {
    let Some(object) = Object::of(definition) else { return Json::trusted(compact(definition.as_str())) };
    let members = object.members().enumerate().filter(|(_, member)| SEEN.contains(&&*member.name));
    let mut out = Vec::with_capacity(definition.len());
    write_object(members.map(|(index, member)| (member.name.into_owned(), object.json_at(index))), &mut out);
    Json::from_written(out)
}

/// A value in canonical form.
fn write(value: &Json, out: &mut Vec<u8>) {
    let text = value.as_str();
    let written = match text.as_bytes().first() {
        Some(b'{') => Object::of(value).map(|object| {
            let members = object.members().enumerate();
            write_object(
                members.map(|(index, member)| (member.name.into_owned(), object.json_at(index))),
                out,
            );
        }),
        Some(b'[') => value.elements().map(|elements| {
            out.push(b'[');
            for (index, element) in elements.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write(element, out);
            }
            out.push(b']');
        }),
        Some(b'"') => value.to_str().map(|content| write_str(out, &content)),
        Some(b'-' | b'0'..=b'9') => number(text).map(|number| out.extend_from_slice(number.as_bytes())),
        _ => None,
    };
    if written.is_none() {
        out.extend_from_slice(compact(text).as_bytes());
    }
}

fn write_object(members: impl Iterator<Item = (String, Option<Json>)>, out: &mut Vec<u8>) {
    let mut members: Vec<(String, Option<Json>)> = members.collect();
    members.sort_by(|(a, _), (b, _)| a.encode_utf16().cmp(b.encode_utf16()));
    out.push(b'{');
    for (index, (name, value)) in members.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write_str(out, name);
        out.push(b':');
        write(value.as_ref().unwrap_or(&Json::null()), out);
    }
    out.push(b'}');
}

/// The shortest spelling of a number; `None` if it has to stay as it is.
fn number(text: &str) -> Option<String> {
    // Whole numbers stay exact, however many digits they have.
    if !text.contains(['.', 'e', 'E']) {
        return (text == "-0").then(|| "0".to_owned());
    }
    let value: f64 = text.parse().ok()?;
    let exact = value.fract() == 0.0 && value.abs() < 9_007_199_254_740_992.0;
    match exact {
        true => Some((value as i64).to_string()),
        false => serde_json::Number::from_f64(value).map(|number| number.to_string()),
    }
}

/// JSON without the white space between its parts.
pub(crate) fn compact(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let mut inside = Inside::default();
    for c in json.chars() {
        if inside.string || !c.is_ascii_whitespace() {
            out.push(c);
        }
        inside.pass(c);
    }
    out
}

/// Canonical JSON as lines that people can read and compare. The first line is not indented.
pub(crate) fn pretty(canonical: &str, indent: usize) -> String {
    let mut out = String::with_capacity(canonical.len() * 2);
    let mut inside = Inside::default();
    let mut depth = 0;
    let break_line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.extend(std::iter::repeat_n(' ', indent + 2 * depth));
    };
    let mut chars = canonical.chars().peekable();
    while let Some(c) = chars.next() {
        let plain = !inside.string;
        inside.pass(c);
        match c {
            '{' | '[' if plain => {
                out.push(c);
                if let Some(end) = chars.next_if(|next| matches!(next, '}' | ']')) {
                    out.push(end);
                } else {
                    depth += 1;
                    break_line(&mut out, depth);
                }
            }
            '}' | ']' if plain => {
                depth -= 1;
                break_line(&mut out, depth);
                out.push(c);
            }
            ',' if plain => {
                out.push(c);
                break_line(&mut out, depth);
            }
            ':' if plain => out.push_str(": "),
            c => out.push(c),
        }
    }
    out
}

/// Whether a place in JSON text is inside a string.
#[derive(Default)]
struct Inside {
    string: bool,
    escaped: bool,
}

impl Inside {
    fn pass(&mut self, c: char) {
        match c {
            '"' if !self.escaped => self.string = !self.string,
            '\\' if self.string => {
                self.escaped = !self.escaped;
                return;
            }
            _ => {}
        }
        self.escaped = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canonical(text: &'static str) -> String {
        let mut out = Vec::new();
        write(&Json::trusted(text), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn one_spelling_for_what_is_the_same() {
        for (text, want) in [
            (r#"{ "b" : 1, "a":[ true , null ] }"#, r#"{"a":[true,null],"b":1}"#),
            (r#"{"\u0061":"\u0041\/\n"}"#, r#"{"a":"A/\n"}"#),
            (
                "[1.0, 1e2, -0, -0.0, 0.50, 1E-7, 12345678901234567890]",
                "[1,100,0,0,0.5,1e-7,12345678901234567890]",
            ),
            // UTF-16 puts what is beyond the first plane before the end of it.
            ("{\"\u{ff61}\":1,\"\u{1f600}\":2}", "{\"\u{1f600}\":2,\"\u{ff61}\":1}"),
            (r#"{"a":{"k": 1,"k":2},"b":"\ud800"}"#, r#"{"a":{"k":1,"k":2},"b":"\ud800"}"#),
        ] {
            assert_eq!(canonical(text), want);
        }
    }

    #[test]
    fn only_what_a_model_sees() {
        let definition = Json::trusted(
            r#"{"name":"t","_meta":{"x":1},"icons":[],"description":"d","inputSchema":{"type":"object"},"execution":{}}"#,
        );
        assert_eq!(
            seen(&definition).as_str(),
            r#"{"description":"d","inputSchema":{"type":"object"},"name":"t"}"#
        );
    }

    #[test]
    fn pretty_and_back() {
        for text in [
            r#"{"a":[],"b":{"c":[1,{"d":"x, {y}: \" \\"}]},"e":{}}"#,
            "[]",
            r#""a""#,
            r#"{"a":{"k":1,"k":2}}"#,
        ] {
            assert_eq!(compact(&pretty(text, 4)), text);
        }
        assert_eq!(pretty(r#"{"a":[1,2]}"#, 2), "{\n    \"a\": [\n      1,\n      2\n    ]\n  }");
        assert_eq!(compact(r#"{"a": "x \" y", "b": "\\" , "c": 1}"#), r#"{"a":"x \" y","b":"\\","c":1}"#);
    }
}
