//! Text of the command line as the value that a schema asks for.

use serde_json::Value;

use super::ArgsError;
use crate::term::schema;

/// The value that `text` stands for. A schema that allows texts gets the text.
pub(super) fn value(key: &str, text: &str, schema: &Value, root: &Value) -> Result<Value, ArgsError> {
    let types = schema::types(schema, root);
    let allows = |name: &str| types.contains(&name);
    if allows("string") {
        return Ok(Value::from(text));
    }
    if let Some(choices) = schema::choices(schema, root)
        && let Some(choice) = choices.iter().find(|choice| schema::plain(choice) == text)
    {
        return Ok((*choice).clone());
    }
    if types.is_empty() {
        return Ok(serde_json::from_str(text).unwrap_or_else(|_| Value::from(text)));
    }
    let trimmed = text.trim();
    let parsed = match trimmed {
        "null" if allows("null") => Some(Value::Null),
        "true" | "false" if allows("boolean") => Some(Value::Bool(trimmed == "true")),
        _ => None,
    };
    let parsed = parsed
        .or_else(|| number(trimmed, allows("integer"), allows("number")))
        .or_else(|| serde_json::from_str(trimmed).ok().filter(Value::is_object).filter(|_| allows("object")));
    if let Some(value) = parsed {
        return Ok(value);
    }
    if allows("array") {
        // Whole, or its only element.
        if let Some(list) = serde_json::from_str(trimmed).ok().filter(Value::is_array) {
            return Ok(list);
        }
        let any = Value::Bool(true);
        let items = schema::items(schema, root).unwrap_or(&any);
        return Ok(Value::Array(vec![value(key, text, items, root)?]));
    }
    Err(ArgsError::Type {
        key: key.to_owned(),
        kind: schema::describe(schema, root),
        text: text.to_owned(),
        is_object: allows("object"),
    })
}

fn number(text: &str, integer: bool, number: bool) -> Option<Value> {
    if !(integer || number) {
        return None;
    }
    let signed = text.parse::<i64>().map(Value::from);
    let whole = signed.or_else(|_| text.parse::<u64>().map(Value::from)).ok();
    whole.or_else(|| {
        let parsed = text.parse::<f64>().ok().filter(|_| number)?;
        serde_json::Number::from_f64(parsed).map(Value::Number)
    })
}
