//! What of a tool's definition can be searched, and how much each part counts.

use serde_json::{Map, Value};
use tidegate_protocol::Object;

/// How many fields there are.
pub(crate) const FIELDS: usize = 5;
/// How deep in a schema parameters are looked for.
const DEPTH: usize = 6;

/// Where a word stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Field {
    /// The name, the server's own name for it, and the server's.
    Name,
    Title,
    Description,
    Parameter,
    /// What is said of a parameter, and the values it may have.
    ParameterText,
}

impl Field {
    pub(crate) const ALL: [Field; FIELDS] =
        [Field::Name, Field::Title, Field::Description, Field::Parameter, Field::ParameterText];

    /// How much a word counts here, and how much less if the text is long (from 0, not at all, to 1).
    pub(crate) fn measure(self) -> (f32, f32) {
        match self {
            Field::Name => (4.0, 0.3),
            Field::Title => (2.5, 0.3),
            Field::Description => (1.0, 0.75),
            Field::Parameter => (0.8, 0.75),
            Field::ParameterText => (0.4, 0.75),
        }
    }
}

/// Reads what can be searched.
pub(crate) fn read(
    name: &str,
    own: &str,
    server: &str,
    definition: &Object,
    mut add: impl FnMut(Field, &str),
) {
    add(Field::Name, name);
    // What is in the name already must not count twice, or servers without prefixes would be behind.
    if !name.ends_with(own) {
        add(Field::Name, own);
    }
    if !name.starts_with(server) {
        add(Field::Name, server);
    }
    let annotations = definition.object("annotations");
    let title = definition.str("title").or_else(|| annotations.as_ref()?.str("title"));
    add(Field::Title, &title.unwrap_or_default());
    add(Field::Description, &definition.str("description").unwrap_or_default());
    let schema = definition.json("inputSchema").and_then(|schema| schema.to::<Map<String, Value>>().ok());
    if let Some(schema) = schema {
        read_schema(&schema, DEPTH, &mut add);
    }
}

fn read_schema(schema: &Map<String, Value>, depth: usize, add: &mut impl FnMut(Field, &str)) {
    if depth == 0 {
        return;
    }
    for (keyword, value) in schema {
        match (keyword.as_str(), value) {
            ("properties", Value::Object(properties)) => {
                for (name, property) in properties {
                    add(Field::Parameter, name);
                    read_property(property, depth, add);
                }
            }
            ("$defs" | "definitions", Value::Object(all)) => {
                all.values().for_each(|one| read_property(one, depth, add));
            }
            ("items" | "additionalProperties", one) => read_property(one, depth, add),
            ("anyOf" | "oneOf" | "allOf", Value::Array(all)) => {
                all.iter().for_each(|one| read_property(one, depth, add));
            }
            _ => {}
        }
    }
}

fn read_property(property: &Value, depth: usize, add: &mut impl FnMut(Field, &str)) {
    let Value::Object(property) = property else { return };
    for (keyword, value) in property {
        match (keyword.as_str(), value) {
            ("title" | "description" | "const", Value::String(text)) => add(Field::ParameterText, text),
            ("enum", Value::Array(values)) => {
                values.iter().filter_map(Value::as_str).for_each(|value| add(Field::ParameterText, value));
            }
            _ => {}
        }
    }
    read_schema(property, depth - 1, add);
}
