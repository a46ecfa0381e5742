//! Where the references of a schema lead.
//!
//! A validator finds out in its own way. So that both always mean the same place, only references are taken that can
//! mean one place only: into the schema itself, by a path, or by a name that it has once. Schemas inside the schema that
//! have an address of their own are refused.

use std::collections::HashMap;

use serde_json::Value;

use super::Unusable;

/// How deep a schema may nest, and how many subschemas it may have. Both far beyond what people write.
const MAX_DEPTH: usize = 64;
const MAX_SUBSCHEMAS: usize = 10_000;

/// What a reference leads to.
pub(super) enum Target<'a> {
    /// A part of the schema.
    Here(&'a Value),
    /// The schema of schemas, which comes with the compiler.
    MetaSchema,
}

/// What references can lead to.
pub(super) struct Index<'a> {
    root: &'a Value,
    /// The parts that have a name, and how many have the same.
    anchors: HashMap<&'a str, (&'a Value, usize)>,
    /// Whether `id` says what `$id` says later.
    is_draft_4: bool,
    subschemas: usize,
    pub(super) patterns: usize,
}

impl<'a> Index<'a> {
    pub(super) fn of(root: &'a Value) -> Index<'a> {
        let dialect = root.get("$schema").and_then(Value::as_str).unwrap_or_default();
        let is_draft_4 = dialect.contains("draft-04") || dialect.contains("draft-03");
        Index { root, anchors: HashMap::new(), is_draft_4, subschemas: 0, patterns: 0 }
    }

    /// Reads all of it, also what is no schema: what looks like a name there makes the name ambiguous.
    pub(super) fn read(&mut self, value: &'a Value, depth: usize) -> Result<(), Unusable> {
        if depth > MAX_DEPTH {
            return Err(refusal(format!("the schema nests more than {MAX_DEPTH} levels deep")));
        }
        match value {
            Value::Object(members) => {
                self.subschemas += 1;
                if self.subschemas > MAX_SUBSCHEMAS {
                    return Err(refusal(format!("the schema has more than {MAX_SUBSCHEMAS} subschemas")));
                }
                let text = |name: &str| members.get(name).and_then(Value::as_str);
                let addresses = ["$id", "$schema", if self.is_draft_4 { "id" } else { "$id" }];
                if let Some(own) = addresses.iter().find(|name| depth > 0 && text(name).is_some()) {
                    return Err(refusal(format!(
                        "a part of the schema has {own} and so an address of its own: put the part under $defs and \
                         refer to it by its path"
                    )));
                }
                self.patterns += usize::from(text("pattern").is_some());
                self.patterns +=
                    members.get("patternProperties").and_then(Value::as_object).map_or(0, |p| p.len());
                for name in ["$anchor", "$dynamicAnchor"].iter().filter_map(|name| text(name)) {
                    self.anchors.entry(name).or_insert((value, 0)).1 += 1;
                }
                members.values().try_for_each(|inner| self.read(inner, depth + 1))
            }
            Value::Array(items) => items.iter().try_for_each(|inner| self.read(inner, depth + 1)),
            _ => Ok(()),
        }
    }

    /// What a reference leads to.
    pub(super) fn find(&self, reference: &str) -> Result<Target<'a>, Unusable> {
        let (address, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let own = self.root.get("$id").and_then(Value::as_str).map(|id| id.trim_end_matches('#'));
        if !address.is_empty() && own != Some(address) {
            return match is_meta_schema(address) {
                true => Ok(Target::MetaSchema),
                false => Err(not_here(reference)),
            };
        }
        let found = match fragment {
            "" => Some(self.root),
            path if path.starts_with('/') => pointed(self.root, path),
            name => match self.anchors.get(name) {
                Some((found, 1)) => Some(*found),
                Some(_) => {
                    return Err(refusal(format!(
                        "more than one part of the schema is called {}",
                        short(name)
                    )));
                }
                None => None,
            },
        };
        found.map(Target::Here).ok_or_else(|| not_here(reference))
    }
}

pub(super) fn refusal(reason: impl Into<String>) -> Unusable {
    Unusable { place: String::new(), reason: reason.into() }
}

fn not_here(reference: &str) -> Unusable {
    let to = short(reference);
    refusal(format!("it refers to {to}, which is not in the schema, and nothing is fetched"))
}

fn short(text: &str) -> String {
    text.chars().take(200).collect()
}

/// What a JSON pointer leads to.
fn pointed<'a>(root: &'a Value, pointer: &str) -> Option<&'a Value> {
    let pointer = percent_encoding::percent_decode_str(pointer).decode_utf8().ok()?;
    pointer.split('/').skip(1).try_fold(root, |at, part| {
        let part = part.replace("~1", "/").replace("~0", "~");
        match at {
            Value::Object(members) => members.get(&part),
            Value::Array(items) => {
                let at: usize = part.parse().ok()?;
                // One number has one spelling.
                items.get(at).filter(|_| at.to_string() == part)
            }
            _ => None,
        }
    })
}

fn is_meta_schema(address: &str) -> bool {
    let address = address.trim_start_matches("https://").trim_start_matches("http://");
    address.starts_with("json-schema.org/draft")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::schema::Schema;

    /// Each has a decoy: something that looks like what a reference means, where a validator does not look for it, or
    /// looks for it first.
    #[test]
    fn no_reference_means_two_places() {
        let bomb = json!({"allOf": [{"$ref": "#/x"}]});
        for schema in [
            json!({"$ref": "d", "$defs": {"a": {"$id": "http://x/a/d"}, "b": {"$id": "http://y/b/d", "not": bomb}}}),
            json!({"$ref": "#n", "enum": [{"$anchor": "n"}], "$defs": {"b": {"$anchor": "n", "not": bomb}}}),
            json!({"$ref": "#n", "$defs": {"a": {"$anchor": "n"}, "b": {"$dynamicAnchor": "n", "not": bomb}}}),
            json!({"$schema": "http://json-schema.org/draft-04/schema#", "$ref": "d",
                   "definitions": {"d": {"id": "d", "not": bomb}}}),
            json!({"$schema": "http://json-schema.org/draft-07/schema#", "$ref": "#n",
                   "definitions": {"a": {"$anchor": "n"}, "b": {"$id": "#n", "not": bomb}}}),
            json!({"properties": {"a": {"$schema": "http://json-schema.org/draft-04/schema#", "id": "x"}}}),
            json!({"$ref": "#/anyOf/01", "anyOf": [{}, {}]}),
            json!({"$ref": "#/anyOf/+1", "anyOf": [{}, {}]}),
        ] {
            assert!(Schema::compile(&schema).is_err(), "{schema}");
        }
    }

    #[test]
    fn what_people_write_is_found() {
        for schema in [
            json!({"$id": "https://example.com/s", "$ref": "https://example.com/s#/$defs/a", "$defs": {"a": true}}),
            json!({"$ref": "#n", "$defs": {"a": {"$anchor": "n", "type": "string"}}}),
            json!({"$ref": "#/$defs/a%20b", "$defs": {"a b": true}}),
            json!({"$ref": "#/definitions/a~1b", "definitions": {"a/b": {"type": "object"}}}),
            json!({"properties": {"$id": {"type": "string"}, "schema": {"$ref": "https://json-schema.org/draft/2020-12/schema"}}}),
            json!({"properties": {"id": {"const": "x"}}, "default": {"id": "y"}}),
        ] {
            Schema::compile(&schema).unwrap_or_else(|error| panic!("{schema}: {error}"));
        }
    }
}
