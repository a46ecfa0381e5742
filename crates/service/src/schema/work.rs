//! How many steps checking a value takes, counted without making them.

use std::fmt;

use serde_json::Value;

use super::graph::Graph;

/// How many bytes of a string cost as much as one subschema.
const BYTES_A_STEP: usize = 64;
/// How many steps it takes to compare one part of a value with others.
const COMPARED: u64 = 4;
/// How many subschemas may be inside each other on the way to the deepest part of a value. More would need a larger
/// stack than threads have.
const DEEPEST: usize = 2_000;

/// Why a value is not checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TooMuchWork {
    /// It would take too many steps.
    Steps,
    /// It was not done in time.
    Time,
}

impl fmt::Display for TooMuchWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TooMuchWork::Steps => "too large or too deeply nested to be checked against the schema",
            TooMuchWork::Time => {
                "not checked against the schema in time, because too many large values are being checked"
            }
        })
    }
}

impl std::error::Error for TooMuchWork {}

/// How many steps checking the value takes at the most, if those are no more than `limit`.
pub(super) fn steps(graph: &Graph, value: &Value, limit: u64) -> Result<u64, TooMuchWork> {
    let mut size = Size { room: limit, deepest: 0 };
    if !size.add(value, 1) || size.deepest.saturating_mul(graph.height) > DEEPEST {
        return Err(TooMuchWork::Steps);
    }
    // Most schemas look at each part of a value a few times only.
    let rough = graph.per_path.map_or(u64::MAX, |per_path| per_path.saturating_mul(limit - size.room));
    if rough <= limit {
        return Ok(rough);
    }
    let mut count = Count { graph, left: limit };
    count.apply(0, value).ok_or(TooMuchWork::Steps)?;
    Ok(limit - count.left)
}

/// What one value costs whoever looks at it.
fn own_size(value: &Value) -> u64 {
    match value {
        Value::String(text) => 1 + (text.len() / BYTES_A_STEP) as u64,
        _ => 1,
    }
}

/// How large a value is, up to what there is room for, and how deep.
struct Size {
    room: u64,
    deepest: usize,
}

impl Size {
    fn add(&mut self, value: &Value, depth: usize) -> bool {
        self.deepest = self.deepest.max(depth);
        match self.room.checked_sub(own_size(value)) {
            Some(room) => self.room = room,
            None => return false,
        }
        match value {
            Value::Object(members) => members.values().all(|inner| self.add(inner, depth + 1)),
            Value::Array(items) => items.iter().all(|inner| self.add(inner, depth + 1)),
            _ => true,
        }
    }
}

/// Goes where a validator goes, and counts.
struct Count<'a> {
    graph: &'a Graph,
    left: u64,
}

impl Count<'_> {
    fn apply(&mut self, node: usize, value: &Value) -> Option<()> {
        let graph = self.graph;
        let node = &graph.nodes[node];
        self.left = self.left.checked_sub(node.weight.saturating_mul(own_size(value)))?;
        let before = self.left;
        for &child in &node.in_place {
            self.apply(child, value)?;
        }
        if node.unevaluated {
            let parts = match value {
                Value::Object(members) => members.len(),
                Value::Array(items) => items.len(),
                _ => 0,
            };
            self.left = self.left.checked_sub((before - self.left).saturating_mul(1 + parts as u64))?;
        }
        match value {
            Value::Object(members) => {
                for (name, inner) in members {
                    match node.members.get(name.as_str()) {
                        Some(&child) => self.apply(child, inner)?,
                        None => node.other_members.iter().try_for_each(|&child| self.apply(child, inner))?,
                    }
                    for &child in &node.all_members {
                        self.apply(child, inner)?;
                    }
                    for &child in &node.names {
                        let letters = 1 + (name.len() / BYTES_A_STEP) as u64;
                        self.left = self.left.checked_sub(graph.nodes[child].flat.saturating_mul(letters))?;
                    }
                }
            }
            Value::Array(items) => {
                if node.unique {
                    // Each is hashed, and compared with those of the same hash.
                    let mut size = Size { room: self.left / COMPARED, deepest: 0 };
                    if !size.add(value, 1) {
                        return None;
                    }
                    self.left -= (self.left / COMPARED - size.room) * COMPARED;
                }
                for (at, inner) in items.iter().enumerate() {
                    if let Some(&child) = node.elements.get(at) {
                        self.apply(child, inner)?;
                    }
                    for &child in &node.all_elements {
                        self.apply(child, inner)?;
                    }
                }
            }
            _ => {}
        }
        Some(())
    }
}
