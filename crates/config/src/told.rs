//! What serde says about a text, told without its values and in words that people know.

use crate::error::nearest;

/// Turns a message of serde into a sentence. The values in it may be secrets, so they are left out.
pub(crate) fn sentence(message: &str) -> String {
    if let Some(rest) = message.strip_prefix("unknown field `") {
        let (name, known) = rest.rsplit_once("`, expected ").unwrap_or((rest.trim_end_matches('`'), ""));
        let known = quoted(known);
        return match nearest(name, known.iter().copied()) {
            Some(meant) => format!("there is no field {name:?}; did you mean {meant:?}?"),
            None => format!("there is no field {name:?}; there are {}", known.join(", ")),
        };
    }
    if let Some(rest) = message.strip_prefix("unknown variant `") {
        let (value, known) = rest.rsplit_once("`, expected ").unwrap_or((rest, ""));
        let known = quoted(known);
        let list: Vec<String> = known.iter().map(|word| format!("{word:?}")).collect();
        let list = list.join(", ");
        return match nearest(value, known.iter().copied()) {
            Some(meant) => format!("it must be one of {list}; did you mean {meant:?}?"),
            None => format!("it must be one of {list}"),
        };
    }
    let wrong = message.strip_prefix("invalid type: ").or_else(|| message.strip_prefix("invalid value: "));
    if let Some((found, expected)) = wrong.and_then(|rest| rest.rsplit_once(", expected ")) {
        return format!("it must be {}, and is {}", wanted(expected), kind(found));
    }
    message.to_owned()
}

/// What the parser says about a text that is not TOML.
pub(crate) fn syntax(message: &str) -> String {
    match message {
        "duplicate key" => "this name is there twice: remove one of them".to_owned(),
        other => format!("this is not TOML: {other}"),
    }
}

/// The words in backticks.
fn quoted(list: &str) -> Vec<&str> {
    list.split('`').skip(1).step_by(2).collect()
}

/// What is expected, in our words.
fn wanted(expected: &str) -> &str {
    match expected {
        "a string" => "a text in quotes",
        "a boolean" => "true or false",
        "a sequence" => "a list in brackets",
        "a map" => "a table",
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number that is not negative, and not too large",
        "f64" => "a number",
        other if other.starts_with("struct ") => "a table",
        other => other,
    }
}

/// What kind of value was found: the word before the value.
fn kind(found: &str) -> &'static str {
    let word = found.split([' ', '`', '"']).next().unwrap_or_default();
    match word {
        "string" | "character" => "a text",
        "integer" => "a whole number",
        "floating" => "a number",
        "boolean" => "true or false",
        "sequence" => "a list",
        "map" => "a table",
        _ => "something else",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_lose_their_values() {
        for (message, told) in [
            (
                "unknown field `tiemout`, expected one of `command`, `timeout`",
                "there is no field \"tiemout\"; did you mean \"timeout\"?",
            ),
            ("unknown field `zzz`, expected `a` or `b`", "there is no field \"zzz\"; there are a, b"),
            (
                "unknown variant `h, expected one of `x``, expected one of `auto`, `legacy`",
                "it must be one of \"auto\", \"legacy\"",
            ),
            (
                "unknown variant `legcy`, expected `auto` or `legacy`",
                "it must be one of \"auto\", \"legacy\"; did you mean \"legacy\"?",
            ),
            (
                "invalid type: string \"hush, expected x\", expected a boolean",
                "it must be true or false, and is a text",
            ),
            (
                "invalid type: integer `5`, expected a string",
                "it must be a text in quotes, and is a whole number",
            ),
            ("our own words", "our own words"),
        ] {
            assert_eq!(sentence(message), told);
        }
    }
}
