//! Going through a schema and writing it anew.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::disjoint::are_disjoint;
use super::keywords::{Holds, holds, is_annotation, is_null_only};
use super::refs::Refs;
use super::{is_size, required, types};

/// How many subschemas are looked at and written, references followed.
const STEPS: usize = 50_000;
/// How many subschemas may be inside each other when references are written out.
const MAX_DEPTH: usize = 40;

/// Where a schema stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Location<'p> {
    /// What is written must mean what it meant: narrower would not do.
    pub(super) exact: bool,
    /// Leaving the value out says what `null` says.
    pub(super) optional: bool,
    /// A reader looks for a type here.
    pub(super) typed: bool,
    /// The type that the value must have anyhow.
    pub(super) kind: Option<&'p str>,
    depth: usize,
}

impl<'p> Location<'p> {
    fn inside(self) -> Location<'p> {
        Location { optional: false, typed: true, kind: None, depth: self.depth + 1, ..self }
    }

    /// The place of a part that has no type of its own, because it says something more about the same value.
    fn beside(self) -> Location<'p> {
        Location { typed: false, ..self.inside() }
    }

    fn exactly(self) -> Location<'p> {
        Location { exact: true, ..self.beside() }
    }
}

/// The schema once rewritten; `None` if it has to stay as it is. One that is not of arguments means what it meant.
pub(super) fn rewritten(schema: &Value, of_arguments: bool) -> Option<Value> {
    let dialect = schema.get("$schema").and_then(Value::as_str).unwrap_or_default();
    if ["draft-03", "draft-04"].iter().any(|old| dialect.contains(old)) {
        // Half of the keywords meant something else, or nothing.
        return None;
    }
    let mut steps = STEPS;
    let refs = Refs::of(schema, &mut steps)?;
    // Where items are counted as evaluated by being described, nothing more can be said of them.
    let exact = refs.unevaluated_items || !of_arguments;
    let mut rewriter =
        Rewriter { root: schema, refs, steps, kept: Vec::new(), exact, of_arguments, exact_reference: false };
    let written = rewriter.whole()?;
    if rewriter.exact_reference && !rewriter.exact {
        // A definition that is used below `not` may not become narrower.
        (rewriter.exact, rewriter.steps) = (true, steps);
        rewriter.kept.clear();
        return rewriter.whole();
    }
    Some(written)
}

struct Rewriter<'a> {
    root: &'a Value,
    refs: Refs<'a>,
    steps: usize,
    /// What is still referred to, under which name it is kept.
    kept: Vec<(&'a Value, String)>,
    exact: bool,
    of_arguments: bool,
    /// Whether a reference stays in a place where what it leads to may not become narrower.
    exact_reference: bool,
}

impl<'a> Rewriter<'a> {
    fn whole(&mut self) -> Option<Value> {
        let root: &'a Map<String, Value> = self.root.as_object()?;
        let kind = self.of_arguments.then_some("object");
        let place = Location { exact: self.exact, optional: false, typed: true, kind, depth: 0 };
        let mut root = self.unfolded_root(root);
        // Arguments are an object, and readers look for its type and its properties without asking.
        let is_object =
            |kind: &Value| kind.as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == "object"));
        if !self.exact && root.get("type").is_none_or(is_object) {
            root.insert("type".to_owned(), "object".into());
        }
        let mut written = self.object(&root, place)?;
        if self.of_arguments {
            written.entry("properties").or_insert_with(|| json!({}));
        }
        let mut definitions = Map::new();
        let mut at = 0;
        while let Some((schema, name)) = self.kept.get(at).cloned() {
            let definition = self.schema(schema, Location { kind: None, ..place }.inside())?;
            definitions.insert(name, definition);
            at += 1;
        }
        if !definitions.is_empty() {
            written.insert("$defs".to_owned(), Value::Object(definitions));
        }
        Some(Value::Object(written))
    }

    /// A root that only refers to a definition is that definition, also if that contains itself.
    fn unfolded_root(&self, root: &'a Map<String, Value>) -> Map<String, Value> {
        let target = root.get("$ref").and_then(Value::as_str).and_then(|to| self.refs.find(to));
        match target.filter(|target| !self.refs.is_root(target)).and_then(Value::as_object) {
            Some(target) if others(root, "$ref").all(is_annotation) => merged(root, "$ref", target),
            _ => root.clone(),
        }
    }

    fn schema(&mut self, schema: &Value, place: Location<'_>) -> Option<Value> {
        match schema {
            Value::Object(members) => self.object(members, place).map(Value::Object),
            Value::Bool(true) if place.exact || !place.typed => Some(json!({})),
            Value::Bool(true) => Some(types::anything(place.kind)),
            Value::Bool(false) => Some(types::nothing()),
            _ => None,
        }
    }

    fn object(&mut self, members: &Map<String, Value>, place: Location<'_>) -> Option<Map<String, Value>> {
        self.steps = self.steps.checked_sub(1)?;
        if place.depth > MAX_DEPTH {
            return None;
        }
        if let Some(inlined) = self.inlined(members, place) {
            return self.object(&inlined, Location { depth: place.depth + 1, ..place });
        }
        let mut written = Map::new();
        for (keyword, value) in members {
            self.keyword(members, keyword, value, place, &mut written)?;
        }
        types::finish(&mut written, place)?;
        Some(written)
    }

    /// The schema with what it refers to written out, if it refers to something for which that can be done.
    fn inlined(&self, members: &Map<String, Value>, place: Location<'_>) -> Option<Map<String, Value>> {
        let target = self.refs.find(members.get("$ref")?.as_str()?)?;
        if !self.refs.can_be_inlined(target) {
            return None;
        }
        if let Some(target) = target.as_object()
            && others(members, "$ref").all(is_annotation)
        {
            return Some(merged(members, "$ref", target));
        }
        // Until draft 7, what stands beside a reference counted for nothing.
        if place.exact {
            return None;
        }
        let mut both = members.clone();
        both.remove("$ref");
        let parts = both.entry("allOf").or_insert_with(|| json!([]));
        parts.as_array_mut()?.push(target.clone());
        Some(both)
    }

    /// Writes one keyword.
    fn keyword(
        &mut self,
        members: &Map<String, Value>,
        keyword: &str,
        value: &Value,
        place: Location<'_>,
        written: &mut Map<String, Value>,
    ) -> Option<()> {
        let drops_null = place.optional && !place.exact;
        let value = match (keyword, value) {
            // Definitions that are still needed are written at the end, and referred to by where they are then.
            ("$defs" | "definitions", Value::Object(_)) | ("$anchor" | "$dynamicAnchor", _) => {
                return Some(());
            }
            ("format", format) if is_size(Some(format)) => return Some(()),
            ("default", Value::Null) if drops_null => return Some(()),
            ("$ref", Value::String(to)) => self.reference(to, place)?,
            ("enum", Value::Array(values)) if drops_null && !is_null_only(&json!({"enum": values})) => {
                values.iter().filter(|value| !value.is_null()).cloned().collect()
            }
            ("properties", Value::Object(named)) => {
                let mut properties = Map::new();
                let required: HashSet<&str> = required(members).collect();
                let closed = members.get("additionalProperties") == Some(&Value::Bool(false));
                for (name, schema) in named {
                    // What must not be there need not be named where only names are taken that are.
                    if closed && *schema == Value::Bool(false) && !members.contains_key("patternProperties") {
                        continue;
                    }
                    let optional = !required.contains(name.as_str());
                    properties
                        .insert(name.clone(), self.schema(schema, Location { optional, ..place.inside() })?);
                }
                Value::Object(properties)
            }
            ("anyOf" | "oneOf", Value::Array(branches)) => {
                return self.branches(members, keyword, branches, place, written);
            }
            ("allOf", Value::Array(parts)) => {
                let beside = Location { optional: place.optional, ..place.beside() };
                let mut all = written.remove("allOf").and_then(into_list).unwrap_or_default();
                for part in parts.iter().filter(|part| **part != Value::Bool(true)) {
                    all.push(self.schema(part, beside)?);
                }
                all.retain(|part| part.as_object().is_none_or(|part| !part.is_empty()));
                match all.is_empty() {
                    true => return Some(()),
                    false => Value::Array(all),
                }
            }
            ("items", Value::Bool(false)) => {
                let prefix = members.get("prefixItems").and_then(Value::as_array).filter(|_| !self.is_old());
                return at_most(members, prefix.map_or(0, Vec::len), written);
            }
            ("additionalItems", Value::Bool(false)) => match members.get("items") {
                Some(Value::Array(items)) => return at_most(members, items.len(), written),
                _ => return Some(()),
            },
            ("additionalItems" | "propertyNames", Value::Bool(true)) => return Some(()),
            // It takes everything, and so leaves nothing to what is around it.
            ("unevaluatedItems" | "unevaluatedProperties", Value::Bool(true)) => json!({}),
            ("additionalProperties", Value::Bool(false)) => Value::Bool(false),
            ("additionalProperties", others) if is_anything(others) => match self.refs.unevaluated_properties
            {
                true => json!({}),
                false => return Some(()),
            },
            ("unevaluatedProperties", Value::Bool(false)) if !place.exact && is_simple(members) => {
                written.insert("additionalProperties".to_owned(), Value::Bool(false));
                return Some(());
            }
            ("unevaluatedProperties" | "unevaluatedItems", Value::Bool(false)) => json!({"not": {}}),
            (
                "not" | "if" | "contains" | "propertyNames" | "unevaluatedProperties" | "unevaluatedItems",
                _,
            ) => self.schema(value, place.exactly())?,
            ("then" | "else", _) => self.schema(value, place.beside())?,
            ("dependentSchemas" | "dependencies", Value::Object(named)) => {
                self.named(named, place.beside())?
            }
            (_, Value::Object(named)) if holds(keyword) == Holds::Named => {
                self.named(named, place.inside())?
            }
            (_, Value::Array(list)) if matches!(holds(keyword), Holds::List | Holds::One) => {
                list.iter().map(|schema| self.schema(schema, place.inside())).collect::<Option<_>>()?
            }
            _ if holds(keyword) == Holds::One => self.schema(value, place.inside())?,
            _ => value.clone(),
        };
        // What another keyword has become is stronger.
        written.entry(keyword).or_insert(value);
        Some(())
    }

    fn named(&mut self, named: &Map<String, Value>, place: Location<'_>) -> Option<Value> {
        let mut written = Map::new();
        for (name, schema) in named {
            // `dependencies` may also have lists of names.
            let schema = if schema.is_array() { schema.clone() } else { self.schema(schema, place)? };
            written.insert(name.clone(), schema);
        }
        Some(Value::Object(written))
    }

    /// Writes `anyOf`, and `oneOf` as `anyOf` where no value fits two of its branches.
    fn branches(
        &mut self,
        members: &Map<String, Value>,
        keyword: &str,
        branches: &[Value],
        place: Location<'_>,
        written: &mut Map<String, Value>,
    ) -> Option<()> {
        let any = keyword == "anyOf" || are_disjoint(&self.refs, branches);
        let inside =
            Location { exact: place.exact || !any, optional: place.optional && any, ..place.inside() };
        let inside = Location { kind: members.get("type").and_then(Value::as_str).or(place.kind), ..inside };
        let drops_null = inside.optional && !inside.exact && !branches.iter().all(is_null_only);
        let mut all = Vec::new();
        for branch in branches {
            if *branch == Value::Bool(false) || (drops_null && is_null_only(branch)) {
                continue;
            }
            all.push(self.schema(branch, inside)?);
        }
        if all.is_empty() {
            all.push(types::nothing());
        }
        let into = if any && !members.contains_key("anyOf") { "anyOf" } else { keyword };
        written.insert(into.to_owned(), Value::Array(all));
        Some(())
    }

    /// A reference that stays, to where its definition will be.
    fn reference(&mut self, to: &str, place: Location<'_>) -> Option<Value> {
        self.exact_reference |= place.exact;
        let target = self.refs.find(to)?;
        if self.refs.is_root(target) {
            return Some("#".into());
        }
        let known = self.kept.iter().find(|(schema, _)| std::ptr::eq(*schema, target));
        let name = match known {
            Some((_, name)) => name.clone(),
            None => {
                let last = to.rsplit('/').next().unwrap_or_default();
                let plain = |c: &char| c.is_ascii_alphanumeric() || "_-.".contains(*c);
                let mut name: String = last.chars().filter(plain).collect();
                while name.is_empty() || self.kept.iter().any(|(_, taken)| *taken == name) {
                    name.push('_');
                }
                self.kept.push((target, name.clone()));
                name
            }
        };
        Some(format!("#/$defs/{name}").into())
    }

    /// Whether the schema says that it is older than 2020-12, when `prefixItems` came.
    fn is_old(&self) -> bool {
        let dialect = self.root.get("$schema").and_then(Value::as_str);
        dialect.is_some_and(|dialect| !dialect.contains("2020-12"))
    }
}

/// The keywords of a schema without one.
fn others<'m>(members: &'m Map<String, Value>, but: &'m str) -> impl Iterator<Item = &'m str> {
    members.keys().map(String::as_str).filter(move |keyword| *keyword != but)
}

/// The schema with `inner` in the place of a keyword. What is said in both places counts as the outer says it.
pub(super) fn merged(
    outer: &Map<String, Value>,
    keyword: &str,
    inner: &Map<String, Value>,
) -> Map<String, Value> {
    let mut both = outer.clone();
    both.remove(keyword);
    for (name, value) in inner {
        both.entry(name.as_str()).or_insert_with(|| value.clone());
    }
    both
}

/// Writes that a list has at most so many items.
fn at_most(members: &Map<String, Value>, most: usize, written: &mut Map<String, Value>) -> Option<()> {
    let said = members.get("maxItems").and_then(Value::as_u64);
    let most = (most as u64).min(said.unwrap_or(u64::MAX));
    written.insert("maxItems".to_owned(), most.into());
    Some(())
}

fn is_anything(schema: &Value) -> bool {
    *schema == Value::Bool(true) || schema.as_object().is_some_and(Map::is_empty)
}

/// Whether nothing but `properties` and `patternProperties` says which members are known.
fn is_simple(members: &Map<String, Value>) -> bool {
    const OTHERS: [&str; 8] =
        ["$ref", "anyOf", "oneOf", "allOf", "if", "dependentSchemas", "dependencies", "additionalProperties"];
    !OTHERS.iter().any(|keyword| members.contains_key(*keyword))
}

fn into_list(value: Value) -> Option<Vec<Value>> {
    match value {
        Value::Array(list) => Some(list),
        _ => None,
    }
}
