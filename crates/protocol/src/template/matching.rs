//! Finding the variables of a URI: the reverse of expanding.
//!
//! A template is compiled to a few steps, and a table of `steps × bytes` says from where the end can be reached.
//! It is filled from the end of the URI backwards with constant work per entry, so time is linear and no URI can make
//! it backtrack; the walk forward then takes the longest choice that reaches the end, so the outcome is always the
//! same.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

use super::parse::is_name_byte;
use super::{Modifier, Operator, Part, Template, Var, is_triplet, is_unreserved};

/// URIs beyond this length match nothing.
const MAX_URI: usize = 64 * 1024;

impl Template {
    /// The variables of a URI that this template could have made, percent-decoded, in their order; `None` if it could
    /// not.
    ///
    /// - A variable of `{x}` and `{+x}` has at least one character; the other expressions may be missing as a whole,
    ///   and so may the later variables of `{x,y}`.
    /// - An exploded variable appears once per value. Named values (`;`, `?`, `&`) are taken in any order.
    /// - Where several readings are possible, earlier variables take as much as they can.
    /// - URIs written by hand often leave characters such as `:`, `@` or spaces bare. If no strict reading is found, a
    ///   variable of `{x}` matches everything but `/`, `?` and `#`.
    /// - The same variable twice must have the same value twice; `{x:1}` must be the start of `{x}`.
    ///
    /// Values are decoded, so `%2F` becomes `/`: who uses one as a path must check it like any other input.
    pub fn matches(&self, uri: &str) -> Option<Vec<(String, String)>> {
        // A long list of templates is searched by trying each: most differ in their first letters.
        if let Some(Part::Literal(start)) = self.parts.first() {
            if start.is_ascii() && !start.contains('%') && !uri.starts_with(start.as_str()) {
                return None;
            }
        }
        if uri.len() > MAX_URI {
            return None;
        }
        let uri = normalised(uri);
        let strict = Table::fill(&self.program, &uri, false).and_then(|table| table.walk());
        strict.or_else(|| Table::fill(&self.program, &uri, true).and_then(|table| table.walk()))
    }
}

/// The steps of a template. A step leads to the next one unless it says otherwise.
#[derive(Clone)]
pub(super) struct Program {
    steps: Vec<Step>,
    vars: Vec<Var>,
}

#[derive(Clone)]
enum Step {
    /// Exactly this text.
    Literal(String),
    /// As many bytes of a class as possible, at least one if `some`, into a variable.
    Run { var: usize, class: Class, some: bool },
    /// `name` or `name=value` with a name out of `vars`; then back to step `again`.
    Named { vars: std::ops::Range<usize>, class: Class, again: usize },
    /// The next step if the end can be reached from there, else `other`.
    Either { other: usize },
}

/// Which bytes a variable may hold.
#[derive(Clone, Copy)]
struct Class {
    /// Everything but these: the strict reading allows unreserved characters besides.
    never: &'static [u8],
    /// Whether reserved characters may stand in the strict reading too.
    reserved: bool,
}

impl Class {
    fn holds(self, bytes: &[u8], at: usize, loose: bool) -> bool {
        let b = bytes[at];
        let strict = is_unreserved(b) || is_triplet(&bytes[at..]);
        (strict || loose || self.reserved) && !self.never.contains(&b)
    }
}

impl Program {
    pub(super) fn compile(parts: &[Part]) -> Program {
        let mut program = Program { steps: Vec::new(), vars: Vec::new() };
        for part in parts {
            match part {
                Part::Literal(text) => program.steps.push(Step::Literal(upper_triplets(text).into_owned())),
                Part::Expression { operator, vars } => {
                    let first = program.vars.len();
                    program.vars.extend(vars.iter().cloned());
                    let range = first..program.vars.len();
                    if operator.named() { program.named(*operator, range) } else { program.listed(*operator, range) }
                }
            }
        }
        program
    }

    /// `first name=value (separator name=value)*`, or nothing.
    fn named(&mut self, operator: Operator, vars: std::ops::Range<usize>) {
        let class = Class {
            never: if operator == Operator::Param { b";/?#" } else { b"&#" },
            reserved: false,
        };
        // Either `first` and one pair, or past the end; after a pair, either `separator` and one more, or the end.
        let start = self.steps.len();
        let end = start + 6;
        self.steps.push(Step::Either { other: end });
        self.steps.push(Step::Literal(operator.first().to_owned()));
        self.steps.push(Step::Named { vars: vars.clone(), class, again: start + 3 });
        self.steps.push(Step::Either { other: end });
        self.steps.push(Step::Literal(operator.separator().to_owned()));
        self.steps.push(Step::Named { vars, class, again: start + 3 });
    }

    /// `first value (separator value)*`.
    fn listed(&mut self, operator: Operator, vars: std::ops::Range<usize>) {
        let optional = !matches!(operator, Operator::Simple | Operator::Reserved);
        let several = vars.len() > 1 || self.vars[vars.start].modifier == Modifier::Explode;
        let class = Class {
            never: match (operator, several) {
                (Operator::Simple, false) => b"/?#",
                (Operator::Simple, true) => b",/?#",
                (Operator::Label, false) => b"/?#",
                (Operator::Label, true) => b"./?#",
                (Operator::Path, _) => b"/?#",
                _ => b"",
            },
            reserved: operator.keeps_reserved(),
        };
        let mut exits = Vec::new();
        for (i, var) in vars.enumerate() {
            let lead = if i == 0 { operator.first() } else { operator.separator() };
            if optional || i > 0 {
                exits.push(self.steps.len());
                self.steps.push(Step::Either { other: usize::MAX });
            }
            if !lead.is_empty() {
                self.steps.push(Step::Literal(lead.to_owned()));
            }
            self.steps.push(Step::Run { var, class, some: !optional });
            // One value more, as often as there is one. A class that holds the separator takes all of them at once.
            let loops = self.vars[var].modifier == Modifier::Explode && !class.reserved;
            if loops {
                let again = self.steps.len();
                self.steps.push(Step::Either { other: again + 3 });
                self.steps.push(Step::Literal(operator.separator().to_owned()));
                self.steps.push(Step::Run { var, class, some: !optional });
                self.steps.push(Step::Either { other: again });
            }
        }
        let end = self.steps.len();
        for exit in exits {
            self.steps[exit] = Step::Either { other: end };
        }
    }
}
