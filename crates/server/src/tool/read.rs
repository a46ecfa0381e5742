//! Reading arguments into a handler's Rust type, and in plain words why that cannot be done.

use serde::de::DeserializeOwned;
use serde_json::{Number, Value};
use serde_path_to_error::{Path, Segment};

use super::problem::{Problem, member, shorten};
use crate::cx::Cx;

/// Arguments that fit the schema and not the handler's type. They are used up.
pub(crate) struct Misread {
    pub(super) cx: Cx,
    /// What is wrong with the arguments, given them again.
    pub(super) why: fn(Value) -> Option<Problem>,
}

/// Reads a value as arguments are read: `1.0` is an integer too, and what is wrong is said in words for whoever wrote the
/// value, by its place and without the names of Rust types.
///
/// ```
/// #[derive(Debug, serde::Deserialize)]
/// struct Line {
///     width: u8,
/// }
///
/// let line: Line = tidegate_server::read_value(serde_json::json!({"width": 3.0})).unwrap();
/// assert_eq!(line.width, 3);
/// let told = tidegate_server::read_value::<Line>(serde_json::json!({"width": 300})).unwrap_err();
/// assert_eq!(told, "width: must be a whole number from 0 to 255");
/// ```
pub fn read_value<A: DeserializeOwned>(value: Value) -> Result<A, String> {
    read(value).map_err(|problem| problem.to_string())
}

/// Reads a value that is small, where a copy of it does not matter.
pub(crate) fn read<A: DeserializeOwned>(mut value: Value) -> Result<A, Problem> {
    serde_json::from_value(value.clone()).or_else(|_| {
        whole_numbers(&mut value);
        let read = serde_path_to_error::deserialize(value);
        read.map_err(|error| problem(written(error.path()), &error.inner().to_string()))
    })
}

/// What keeps `arguments` from being an `A`.
pub(super) fn why<A: DeserializeOwned>(arguments: Value) -> Option<Problem> {
    let error = serde_path_to_error::deserialize::<_, A>(arguments).err()?;
    Some(problem(written(error.path()), &error.inner().to_string()))
}

/// Writes every number without a fraction as an integer, as far as there are integers that large: JSON Schema does not
/// tell `1.0` from `1`, and Rust does.
pub(super) fn whole_numbers(value: &mut Value) {
    match value {
        Value::Number(number) => {
            if let Some(whole) = number.as_f64().filter(|_| number.is_f64()).and_then(whole) {
                *number = whole;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(whole_numbers),
        Value::Object(members) => members.values_mut().for_each(whole_numbers),
        _ => {}
    }
}

fn whole(number: f64) -> Option<Number> {
    /// The first number above all that an `i64` can be, and the same for `u64`.
    const ABOVE_I64: f64 = 9_223_372_036_854_775_808.0;
    const ABOVE_U64: f64 = 18_446_744_073_709_551_616.0;
    if number.fract() != 0.0 {
        None
    } else if (-ABOVE_I64..ABOVE_I64).contains(&number) {
        Some(Number::from(number as i64))
    } else if (ABOVE_I64..ABOVE_U64).contains(&number) {
        Some(Number::from(number as u64))
    } else {
        None
    }
}

/// The path as people write it: `list[2].name`.
fn written(path: &Path) -> String {
    let mut text = String::new();
    for segment in path {
        match segment {
            Segment::Map { key } => text = member(&text, key),
            Segment::Seq { index } => text.push_str(&format!("[{index}]")),
            Segment::Enum { .. } | Segment::Unknown => {}
        }
    }
    text
}

/// The words of serde are for those who know the Rust type; these are for those who wrote the value.
fn problem(field: String, said: &str) -> Problem {
    let named = |rest: &str| rest.split('`').nth(1).map(|name| member(&field, name));
    for (begin, reason) in [
        ("missing field ", "is required"),
        ("unknown field ", "is not a known field"),
        ("duplicate field ", "is given twice"),
    ] {
        if let Some(field) = said.strip_prefix(begin).and_then(named) {
            return Problem { field, reason: reason.to_owned() };
        }
    }
    let reason = match said.split_once(", expected ") {
        Some((begin, wanted)) if begin.starts_with("unknown variant ") => {
            format!("must be {}", wanted.replace('`', "\""))
        }
        Some((begin, wanted)) if begin.starts_with("invalid ") => format!("must be {}", plain(wanted)),
        _ if said.contains("did not match any variant") => {
            "has none of the forms that it can have".to_owned()
        }
        _ => said.to_owned(),
    };
    Problem { field, reason: shorten(reason) }
}

/// What serde expected, as somebody would say it who does not know Rust.
fn plain(wanted: &str) -> String {
    let whole = |least: i128, most: i128| format!("a whole number from {least} to {most}");
    let (least, kind) = match wanted.strip_prefix("a nonzero ") {
        Some(kind) => (Some(1), kind),
        None => (None, wanted),
    };
    match kind {
        "i8" => whole(i8::MIN.into(), i8::MAX.into()),
        "i16" => whole(i16::MIN.into(), i16::MAX.into()),
        "i32" => whole(i32::MIN.into(), i32::MAX.into()),
        "i64" | "isize" => whole(i64::MIN.into(), i64::MAX.into()),
        "u8" => whole(least.unwrap_or(0), u8::MAX.into()),
        "u16" => whole(least.unwrap_or(0), u16::MAX.into()),
        "u32" => whole(least.unwrap_or(0), u32::MAX.into()),
        "u64" | "usize" => whole(least.unwrap_or(0), u64::MAX.into()),
        "i128" | "u128" => "a whole number".to_owned(),
        "f32" | "f64" => "a number".to_owned(),
        "a boolean" => "true or false".to_owned(),
        "unit" | "null" => "null".to_owned(),
        "a map" => "an object".to_owned(),
        "a sequence" => "a list".to_owned(),
        "a string" | "a borrowed string" | "str" | "string or map" => "a text".to_owned(),
        "a character" => "a text of one character".to_owned(),
        other => match other.strip_prefix("a tuple of size ").or(other.strip_prefix("an array of length ")) {
            Some(size) => format!("a list of {size}"),
            // Names of Rust types say nothing to a caller.
            None if other.contains("tuple ") => "a list".to_owned(),
            None if other.contains("struct ") || other.contains("enum ") => "an object".to_owned(),
            None => other.to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Deserialize)]
    #[allow(dead_code)]
    struct Args {
        timestamp: Option<i64>,
        #[serde(default)]
        limits: Vec<Limit>,
        size: Option<std::num::NonZeroU32>,
        kind: Option<Kind>,
        either: Option<Either>,
        pair: Option<(u8, String)>,
        tagged: Option<Tagged>,
        flag: Option<bool>,
        text: Option<String>,
        #[serde(alias = "otherName")]
        other_name: Option<f64>,
        named: Option<std::net::Ipv4Addr>,
    }

    #[derive(Deserialize)]
    #[allow(dead_code)]
    struct Limit {
        limit: usize,
    }

    #[derive(Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Kind {
        In,
        Out,
    }

    #[derive(Deserialize)]
    #[serde(untagged)]
    #[allow(dead_code)]
    enum Either {
        One(String),
        Many(Vec<String>),
    }

    #[derive(Deserialize)]
    #[serde(tag = "type")]
    enum Tagged {
        A {},
    }

    #[test]
    fn no_names_of_rust_types() {
        let all_of_i64 = "must be a whole number from -9223372036854775808 to 9223372036854775807";
        for (arguments, field, reason) in [
            (json!({"timestamp": 1e300}), "timestamp", all_of_i64),
            (json!({"timestamp": 1.5}), "timestamp", all_of_i64),
            (
                json!({"limits": [{"limit": 1}, {"limit": -1}]}),
                "limits[1].limit",
                "must be a whole number from 0 to 18446744073709551615",
            ),
            (json!({"limits": [{}]}), "limits[0].limit", "is required"),
            (json!({"limits": [3]}), "limits[0]", "must be an object"),
            (json!({"limits": 3}), "limits", "must be a list"),
            (json!({"size": 0}), "size", "must be a whole number from 1 to 4294967295"),
            (json!({"kind": "up"}), "kind", "must be \"in\" or \"out\""),
            (json!({"either": 3}), "either", "has none of the forms that it can have"),
            (json!({"pair": [1]}), "pair", "must be a list of 2"),
            (json!({"pair": [300, ""]}), "pair[0]", "must be a whole number from 0 to 255"),
            (json!({"tagged": 3}), "tagged", "must be an object"),
            (json!({"flag": 3}), "flag", "must be true or false"),
            (json!({"text": 3}), "text", "must be a text"),
            (json!({"other_name": 1, "otherName": 2}), "other_name", "is given twice"),
        ] {
            let problem = why::<Args>(arguments.clone());
            let want = Problem { field: field.to_owned(), reason: reason.to_owned() };
            assert_eq!(problem, Some(want), "{arguments}");
        }
        // What a type says for itself stays.
        assert_eq!(
            why::<Args>(json!({"named": "x"})).unwrap().to_string(),
            "named: invalid IPv4 address syntax"
        );
        assert_eq!(why::<Args>(json!({"timestamp": 5, "limits": [{"limit": 1}]})), None);
    }

    #[test]
    fn numbers_without_a_fraction_become_integers() {
        let mut value = json!({"a": [1.0, -0.0, 1.5, 1e300, -1e18], "b": {"c": 1e19, "d": "1.0", "e": 7}});
        whole_numbers(&mut value);
        assert_eq!(
            value,
            json!({
                "a": [1, 0, 1.5, 1e300, -1_000_000_000_000_000_000_i64],
                "b": {"c": 10_000_000_000_000_000_000_u64, "d": "1.0", "e": 7},
            })
        );
    }
}
