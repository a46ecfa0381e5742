//! The functions that conditions may call.

use std::collections::HashMap;
use std::sync::Arc;

use cel::common::types::CelString;
use cel::extractors::This;
use cel::{Context, Env};
use regex::Regex;
use tidegate_service::nearest_name;

use super::cost::Cost;

/// Functions by the names that people use.
const NAMED: [&str; 12] = [
    "size",
    "contains",
    "startsWith",
    "endsWith",
    "matches",
    "lowerAscii",
    "int",
    "uint",
    "double",
    "string",
    "bool",
    "type",
];
/// Those that are written behind a text.
pub(super) const OF_TEXTS: [&str; 5] = ["contains", "startsWith", "endsWith", "matches", "lowerAscii"];
/// What the parser makes into something else.
const MACROS: [&str; 6] = ["has", "all", "exists", "exists_one", "map", "filter"];
/// Operators, by the names of the parser.
const OPERATORS: [&str; 18] = [
    "_?_:_", "_&&_", "_||_", "!_", "_-_", "_+_", "_*_", "_/_", "_%_", "_==_", "_!=_", "_>=_", "_<=_", "_>_",
    "_<_", "-_", "_[_]", "@in",
];
/// Made by macros.
const INTERNAL: [&str; 1] = ["@not_strictly_false"];

/// Whether there is such a function. The error is the rest of a sentence.
pub(super) fn known(name: &str) -> Result<(), String> {
    if NAMED.contains(&name) || OPERATORS.contains(&name) || INTERNAL.contains(&name) {
        return Ok(());
    }
    let all = NAMED.into_iter().chain(MACROS);
    Err(match nearest_name(name, all.clone()) {
        Some(meant) if meant == name => "which is used in the wrong way: see the documentation".to_owned(),
        Some(meant) => format!("which does not exist; did you mean {meant}()?"),
        None => format!("which does not exist: there are {}", all.collect::<Vec<_>>().join(", ")),
    })
}

/// What a call of it takes, without its arguments.
pub(super) fn cost(name: &str) -> Cost {
    match name {
        "@in" => Cost::steps(2).and_elements(),
        // A byte may take a step for each state of the expression.
        "matches" => Cost::steps(16).and_bytes(128),
        "_+_" => Cost::steps(2).and_bytes(1).and_elements().and_sum(),
        "_==_" | "_!=_" | "_<_" | "_<=_" | "_>_" | "_>=_" | "contains" | "startsWith" | "endsWith"
        | "lowerAscii" | "size" | "string" | "int" | "uint" | "double" | "bool" => {
            Cost::steps(2).and_bytes(1)
        }
        _ => Cost::steps(2),
    }
}

/// Adds those that CEL does not have by itself, with the names that its extensions for strings have.
pub(super) fn add(env: &mut Env) {
    let added = cel::add_member_overload!(env, fn lower_ascii: (CelString<'_>) -> CelString<'_>);
    debug_assert!(added.is_ok(), "no other feature of the crate may declare it");
}

fn lower_ascii(text: &CelString<'_>) -> CelString<'static> {
    text.to_ascii_lowercase().into()
}

/// `matches`, with regular expressions that were compiled before.
pub(super) fn add_matches(context: &mut Context<'_, '_>, regexes: Arc<HashMap<String, Regex>>) {
    let matches = move |This(text): This<Arc<String>>, pattern: Arc<String>| -> bool {
        regexes.get(pattern.as_str()).is_some_and(|regex| regex.is_match(&text))
    };
    let added = context.add_function("matches", matches);
    debug_assert!(added.is_ok(), "no other feature of the crate may declare it");
}
