//! [`obstacles`]: what in a schema of arguments some readers of tools cannot read.

use serde_json::{Map, Value};

use super::keywords::subschemas;
use super::refs::Refs;

/// How many subschemas are looked at.
const STEPS: usize = 50_000;
/// How many places are named for each construct.
const MAX_PLACES: usize = 5;

/// Formats that readers know which make types of formats.
const KNOWN_FORMATS: [&str; 17] = [
    "uuid",
    "email",
    "uri",
    "hostname",
    "ipv4",
    "ipv6",
    "date-time",
    "date",
    "time",
    "duration",
    "int32",
    "int64",
    "float",
    "double",
    "byte",
    "binary",
    "password",
];

/// Something that JSON Schema allows and some readers of tools do not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Construct {
    /// The schema of the arguments names no `properties`.
    NoProperties,
    /// A member of an object that is `true` or `false`.
    BooleanMember,
    /// `true` or `false` where another schema is expected, such as `items: true`.
    BooleanSchema,
    /// A list of types for an argument.
    ArgumentTypes,
    /// A list of types further inside.
    InnerTypes,
    /// A member of an object that says nothing of its type.
    NoType,
    /// A format that is nobody else's, such as `uint`.
    Format,
    /// A definition that contains itself.
    Recursion,
}

/// A construct, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Obstacle {
    /// What it is.
    pub construct: Construct,
    /// Where, as people write it (`filter.tags[]`); the first few. Empty for the schema as a whole.
    pub places: Vec<String>,
}

/// Everything in the schema of a tool's arguments that some readers do not know, in a fixed order.
///
/// ```
/// use serde_json::json;
/// use tidegate_service::schema::{Construct, obstacles};
///
/// let schema = json!({"type": "object", "properties": {"tags": {"type": "array", "items": true}}});
/// let found = obstacles(&schema);
/// assert_eq!((found[0].construct, &*found[0].places[0]), (Construct::BooleanSchema, "tags[]"));
/// ```
pub fn obstacles(schema: &Value) -> Vec<Obstacle> {
    let Value::Object(root) = schema else { return Vec::new() };
    let mut found = Obstacles::default();
    if !root.contains_key("properties") {
        found.add(Construct::NoProperties, "");
    }
    let mut open = vec![(String::new(), root)];
    for _ in 0..STEPS {
        let Some((place, members)) = open.pop() else { break };
        look_at(&mut found, &place, members);
        for (keyword, name, inner) in subschemas(members) {
            let place = beneath(&place, keyword, name);
            match inner {
                Value::Object(inner) => {
                    if keyword == "properties" && says_no_type(inner) {
                        found.add(Construct::NoType, &place);
                    }
                    open.push((place, inner));
                }
                _ if keyword == "properties" => found.add(Construct::BooleanMember, &place),
                // Whether other members may be there is said in this way everywhere.
                _ if matches!(keyword, "additionalProperties" | "unevaluatedProperties") => {}
                _ => found.add(Construct::BooleanSchema, &place),
            }
        }
    }
    if Refs::of(schema, &mut STEPS.to_owned()).is_some_and(|refs| refs.has_recursion()) {
        found.add(Construct::Recursion, "");
    }
    found.0.sort_by_key(|obstacle| obstacle.construct);
    found.0.iter_mut().for_each(|obstacle| obstacle.places.sort());
    found.0
}

fn look_at(found: &mut Obstacles, place: &str, members: &Map<String, Value>) {
    if members.get("type").is_some_and(Value::is_array) {
        let inner = place.is_empty() || place.contains(['.', '[', '(']);
        found.add(if inner { Construct::InnerTypes } else { Construct::ArgumentTypes }, place);
    }
    if let Some(format) = members.get("format").and_then(Value::as_str)
        && !KNOWN_FORMATS.contains(&format)
    {
        found.add(Construct::Format, place);
    }
}

fn says_no_type(members: &Map<String, Value>) -> bool {
    const SAY: [&str; 6] = ["type", "anyOf", "oneOf", "allOf", "$ref", "enum"];
    !SAY.iter().any(|keyword| members.contains_key(*keyword))
}

/// The place of a subschema, as people write it.
fn beneath(place: &str, keyword: &str, name: Option<&str>) -> String {
    match (keyword, name) {
        ("properties", Some(name)) if place.is_empty() => name.to_owned(),
        ("properties", Some(name)) => format!("{place}.{name}"),
        ("items" | "prefixItems" | "additionalItems" | "unevaluatedItems" | "contains", _) => {
            format!("{place}[]")
        }
        ("additionalProperties" | "patternProperties", _) => format!("{place}.*"),
        ("$defs" | "definitions", Some(name)) => format!("({name})"),
        _ => place.to_owned(),
    }
}

#[derive(Default)]
struct Obstacles(Vec<Obstacle>);

impl Obstacles {
    fn add(&mut self, construct: Construct, place: &str) {
        let known = self.0.iter().position(|obstacle| obstacle.construct == construct);
        let at = known.unwrap_or_else(|| {
            self.0.push(Obstacle { construct, places: Vec::new() });
            self.0.len() - 1
        });
        let places = &mut self.0[at].places;
        if !place.is_empty() && places.len() < MAX_PLACES && !places.iter().any(|known| known == place) {
            places.push(place.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_construct_is_found_with_its_places() {
        let found = |schema: Value| -> Vec<(Construct, String)> {
            obstacles(&schema).into_iter().map(|one| (one.construct, one.places.join(" "))).collect()
        };
        let of = |a: Value| found(json!({"type": "object", "properties": {"a": a}}));
        let one = |construct: Construct, place: &str| vec![(construct, place.to_owned())];
        assert_eq!(found(json!({"type": "object"})), one(Construct::NoProperties, ""));
        assert_eq!(of(json!(true)), one(Construct::BooleanMember, "a"));
        assert_eq!(of(json!({"type": "array", "items": true})), one(Construct::BooleanSchema, "a[]"));
        assert_eq!(of(json!({"type": ["string", "null"]})), one(Construct::ArgumentTypes, "a"));
        let inner = json!({"type": "object", "properties": {"b": {"type": ["string", "null"]}}});
        assert_eq!(of(inner), one(Construct::InnerTypes, "a.b"));
        assert_eq!(of(json!({"description": "d"})), one(Construct::NoType, "a"));
        assert_eq!(of(json!({"const": 1})), one(Construct::NoType, "a"));
        assert_eq!(of(json!({"type": "integer", "format": "uint"})), one(Construct::Format, "a"));
        assert_eq!(of(json!({"$ref": "#"})), one(Construct::Recursion, ""));
        let defined = json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/D"}},
            "$defs": {"D": {"type": "object", "properties": {"x": {}, "y": false}, "additionalProperties": true}}});
        let both = [(Construct::BooleanMember, "(D).y".to_owned()), (Construct::NoType, "(D).x".to_owned())];
        assert_eq!(found(defined), both);
        for fine in [
            json!({"type": "string", "format": "date-time"}),
            json!({"anyOf": [{"type": "string"}, {"type": "null"}]}),
            json!({"type": "object", "additionalProperties": false, "properties": {"type": {"enum": [true]}}}),
        ] {
            assert_eq!(of(fine.clone()), [], "{fine}");
        }
    }
}
