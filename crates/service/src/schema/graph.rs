//! [`Graph`]: which subschemas a schema applies to what, references resolved.

use std::collections::HashMap;

use serde_json::Value;

use super::Unusable;

/// How deep a schema may nest, and how many subschemas and patterns it may have. All far beyond what people write.
const MAX_DEPTH: usize = 64;
const MAX_SUBSCHEMAS: usize = 10_000;
const MAX_PATTERNS: usize = 1_000;
/// To how many subschemas one may unfold that are all checked against the same value.
const MAX_UNFOLDED: u64 = 10_000;
/// How many subschemas may be inside each other for the same value.
const MAX_HEIGHT: usize = 64;
/// How deep values are at most: what messages are held to.
const VALUE_DEPTH: usize = 128;
/// What all patterns of a schema together may take when compiled, and what one may take in any case.
const PATTERN_BYTES: usize = 64 * 1024 * 1024;
const ONE_PATTERN: (usize, usize) = (256 * 1024, 10 * 1024 * 1024);
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
}

/// A schema as what applies to what. The first node is the whole.
#[derive(Debug)]
pub(super) struct Graph {
    pub(super) nodes: Vec<Node>,
    /// How many subschemas are checked, at the most, along any way into a value.
    pub(super) per_path: u64,
    /// How many subschemas are inside each other for one value.
    pub(super) height: usize,
    patterns: usize,
}

impl Graph {
    /// Looks at a schema, and refuses one that asks for too much.
    pub(super) fn of(schema: &Value) -> Result<Graph, Unusable> {
        let mut index = Index {
            root: schema,
            addressed: Vec::new(),
            anchors: HashMap::new(),
            subschemas: 0,
            patterns: 0,
        };
        index.read(schema, schema, 0)?;
        if index.patterns > MAX_PATTERNS {
            return Err(refusal(format!("the schema has more than {MAX_PATTERNS} patterns")));
        }
        let mut building =
            Building { index: &index, nodes: Vec::new(), found: HashMap::new(), open: Vec::new() };
        building.node(schema, schema);
        while let Some((at, schema, base)) = building.open.pop() {
            let node = building.read(schema, base)?;
            building.nodes[at] = node;
        }
        let mut graph = Graph { nodes: building.nodes, per_path: 0, height: 0, patterns: index.patterns };
        let order = graph.in_place_order()?;
        graph.per_path = graph.work_per_path(&order);
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
                if height >= MAX_HEIGHT {
                    return Err(refusal(format!(
                        "more than {MAX_HEIGHT} of its subschemas are inside each other for one value"
                    )));
                }
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
                let names = node.names.iter().fold(0u64, |sum, &n| sum.saturating_add(self.nodes[n].weight));
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

fn refusal(reason: impl Into<String>) -> Unusable {
    Unusable { place: String::new(), reason: reason.into() }
}

/// What references can lead to.
struct Index<'a> {
    root: &'a Value,
    /// Schemas that have an address of their own.
    addressed: Vec<(&'a str, &'a Value)>,
    /// Schemas that have a name, and the addressed schema that they are in.
    anchors: HashMap<&'a str, Vec<(&'a Value, &'a Value)>>,
    subschemas: usize,
    patterns: usize,
}

impl<'a> Index<'a> {
    fn read(&mut self, value: &'a Value, base: &'a Value, depth: usize) -> Result<(), Unusable> {
        if depth > MAX_DEPTH {
            return Err(refusal(format!("the schema nests more than {MAX_DEPTH} levels deep")));
        }
        match value {
            Value::Object(members) => {
                self.subschemas += 1;
                if self.subschemas > MAX_SUBSCHEMAS {
                    return Err(refusal(format!("the schema has more than {MAX_SUBSCHEMAS} subschemas")));
                }
                self.patterns += usize::from(members.get("pattern").is_some_and(Value::is_string));
                self.patterns +=
                    members.get("patternProperties").and_then(Value::as_object).map_or(0, |p| p.len());
                let base = self.addressed(value, base);
                for name in ["$anchor", "$dynamicAnchor"] {
                    if let Some(name) = members.get(name).and_then(Value::as_str) {
                        self.anchors.entry(name).or_default().push((value, base));
                    }
                }
                members.values().try_for_each(|inner| self.read(inner, base, depth + 1))
            }
            Value::Array(items) => items.iter().try_for_each(|inner| self.read(inner, base, depth + 1)),
            _ => Ok(()),
        }
    }

    /// The schema that references in `value` are relative to.
    fn addressed(&mut self, value: &'a Value, base: &'a Value) -> &'a Value {
        match id(value) {
            Some(id) => {
                self.addressed.push((id, value));
                value
            }
            None => base,
        }
    }

    /// What a reference leads to, and what references there are relative to.
    fn find(&self, reference: &str, base: &'a Value) -> Vec<(&'a Value, &'a Value)> {
        let (address, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let bases: Vec<&Value> = match address {
            "" => vec![base, self.root],
            address => {
                let named = |id: &str| {
                    let id = id.trim_end_matches('#');
                    id == address || id.ends_with(&format!("/{}", address.trim_start_matches('/')))
                };
                self.addressed.iter().filter(|(id, _)| named(id)).map(|(_, value)| *value).collect()
            }
        };
        if fragment.is_empty() {
            return bases.into_iter().take(1).map(|base| (base, base)).collect();
        }
        if fragment.starts_with('/') {
            let decoded = percent_decoded(fragment);
            return bases.into_iter().find_map(|base| pointed(base, &decoded)).into_iter().collect();
        }
        self.anchors.get(fragment).cloned().unwrap_or_default()
    }
}

fn id(value: &Value) -> Option<&str> {
    value.get("$id").and_then(Value::as_str).filter(|id| !id.starts_with('#'))
}

/// What a JSON pointer leads to, and the innermost schema with an address on the way.
fn pointed<'a>(base: &'a Value, pointer: &str) -> Option<(&'a Value, &'a Value)> {
    let (mut at, mut base) = (base, base);
    for part in pointer.split('/').skip(1) {
        let part = part.replace("~1", "/").replace("~0", "~");
        at = match at {
            Value::Object(members) => members.get(&part)?,
            Value::Array(items) => items.get(part.parse::<usize>().ok()?)?,
            _ => return None,
        };
        if id(at).is_some() {
            base = at;
        }
    }
    Some((at, base))
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let code = after.get(..2).and_then(|code| std::str::from_utf8(code).ok());
        match code.filter(|_| byte == b'%').and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(decoded) => {
                bytes.push(decoded);
                rest = &after[2..];
            }
            None => {
                bytes.push(byte);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

struct Building<'a> {
    index: &'a Index<'a>,
    nodes: Vec<Node>,
    /// The nodes of values, which are told apart by where they are.
    found: HashMap<*const Value, usize>,
    open: Vec<(usize, &'a Value, &'a Value)>,
}

impl<'a> Building<'a> {
    /// The node of a subschema, read later if it is new.
    fn node(&mut self, schema: &'a Value, base: &'a Value) -> usize {
        let next = self.nodes.len();
        *self.found.entry(std::ptr::from_ref(schema)).or_insert_with(|| {
            self.nodes.push(Node::default());
            self.open.push((next, schema, base));
            next
        })
    }

    fn read(&mut self, schema: &'a Value, base: &'a Value) -> Result<Node, Unusable> {
        let mut node = Node { weight: 1, ..Node::default() };
        let Value::Object(members) = schema else { return Ok(node) };
        let base = if id(schema).is_some() { schema } else { base };
        let is_schema = |value: &Value| value.is_object() || value.is_boolean();
        for (keyword, value) in members {
            let mut list = |of: &'a Value| -> Vec<usize> {
                of.as_array().into_iter().flatten().map(|one| self.node(one, base)).collect()
            };
            match (keyword.as_str(), value) {
                (name, _) if IN_PLACE.contains(&name) => node.in_place.push(self.node(value, base)),
                (name, _) if IN_PLACE_LISTS.contains(&name) => node.in_place.extend(list(value)),
                (name, Value::Object(named)) if IN_PLACE_MAPS.contains(&name) => {
                    let schemas = named.values().filter(|one| is_schema(one));
                    node.in_place.extend(schemas.map(|one| self.node(one, base)));
                }
                (name, Value::String(to)) if REFERENCES.contains(&name) => {
                    node.in_place.extend(self.reference(to, base)?);
                }
                ("properties", Value::Object(named)) => {
                    node.members =
                        named.iter().map(|(n, one)| (n.as_str().into(), self.node(one, base))).collect();
                }
                ("patternProperties", Value::Object(named)) => {
                    node.all_members.extend(named.values().map(|one| self.node(one, base)));
                    node.weight += named.keys().map(|pattern| pattern_weight(pattern)).sum::<u64>();
                }
                ("additionalProperties", _) => node.other_members.push(self.node(value, base)),
                ("unevaluatedProperties", _) => node.all_members.push(self.node(value, base)),
                ("propertyNames", _) => node.names.push(self.node(value, base)),
                ("prefixItems", Value::Array(_)) => node.elements = list(value),
                ("items", Value::Array(_)) => node.elements = list(value),
                ("items" | "additionalItems" | "unevaluatedItems" | "contains", _) => {
                    node.all_elements.push(self.node(value, base));
                }
                ("enum", Value::Array(values)) => node.weight += values.len() as u64,
                ("pattern", Value::String(pattern)) => node.weight += pattern_weight(pattern),
                _ => {}
            }
        }
        // What was not evaluated is found out by checking everything in place once more.
        if members.contains_key("unevaluatedProperties") || members.contains_key("unevaluatedItems") {
            node.in_place.extend_from_within(..);
        }
        Ok(node)
    }

    fn reference(&mut self, to: &'a str, base: &'a Value) -> Result<Vec<usize>, Unusable> {
        let found = self.index.find(to, base);
        if found.is_empty() && !is_meta_schema(to) {
            let to: String = to.chars().take(200).collect();
            return Err(refusal(format!(
                "it refers to {to}, which is not in the schema, and nothing is fetched"
            )));
        }
        Ok(found.into_iter().map(|(schema, base)| self.node(schema, base)).collect())
    }
}

/// The schemas of schemas, which come with the compiler and take no more work than their value is large.
fn is_meta_schema(reference: &str) -> bool {
    let address = reference.trim_start_matches("https://").trim_start_matches("http://");
    address.starts_with("json-schema.org/draft")
}

fn pattern_weight(pattern: &str) -> u64 {
    let slow = pattern.contains("(?=") || pattern.contains("(?!") || pattern.contains("(?<");
    let again =
        pattern.as_bytes().windows(2).any(|pair| pair[0] == b'\\' && (b'1'..=b'9').contains(&pair[1]));
    if slow || again { SLOW_PATTERN } else { 1 }
}
