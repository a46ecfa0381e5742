//! A template as steps that a matcher can follow.

use std::ops::Range;

use super::matching::normalised;
use super::parse::is_name_byte;
use super::{Modifier, Operator, Part, Var, is_triplet, is_unreserved};

/// The steps of a template, one after the other unless a step says where it leads.
///
/// Steps that consume nothing only lead forward. That is what lets the table be filled in one pass.
#[derive(Clone)]
pub(super) struct Program {
    pub(super) steps: Vec<Step>,
    pub(super) vars: Vec<Var>,
}

#[derive(Clone)]
pub(super) enum Step {
    /// Exactly this text, which is not empty; then step `next`.
    Literal { text: String, next: usize },
    /// As many bytes of a class as possible, at least one if `some`, into a variable.
    Run { var: usize, class: Class, some: bool },
    /// `name` or `name=value`, with a name out of `vars`.
    Named { vars: Range<usize>, class: Class },
    /// The next step if the end can be reached from there, else `other`.
    Either { other: usize },
}

/// Which bytes a variable may hold.
#[derive(Clone, Copy)]
pub(super) struct Class {
    /// Never these.
    never: &'static [u8],
    /// Whether anything else may stand in the strict reading too, not only unreserved characters.
    any: bool,
}

impl Class {
    pub(super) fn holds(self, bytes: &[u8], at: usize, loose: bool) -> bool {
        let b = bytes[at];
        (self.any || loose || is_unreserved(b) || is_triplet(&bytes[at..])) && !self.never.contains(&b)
    }
}

impl Program {
    pub(super) fn compile(parts: &[Part]) -> Program {
        let mut program = Program { steps: Vec::new(), vars: Vec::new() };
        for part in parts {
            match part {
                Part::Literal(text) => program.literal(&normalised(text)),
                Part::Expression { operator, vars } => {
                    let first = program.vars.len();
                    program.vars.extend(vars.iter().cloned());
                    let range = first..program.vars.len();
                    if operator.named() {
                        program.named(*operator, range)
                    } else {
                        program.listed(*operator, range)
                    }
                }
            }
        }
        program
    }

    fn literal(&mut self, text: &str) {
        let next = self.steps.len() + 1;
        self.steps.push(Step::Literal { text: text.to_owned(), next });
    }

    /// Nothing, or `first name=value (separator name=value)*`.
    fn named(&mut self, operator: Operator, vars: Range<usize>) {
        let never: &[u8] = if operator == Operator::Param { b";/?#" } else { b"&#" };
        let start = self.steps.len();
        let (pair, end) = (start + 2, start + 5);
        self.steps.push(Step::Either { other: end });
        self.literal(operator.first());
        self.steps.push(Step::Named { vars, class: Class { never, any: false } });
        self.steps.push(Step::Either { other: end });
        self.steps.push(Step::Literal { text: operator.separator().to_owned(), next: pair });
    }

    /// `first value (separator value)*`, where all but the first value of `{x}` and `{+x}` may be missing.
    fn listed(&mut self, operator: Operator, vars: Range<usize>) {
        let required = matches!(operator, Operator::Simple | Operator::Reserved);
        let several = vars.len() > 1 || self.vars[vars.start].modifier == Modifier::Explode;
        let class = Class {
            never: match operator {
                Operator::Simple if several => b",/?#",
                Operator::Label if several => b"./?#",
                Operator::Simple | Operator::Label | Operator::Path => b"/?#",
                _ => b"",
            },
            any: operator.keeps_reserved(),
        };
        let mut exits = Vec::new();
        for (i, var) in vars.enumerate() {
            if i > 0 || !required {
                exits.push(self.steps.len());
                self.steps.push(Step::Either { other: usize::MAX });
                self.literal(if i == 0 { operator.first() } else { operator.separator() });
            }
            let run = self.steps.len();
            self.steps.push(Step::Run { var, class, some: required });
            // One value more, as often as there is one. Where values may hold the separator, one takes them all.
            if self.vars[var].modifier == Modifier::Explode && !class.any {
                self.steps.push(Step::Either { other: run + 3 });
                self.steps.push(Step::Literal { text: operator.separator().to_owned(), next: run });
            }
        }
        let end = self.steps.len();
        for exit in exits {
            self.steps[exit] = Step::Either { other: end };
        }
    }

    /// The variable whose name stands at `at`, and where the name ends.
    pub(super) fn name_at(&self, vars: &Range<usize>, bytes: &[u8], at: usize) -> Option<(usize, usize)> {
        let found = vars.clone().filter_map(|var| {
            let end = at + self.vars[var].name.len();
            let whole = bytes.get(end).is_none_or(|&b| !is_name_byte(b) && b != b'.' && b != b'%');
            (bytes[at..].starts_with(self.vars[var].name.as_bytes()) && whole).then_some((var, end))
        });
        found.max_by_key(|&(_, end)| end)
    }
}
