//! [`Graph`]: which subschemas a schema applies to what, references resolved.

use std::collections::HashMap;

use serde_json::Value;

use super::Unusable;
use super::references::{Index, Target, refusal};

/// How many patterns a schema may have: far beyond what people write.
const MAX_PATTERNS: usize = 500;
/// To how many subschemas one may unfold that are all checked against the same value.
const MAX_UNFOLDED: u64 = 10_000;
/// The same for one that looks for what was not evaluated: those are compiled once more, and slowly.
const MAX_UNEVALUATED: u64 = 256;
/// How many subschemas may be inside each other for the same value.
const MAX_HEIGHT: usize = 64;
/// How deep values are at most: what messages are held to.
const VALUE_DEPTH: usize = 128;
/// What all patterns of a schema together may take when compiled, and what one may take in any case.
const PATTERN_BYTES: usize = 32 * 1024 * 1024;
const ONE_PATTERN: (usize, usize) = (64 * 1024, 10 * 1024 * 1024);
/// What checking one value against the schema of schemas costs.
const META_SCHEMA: u64 = 100;
/// What a pattern costs that the fast engine cannot do.
const SLOW_PATTERN: u64 = 2_000;

/// Keywords whose value, whose values or whose members are checked against the same value as the schema itself.
const IN_PLACE: [&str; 4] = ["not", "if", "then", "else"];
const IN_PLACE_LISTS: [&str; 3] = ["allOf", "anyOf", "oneOf"];
const IN_PLACE_MAPS: [&str; 2] = ["dependentSchemas", "dependencies"];
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// One subschema.
#[derive(Debug, Default)]
pub(super) struct Node {
    /// What it costs by itself.
    pub(super) weight: u64,
    /// What is checked against the same value.
    pub(super) in_place: Vec<usize>,
    /// What is checked against members of these names.
    pub(super) members: HashMap<Box<str>, usize>,
    /// What is checked against members of any name, and of names that `members` does not have.
    pub(super) all_members: Vec<usize>,
    pub(super) other_members: Vec<usize>,
    /// What is checked against the names of members.
    pub(super) names: Vec<usize>,
    /// What is checked against the elements at these places, and against any element.
    pub(super) elements: Vec<usize>,
    pub(super) all_elements: Vec<usize>,
    /// Whether what was not evaluated is looked for: everything in place is checked once more for each part of the value.
    pub(super) unevaluated: bool,
    /// Whether elements are compared with each other.
    pub(super) unique: bool,
    /// What it and everything in its place cost for a value without parts.
    pub(super) flat: u64,
}

/// A schema as what applies to what. The first node is the whole.
#[derive(Debug)]
pub(super) struct Graph {
    pub(super) nodes: Vec<Node>,
    /// What is checked, at the most, along any way into a value; `None` if that depends on how wide the value is.
    pub(super) per_path: Option<u64>,
    /// How many subschemas are inside each other for one value.
    pub(super) height: usize,
    patterns: usize,
}

impl Graph {
    /// Looks at a schema, and refuses one that asks for too much.
    pub(super) fn of(schema: &Value) -> Result<Graph, Unusable> {
        let mut index = Index::of(schema);
        index.read(schema, 0)?;
        if index.patterns > MAX_PATTERNS {
            return Err(refusal(format!("the schema has more than {MAX_PATTERNS} patterns")));
        }
        let mut building = Building {
            index: &index,
            nodes: Vec::new(),
            found: HashMap::new(),
            open: Vec::new(),
            meta: None,
        };
        building.node(schema);
        while let Some((at, schema)) = building.open.pop() {
            let node = building.read(schema)?;
            building.nodes[at] = node;
        }
        let mut graph = Graph { nodes: building.nodes, per_path: None, height: 0, patterns: index.patterns };
        let order = graph.in_place_order()?;
        let depends_on_width = graph.nodes.iter().any(|node| node.unevaluated || node.unique);
        graph.per_path = (!depends_on_width).then(|| graph.work_per_path(&order));
        Ok(graph)
    }

    /// What one of its patterns may take when compiled.
    pub(super) fn pattern_bytes(&self) -> usize {
        (PATTERN_BYTES / self.patterns.max(1)).clamp(ONE_PATTERN.0, ONE_PATTERN.1)
    }

    /// All nodes, each after those that are checked in its place. Refuses cycles, and what unfolds too far.
    fn in_place_order(&mut self) -> Result<Vec<usize>, Unusable> {
        #[derive(Clone, Copy, PartialEq)]
        enum State {
            New,
            Open,
            Done { unfolded: u64, height: usize },
        }
        let mut states = vec![State::New; self.nodes.len()];
        let mut order = Vec::with_capacity(self.nodes.len());
        for start in 0..self.nodes.len() {
            let mut path = vec![(start, 0)];
            while let Some((node, next)) = path.last_mut() {
                let node = *node;
                if *next == 0 && matches!(states[node], State::Done { .. }) {
                    path.pop();
                    continue;
                }
                states[node] = State::Open;
                if let Some(&child) = self.nodes[node].in_place.get(*next) {
                    *next += 1;
                    match states[child] {
                        State::New => path.push((child, 0)),
                        State::Open => {
                            return Err(refusal(
                                "the schema refers to itself without going into the value, so checking would never end",
                            ));
                        }
                        State::Done { .. } => {}
                    }
                    continue;
                }
                let (mut unfolded, mut height) = (1u64, 0);
                for &child in &self.nodes[node].in_place {
                    if let State::Done { unfolded: more, height: below } = states[child] {
                        unfolded = unfolded.saturating_add(more);
                        height = height.max(below);
                    }
                }
                if unfolded > MAX_UNFOLDED {
                    return Err(refusal(format!(
                        "its references and combinations unfold to more than {MAX_UNFOLDED} subschemas for one value"
                    )));
                }
                if self.nodes[node].unevaluated && unfolded > MAX_UNEVALUATED {
                    return Err(refusal(format!(
                        "it looks for what was not evaluated among more than {MAX_UNEVALUATED} subschemas"
                    )));
                }
                if height >= MAX_HEIGHT {
                    return Err(refusal(format!(
                        "more than {MAX_HEIGHT} of its subschemas are inside each other for one value"
                    )));
                }
                let flat = |node: &Node| node.weight.saturating_mul(if node.unevaluated { 2 } else { 1 });
                let below = self.nodes[node]
                    .in_place
                    .iter()
                    .fold(0u64, |sum, &n| sum.saturating_add(self.nodes[n].flat));
                self.nodes[node].flat = flat(&self.nodes[node]).saturating_add(below);
                self.height = self.height.max(height + 1);
                states[node] = State::Done { unfolded, height: height + 1 };
                order.push(node);
                path.pop();
            }
        }
        Ok(order)
    }

    /// The largest sum of weights along a way into a value, for values as deep as messages may be.
    fn work_per_path(&self, order: &[usize]) -> u64 {
        let mut before = vec![0u64; self.nodes.len()];
        for _ in 0..VALUE_DEPTH {
            // For a value that is an object, and for one that is a list.
            let mut now = vec![(0u64, 0u64); self.nodes.len()];
            for &at in order {
                let node = &self.nodes[at];
                let sum = |of: &[usize]| of.iter().fold(0u64, |sum, &n| sum.saturating_add(before[n]));
                let most = |of: &mut dyn Iterator<Item = usize>| of.map(|n| before[n]).max().unwrap_or(0);
                let names = node.names.iter().fold(0u64, |sum, &n| sum.saturating_add(self.nodes[n].flat));
                let named = most(&mut node.members.values().copied()).max(sum(&node.other_members));
                let object = named.saturating_add(sum(&node.all_members)).saturating_add(names);
                let list = most(&mut node.elements.iter().copied()).saturating_add(sum(&node.all_elements));
                let (mut in_object, mut in_list) = (node.weight, node.weight);
                for &child in &node.in_place {
                    in_object = in_object.saturating_add(now[child].0);
                    in_list = in_list.saturating_add(now[child].1);
                }
                now[at] = (in_object.saturating_add(object), in_list.saturating_add(list));
            }
            let now: Vec<u64> = now.into_iter().map(|(object, list)| object.max(list)).collect();
            if now == before {
                break;
            }
            before = now;
        }
        before[0]
    }
}

struct Building<'a> {
    index: &'a Index<'a>,
    nodes: Vec<Node>,
    /// The nodes of values, which are told apart by where they are.
    found: HashMap<*const Value, usize>,
    open: Vec<(usize, &'a Value)>,
    /// The node that stands for the schema of schemas.
    meta: Option<usize>,
}

impl<'a> Building<'a> {
    /// The node of a subschema, read later if it is new.
    fn node(&mut self, schema: &'a Value) -> usize {
        let next = self.nodes.len();
        *self.found.entry(std::ptr::from_ref(schema)).or_insert_with(|| {
            self.nodes.push(Node::default());
            self.open.push((next, schema));
            next
        })
    }

    fn read(&mut self, schema: &'a Value) -> Result<Node, Unusable> {
        let mut node = Node { weight: 1, ..Node::default() };
        let Value::Object(members) = schema else { return Ok(node) };
        let is_schema = |value: &Value| value.is_object() || value.is_boolean();
        for (keyword, value) in members {
            let mut list = |of: &'a Value| -> Vec<usize> {
                of.as_array().into_iter().flatten().map(|one| self.node(one)).collect()
            };
            match (keyword.as_str(), value) {
                (name, _) if IN_PLACE.contains(&name) => node.in_place.push(self.node(value)),
                (name, _) if IN_PLACE_LISTS.contains(&name) => node.in_place.extend(list(value)),
                (name, Value::Object(named)) if IN_PLACE_MAPS.contains(&name) => {
                    let schemas = named.values().filter(|one| is_schema(one));
                    node.in_place.extend(schemas.map(|one| self.node(one)));
                    node.weight += size(value);
                }
                (name, Value::String(to)) if REFERENCES.contains(&name) => {
                    node.in_place.push(match self.index.find(to)? {
                        Target::Here(schema) => self.node(schema),
                        Target::MetaSchema => self.meta_schema(),
                    });
                }
                ("properties", Value::Object(named)) => {
                    node.members = named.iter().map(|(n, one)| (n.as_str().into(), self.node(one))).collect();
                    node.weight += named.len() as u64;
                }
                ("patternProperties", Value::Object(named)) => {
                    node.all_members.extend(named.values().map(|one| self.node(one)));
                    node.weight += named.keys().map(|pattern| pattern_weight(pattern)).sum::<u64>();
                }
                ("additionalProperties", _) => node.other_members.push(self.node(value)),
                ("unevaluatedProperties", _) => {
                    node.all_members.push(self.node(value));
                    node.unevaluated = true;
                }
                ("unevaluatedItems", _) => {
                    node.all_elements.push(self.node(value));
                    node.unevaluated = true;
                }
                ("propertyNames", _) => node.names.push(self.node(value)),
                ("prefixItems" | "items", Value::Array(_)) => node.elements = list(value),
                ("items" | "additionalItems" | "contains", _) => node.all_elements.push(self.node(value)),
                ("uniqueItems", Value::Bool(true)) => node.unique = true,
                ("enum" | "const" | "required" | "dependentRequired", _) => node.weight += size(value),
                ("pattern", Value::String(pattern)) => node.weight += pattern_weight(pattern),
                _ => {}
            }
        }
        Ok(node)
    }

    /// The schemas of schemas come with the compiler: they go into every part of a value, and look at it a few dozen times.
    fn meta_schema(&mut self) -> usize {
        let next = self.nodes.len();
        *self.meta.get_or_insert_with(|| {
            self.nodes.push(Node {
                weight: META_SCHEMA,
                all_members: vec![next],
                all_elements: vec![next],
                ..Node::default()
            });
            next
        })
    }
}

/// How many values a value consists of.
fn size(value: &Value) -> u64 {
    match value {
        Value::Object(members) => 1 + members.values().map(size).sum::<u64>(),
        Value::Array(items) => 1 + items.iter().map(size).sum::<u64>(),
        _ => 1,
    }
}

/// A pattern costs much if the engine that never looks back cannot do it.
fn pattern_weight(pattern: &str) -> u64 {
    const SLOW: [&str; 11] = ["(?=", "(?!", "(?<", "(?>", "(?(", "\\k", "\\G", "\\K", "++", "*+", "?+"];
    let again =
        pattern.as_bytes().windows(2).any(|pair| pair[0] == b'\\' && (b'1'..=b'9').contains(&pair[1]));
    if again || SLOW.iter().any(|mark| pattern.contains(mark)) { SLOW_PATTERN } else { 1 }
}
