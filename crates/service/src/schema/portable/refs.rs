//! [`Refs`]: what the references of a schema lead to, and which of them can be written out in place.

use std::collections::{HashMap, HashSet, VecDeque};

use serde_json::Value;

use super::super::references::{Index, Target};
use super::bytes;
use super::keywords::{Holds, holds, subschemas};

/// A definition of up to this many bytes is written out wherever it is used. What is used once always is.
const SMALL: usize = 1500;
/// Unless all of them together would take more than this.
const MAX_WRITTEN_OUT: usize = 32 * 1024;
/// How many definitions a schema may refer to: far more than people write.
const MAX_TARGETS: usize = 256;

/// What a schema refers to.
pub(super) struct Refs<'a> {
    root: &'a Value,
    index: Index<'a>,
    targets: HashMap<*const Value, Referred>,
    /// Whether small definitions are written out wherever they are used.
    writes_out: bool,
    /// Whether what was not evaluated is looked for: among properties, and among items.
    pub(super) unevaluated_properties: bool,
    pub(super) unevaluated_items: bool,
}

/// One part of the schema that something refers to.
#[derive(Default)]
struct Referred {
    /// How many references lead to it.
    uses: usize,
    /// What it refers to itself, as often as it does.
    to: Vec<*const Value>,
    /// About how many bytes it has.
    size: usize,
    recursive: bool,
}

impl<'a> Refs<'a> {
    /// Looks at a whole schema; `None` if it refers to somewhere else, in a way of its own, or is too large.
    pub(super) fn of(root: &'a Value, steps: &mut usize) -> Option<Refs<'a>> {
        let mut index = Index::of(root);
        index.read(root, 0).ok()?;
        let mut refs = Refs {
            root,
            index,
            targets: HashMap::new(),
            writes_out: false,
            unevaluated_properties: false,
            unevaluated_items: false,
        };
        // What stands where no keyword holds schemas is found only by whoever refers to it.
        let mut open: VecDeque<(&Value, usize)> =
            refs.below(root, steps)?.0.into_iter().map(|target| (target, 1)).collect();
        while let Some((target, uses)) = open.pop_front() {
            let key = std::ptr::from_ref(target);
            if let Some(known) = refs.targets.get_mut(&key) {
                known.uses += uses;
                continue;
            }
            if refs.targets.len() >= MAX_TARGETS {
                return None;
            }
            let (found, size) = refs.below(target, steps)?;
            open.extend(found.iter().map(|target| (*target, 0)));
            let to = found.into_iter().map(std::ptr::from_ref).collect();
            refs.targets.insert(key, Referred { uses, to, size, recursive: false });
        }
        let recursive: HashSet<_> =
            refs.targets.keys().copied().filter(|key| refs.leads_back(*key)).collect();
        refs.targets.iter_mut().for_each(|(key, target)| target.recursive = recursive.contains(key));
        let sizes = refs.targets.values().map(|target| match refs.written_out(target) {
            size if size <= SMALL => size.saturating_mul(target.uses),
            _ => 0,
        });
        refs.writes_out = sizes.sum::<usize>() <= MAX_WRITTEN_OUT;
        Some(refs)
    }

    /// What a schema and everything in it refers to, and about how many bytes it has.
    fn below(&mut self, schema: &'a Value, steps: &mut usize) -> Option<(Vec<&'a Value>, usize)> {
        let (mut found, mut size) = (Vec::new(), 0);
        let mut open = vec![schema];
        while let Some(schema) = open.pop() {
            *steps = steps.checked_sub(1)?;
            let Value::Object(members) = schema else { continue };
            size += members.iter().map(|(keyword, value)| own_bytes(keyword, value)).sum::<usize>();
            if members.contains_key("$dynamicRef") || members.contains_key("$recursiveRef") {
                return None;
            }
            if let Some(Value::String(to)) = members.get("$ref") {
                found.push(self.find(to)?);
            }
            self.unevaluated_properties |= members.contains_key("unevaluatedProperties");
            self.unevaluated_items |= members.contains_key("unevaluatedItems");
            open.extend(subschemas(members).map(|(_, _, schema)| schema));
        }
        Some((found, size))
    }

    /// What a reference leads to, if that is a part of the schema.
    pub(super) fn find(&self, to: &str) -> Option<&'a Value> {
        match self.index.find(to).ok()? {
            Target::Here(schema) => Some(schema),
            Target::MetaSchema => None,
        }
    }

    fn leads_back(&self, start: *const Value) -> bool {
        let mut seen = HashSet::new();
        let mut open = vec![start];
        while let Some(at) = open.pop() {
            for &next in self.targets.get(&at).map_or(&[][..], |target| &target.to) {
                if next == start {
                    return true;
                }
                if seen.insert(next) {
                    open.push(next);
                }
            }
        }
        false
    }

    /// Whether any part contains itself.
    pub(super) fn has_recursion(&self) -> bool {
        self.targets.values().any(|referred| referred.recursive)
    }

    pub(super) fn is_root(&self, target: &Value) -> bool {
        std::ptr::eq(self.root, target)
    }

    /// Whether a part can stand wherever something refers to it.
    pub(super) fn can_be_inlined(&self, target: &Value) -> bool {
        self.targets.get(&std::ptr::from_ref(target)).is_some_and(|referred| {
            !referred.recursive
                && (referred.uses <= 1 || (self.writes_out && self.written_out(referred) <= SMALL))
        })
    }

    /// About how many bytes a part has when all that it refers to is written out, as far as that matters.
    fn written_out(&self, referred: &Referred) -> usize {
        let mut size = referred.size;
        let mut open = referred.to.clone();
        while let Some(next) = open.pop()
            && size <= SMALL
        {
            let Some(next) = self.targets.get(&next).filter(|next| !next.recursive) else { continue };
            // At least one, so that this ends.
            size += next.size.max(1);
            open.extend(&next.to);
        }
        size
    }
}

/// How many bytes a keyword has without the subschemas that it holds.
fn own_bytes(keyword: &str, value: &Value) -> usize {
    keyword.len()
        + match (holds(keyword), value) {
            (Holds::Data, data) => bytes(data),
            (_, Value::Object(named)) => named.keys().map(|name| name.len() + 4).sum(),
            _ => 4,
        }
}
