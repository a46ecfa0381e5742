//! The sections of the servers of the program: `[memory]` for the one that is called `memory`. What is in them is theirs, so
//! everything about a section is asked of its server.

use schemars::SchemaGenerator;
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use tidegate_builtin::{Builtin, Written};
use toml::Spanned;
use toml::de::{DeValue, ValueDeserializer};

use crate::digest::hex;

/// The section of a server.
pub(crate) struct Section {
    pub(crate) builtin: Builtin,
    pub(crate) written: Written,
    /// A digest of what was written, filled in: equal ones mean the same.
    pub(crate) identity: String,
}

impl Section {
    /// The one of a server that nothing is written for.
    pub(crate) fn unwritten(builtin: &Builtin) -> Section {
        Section { builtin: *builtin, written: builtin.unwritten(), identity: String::new() }
    }
}

/// A digest that is the same for sections that say the same, wherever in the file they stand. They may hold secrets.
pub(crate) fn identity(section: &Spanned<DeValue<'_>>) -> String {
    // Unlike what was parsed, this has no places in it.
    match toml::Value::deserialize(ValueDeserializer::from(section.clone())) {
        Ok(value) => hex(&Sha256::digest(format!("{value:?}"))),
        // What cannot be read at all is no section of anything that is started.
        Err(_) => String::new(),
    }
}

/// Whether a field of a section is a struct, which its schema says. Serde would take a list for one.
pub(crate) fn is_table_by_nature(builtin: &Builtin, path: &[&str]) -> bool {
    let mut generator = SchemaGenerator::default();
    let schema = builtin.schema(&mut generator).to_value();
    let definitions = generator.definitions();
    let resolved = |schema: &Value| resolve(schema, definitions, DEEPEST);
    let mut at = resolved(&schema);
    for name in path {
        let field = at["properties"].get(*name).or_else(|| at.get("additionalProperties"));
        at = field.map(&resolved).unwrap_or_default();
    }
    at["properties"].is_object()
}

/// References lead no further than this.
const DEEPEST: usize = 8;

/// What a schema comes to: what it refers to, or what is there if something is.
fn resolve(schema: &Value, definitions: &serde_json::Map<String, Value>, depth: usize) -> Value {
    let referred = schema["$ref"].as_str().and_then(|path| definitions.get(path.rsplit('/').next()?));
    let choices = ["allOf", "anyOf", "oneOf"].into_iter().find_map(|word| schema[word].as_array());
    let is_something = |choice: &&Value| choice["type"] != "null";
    let next = referred.or_else(|| choices.and_then(|choices| choices.iter().find(is_something)));
    match next {
        Some(next) if depth > 0 => resolve(next, definitions, depth - 1),
        _ => schema.clone(),
    }
}
