//! The file format of `server-memory`: one JSON object a line, `{"type": "entity", …}` or `{"type": "relation", …}`.

pub(crate) mod file;
pub(crate) mod numbers;
pub(crate) mod part;
pub(crate) mod read;
pub(crate) mod whole;

use serde::Serialize;

use crate::graph::model::{Entity, Relation};
use crate::store::{Fault, Result};

/// A line of the file.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Line<'a> {
    Entity(&'a Entity),
    Relation(&'a Relation),
}

impl Line<'_> {
    fn written(&self) -> Result<String> {
        serde_json::to_string(self)
            .map_err(|error| Fault::input("graph", format!("cannot be written as JSON: {error}")))
    }
}

/// How many bytes a line takes in an answer, where what JSON has signs for is written with two of them.
fn cost(line: &str) -> usize {
    line.len() + line.bytes().filter(|byte| b"\"\\".contains(byte)).count() + "\\n".len()
}
