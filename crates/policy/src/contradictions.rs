//! Rules that can never decide anything, because others come first.

use crate::problem::{Problem, RuleField};
use crate::rule::{Rule, RuleSpec};

/// Finds rules with the same name, and rules that are never reached: if that changes what is decided, it is a mistake, else a note.
pub(crate) fn find(
    specs: &[RuleSpec],
    rules: &[Option<Rule>],
    problems: &mut Vec<Problem>,
    notes: &mut Vec<(usize, String)>,
) {
    for (later, spec) in specs.iter().enumerate() {
        let before = &specs[..later];
        if let Some(first) = before.iter().position(|other| other.name.is_some() && other.name == spec.name) {
            let sentence =
                format!("is also the name of {}: decisions could not be told apart", place(specs, first));
            problems.push(Problem::with(later, RuleField::Name, sentence));
        }
        let Some(rule) = &rules[later] else { continue };
        let hides = |earlier: &usize| {
            let first = rules[*earlier].as_ref();
            first.is_some_and(|first| {
                let condition = specs[*earlier].when.is_none() || specs[*earlier].when == spec.when;
                condition && is_for_all_of(&specs[*earlier], spec) && first.selection.covers(&rule.selection)
            })
        };
        let Some(first) = (0..later).find(hides) else { continue };
        let decided = format!("{} decides about everything that it is about", place(specs, first));
        match rules[first].as_ref().is_some_and(|first| first.allows == rule.allows) {
            true => notes.push((later, format!("has no effect: {decided}."))),
            false => problems.push(Problem::of(
                later,
                format!("contradicts {}: it is never reached, because {decided}. Move it up, or remove one of them", place(specs, first)),
            )),
        }
    }
}

/// Whether a rule is for everybody that another is for.
fn is_for_all_of(rule: &RuleSpec, other: &RuleSpec) -> bool {
    rule.audience().into_iter().zip(other.audience()).all(|((_, own), (_, others))| match (own, others) {
        (None, _) => true,
        (Some(own), Some(others)) => others.iter().all(|one| own.contains(one)),
        (Some(_), None) => false,
    })
}

/// A rule in words.
fn place(specs: &[RuleSpec], index: usize) -> String {
    match (&specs[index].name, specs[index].line) {
        (Some(name), Some(line)) => format!("the rule {name:?} (line {line})"),
        (Some(name), None) => format!("the rule {name:?}"),
        (None, Some(line)) => format!("the rule at line {line}"),
        (None, None) => format!("rule {}", index + 1),
    }
}
