//! [`Problem`]: what is wrong with one place in a value, in words for whoever wrote the value.

use std::cmp::Reverse;

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::paths::{Location, LocationSegment};
use jsonschema::{JsonType, ValidationError};
use serde_json::Value;

use super::names::common;

/// How many problems of one value are told.
pub(super) const TOLD: usize = 5;
/// How much of a problem is told.
const REASON: usize = 200;
/// How much of a value is told: it may be long.
const VALUE: usize = 60;

/// How the sentence about an argument begins that the schema does not name.
const UNKNOWN: &str = "unknown argument ";
/// How many names an unknown argument is answered with.
const NAMED: usize = 20;

/// What is wrong with one place in a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    /// The path to the place, empty for the whole.
    pub(crate) field: String,
    /// The reason.
    pub(crate) reason: String,
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.field.as_str(), self.reason.as_str()) {
            ("", reason) => f.write_str(reason),
            // It names the argument itself.
            (_, reason) if reason.starts_with(UNKNOWN) => f.write_str(reason),
            (field, reason @ ("is required" | STRANGE | "is given twice")) => {
                write!(f, "{field} {reason}")
            }
            (field, reason) => write!(f, "{field}: {reason}"),
        }
    }
}

/// What is said of a member that the schema does not name.
const STRANGE: &str = "is not a known field";

impl Problem {
    /// Whether it is about an argument that the schema does not name, and not about something inside of one.
    pub(super) fn is_unknown_argument(&self) -> bool {
        self.reason == STRANGE && !self.field.contains(['.', '['])
    }
}

/// The path to a member of what is at `path`.
pub(super) fn member(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// The text, cut where it gets long.
pub(crate) fn shorten(text: String) -> String {
    cut(text, REASON)
}

fn cut(mut text: String, longest: usize) -> String {
    if text.len() > longest {
        let end = (0..=longest).rev().find(|&i| text.is_char_boundary(i)).unwrap_or(0);
        text.truncate(end);
        text.push('…');
    }
    text
}

/// A value as it is told, cut where it gets long.
fn told(value: &Value) -> String {
    cut(value.to_string(), VALUE)
}

/// What is wrong with an argument that is not among `known`: the one that was probably meant, or else all there are.
pub(super) fn unknown(name: &str, known: &[String]) -> Problem {
    let shown = cut(name.to_owned(), VALUE);
    let hint = match nearest(name, known) {
        Some(near) => format!("did you mean {near:?}?"),
        None if known.is_empty() => "there are no arguments".to_owned(),
        None => {
            let more = if known.len() > NAMED { ", …" } else { "" };
            let names: Vec<String> = known.iter().take(NAMED).map(|name| format!("{name:?}")).collect();
            format!("the arguments are {}{more}", names.join(", "))
        }
    };
    Problem { field: shorten(name.to_owned()), reason: format!("{UNKNOWN}{shown:?}; {hint}") }
}

/// The name that is nearest to another, if one is near: misspelt, or a part of it.
fn nearest<'n>(name: &str, known: &'n [String]) -> Option<&'n str> {
    let wanted = common(&cut(name.to_owned(), VALUE));
    // One letter is near to every other letter.
    let room = match wanted.chars().count() {
        0..=2 => 0,
        length => 1 + length / 4,
    };
    let near = |known: &'n String| {
        let other = common(known);
        let is_part =
            wanted.len().min(other.len()) >= 3 && (other.contains(&wanted) || wanted.contains(&other));
        let distance = strsim::damerau_levenshtein(&wanted, &other);
        // What is misspelt comes before what is only a part.
        match (distance <= room, is_part) {
            (true, _) => Some((distance, known.as_str())),
            (false, true) => Some((room + distance, known.as_str())),
            (false, false) => None,
        }
    };
    known.iter().filter_map(near).min_by_key(|(distance, _)| *distance).map(|(_, name)| name)
}

/// Adds what the error says.
pub(super) fn describe(error: &ValidationError<'_>, problems: &mut Vec<Problem>) {
    let field = path(error.instance_path());
    match error.kind() {
        ValidationErrorKind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            problems.push(Problem { field: member(&field, name), reason: "is required".into() });
        }
        ValidationErrorKind::AdditionalProperties { unexpected }
        | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
            let unknown = unexpected
                .iter()
                .map(|name| Problem { field: shorten(member(&field, name)), reason: STRANGE.into() });
            problems.extend(unknown.take(TOLD));
        }
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
            none_fits(error, context, problems);
        }
        ValidationErrorKind::OneOfMultipleValid { .. } => {
            let value = told(error.instance());
            let reason = format!("{value} fits several of the forms that it can have, and must fit one only");
            problems.push(Problem { field, reason });
        }
        _ => {
            let value = told(error.instance());
            problems.push(Problem { field, reason: shorten(error.masked_with(value).to_string()) });
        }
    }
}

/// The errors of one alternative.
type Alternative = Vec<ValidationError<'static>>;

/// Adds what is wrong with a value that fits none of several alternatives: which values there are to choose from, which
/// types, or what is wrong with it as the one that it is most like.
fn none_fits(error: &ValidationError<'_>, alternatives: &[Alternative], problems: &mut Vec<Problem>) {
    if let Some((at, choice)) = choice(error) {
        let choice: Vec<String> = choice.into_iter().map(told).collect();
        let value = error.instance().pointer(below(error.instance_path(), at)).map(told).unwrap_or_default();
        let reason = match &choice[..] {
            [only] => format!("{value} is not {only}"),
            all => format!("{value} is not one of {}", all.join(", ")),
        };
        return problems.push(Problem { field: path(at), reason: shorten(reason) });
    }
    let here = error.instance_path();
    let types: Option<Vec<String>> = alternatives
        .iter()
        .filter(|errors| !is_null_only(errors))
        .map(|errors| type_of(errors, here))
        .collect();
    if let Some(mut types) = types.filter(|types| !types.is_empty()) {
        types.dedup();
        let reason = format!("{} is not of type {}", told(error.instance()), types.join(" or "));
        return problems.push(Problem { field: path(here), reason: shorten(reason) });
    }
    let likeness = |errors: &&Alternative| {
        let deepest = errors.iter().map(|error| error.instance_path().segments().count()).max();
        let other_choice = errors.iter().any(|error| choice(error).is_some());
        (type_of(errors, here).is_some(), other_choice, errors.len(), Reverse(deepest))
    };
    match alternatives.iter().filter(|errors| !errors.is_empty()).min_by_key(likeness) {
        Some(errors) => errors.iter().for_each(|error| describe(error, problems)),
        None => {
            let reason = format!("{} has none of the forms that it can have", told(error.instance()));
            problems.push(Problem { field: path(here), reason });
        }
    }
}

/// Where the error is that one of a few values should stand, and which.
fn choice<'e>(error: &'e ValidationError<'_>) -> Option<(&'e Location, Vec<&'e Value>)> {
    match error.kind() {
        ValidationErrorKind::Constant { expected_value } => {
            Some((error.instance_path(), vec![&**expected_value]))
        }
        ValidationErrorKind::Enum { options } => {
            Some((error.instance_path(), options.as_array()?.iter().collect()))
        }
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
            let mut all: Option<(&Location, Vec<&Value>)> = None;
            for errors in context.iter().filter(|errors| !is_null_only(errors)) {
                let (at, some) = errors.iter().find_map(choice)?;
                match &mut all {
                    None => all = Some((at, some)),
                    Some((same, values)) if *same == at => {
                        values.extend(
                            some.into_iter().filter(|value| !values.contains(value)).collect::<Vec<_>>(),
                        );
                    }
                    Some(_) => return None,
                }
            }
            all
        }
        _ => None,
    }
}

/// Whether the alternative is null. Members that can be left out have it, and nobody means it who wrote a value.
fn is_null_only(errors: &Alternative) -> bool {
    let null = |error: &ValidationError<'_>| {
        matches!(error.kind(), ValidationErrorKind::Type { kind: TypeKind::Single(JsonType::Null) })
    };
    matches!(&errors[..], [only] if null(only))
}

/// The types that the alternative has, if the value at `here` is of another.
fn type_of(errors: &Alternative, here: &Location) -> Option<String> {
    errors.iter().filter(|error| error.instance_path() == here).find_map(|error| match error.kind() {
        ValidationErrorKind::Type { kind: TypeKind::Single(kind) } => Some(format!("\"{kind}\"")),
        ValidationErrorKind::Type { kind: TypeKind::Multiple(kinds) } => {
            let kinds = kinds.iter().filter(|kind| *kind != JsonType::Null);
            Some(kinds.map(|kind| format!("\"{kind}\"")).collect::<Vec<_>>().join(" or "))
        }
        _ => None,
    })
}

/// The rest of a path that goes on from another.
fn below<'p>(from: &Location, path: &'p Location) -> &'p str {
    path.as_str().strip_prefix(from.as_str()).unwrap_or_default()
}

/// A path as people write it: `list[2].name`.
fn path(location: &Location) -> String {
    let mut path = String::new();
    for segment in location.segments() {
        match segment {
            LocationSegment::Property(name) => path = member(&path, &name),
            LocationSegment::Index(at) => path.push_str(&format!("[{at}]")),
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::schema::Compiled;
    use super::*;

    fn told(schema: Value, value: Value) -> String {
        let problems = Compiled::new(&schema).unwrap().problems(&value);
        problems.iter().map(Problem::to_string).collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn alternatives_that_are_values_are_told() {
        let direction = json!({"oneOf": [
            {"description": "a", "type": "string", "const": "in"}, {"const": "out"}, {"enum": ["both", "out"]},
        ]});
        let optional = json!({"properties": {"d": {"anyOf": [{"$ref": "#/$defs/D"}, {"type": "null"}]}},
            "$defs": {"D": direction}});
        for wrong in [json!("sideways"), json!(5)] {
            assert_eq!(
                told(optional.clone(), json!({"d": wrong})),
                format!(r#"d: {wrong} is not one of "in", "out", "both""#)
            );
        }
        assert_eq!(told(json!({"anyOf": [{"const": 1}, {"type": "null"}]}), json!(2)), "2 is not 1");
        // The member that tells the alternatives apart.
        let shapes = json!({"properties": {"s": {"oneOf": [
            {"properties": {"kind": {"const": "round"}, "r": {"type": "number"}}, "required": ["kind", "r"]},
            {"properties": {"kind": {"const": "square"}, "a": {"type": "number"}}, "required": ["kind", "a"]},
        ]}}});
        assert_eq!(
            told(shapes.clone(), json!({"s": {"kind": "flat"}})),
            r#"s.kind: "flat" is not one of "round", "square""#
        );
        assert_eq!(told(shapes, json!({"s": {"kind": "square"}})), "s.a is required");
    }

    #[test]
    fn of_other_alternatives_the_one_that_fits_best_is_told() {
        let relation = json!({
            "type": "object",
            "properties": {"to": {"type": "string"}, "sure": {"type": "number", "maximum": 1}},
            "required": ["to"],
        });
        let schema = json!({"properties": {"r": {"anyOf": [relation, {"type": "null"}]}}});
        let text = "x".repeat(10_000);
        assert_eq!(
            told(schema.clone(), json!({"r": {"to": text, "sure": 2}})),
            "r.sure: 2 is greater than the maximum of 1"
        );
        assert_eq!(told(schema.clone(), json!({"r": {"sure": 1}})), "r.to is required");
        assert_eq!(told(schema, json!({"r": [1]})), r#"r: [1] is not of type "object""#);
        let names = json!({"properties": {"from": {"anyOf": [
            {"type": "string"}, {"type": "array", "items": {"type": "string"}},
        ]}}});
        assert_eq!(told(names.clone(), json!({"from": 5})), r#"from: 5 is not of type "string" or "array""#);
        assert_eq!(told(names, json!({"from": ["a", 5]})), r#"from[1]: 5 is not of type "string""#);
        assert!(told(json!({"oneOf": [{}, {}]}), json!(1)).contains("fits several"));
        assert!(told(json!({"anyOf": [false, false]}), json!(1)).contains("1"));
    }

    #[test]
    fn the_nearest_argument_is_told() {
        let known = ["entities", "entityName", "contents", "tenant_id"].map(str::to_owned);
        for (name, said) in [
            ("entitites", r#"unknown argument "entitites"; did you mean "entities"?"#),
            ("entity", r#"unknown argument "entity"; did you mean "entityName"?"#),
            ("content", r#"unknown argument "content"; did you mean "contents"?"#),
            (
                "zebra",
                r#"unknown argument "zebra"; the arguments are "entities", "entityName", "contents", "tenant_id""#,
            ),
        ] {
            assert_eq!(unknown(name, &known).to_string(), said);
        }
        assert_eq!(unknown("x", &[]).to_string(), r#"unknown argument "x"; there are no arguments"#);
        assert!(unknown(&"é".repeat(10_000), &known).to_string().len() < 300);
    }

    #[test]
    fn long_values_are_cut_and_the_reason_is_not() {
        let schema = json!({"properties": {"a": {"type": "number"}, "b": {"enum": ["x", "y"]}}});
        let long = "é".repeat(10_000);
        let told = told(schema, json!({"a": long, "b": long}));
        assert!(told.contains("é…") && told.len() < 300, "{told}");
        assert!(
            told.contains(r#"is not of type "number""#) && told.contains(r#"is not one of "x" or "y""#),
            "{told}"
        );
    }
}
