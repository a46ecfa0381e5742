//! What serde says about a text, told without its values and in words that people know.

use tidegate_service::nearest_name;

/// Turns a message of serde into a sentence. The values in it may be secrets, so they are left out.
pub(crate) fn sentence(message: &str) -> String {
    if let Some(rest) = message.strip_prefix("unknown field `") {
        let (name, known) = rest.rsplit_once("`, expected ").unwrap_or((rest.trim_end_matches('`'), ""));
        let known = quoted(known);
        return match nearest_name(name, known.iter().copied()) {
            Some(meant) => format!("unknown field {name:?}; did you mean {meant:?}?"),
            None => format!("unknown field {name:?}; known fields are {}", known.join(", ")),
        };
    }
    if let Some(rest) = message.strip_prefix("unknown variant `") {
        let (value, known) = rest.rsplit_once("`, expected ").unwrap_or((rest, ""));
        let known = quoted(known);
        let list: Vec<String> = known.iter().map(|word| format!("{word:?}")).collect();
        let list = list.join(", ");
        return match nearest_name(value, known.iter().copied()) {
            Some(meant) => format!("must be one of {list}; did you mean {meant:?}?"),
            None => format!("must be one of {list}"),
        };
    }
    let wrong = message.strip_prefix("invalid type: ").or_else(|| message.strip_prefix("invalid value: "));
    if let Some((found, expected)) = wrong.and_then(|rest| rest.rsplit_once(", expected ")) {
        return format!("must be {}, not {}", wanted(expected), kind(found));
    }
    if let Some(name) = message.strip_prefix("missing field `") {
        return format!("the field {:?} is required", name.trim_end_matches('`'));
    }
    message.to_owned()
}

/// The message about a field that does not exist, with these among those that do.
pub(crate) fn with_fields(message: &str, more: impl Iterator<Item = &'static str>) -> String {
    match message.starts_with("unknown field `") {
        true => more.fold(message.to_owned(), |message, name| format!("{message}, `{name}`")),
        false => message.to_owned(),
    }
}

/// The field that is probably meant by one that does not exist.
pub(crate) fn meant(message: &str) -> Option<String> {
    let (name, known) = message.strip_prefix("unknown field `")?.rsplit_once("`, expected ")?;
    nearest_name(name, quoted(known)).map(str::to_owned)
}

/// What the parser says about a text that is not TOML.
pub(crate) fn syntax(message: &str) -> String {
    match message {
        "duplicate key" => "this name is used twice; remove one of them".to_owned(),
        other => format!("this is not valid TOML: {other}"),
    }
}

/// The words in backticks.
fn quoted(list: &str) -> Vec<&str> {
    list.split('`').skip(1).step_by(2).collect()
}

/// What is expected, in our words.
fn wanted(expected: &str) -> &str {
    match expected {
        "a string" => "a string in quotes",
        "a boolean" => "true or false",
        "a sequence" => "a list in [brackets]",
        "a map" => "a table",
        "u8" | "u16" | "u32" | "u64" | "usize" => "a positive whole number or 0, and not too large",
        "f64" => "a number",
        other if other.starts_with("struct ") => "a table",
        other => other,
    }
}

/// What kind of value was found: the word before the value.
fn kind(found: &str) -> &'static str {
    let word = found.split([' ', '`', '"']).next().unwrap_or_default();
    match word {
        "string" | "character" => "a string",
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
                "unknown field \"tiemout\"; did you mean \"timeout\"?",
            ),
            ("unknown field `zzz`, expected `a` or `b`", "unknown field \"zzz\"; known fields are a, b"),
            (
                "unknown variant `h, expected one of `x``, expected one of `auto`, `legacy`",
                "must be one of \"auto\", \"legacy\"",
            ),
            (
                "unknown variant `legcy`, expected `auto` or `legacy`",
                "must be one of \"auto\", \"legacy\"; did you mean \"legacy\"?",
            ),
            (
                "invalid type: string \"hush, expected x\", expected a boolean",
                "must be true or false, not a string",
            ),
            (
                "invalid type: integer `5`, expected a string",
                "must be a string in quotes, not a whole number",
            ),
            ("our own words", "our own words"),
        ] {
            assert_eq!(sentence(message), told);
        }
    }
}
