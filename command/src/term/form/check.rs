//! Whether an answer fits its field, and how to say that it does not.

use serde_json::{Value, json};
use tidegate_service::schema::{Schema, Unusable};

use super::field::{Choice, Kind};
use crate::term::schema::plain;

/// The answer that a line stands for, or a sentence about why it stands for none.
pub(super) fn read(kind: &Kind, line: &str) -> Result<Value, String> {
    match kind {
        Kind::Text { min, max, pattern, format } => {
            // The one way to say "empty on purpose".
            let text = if line == "\"\"" { "" } else { line };
            let length = text.chars().count() as u64;
            if let Some(min) = min.filter(|min| length < *min) {
                return Err(format!("That is too short: it must have at least {}.", characters(min)));
            }
            if let Some(max) = max.filter(|max| length > *max) {
                return Err(format!("That is too long: it must have at most {}.", characters(max)));
            }
            if let Some(format) = format.as_deref().filter(|format| !has_format(text, format)) {
                return Err(format!("That is not {}.", format_in_words(format)));
            }
            match pattern.as_deref().filter(|pattern| !has_pattern(text, pattern)) {
                Some(pattern) => {
                    Err(format!("That does not match the pattern {}.", plain(&Value::from(pattern))))
                }
                None => Ok(Value::from(text)),
            }
        }
        Kind::Number { integer, min, max } => {
            let wrong = if *integer { "That is not a whole number." } else { "That is not a number." };
            let number = number(line.trim(), *integer).ok_or(wrong)?;
            let value = number.as_f64().unwrap_or_default();
            if let Some(min) = min.filter(|min| value < *min) {
                return Err(format!("That is too small: it must be at least {min}."));
            }
            if let Some(max) = max.filter(|max| value > *max) {
                return Err(format!("That is too large: it must be at most {max}."));
            }
            Ok(number)
        }
        Kind::Boolean => match line.trim().to_lowercase().as_str() {
            "y" | "yes" | "true" | "1" => Ok(Value::Bool(true)),
            "n" | "no" | "false" | "0" => Ok(Value::Bool(false)),
            _ => Err("Please answer yes or no.".to_owned()),
        },
        Kind::One(choices) => choose(choices, line).map(Value::from),
        Kind::Many { choices, min, max } => many(choices, *min, *max, line),
        Kind::Json => serde_json::from_str(line).map_err(|_| "That is not valid JSON.".to_owned()),
    }
}

/// Whether a value that the server proposes is of the right kind.
pub(super) fn fits(kind: &Kind, value: &Value) -> bool {
    let is_choice = |choices: &[Choice], value: &Value| choices.iter().any(|choice| *value == choice.value);
    match kind {
        Kind::Text { .. } => value.is_string(),
        Kind::Number { integer: true, .. } => value.is_i64() || value.is_u64(),
        Kind::Number { .. } => value.is_number(),
        Kind::Boolean => value.is_boolean(),
        Kind::One(choices) => is_choice(choices, value),
        Kind::Many { choices, .. } => {
            value.as_array().is_some_and(|values| values.iter().all(|value| is_choice(choices, value)))
        }
        Kind::Json => true,
    }
}

/// An answer as it is shown.
pub(super) fn shown(kind: &Kind, value: &Value) -> String {
    let label = |choices: &[Choice], value: &Value| {
        let choice = choices.iter().find(|choice| *value == choice.value);
        choice.map_or_else(|| plain(value), |choice| choice.label.clone())
    };
    match (kind, value) {
        (Kind::Boolean, Value::Bool(yes)) => if *yes { "yes" } else { "no" }.to_owned(),
        (Kind::One(choices), value) => label(choices, value),
        (Kind::Many { .. }, Value::Array(values)) if values.is_empty() => "none".to_owned(),
        (Kind::Many { choices, .. }, Value::Array(values)) => {
            values.iter().map(|value| label(choices, value)).collect::<Vec<_>>().join(", ")
        }
        (Kind::Text { .. }, Value::String(text)) if text.is_empty() => "\"\"".to_owned(),
        (_, value) => plain(value),
    }
}

/// What fits, as a hint; empty where anything does.
pub(super) fn hint(kind: &Kind) -> String {
    match kind {
        Kind::Text { min, max, format, .. } => {
            let length = match (min.filter(|min| *min > 0), max) {
                (Some(min), Some(max)) => format!("{min} to {}", characters(*max)),
                (Some(min), None) => format!("at least {}", characters(min)),
                (None, Some(max)) => format!("at most {}", characters(*max)),
                (None, None) => String::new(),
            };
            let parts = [format.as_deref().map(format_in_words).unwrap_or_default(), length];
            parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
        }
        Kind::Number { integer, min, max } => {
            let kind = if *integer { "a whole number" } else { "a number" };
            match (min, max) {
                (Some(min), Some(max)) => format!("{kind} from {min} to {max}"),
                (Some(min), None) => format!("{kind}, at least {min}"),
                (None, Some(max)) => format!("{kind}, at most {max}"),
                (None, None) => kind.to_owned(),
            }
        }
        Kind::Boolean => "yes or no".to_owned(),
        Kind::One(_) => String::new(),
        Kind::Many { min, max, .. } => match (min.filter(|min| *min > 0), max) {
            (Some(min), Some(max)) => format!("{min} to {max} of them, separated by commas"),
            (Some(min), None) => format!("at least {min} of them, separated by commas"),
            (None, Some(max)) => format!("at most {max} of them, separated by commas"),
            (None, None) => "any number of them, separated by commas".to_owned(),
        },
        Kind::Json => "as JSON".to_owned(),
    }
}

/// Whether choices can be told by their position: not where they look like positions themselves.
pub(super) fn are_numbered(choices: &[Choice]) -> bool {
    let is_number = |text: &str| text.trim().parse::<i64>().is_ok();
    !choices.iter().any(|choice| is_number(&choice.value) || is_number(&choice.label))
}

fn choose(choices: &[Choice], line: &str) -> Result<String, String> {
    let line = line.trim();
    if are_numbered(choices)
        && let Ok(position) = line.parse::<usize>()
    {
        let choice = position.checked_sub(1).and_then(|at| choices.get(at));
        return choice
            .map(|choice| choice.value.clone())
            .ok_or_else(|| format!("There is no {position}: choose from 1 to {}.", choices.len()));
    }
    let exact = choices.iter().find(|choice| choice.value == line || choice.label == line);
    let lower = line.to_lowercase();
    exact
        .or_else(|| {
            choices
                .iter()
                .find(|choice| choice.value.to_lowercase() == lower || choice.label.to_lowercase() == lower)
        })
        .map(|choice| choice.value.clone())
        .ok_or_else(|| "That is not one of the choices.".to_owned())
}

fn many(choices: &[Choice], min: Option<u64>, max: Option<u64>, line: &str) -> Result<Value, String> {
    let line = line.trim();
    let all_digits = line.chars().all(|c| c.is_ascii_digit() || c.is_whitespace());
    let parts: Vec<&str> = match line {
        "" | "none" if choices.iter().all(|choice| choice.value != line) => Vec::new(),
        _ if all_digits => line.split_whitespace().collect(),
        _ => line.split(',').map(str::trim).filter(|part| !part.is_empty()).collect(),
    };
    let mut chosen: Vec<String> = Vec::new();
    for part in parts {
        let value = choose(choices, part)?;
        if !chosen.contains(&value) {
            chosen.push(value);
        }
    }
    let count = chosen.len() as u64;
    if let Some(min) = min.filter(|min| count < *min) {
        return Err(format!("Too few: choose at least {min}."));
    }
    if let Some(max) = max.filter(|max| count > *max) {
        return Err(format!("Too many: choose at most {max}."));
    }
    Ok(Value::from(chosen))
}

fn number(text: &str, integer: bool) -> Option<Value> {
    if let Ok(whole) = text.parse::<i64>() {
        return Some(Value::from(whole));
    }
    let number = text.parse::<f64>().ok().filter(|number| number.is_finite() && !integer)?;
    serde_json::Number::from_f64(number).map(Value::Number)
}

/// The pattern is the server's, so one that cannot be read, or that takes too long, is left to the server.
fn has_pattern(text: &str, pattern: &str) -> bool {
    let schema = json!({"type": "string", "pattern": pattern});
    may_be(Schema::compile(&schema), text)
}

/// Formats that are not known are left to the server.
fn has_format(text: &str, format: &str) -> bool {
    let schema = json!({"type": "string", "format": format});
    may_be(Schema::compile_with_formats(&schema), text)
}

fn may_be(schema: Result<Schema, Unusable>, text: &str) -> bool {
    schema.map_or(true, |schema| !matches!(schema.first_problem(&json!(text)), Ok(Some(_))))
}

fn format_in_words(format: &str) -> String {
    match format {
        "email" => "an e-mail address".to_owned(),
        "uri" => "a full URL, such as https://example.com".to_owned(),
        "date" => "a date, such as 2026-07-28".to_owned(),
        "date-time" => "a time, such as 2026-07-28T12:00:00Z".to_owned(),
        other => plain(&Value::from(other)),
    }
}

fn characters(count: u64) -> String {
    if count == 1 { "1 character".to_owned() } else { format!("{count} characters") }
}
