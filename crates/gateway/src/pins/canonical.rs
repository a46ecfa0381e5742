//! What a model sees of a definition, spelled in one way only, and as lines for people.

use tidegate_protocol::json::ObjectWriter;
use tidegate_protocol::{Json, Object};

/// What a model sees of a tool.
pub(crate) const SEEN: [&str; 6] =
    ["name", "title", "description", "inputSchema", "outputSchema", "annotations"];

/// What a model sees of a definition, in canonical form.
pub(crate) fn seen(definition: &Json) -> Json {
    let Some(object) = Object::of(definition) else { return definition.compact() };
    let mut seen = ObjectWriter::with_capacity(definition.len());
    for member in object.members().filter(|member| SEEN.contains(&&*member.name)) {
        seen.raw(&member.name, member.value);
    }
    seen.finish().canonical()
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
            assert_eq!(Json::trusted(pretty(text, 4)).compact().as_str(), text);
        }
        assert_eq!(pretty(r#"{"a":[1,2]}"#, 2), "{\n    \"a\": [\n      1,\n      2\n    ]\n  }");
    }
}
