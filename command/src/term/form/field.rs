//! The fields of a form, from the schema that a server sent.

use indexmap::IndexMap;
use serde::Deserialize;
use serde_json::Value;

use super::check;
use crate::term::clean;

/// What a server wants to know.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Form {
    /// Its fields, in the server's order.
    pub(crate) fields: Vec<Field>,
}

/// One question.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Field {
    /// Its name, as the answer has it.
    pub(crate) name: String,
    /// How to call it in front of people.
    pub(crate) title: String,
    /// What it is about.
    pub(crate) description: String,
    /// Whether it must be answered.
    pub(crate) required: bool,
    /// What fits.
    pub(crate) kind: Kind,
    /// The answer if there is none.
    pub(crate) default: Option<Value>,
}

/// What fits a field.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kind {
    /// A text.
    Text { min: Option<u64>, max: Option<u64>, pattern: Option<String>, format: Option<String> },
    /// A number.
    Number { integer: bool, min: Option<f64>, max: Option<f64> },
    /// Yes or no.
    Boolean,
    /// One of these.
    One(Vec<Choice>),
    /// Some of these.
    Many { choices: Vec<Choice>, min: Option<u64>, max: Option<u64> },
    /// Something that no revision of the protocol has in forms: asked for as JSON, checked by the server.
    Json,
}

/// One of several.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Choice {
    /// The answer.
    pub(crate) value: String,
    /// How it is shown.
    pub(crate) label: String,
}

/// A schema whose properties keep their order, which is the order of the questions.
#[derive(Deserialize, Default)]
struct Raw {
    #[serde(default)]
    properties: IndexMap<String, Value>,
    #[serde(default)]
    required: Vec<String>,
}

impl Form {
    /// Reads `requestedSchema`. It comes as text because the order of its fields matters.
    pub(crate) fn parse(schema: &str) -> Result<Form, String> {
        let raw: Raw = serde_json::from_str(schema)
            .map_err(|_| "the form is invalid: its \"requestedSchema\" cannot be read".to_owned())?;
        let fields = raw
            .properties
            .iter()
            .map(|(name, schema)| Field::new(name, schema, raw.required.contains(name)))
            .collect();
        Ok(Form { fields })
    }
}

impl Field {
    fn new(name: &str, schema: &Value, required: bool) -> Field {
        let kind = Kind::new(schema);
        let title = clean::line(text(schema, "title").unwrap_or_default());
        let default = schema.get("default").filter(|value| check::fits(&kind, value)).cloned();
        Field {
            name: name.to_owned(),
            title: if title.is_empty() { clean::line(name) } else { title },
            description: clean::line(text(schema, "description").unwrap_or_default()),
            required,
            kind,
            default,
        }
    }
}

impl Kind {
    fn new(schema: &Value) -> Kind {
        let count = |key: &str| schema.get(key).and_then(Value::as_u64);
        let number = |key: &str| schema.get(key).and_then(Value::as_f64);
        if let Some(choices) = choices(schema) {
            return Kind::One(choices);
        }
        match text(schema, "type") {
            Some("string") => Kind::Text {
                min: count("minLength"),
                max: count("maxLength"),
                pattern: text(schema, "pattern").map(str::to_owned),
                format: text(schema, "format").map(str::to_owned),
            },
            Some(kind @ ("number" | "integer")) => {
                Kind::Number { integer: kind == "integer", min: number("minimum"), max: number("maximum") }
            }
            Some("boolean") => Kind::Boolean,
            Some("array") => match schema.get("items").and_then(choices) {
                Some(choices) => Kind::Many { choices, min: count("minItems"), max: count("maxItems") },
                None => Kind::Json,
            },
            _ => Kind::Json,
        }
    }
}

/// `enum`, with `enumNames` if need be, or `oneOf` or `anyOf` with `const` and `title`.
fn choices(schema: &Value) -> Option<Vec<Choice>> {
    let choice = |value: &Value, label: Option<&str>| {
        let value = value.as_str()?.to_owned();
        let label = label.map(clean::line).filter(|label| !label.is_empty());
        Some(Choice { label: label.unwrap_or_else(|| clean::line(&value)), value })
    };
    let list = |key: &str| schema.get(key).and_then(Value::as_array);
    let found: Option<Vec<Choice>> = if let Some(values) = list("enum") {
        let names = list("enumNames");
        let label = |at: usize| names?.get(at)?.as_str();
        values.iter().enumerate().map(|(at, value)| choice(value, label(at))).collect()
    } else {
        let options = list("oneOf").or_else(|| list("anyOf"))?;
        options.iter().map(|option| choice(option.get("const")?, text(option, "title"))).collect()
    };
    found.filter(|choices| !choices.is_empty())
}

fn text<'a>(schema: &'a Value, key: &str) -> Option<&'a str> {
    schema.get(key).and_then(Value::as_str)
}
