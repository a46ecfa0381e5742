//! The file format of `server-memory`: one JSON object a line, `{"type": "entity", …}` or `{"type": "relation", …}`.

mod agents;
pub(crate) mod devflow;
mod documents;
pub(crate) mod file;
mod graph;
pub(crate) mod history;
mod numbers;
pub(crate) mod page;
pub(crate) mod read;

use serde::Serialize;

use crate::error::{Fault, Result};
use crate::graph::model::{Entity, Relation};

/// A line of the file.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum GraphLine<'a> {
    Entity(&'a Entity),
    Relation(&'a Relation),
}

impl GraphLine<'_> {
    fn written(&self) -> Result<String> {
        serde_json::to_string(self)
            .map_err(|error| Fault::input("graph", format!("cannot be written as JSON: {error}")))
    }
}

/// How many bytes a line takes in an answer, where what JSON has signs for is written with two of them.
fn cost(line: &str) -> usize {
    line.len() + line.bytes().filter(|byte| b"\"\\".contains(byte)).count() + "\\n".len()
}
