//! [`Names`]: the members of arguments. How they are spelled, for tools that take any spelling, and which can be left out.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::{Map, Value};

/// Far more kinds of objects than a schema has that people write.
const MOST: usize = 1_000;

/// The members that a schema names, object by object.
#[derive(Debug)]
pub(super) struct Names {
    /// The first is the whole of the arguments.
    kinds: Vec<Kind>,
}

/// One kind of value in the schema, an object or a list, or both where it can be either.
#[derive(Debug, Default)]
struct Kind {
    members: HashMap<String, Member>,
    /// From what all spellings of a name have in common to the name. Not where other names are somebody's data.
    spelled: HashMap<String, String>,
    /// What the items of the list are, if they have members.
    items: Option<usize>,
}

/// A member of an object.
#[derive(Debug, Clone, Copy)]
struct Member {
    /// What it is, if that has members in turn.
    kind: Option<usize>,
    /// Whether it can be left out. Not where it may be somebody's data.
    optional: bool,
}

impl Names {
    /// The names in a schema, unless it has none.
    pub(super) fn of(schema: &Value) -> Option<Names> {
        let mut reader = Reader { root: schema, kinds: Vec::new(), known: HashMap::new() };
        reader.kind(vec![schema])?;
        Some(Names { kinds: reader.kinds })
    }

    /// Spells the members of `arguments` as the schema does. A name that the schema has stays, and so does one that is
    /// no other spelling of a name there, or of one that was given too.
    pub(super) fn mend(&self, arguments: &mut Value) {
        self.mend_kind(0, arguments);
    }

    fn mend_kind(&self, kind: usize, value: &mut Value) {
        let kind = &self.kinds[kind];
        match value {
            Value::Object(members) => {
                let mut strange = false;
                for (name, value) in members.iter_mut() {
                    match kind.members.get(name).map(|member| member.kind) {
                        Some(Some(kind)) => self.mend_kind(kind, value),
                        Some(None) => {}
                        None => strange = true,
                    }
                }
                if strange && !kind.spelled.is_empty() {
                    self.rename(kind, members);
                }
            }
            Value::Array(items) => {
                if let Some(kind) = kind.items {
                    items.iter_mut().for_each(|item| self.mend_kind(kind, item));
                }
            }
            _ => {}
        }
    }

    fn rename(&self, kind: &Kind, members: &mut Map<String, Value>) {
        let strange: Vec<String> =
            members.keys().filter(|name| !kind.members.contains_key(*name)).cloned().collect();
        for name in strange {
            let Some(meant) = kind.spelled.get(&common(&name)) else { continue };
            if members.contains_key(meant) {
                continue;
            }
            if let Some(mut value) = members.remove(&name) {
                if let Some(kind) = kind.members.get(meant).and_then(|member| member.kind) {
                    self.mend_kind(kind, &mut value);
                }
                members.insert(meant.clone(), value);
            }
        }
    }

    /// Takes every member out of `arguments` that is `null` and can be left out. Many clients send a `null` for whatever
    /// they have no value for.
    pub(super) fn drop_nulls(&self, arguments: &mut Value) {
        self.drop_nulls_of(0, arguments);
    }

    fn drop_nulls_of(&self, kind: usize, value: &mut Value) {
        let kind = &self.kinds[kind];
        match value {
            Value::Object(members) => {
                members.retain(|name, value| {
                    !value.is_null() || !kind.members.get(name).is_some_and(|member| member.optional)
                });
                for (name, value) in members {
                    if let Some(kind) = kind.members.get(name).and_then(|member| member.kind) {
                        self.drop_nulls_of(kind, value);
                    }
                }
            }
            Value::Array(items) => {
                if let Some(kind) = kind.items {
                    items.iter_mut().for_each(|item| self.drop_nulls_of(kind, item));
                }
            }
            _ => {}
        }
    }
}

/// What all spellings of a name have in common: `entityName`, `entity_name`, `Entity-Name`.
pub(super) fn common(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Goes through a schema.
struct Reader<'s> {
    root: &'s Value,
    kinds: Vec<Kind>,
    /// The kinds that are known already, by the schemas that they come from: schemas may contain themselves.
    known: HashMap<Vec<*const Value>, Option<usize>>,
}

impl<'s> Reader<'s> {
    /// The kind of values that fit one of the schemas.
    fn kind(&mut self, schemas: Vec<&'s Value>) -> Option<usize> {
        let mut parts = Vec::new();
        let mut seen = HashSet::new();
        schemas.into_iter().for_each(|schema| self.parts(schema, &mut parts, &mut seen));
        let mut key: Vec<*const Value> = seen.into_iter().collect();
        key.sort_unstable();
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        let mut members: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
        let mut items = Vec::new();
        let mut required = HashSet::new();
        let (mut open, mut any_object) = (false, false);
        for part in parts {
            for (name, schema) in part.get("properties").and_then(Value::as_object).into_iter().flatten() {
                members.entry(name).or_default().push(schema);
            }
            items.extend(part.get("items"));
            let others = part.get("additionalProperties").is_some_and(|others| *others != Value::Bool(false));
            open |= others || part.contains_key("patternProperties");
            any_object |= takes_any_object(part);
            let names = part.get("required").and_then(Value::as_array).into_iter().flatten();
            required.extend(names.filter_map(Value::as_str));
        }
        if (members.is_empty() && items.is_empty()) || self.kinds.len() >= MOST {
            self.known.insert(key, None);
            return None;
        }
        let at = self.kinds.len();
        self.kinds.push(Kind::default());
        self.known.insert(key, Some(at));
        let spelled = if open { HashMap::new() } else { spellings(members.keys()) };
        let optional = |name: &str| !open && !any_object && !required.contains(name);
        let members = members
            .into_iter()
            .map(|(name, schemas)| {
                (name.to_owned(), Member { optional: optional(name), kind: self.kind(schemas) })
            })
            .collect();
        let items = if items.is_empty() { None } else { self.kind(items) };
        self.kinds[at] = Kind { members, spelled, items };
        Some(at)
    }

    /// The schema and all that it refers to for the same value.
    fn parts(
        &self,
        schema: &'s Value,
        parts: &mut Vec<&'s Map<String, Value>>,
        seen: &mut HashSet<*const Value>,
    ) {
        let Value::Object(members) = schema else { return };
        if !seen.insert(std::ptr::from_ref(schema)) {
            return;
        }
        parts.push(members);
        let meant = members.get("$ref").and_then(Value::as_str).and_then(|place| place.strip_prefix('#'));
        if let Some(meant) = meant.and_then(|place| self.root.pointer(place)) {
            self.parts(meant, parts, seen);
        }
        for keyword in ["anyOf", "oneOf", "allOf"] {
            for schema in members.get(keyword).and_then(Value::as_array).into_iter().flatten() {
                self.parts(schema, parts, seen);
            }
        }
    }
}

/// Whether a schema takes objects without naming their members: those are somebody's data then.
fn takes_any_object(part: &Map<String, Value>) -> bool {
    const SAY_MORE: [&str; 7] = ["properties", "$ref", "anyOf", "oneOf", "allOf", "enum", "const"];
    let object = match part.get("type") {
        None => true,
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "object"),
        Some(kind) => kind == "object",
    };
    object && !SAY_MORE.iter().any(|keyword| part.contains_key(*keyword))
}

/// The names by what their spellings have in common. Names that have it in common with each other are left out.
fn spellings<'n>(names: impl Iterator<Item = &'n &'n str>) -> HashMap<String, String> {
    let mut all: HashMap<String, Option<String>> = HashMap::new();
    for name in names {
        let common = common(name);
        all.entry(common).and_modify(|taken| *taken = None).or_insert_with(|| Some((*name).to_owned()));
    }
    all.into_iter()
        .filter(|(common, _)| !common.is_empty())
        .filter_map(|(c, name)| Some((c, name?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn mended(schema: &Value, mut arguments: Value) -> Value {
        Names::of(schema).unwrap().mend(&mut arguments);
        arguments
    }

    #[test]
    fn names_are_spelled_as_in_the_schema() {
        let schema = json!({
            "properties": {
                "entityName": {"type": "string"},
                "min_similarity": {"type": "number"},
                "someObservations": {"type": ["array", "null"], "items": {"$ref": "#/$defs/Observed"}},
                "oneOrMany": {"anyOf": [{"$ref": "#/$defs/Observed"}, {"items": {"$ref": "#/$defs/Observed"}}]},
                "metadata": {"type": "object", "additionalProperties": true},
            },
            "$defs": {"Observed": {
                "type": "object",
                "properties": {"entityName": {}, "allContents": {}, "partOf": {"$ref": "#/$defs/Observed"}},
            }},
        });
        let wanted = json!({
            "entityName": "a", "min_similarity": 1,
            "someObservations": [{"entityName": "b", "partOf": {"allContents": 2}}],
            "oneOrMany": {"entityName": "c"},
            "metadata": {"entity_name": 3},
        });
        let otherwise = json!({
            "entity_name": "a", "minSimilarity": 1,
            "some_observations": [{"EntityName": "b", "part-of": {"all_contents": 2}}],
            "one_or_many": {"entity_name": "c"},
            "metadata": {"entity_name": 3},
        });
        assert_eq!(mended(&schema, otherwise), wanted);
        assert_eq!(mended(&schema, wanted.clone()), wanted);
        assert_eq!(
            mended(&schema, json!({"one_or_many": [{"entity_name": 1}]})),
            json!({"oneOrMany": [{"entityName": 1}]})
        );
    }

    #[test]
    fn nulls_are_dropped_where_a_member_can_be_left_out() {
        let schema = json!({
            "properties": {
                "name": {"type": ["string", "null"]},
                "limit": {"type": "integer", "default": 5},
                "must": {"type": ["string", "null"]},
                "list": {"type": "array", "items": {"anyOf": [{"$ref": "#/$defs/Part"}, {"type": "null"}]}},
                "data": {"type": "object", "additionalProperties": true},
                "either": {"anyOf": [{"$ref": "#/$defs/Part"}, {"type": "object"}]},
            },
            "required": ["must"],
            "$defs": {"Part": {"type": "object", "properties": {"size": {}, "part": {"$ref": "#/$defs/Part"}}}},
        });
        let names = Names::of(&schema).unwrap();
        let mut arguments = json!({
            "name": null, "limit": null, "must": null, "unknown": null,
            "list": [{"size": null, "part": {"size": 1, "part": null}}, null],
            "data": {"size": null},
            "either": {"size": null},
        });
        names.drop_nulls(&mut arguments);
        assert_eq!(
            arguments,
            json!({
                "must": null, "unknown": null,
                "list": [{"part": {"size": 1}}, null],
                "data": {"size": null},
                "either": {"size": null},
            })
        );
    }

    #[test]
    fn what_is_known_or_unclear_stays() {
        let schema = json!({"properties": {"a_b": {}, "aB": {}, "cD": {}, "_": {}}});
        for same in [
            json!({"A_B": 1}),
            json!({"aB": 1, "a_b": 2}),
            json!({"cD": 1, "c_d": 2}),
            json!({"other": 1, "--": 2, "": 3}),
            json!([1]),
        ] {
            assert_eq!(mended(&schema, same.clone()), same);
        }
        let open = json!({"properties": {"cD": {}}, "additionalProperties": {"type": "string"}});
        assert_eq!(mended(&open, json!({"c_d": "data"})), json!({"c_d": "data"}));
        assert!(Names::of(&json!({"type": "object"})).is_none());
    }
}
