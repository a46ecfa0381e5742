//! JSON for people: indented, with its members in the order in which the server sent them.

use crate::term::clean;

/// Indents a JSON text. What is not JSON comes out as something that is not JSON either.
pub(crate) fn indented(text: &str) -> String {
    let mut out = String::with_capacity(2 * text.len());
    let mut depth = 0usize;
    let mut chars = text.chars().filter(|c| !c.is_ascii_whitespace() || *c == ' ').peekable();
    let line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.push_str(&"  ".repeat(depth));
    };
    while let Some(c) = chars.next() {
        match c {
            ' ' => {}
            '"' => {
                out.push(c);
                let mut escaped = false;
                for c in chars.by_ref() {
                    out.push(c);
                    match c {
                        '\\' if !escaped => escaped = true,
                        '"' if !escaped => break,
                        _ => escaped = false,
                    }
                }
            }
            '{' | '[' => {
                out.push(c);
                while chars.next_if(|c| *c == ' ').is_some() {}
                match chars.next_if(|c| matches!(c, '}' | ']')) {
                    Some(end) => out.push(end),
                    None => {
                        depth += 1;
                        line(&mut out, depth);
                    }
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                line(&mut out, depth);
                out.push(c);
            }
            ',' => {
                out.push(c);
                line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            c => out.push(c),
        }
    }
    clean::result(&out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn term_json_is_indented_in_its_own_order() {
        assert_eq!(
            indented(r#"{"z":1, "a":[1.50,{}, [ ],"x: {\"y\"}, \\"],"e":{"b":null}}"#),
            "{\n  \"z\": 1,\n  \"a\": [\n    1.50,\n    {},\n    [],\n    \"x: {\\\"y\\\"}, \\\\\"\n  ],\n  \"e\": {\n    \"b\": null\n  }\n}"
        );
        assert_eq!(indented("{\n}"), "{}");
        assert_eq!(indented("\"\u{9b}2Jx\""), "\"x\"");
        assert_eq!(indented("]]}"), "\n]\n]\n}");
    }
}
